"""A user's own programs: what they compute, in which numbers, and that nothing compiles twice."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.caches import quiet, without_programs

import isthmus as ist
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.compile.code_cache import kernels_folder

INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
OWN = """
import isthmus as ist
from math import inf


@ist.monotone(initial=-inf, combine="max", start=1.0, column="chance")
def reliable(chance, weight, decay=1.0):
    return chance * weight * decay


g = ist.read(([0, 0, 1, 2], [1, 2, 3, 3], [0.5, 0.9, 0.9, 0.5]))
print(ist.run(reliable(source=0), g).values.tolist())
"""


@pytest.fixture(scope="module")
def graph():
    return ist.read((np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.array([5, 3, 9, 40], np.int32)))


@pytest.fixture(scope="module")
def real_graph():
    return ist.read((np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.array([5, 3, 9, 40], np.float64) / 4))


@ist.monotone(initial=math.inf, start=0)
def steps(distance, by=1):
    return distance + by


def compiled_modules():
    return {name: module for name, module in sys.modules.items() if name.startswith("isthmus_program_")}


def kept_files():
    return set(kernels_folder().glob("isthmus_program_*"))


def test_a_program_of_a_user_in_under_15_lines(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    assert len(OWN.strip().splitlines()) < 15
    outcome = subprocess.run([sys.executable, tmp_path / "own.py"], text=True, capture_output=True)
    assert (outcome.stdout, quiet(outcome.stderr)) == ("[1.0, 0.5, 0.9, 0.45]\n", "")


def test_a_real_parameter_of_a_whole_program(graph):
    """Half steps are not cut to none."""
    assert ist.run(steps(0), graph).values.tolist() == [0, 1, 2, 1]
    result = ist.run(steps(0, by=0.5), graph)
    assert (result.values.dtype, result.values.tolist()) == (np.float64, [0, 0.5, 1.0, 0.5])


def test_reals_that_appear_only_on_the_way(graph):
    """The first message is whole; a later one is not."""

    @ist.monotone(initial=math.inf, start=0)
    def late(distance, weight):
        return distance + weight if distance < 5 else distance + 0.5

    assert ist.run(late(0), graph).values.tolist() == [0, 5.0, 5.5, 6.0]

    @ist.monotone(initial=math.inf, start=0)
    def halved(distance, weight):
        return (distance + weight) / 2

    assert ist.run(halved(0), graph).values.tolist() == [0, 2.5, 2.75, 5.875]

    @ist.monotone(initial=math.inf, start=0)
    def limited(distance):
        return distance + 1 if distance < 1 else inf  # noqa: F821

    assert ist.run(limited(0), graph).filled().tolist() == [0, 1, math.inf, 1]


def test_whole_in_whole_out(graph):
    @ist.monotone(initial=-math.inf, combine="max", start=math.inf)
    def widest(width, weight):
        return min(width, weight)

    assert ist.run(widest(0), graph).filled().tolist() == [INT_MAX, 5, 3, 40]
    result = ist.run(widest(1), graph)
    assert result.filled().tolist() == [INT_MIN, INT_MAX, 3, 3]
    assert result.to_arrow()["value"].to_pylist()[0] is None


def test_real_weights_stay_real(real_graph):
    """`min` of a whole value and a real weight is real, whichever wins."""

    @ist.monotone(initial=-math.inf, combine="max", start=math.inf)
    def widest(width, weight):
        return min(width, weight)

    assert ist.run(widest(0), real_graph).values.tolist() == [math.inf, 1.25, 0.75, 10.0]


def test_the_example_of_the_style_page(graph):
    """An infinite initial value: the source starts at 0, and who knows nothing sends nothing."""

    @ist.monotone(initial=math.inf, combine="min")
    def sssp(dist, weight):
        return dist + weight

    assert ist.run(sssp(source=1), graph).filled().tolist() == [INT_MAX, 0, 3, 12]


def test_several_sources(graph):
    for sources in ([1, 0], (1, 0), {0, 1}, np.array([0, 1])):
        assert ist.run(steps(sources), graph).values.tolist() == [0, 0, 1, 1]


def test_both_sides(graph):
    @ist.monotone(initial="vertex", sides=("out", "in"))
    def smallest(value):
        return value

    for how in (
        {},
        {"memory": "1%", "policy": "filter", "far": "ram"},
        {"memory": "1%", "policy": "emogi", "far": "ram"},
    ):
        assert ist.run(smallest(), graph, **how).values.tolist() == [0, 0, 0, 0]
    alone = ist.read((np.array([0]), np.array([1])), in_edges=False)
    with pytest.raises(
        ist.StoreError, match=r"smallest follows .*was stored without .*ingest it again without in_edges=False"
    ):
        ist.run(smallest(), alone)


def test_accumulative_with_a_source_and_a_threshold(graph):
    @ist.accumulative(initial=8.0, threshold=0.5, column="mass")
    def halves(delta, degree, share=0.5):
        return share * delta / degree

    result = ist.run(halves(source=0), graph)
    assert (result.columns, result.values.tolist()) == (["mass"], [8.0, 2.0, 1.0, 2.5])
    rough = ist.run(halves(source=0, threshold=3.0), graph)
    assert rough.values.tolist() == [8.0, 2.0, 0.0, 2.0]
    assert len(rough.trace) == 1


def one(u, degree, state, params):
    return 1


def test_a_program_written_by_hand(graph):
    def count(x, u, v, w, state, params):
        atomic_add(state[0], v, x)
        return False

    class Degrees(ist.Program):
        name = "degrees"
        max_iter = 1

        def reads_weights(self):
            return False

        def functions(self, facts):
            return ist.Functions(source=one, edge=count)

        def begin(self, facts):
            return ist.State((np.zeros(facts.vertices, np.int64),), None)

        def result(self, state, facts):
            return {"degree": state.arrays[0]}

    assert ist.run(Degrees(), graph).values.tolist() == [0, 1, 1, 2]


def test_a_new_parameter_compiles_nothing(graph, tmp_path, monkeypatch):
    # A cache folder of its own: other processes write to the usual one.
    monkeypatch.setenv("ISTHMUS_CACHE", str(without_programs(tmp_path / "cache")))
    ist.run(steps(0, by=2), graph)
    modules, files = compiled_modules(), kept_files()
    signatures = {name: len(module.push_rows.signatures) for name, module in modules.items()}
    for by in (3, 1000, 2**40, np.int32(7)):
        assert ist.run(steps(0, by=by), graph).values.tolist() == [0, int(by), 2 * int(by), int(by)]
    for alpha in (0.1, 0.2):
        ist.pagerank(graph, alpha)
    first = (compiled_modules(), kept_files())
    for alpha in (0.3, 0.7):
        ist.pagerank(graph, alpha, tol=1e-3)
    assert (compiled_modules(), kept_files()) == first
    assert set(modules) <= set(compiled_modules())
    assert all(compiled_modules()[name] is module for name, module in modules.items())
    assert files <= kept_files()
    assert all(len(modules[name].push_rows.signatures) == count for name, count in signatures.items())


TIMED = """
import sys, isthmus as ist
@ist.monotone(initial=float("inf"), start=0)
def f(distance, weight, by=3):
    return distance + weight + by
