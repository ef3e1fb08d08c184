"""Runs that are stopped between two iterations and go on in another process, or as if in one: the same answers, less
work.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.frontier import Frontier
from isthmus.graph.store.sealed_json import sealed
from isthmus.kernels.compile.atomics import atomic_cas
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.programs.program import State
from isthmus.runtime.checkpoint import checkpoint as checkpoints
from isthmus.runtime.checkpoint import saved_arrays
from isthmus.runtime.executor.settling_partitions import SettlingPartitions

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]
TIGHT: dict[str, Any] = {"memory": "1%", "threads": 2}
FAR: dict[str, Any] = {**TIGHT, "policy": "filter"}  # for graphs so small that the least budget holds them


class Killed(Exception):
    """Stands for a kill at a known moment."""


@ist.monotone(initial=np.inf, combine="min", start=0, column="cost")
def toll(cost, weight, base=2):
    return cost + base + weight % 5


@ist.accumulative(initial=1.0, threshold=1e-7, column="score")
def spread(delta, degree, share=0.5):
    return share * delta / degree


def level_here(u, degree, state, params):
    return params[0]


def level_above(u, degree, state, params):
    return params[0] + 1


def arrive(x, u, v, w, state, params):
    return atomic_cas(state[0], v, np.int64(-1), np.int64(x)) == -1


class Hops(ist.Program):
    """A user's own search, whose level is an attribute."""

    name = "hops"
    order_free = False

    def __init__(self, source):
        self.source = source
        self.level = 0

    def reads_weights(self):
        return False

    def functions(self, facts):
        return ist.Functions(source=level_here, edge=arrive)

    def begin(self, facts):
        hops = np.full(facts.vertices, -1, np.int64)
        root = facts.number(self.source)
        hops[root] = 0
        return State((hops,), np.array([root]), (1,))

    def before(self, state, frontier, facts):
        self.level += 1
        state.params = (self.level,)

    def result(self, state, facts):
        return {"hops": state.arrays[0]}