said = []
g = ist.read(([0, 1], [1, 2], [4, 5]))
print(ist.run(f(0), g, {say}).values.tolist(), len(said))
"""


@pytest.fixture
def cache(tmp_path):
    """A cache folder without the program, which is written to own.py."""
    (tmp_path / "own.py").write_text(TIMED.format(say="say=said.append"))
    return without_programs(tmp_path / "cache")


def start(cache: Path) -> subprocess.Popen:
    environment, script = {**os.environ, "ISTHMUS_CACHE": str(cache)}, cache.parent / "own.py"
    return subprocess.Popen(
        [sys.executable, script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def outcome_of(cache: Path) -> tuple[str, str]:
    out, err = start(cache).communicate(timeout=100)
    return out, quiet(err)  # where our own kernels have not been kept yet, they are compiled first


def test_the_second_process_finds_machine_code_of_the_first(cache):
    assert [outcome_of(cache) for _ in range(2)] == [("[0, 7, 15] 1\n", ""), ("[0, 7, 15] 0\n", "")]
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert any(path.name.startswith("isthmus_program_") for path in kept)
    outcome_of(cache)
    assert kept == {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


def test_the_first_process_says_so_also_when_nobody_was_named_to_tell(cache):
    (cache.parent / "own.py").write_text(TIMED.format(say=""))
    assert f"isthmus: compiling f (once; kept in {cache}/kernels)\n" in start(cache).communicate(timeout=100)[1]
    assert start(cache).communicate(timeout=100) == ("[0, 7, 15] 0\n", "")


def test_two_processes_compile_the_same_program_at_once(cache):
    both = [start(cache) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=100)
        assert (out.startswith("[0, 7, 15]"), quiet(err)) == (True, "")
    assert outcome_of(cache) == ("[0, 7, 15] 0\n", "")
    assert not list(cache.rglob("*.tmp"))


def test_damaged_machine_code(cache):
    outcome_of(cache)
    for path in (cache / "kernels").glob("isthmus_program_*"):
        path.write_bytes(b"")
    assert outcome_of(cache) == ("[0, 7, 15] 1\n", "")