RUNS: dict[str, Callable[..., Any]] = {
    "bfs": lambda g, **how: ist.bfs(g, 0, **how),
    "bfs, predecessors": lambda g, **how: ist.bfs(g, 0, predecessors=True, **how),
    "sssp": lambda g, **how: ist.sssp(g, 0, **how),
    "sssp, predecessors": lambda g, **how: ist.sssp(g, 0, predecessors=True, **how),
    "widest_path": lambda g, **how: ist.widest_path(g, 0, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, **how),
    "pagerank, weights": lambda g, **how: ist.pagerank(g, weight=True, **how),
    "pagerank, dangling": lambda g, **how: ist.pagerank(g, dangling={1: 1.0}, **how),
    "pagerank, rounds": lambda g, **how: ist.pagerank(g, iterations=7, **how),
    "personalized_pagerank": lambda g, **how: ist.personalized_pagerank(g, [0, 1, 2], weight=True, **how),
    "katz": lambda g, **how: ist.katz(g, alpha=0.005, **how),
    "php": lambda g, **how: ist.php(g, 0, weight=True, **how),
    "multi_source_bfs": lambda g, **how: ist.multi_source_bfs(g, [0, 1, 2], **how),
    "betweenness_centrality": lambda g, **how: ist.betweenness_centrality(g, k=20, **how),
    "label_propagation": lambda g, **how: ist.label_propagation(g, max_iter=2, **how),
    "core_number": lambda g, **how: ist.core_number(g, **how),
    "strongly_connected_components": lambda g, **how: ist.strongly_connected_components(g, **how),
    "minimum_spanning_forest": lambda g, **how: ist.minimum_spanning_forest(g, **how),
    "triangle_count": lambda g, **how: ist.triangle_count(g, **how),
    "local_clustering_coefficient": lambda g, **how: ist.local_clustering_coefficient(g, **how),
    "circuit": lambda g, **how: ist.circuit(g, {0: 1.0, 1: 0.0}, **how),
    "own, monotone": lambda g, **how: ist.run(toll(source=0, base=3), g, **how),
    "own, accumulative": lambda g, **how: ist.run(spread(source=0), g, **how),
    "own, by hand": lambda g, **how: ist.run(Hops(0), g, **how),
}
SYNCHRONOUS = (  # those whose iterations are the same every time
    "bfs",
    "pagerank",
    "pagerank, rounds",
    "personalized_pagerank",
    "katz",
    "multi_source_bfs",
    "betweenness_centrality",
    "label_propagation",
    "core_number",
    "triangle_count",
    "own, by hand",
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Directed, with weights, self loops and parallel edges, in hub order."""
    draw = np.random.default_rng(5)
    ends = (600 * draw.random((2, 6000)) ** 2).astype(np.int64)
    weights = draw.integers(1, 50, 6000).astype(np.int32)
    path = tmp_path_factory.mktemp("graph") / "g.isthmus"
    with ist.ingest((*ends, weights), path, vertices=620, order="hub") as graph:
        yield graph


@pytest.fixture(scope="module")
def undirected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("undirected") / "g.isthmus"
    with ist.generate("rmat", path, scale=13, weights="1:99", seed=3) as graph:
        yield graph


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only processes die here, not the power."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


def columns(result: Any) -> dict[str, Any]:
    return {name: np.asarray(result.raw(name)) for name in result.columns if name != "predecessor"}


def assert_same(name: str, expected: Any, got: Any) -> None:
    for column, values in columns(expected).items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(columns(got)[column], values, rtol=1e-5, atol=2e-6, err_msg=f"{name} {column}")
        else:
            np.testing.assert_array_equal(columns(got)[column], values, f"{name} {column}")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def there(folder: Path) -> list[str]:
    """The names in a folder that may vanish at any moment."""
    try:
        return names(folder)
    except FileNotFoundError:
        return []


def stop_after(count: int) -> Callable[[Any], None]:
    """Raise at the end of an iteration: its checkpoint is not written any more, that of the one before is there."""
    seen = 0

    def watch(iteration: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            raise Killed

    return watch


def stopped(run: Callable[..., Any], graph: Any, folder: Path, count: int, **how: Any) -> list[str]:
    """The checkpoints after a run that was killed in its `count`-th iteration."""
    with pytest.raises(Killed):
        run(graph, checkpoint=folder, checkpoint_every=0, watch=stop_after(count), **{**TIGHT, **how})
    return names(folder)


@pytest.mark.parametrize("policy", ["filter", "subway"])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_from_every_boundary(name, policy, graph, folder, tmp_path):
    run, how = RUNS[name], {**TIGHT, "policy": policy}
    expected = run(graph, **how)
    copies: list[Path] = []

    def copy(iteration: Any) -> None:
        copies.append(tmp_path / f"copy-{len(copies)}")
        shutil.copytree(folder, copies[-1])

    assert_same(name, expected, run(graph, checkpoint=folder, checkpoint_every=0, watch=copy, **how))
    assert not folder.exists()
    wanted = [copy for copy in copies if names(copy)]
    for source in wanted if len(wanted) < 20 else wanted[:: len(wanted) // 10]:
        shutil.copytree(source, folder)
        done = [int(entry.split("-")[-1]) for entry in names(folder)]
        result = run(graph, checkpoint=folder, checkpoint_every=99, **how)
        assert_same(name, expected, result)
        assert any(f"resumed after {done[-1]} iterations" in note for note in result.trace.notes)
        if name in SYNCHRONOUS and policy == "filter":
            assert len(result.trace) == len(expected.trace) - sum(done)
        assert not folder.exists()
    assert wanted


@pytest.mark.parametrize("name", ["bfs", "sssp", "widest_path", "label_propagation", "core_number", "triangle_count"])
def test_undirected_graphs(name, undirected, folder):
    """Searches that turn round; frontiers too large for a list."""
    run = RUNS[name]
    expected = run(undirected, **FAR)
    for count in (2, 3, 4):
        assert stopped(run, undirected, folder, count, **FAR) == [f"pass-1.iteration-{count - 1}"]
        assert_same(name, expected, run(undirected, checkpoint=folder, **FAR))


def test_recipe_and_threads_may_change(undirected, folder):
    expected = ist.sssp(undirected, 0, **TIGHT)
    for policy, threads in (("filter", 1), ("emogi", 3), ("subway", 2), ("auto", 4), ("scaph", 2), ("hytgraph", 2)):
        stopped(RUNS["sssp"], undirected, folder, 3, policy="auto")
        result = ist.sssp(undirected, 0, memory="5%", policy=policy, threads=threads, checkpoint=folder)
        assert_same("sssp", expected, result)
        assert any("resumed after 2 iterations" in note for note in result.trace.notes)


def test_edges_may_fit_the_next_time(undirected, folder):
    stopped(RUNS["bfs"], undirected, folder, 3, **FAR)
    result = ist.bfs(undirected, 0, checkpoint=folder)
    assert result.summary()["policy"] == "resident"
    assert any("resumed after 2 iterations" in note for note in result.trace.notes)
    assert_same("bfs", ist.bfs(undirected, 0), result)


SCRIPT = """
import os, signal, sys
import isthmus as ist
from tests.runtime.checkpoint.test_checkpoint import RUNS

def watch(iteration):
    if iteration.number == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

graph, where = ist.open(sys.argv[2]), sys.argv[3]
RUNS[sys.argv[1]](graph, checkpoint=where, checkpoint_every=0, memory="1%", policy="filter", watch=watch)
"""
KILLED = {
    "bfs": 2,
    "sssp": 3,
    "pagerank": 5,
    "katz": 3,
    "label_propagation": 4,
    "core_number": 6,
    "multi_source_bfs": 2,
    "own, monotone": 3,
    "own, accumulative": 5,
    "own, by hand": 2,
    "bfs, predecessors": 2,
    "triangle_count": 1,
}


@pytest.mark.parametrize("name", KILLED)
def test_kill_9(name, graph, folder):
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", SCRIPT, name, str(graph.path), str(folder), str(KILLED[name])]
    killed = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{root}/src:{root}"}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert f"pass-1.iteration-{KILLED[name]}" in names(folder)
    expected = RUNS[name](graph, **FAR)
    result = RUNS[name](graph, checkpoint=folder, **FAR)
    assert_same(name, expected, result)
    assert any(f"resumed after {KILLED[name]} iterations" in note for note in result.trace.notes)
    assert len(result.trace) < len(expected.trace)
    assert not folder.exists()


def test_killed_at_any_moment(undirected, folder, tmp_path):
    """By the command line, again and again, also in the middle of writing."""
    command = [
        *COMMAND,
        "run",
        "pagerank",
        str(undirected.path),
        "--memory",
        "1%",
        "--policy",
        "filter",
        "--tol",
        "1e-12",
    ]
    command += ["-o", str(tmp_path / "ranks.npy"), "--checkpoint", str(folder), "--checkpoint-every", "0"]
    kills, last_try = 0, time.monotonic() + 60
    for wait in itertools.cycle((0.0, 0.05, 0.11, 0.02, 0.08)):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        before, end = there(folder), time.monotonic() + 60
        while process.poll() is None and there(folder) in (before, []) and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(wait)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        process.communicate()
        if kills == 5 or time.monotonic() > last_try:
            break
    assert kills, "it was always too quick"
    last = subprocess.run(command, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    np.testing.assert_allclose(np.load(tmp_path / "ranks.npy"), ist.pagerank(undirected, tol=1e-12).values, atol=1e-11)
    assert not folder.exists()


# Settling


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ist.generate(
        "grid", tmp_path_factory.mktemp("grid") / "g.isthmus", rows=300, columns=300, seed=1, weights="1:255"
    ) as graph:
        yield graph


@pytest.mark.parametrize(
    ("name", "threads"),
    [("bfs", 1), ("bfs", 2), ("bfs", 5), ("sssp", 5), ("widest_path", 1), ("own, monotone", 2), ("own, monotone", 5)],
)
def test_settling(name, threads, grid, folder, sized):
    """Partitions that are worked to a standstill stand still for a checkpoint."""
    sized(settled_record=2)
    run, how = RUNS[name], {"memory": "10%", "threads": threads}
    expected = run(grid, **how)
    for count in (10,) if name == "bfs" else (10, 13):  # eight iterations come first
        assert stopped(run, grid, folder, count, **how) == [f"pass-1.iteration-{count - 1}"]
        result = run(grid, checkpoint=folder, **how)
        assert_same(name, expected, result)
        assert any(f"resumed after {count - 1} iterations" in note for note in result.trace.notes)


def test_nobody_works_while_a_checkpoint_is_written(grid, folder, monkeypatch, sized):
    sized(settled_record=2)
    working, seen, lock = [0], [], threading.Lock()
    pieces, write = SettlingPartitions.pieces, checkpoints.Checkpoint.write

    def slowly(self: Any, *given: Any) -> Any:
        (piece,) = pieces(self, *given)

        def work(member: int) -> None:
            with lock:
                working[0] += 1
            time.sleep(0.002)
            try:
                piece(member)
            finally:
                with lock:
                    working[0] -= 1

        return [work]

    def look(self: Any, iteration: int) -> None:
        seen.append(working[0])
        write(self, iteration)

    monkeypatch.setattr(SettlingPartitions, "pieces", slowly)
    monkeypatch.setattr(checkpoints.Checkpoint, "write", look)
    ist.sssp(grid, 0, memory="10%", threads=4, checkpoint=folder, checkpoint_every=0)
    assert len(seen) > 20
    assert not any(seen)


@pytest.mark.parametrize(
    "start",
    [np.array([3, 900, 17]), np.arange(0, 50_000, 2), None, np.array([], np.int64)],
    ids=["few", "many", "all", "none"],
)
def test_a_frontier_comes_back(start, folder):
    frontier, other = Frontier(50_000, 2), Frontier(50_000, 5)
    frontier.start(start)
    other.start(np.array([1, 2, 3]))
    saved_arrays.write(folder, {}, checkpoints.remember(frontier))
    checkpoints.recall(other, **saved_arrays.Saved(folder).load({"marks": other.marks}))
    assert (other.count, other.all_active, other.list is None) == (
        frontier.count,
        frontier.all_active,
        frontier.list is None,
    )
    assert (other.rows(0, 50_000) == frontier.rows(0, 50_000)).all()
    assert (other.marks == frontier.marks).all()


def test_an_error_while_settling_stops_for_a_checkpoint(grid, folder, monkeypatch, sized):
    """Members fail between two checkpoints; the run goes on from the last one."""
    sized(settled_record=2)
    written = []
    pieces, write = SettlingPartitions.pieces, checkpoints.Checkpoint.write

    def fail(self: Any, *given: Any) -> Any:
        (piece,) = pieces(self, *given)

        def work(member: int) -> None:
            if len(written) > 10:
                raise Killed
            piece(member)

        return [work]

    def count(self: Any, iteration: int) -> None:
        written.append(iteration)
        write(self, iteration)

    monkeypatch.setattr(SettlingPartitions, "pieces", fail)
    monkeypatch.setattr(checkpoints.Checkpoint, "write", count)
    with pytest.raises(Killed):
        ist.sssp(grid, 0, memory="10%", threads=2, checkpoint=folder, checkpoint_every=0)
    monkeypatch.undo()
    assert_same("sssp", ist.sssp(grid, 0), ist.sssp(grid, 0, memory="10%", checkpoint=folder))


# Several passes


@pytest.mark.parametrize("name", ["bfs, predecessors", "pagerank, dangling", "circuit"])
def test_a_pass_that_has_ended_is_not_done_again(name, graph, folder):
    run = RUNS[name]
    expected = run(graph, **FAR)

    def watch(iteration: Any) -> None:
        if list(folder.glob("pass-2*")):
            raise Killed

    with pytest.raises(Killed):
        run(graph, checkpoint=folder, checkpoint_every=0, watch=watch, **FAR)
    first, second = names(folder)
    result = run(graph, checkpoint=folder, **FAR)
    assert_same(name, expected, result)
    assert sum(note.startswith("resumed after") for note in result.trace.notes) == 2
    assert len(result.trace) <= 2 + len(expected.trace) - int(first.split("-")[-1]) - int(second.split("-")[-1])


def test_inference(tmp_path, folder):
    """Several layers, several parts of the inputs."""
    draw = np.random.default_rng(1)
    sizes, starts = [6, 5, 5, 4], [0, 6, 11, 16]
    layers = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    edges = [(u, v) for k in range(3) for u in layers[k] for v in layers[k + 1]]
    sources, targets = np.array(edges).T
    inputs = draw.normal(size=(3, 6))
    with ist.ingest(
        (sources, targets, draw.normal(size=len(edges))), tmp_path / "n.isthmus", allow_negative=True
    ) as network:
        expected = ist.nn_inference(network, inputs, layers=sizes, **FAR)
        for count in (2, 3):
            stopped(lambda g, **how: ist.nn_inference(g, inputs, layers=sizes, **how), network, folder, count, **FAR)
            result = ist.nn_inference(network, inputs, layers=sizes, checkpoint=folder, **FAR)
            np.testing.assert_allclose(result.filled(), expected.filled())
            assert any(f"resumed after {count - 1} iterations" in note for note in result.trace.notes)
        stopped(lambda g, **how: ist.nn_inference(g, inputs, layers=sizes, **how), network, folder, 2, **FAR)
        with pytest.raises(StoreError, match="is a checkpoint of nn_inference"):
            ist.nn_inference(network, inputs + 1, layers=sizes, checkpoint=folder, **FAR)


# Memory


@pytest.mark.parametrize("name", ["label_propagation", "betweenness_centrality", "triangle_count"])
def test_programs_that_use_all_memory_go_on_with_what_they_had(name, undirected, folder):
    run = RUNS[name]
    expected = run(undirected, **FAR)
    stopped(run, undirected, folder, 2, policy="filter", memory="300%")
    with pytest.raises(
        BudgetError, match=r"iteration-1: was written with a budget of .* give memory=[0-9]+, or give --restart"
    ):
        run(undirected, checkpoint=folder, policy="filter", memory="150%")
    assert_same(name, expected, run(undirected, checkpoint=folder, policy="filter", memory="400%"))


def test_a_default_budget_that_has_shrunk_is_as_before(undirected, folder, monkeypatch):
    from isthmus.devices import cpu

    expected = ist.label_propagation(undirected, 4, **FAR)
    monkeypatch.setattr(cpu, "available", lambda: 10**7)
    stopped(lambda g, **how: ist.label_propagation(g, 4, **how), undirected, folder, 2, memory=None, policy="filter")
    monkeypatch.setattr(cpu, "available", lambda: 10**7 - 10**5)
    result = ist.label_propagation(undirected, 4, checkpoint=folder, policy="filter")
    assert_same("label_propagation", expected, result)
    assert result.summary()["memory"]["budget"] == int(10**7 * 0.6)


def test_writing_and_reading_take_little_memory(folder):
    """No array is copied as a whole, and arrays are read into those that are there."""
    folder.mkdir()
    array = np.arange(8 << 20)
    target = np.zeros_like(array)
    tracemalloc.start()
    saved_arrays.write(folder / "a", {}, {"array": array, "two": (array.reshape(2, -1),)})
    kept = saved_arrays.Saved(folder / "a").load({"array": target})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept["array"] is target
    assert (target == array).all()
    assert (kept["two"][0].reshape(-1) == array).all()
    assert peak < array.nbytes + (12 << 20)  # the second array has no place yet


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**70),
        0.1,
        float("inf"),
        "ü\n",
        np.uint32(7),
        np.float64("-inf"),
        np.bool_(True),
        [],
        (),
        {},
        [1, (2, {"a": [None]})],
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.zeros((0, 3)),
        np.array(5),
        np.arange(10)[::2],
        np.array([True, False]),
    ],
    ids=repr,
)
def test_what_is_saved_comes_back(value, folder):
    saved_arrays.write(folder, {"x": 1}, {"value": value})
    got = saved_arrays.Saved(folder)
    assert got.facts["x"] == 1
    back = got.load(None)["value"]
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype
        assert back.shape == value.shape
        assert (back == value).all()
    else:
        assert back == value


# Damage, other runs, full disks


def damage(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize(
    ("file", "how", "message"),
    [
        ("arrays", lambda path: damage(path, 5000), r"arrays: is damaged at byte 4096 \(the checksum"),
        ("arrays", lambda path: os.truncate(path, 4096), "arrays: does not have the [0-9]+ bytes"),
        ("arrays", lambda path: path.unlink(), "arrays: No such file"),
        ("arrays.xxh3", lambda path: damage(path, 3), "arrays.xxh3: is damaged"),
        ("manifest.json", lambda path: damage(path, 60), "manifest.json: is damaged"),
        ("manifest.json", lambda path: path.unlink(), "manifest.json: No such file"),
        ("manifest.json", lambda path: path.write_bytes(b""), "manifest.json: is damaged"),
    ],
)
def test_a_damaged_checkpoint(file, how, message, undirected, folder):
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    how(folder / name / file)
    with pytest.raises(StoreError, match=f"{message}.*give --restart"):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    assert names(folder) == [name]
    result = ist.sssp(undirected, 0, checkpoint=folder, restart=True, **TIGHT)
    assert_same("sssp", ist.sssp(undirected, 0), result)
    assert not folder.exists()


def test_a_checkpoint_of_another_run(graph, undirected, folder):
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    for other in (
        lambda **how: ist.sssp(undirected, 1, **how),
        lambda **how: ist.sssp(undirected, 0, cutoff=50, **how),
        lambda **how: ist.sssp(undirected, 0, predecessors=True, **how),
        lambda **how: ist.pagerank(undirected, **how),
        lambda **how: ist.run(toll(source=0), undirected, **how),
        lambda **how: ist.katz(undirected, **how),
    ):
        with pytest.raises(
            StoreError, match=rf"{name}: is a checkpoint of sssp\(source=0\), and this run is .*name another folder"
        ):
            other(checkpoint=folder, **TIGHT)
    with pytest.raises(StoreError, match=f"{name}: is a checkpoint of a run on another graph; name another folder"):
        ist.sssp(graph, 0, checkpoint=folder, **TIGHT)
    assert names(folder) == [name]


def without_member(facts: dict[str, Any], *path: Any) -> dict[str, Any]:
    """A copy of the manifest without one member."""
    changed: Any = json.loads(json.dumps(facts))
    inside = changed
    for name in path[:-1]:
        inside = inside[name]
    del inside[path[-1]]
    return changed


@pytest.mark.parametrize(
    "path",
    [
        *((name,) for name in ("version", "bytes", "checksums", "arrays", "value", "run", "graph", "isthmus")),
        *((name,) for name in ("pass", "iteration", "text", "memory")),
        ("memory", "budget"),
        ("memory", "room"),
        ("arrays", 0),
        ("arrays", 0, "dtype"),
        ("arrays", 0, "shape"),
        ("arrays", 0, "at"),
        ("value", "dict"),
        ("value", "dict", "frontier"),
        ("value", "dict", "program"),
        ("value", "dict", "frontier", "dict", "count"),
        ("value", "dict", "program", "dict", "values"),
    ],
    ids=str,
)
def test_a_sealed_manifest_that_lacks_a_member(path, undirected, folder):
    """Its checksum is right, so its structure is checked as well."""
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    file = folder / name / "manifest.json"
    facts = json.loads(file.read_bytes())
    facts.pop("checksum")
    file.write_bytes(sealed(without_member(facts, *path)))
    with pytest.raises(StoreError, match="give --restart"):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)


@pytest.mark.parametrize(
    ("count", "all_active", "listed", "marks", "message"),
    [
        (1, False, [8], None, "not vertices of the graph"),
        (2, False, [1], None, "from 1 to 1, got 2"),
        (1, False, [1, 1], None, "different active vertices"),
        (2, False, [3, 1], None, "ascending"),
        (1, True, [1], None, "or marks"),
        (8, False, None, None, "or marks"),
        (7, True, None, None, "from 8 to 8, got 7"),
        (2, False, None, [1] + [0] * 7, "from 1 to 1, got 2"),
        (1, False, None, [2] + [0] * 7, "from 0 to 1"),
    ],
)
def test_a_frontier_that_cannot_be(count, all_active, listed, marks, message):
    frontier = Frontier(8, 1)
    listed, marks = listed and np.array(listed, np.uint32), marks and np.array(marks, np.uint8)
    with pytest.raises(ValueError, match=message):
        checkpoints.recall(frontier, count, all_active, listed, marks)


def test_checkpoints_that_cannot_be_removed_to_start_over(undirected, folder, monkeypatch):
    stopped(RUNS["sssp"], undirected, folder, 3)

    def refused(source, target):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(
        StoreError, match="its checkpoints cannot be removed: Operation not permitted; name another folder"
    ):
        ist.sssp(undirected, 0, checkpoint=folder, restart=True, **TIGHT)


def test_a_file_in_place_of_a_checkpoint(undirected, folder):
    folder.mkdir()
    (folder / "pass-1.iteration-3").write_text("no folder")
    with pytest.raises(StoreError, match=r"pass-1.iteration-3/manifest.json: Not a directory; give --restart"):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)


def test_only_the_user_can_write_and_others_files_are_not_used(undirected, folder, monkeypatch):
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    inside = folder / name
    assert {path.stat().st_mode & 0o777 for path in inside.iterdir()} == {0o600}
    assert inside.stat().st_mode & 0o777 == 0o700
    for path in (inside, inside / "arrays", inside / "arrays.xxh3", inside / "manifest.json"):
        before = path.stat().st_mode
        path.chmod(before | 0o020)
        with pytest.raises(
            StoreError, match=rf"{path}: can be written by other users \(mode 7?6?[27]0\), so it is not used; .*a copy"
        ):
            ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
        path.chmod(before)
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(StoreError, match=r"belongs to another user \(uid [0-9]+\), so it is not used"):
            ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    (inside / "arrays").rename(folder / "elsewhere")
    (inside / "arrays").symlink_to(folder / "elsewhere")
    with pytest.raises(StoreError, match="arrays: is a symbolic link, so it is not used"):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    (inside / "arrays").unlink()
    (folder / "elsewhere").rename(inside / "arrays")
    assert_same("sssp", ist.sssp(undirected, 0), ist.sssp(undirected, 0, checkpoint=folder, **TIGHT))


def test_another_version(undirected, folder):
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    path = folder / name / "manifest.json"
    facts = json.loads(path.read_bytes())
    facts.pop("checksum")
    path.write_bytes(sealed({**facts, "version": 2}))
    with pytest.raises(
        StoreError, match=r"manifest.json: written in format version 2, this Isthmus reads version 1; give --restart"
    ):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    path.write_bytes(sealed({**facts, "isthmus": "9.9"}))
    with pytest.raises(
        StoreError, match=f"{name}: was written by Isthmus 9.9, this is {ist.__version__}; give --restart"
    ):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)


def test_a_program_whose_text_has_changed(undirected, folder):
    [name] = stopped(RUNS["own, by hand"], undirected, folder, 3)

    class Other(Hops):
        def functions(self, facts):
            return replace(super().functions(facts), source=level_above)

    with pytest.raises(StoreError, match=rf"{name}: was written by another version of hops \(.*\); give --restart"):
        ist.run(Other(0), undirected, checkpoint=folder, **TIGHT)
    program = Hops(0)
    program.level = 17  # as after a run that was interrupted in the same process
    with pytest.raises(StoreError, match=r"is a checkpoint of hops\(0\), and this run is hops\(1\)"):
        ist.run(Hops(1), undirected, checkpoint=folder, **TIGHT)
    assert_same("hops", ist.run(Hops(0), undirected), ist.run(program, undirected, checkpoint=folder, **TIGHT))


def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with room for very little; where nothing can be mounted, writes fail."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], capture_output=True).returncode:

        def fail(*given: Any) -> None:
            raise StoreError("cannot write: No space left on device")

        monkeypatch.setattr("isthmus.graph.store.writer.write_all", fail)
    return disk


def test_a_full_disk(undirected, tmp_path, monkeypatch):
    disk, said = full_disk(tmp_path, monkeypatch), []
    try:
        result = ist.sssp(undirected, 0, checkpoint=disk / "c", checkpoint_every=0, say=said.append, **TIGHT)
        assert_same("sssp", ist.sssp(undirected, 0), result)
        [note] = [note for note in result.trace.notes if "No space left on device" in note]
        assert note.startswith("a checkpoint could not be written; the run continues without it")
        assert note in said
        assert names(disk) == []
        with pytest.raises(Killed):
            ist.sssp(undirected, 0, checkpoint=disk / "c", checkpoint_every=0, watch=stop_after(4), **TIGHT)
        assert names(disk) == []
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True)


def test_a_disk_that_is_full_later_keeps_the_last_checkpoint(undirected, folder, monkeypatch):
    real, calls = saved_arrays.write_synced, []

    def fail(path: Path, data: bytes) -> None:
        calls.append(path)
        if len(calls) > 2:
            raise StoreError(f"{path}: cannot write: No space left on device")
        real(path, data)

    monkeypatch.setattr(saved_arrays, "write_synced", fail)
    assert stopped(RUNS["sssp"], undirected, folder, 6) == ["pass-1.iteration-2"]


@pytest.mark.parametrize("name", ["sssp", "bfs_predecessors"])
def test_a_folder_that_is_gone_costs_no_answer(name, undirected, folder):
    def gone(_):
        shutil.rmtree(folder, ignore_errors=True)

    run = partial(ist.bfs, predecessors=True) if name == "bfs_predecessors" else ist.sssp
    result = run(undirected, 0, checkpoint=folder, checkpoint_every=0, watch=gone, **TIGHT)
    assert np.array_equal(run(undirected, 0).values, result.values)
    assert any(
        note.startswith("a checkpoint could not be written; the run continues without it")
        for note in result.trace.notes
    )


def test_checkpoints_that_cannot_be_removed_cost_no_answer(undirected, folder, monkeypatch):
    def refuse(path):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(checkpoints, "remove", refuse)
    result = ist.sssp(undirected, 0, checkpoint=folder, checkpoint_every=0, **TIGHT)
    assert np.array_equal(ist.sssp(undirected, 0).values, result.values)
    assert any(note.endswith(f"still in {folder}: Read-only file system") for note in result.trace.notes)


# What cannot be, and what is left alone


def test_what_cannot_be_checkpointed(undirected, folder):
    with pytest.raises(OptionError, match="weakly_connected_components is one pass over the edges"):
        ist.weakly_connected_components(undirected, checkpoint=folder, **TIGHT)
    with pytest.raises(OptionError, match=r"in memory only.*ingest it into a store"):
        ist.bfs(ist.generate("grid", rows=5, columns=5), 0, checkpoint=folder)
    program = Hops(0)
    program.source, program.script = 0, iter(())
    with pytest.raises(
        OptionError, match=r"hops cannot be checkpointed: hops.program.own.script is of type tuple_iterator.*override"
    ):
        ist.run(program, undirected, checkpoint=folder, **TIGHT)
    with pytest.raises(OptionError, match="recognise in another process"):
        ist.run(Hops(object()), undirected, checkpoint=folder, **TIGHT)
    for minutes in (-1, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="checkpoint_every: expected minutes"):
            ist.bfs(undirected, 0, checkpoint=folder, checkpoint_every=minutes, **TIGHT)
    with pytest.raises(OptionError, match="restart"):
        ist.bfs(undirected, 0, restart=True)
    with pytest.raises(OptionError, match="is a store"):
        ist.bfs(undirected, 0, checkpoint=undirected.path, **TIGHT)
    with pytest.raises(OptionError, match="compare takes no checkpoint"):
        ist.compare(ist.bfs, undirected, 0, checkpoint=folder)
    with pytest.raises(StoreError, match="cannot be used as a folder for checkpoints: No such file"):
        ist.bfs(undirected, 0, checkpoint=folder / "deep", **TIGHT)
    assert not folder.exists()


def test_in_memory_a_note_says_that_there_are_none(undirected, folder):
    result = ist.bfs(undirected, 0, checkpoint=folder, checkpoint_every=0)
    assert any(note.startswith("no checkpoints: all edges are in memory") for note in result.trace.notes)
    assert not folder.exists()


def test_in_memory_the_loop_writes_them(undirected, folder):
    stopped(RUNS["multi_source_bfs"], undirected, folder, 4, memory=None)
    result = ist.multi_source_bfs(undirected, [0, 1, 2], checkpoint=folder)
    assert result.summary()["policy"] == "resident"
    assert any("resumed after 3 iterations" in note for note in result.trace.notes)
    assert_same("multi_source_bfs", ist.multi_source_bfs(undirected, [0, 1, 2]), result)


def test_not_before_it_is_time(undirected, folder):
    with pytest.raises(Killed):
        ist.sssp(undirected, 0, checkpoint=folder, watch=stop_after(4), **TIGHT)
    assert not folder.exists()


def test_others_files_are_left_alone(undirected, folder):
    folder.mkdir()
    (folder / "mine").write_text("x")
    (folder / "writing").mkdir()  # a killed process left it
    stopped(RUNS["sssp"], undirected, folder, 3)
    ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    assert names(folder) == ["mine"]


def test_one_process_at_a_time(undirected, folder):
    def watch(iteration: Any) -> None:
        with pytest.raises(StoreError, match="another process is using these checkpoints"):
            ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)

    ist.sssp(undirected, 0, checkpoint=folder, watch=watch, **TIGHT)


def test_two_complete_ones_the_newer_counts(undirected, folder, tmp_path):
    """Killed between putting a checkpoint into place and removing the one before."""
    stopped(RUNS["sssp"], undirected, folder, 2)
    shutil.copytree(folder, tmp_path / "older")
    shutil.rmtree(folder)
    stopped(RUNS["sssp"], undirected, folder, 4)
    shutil.copytree(tmp_path / "older" / "pass-1.iteration-1", folder / "pass-1.iteration-1")
    result = ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    assert any("resumed after 3 iterations" in note for note in result.trace.notes)
    assert_same("sssp", ist.sssp(undirected, 0), result)


# The command line


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], text=True, capture_output=True)


def test_the_command_line(undirected, folder, tmp_path):
    sssp = ["run", "sssp", undirected.path, "--source", "0", "--memory", "1%", "--threads", "2", "--checkpoint", folder]
    [name] = stopped(RUNS["sssp"], undirected, folder, 4)
    other = command(*sssp[:4], "1", *sssp[5:])
    assert other.returncode == 4
    assert f"{name}: is a checkpoint of sssp(source=0), and this run is sssp(source=1)" in other.stderr
    done = command(*sssp, "--json")
    assert done.returncode == 0, done.stderr
    assert any("resumed after 3 iterations" in note for note in json.loads(done.stdout)["notes"])
    assert not folder.exists()
    stopped(RUNS["sssp"], undirected, folder, 4)
    again = command(*sssp, "--restart", "--json")
    assert not any("went on" in note for note in json.loads(again.stdout)["notes"])


def test_others_checkpoints_are_not_cleared(undirected, folder):
    stopped(RUNS["sssp"], undirected, folder, 4)
    lock = checkpoints.locked(folder)
    checkpoints.clear(folder)
    assert names(folder) == ["pass-1.iteration-3"]
    lock.release()
    checkpoints.clear(folder)
    assert not folder.exists()


def test_checkpoints_stay_until_the_result_is_saved(undirected, folder, tmp_path):
    stopped(RUNS["sssp"], undirected, folder, 4)
    (tmp_path / "out.csv").mkdir()
    failed = command(
        "run",
        "sssp",
        undirected.path,
        "--source",
        "0",
        "--memory",
        "1%",
        "--checkpoint",
        folder,
        "-o",
        tmp_path / "out.csv",
    )
    assert failed.returncode != 0
    assert names(folder) == ["pass-1.iteration-3"]


def test_a_resumed_run_that_fails_names_its_checkpoint(undirected, folder, monkeypatch):
    [name] = stopped(RUNS["sssp"], undirected, folder, 3)
    monkeypatch.setattr(SSSP, "summary", lambda self, columns, state: 1 // 0)
    with pytest.raises(StoreError, match=rf"resumed from .*{name} failed \(ZeroDivisionError: .*\); give --restart"):
        ist.sssp(undirected, 0, checkpoint=folder, **TIGHT)
    with pytest.raises(ZeroDivisionError):
        ist.sssp(undirected, 0, checkpoint=folder, restart=True, **TIGHT)
