"""Runs on a GPU: program × recipe × budget × order × graph gives one answer, moves what the model moves, and frees all
memory.

`LazyCard` (tests/gpus.py) runs them without a GPU, and finds waits that are missing. With NUMBA_ENABLE_CUDASIM=1 a
smaller covering set goes through numba-cuda's simulator.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests import cases as kinds
from tests.conformance import test_conformance as declared
from tests.conformance import test_more as more
from tests.covering import covering, missed
from tests.gpus import LazyCard

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda import frontier, gpu_space, list_mover, ranking
from isthmus.kernels.compile import cuda_module

CASES = {case.name: case for case in kinds.cases()}
NAMES = [*declared.PROGRAMS, *more.MORE]
RECIPES = ("filter", "subway", "emogi", "emogi:hot", "unified", "grus", "scaph", "hytgraph", "auto")
CACHED = ("emogi:hot", "scaph", "scaph:hbase", "hytgraph", "auto")  # these keep edges near
WAYS = list(itertools.product(RECIPES, ("1%", "50%", None), ("natural", "hub")))
SIMULATED = ("skewed-real", "loops-and-parallels", "two-components", "one-loop", "no-edges", "strings")
SIMULATED_WAYS = list(
    itertools.product([recipe for recipe in RECIPES if recipe != "emogi:hot"], ("1%", None), ("natural",))
)


def pairs(graphs: Any) -> list[tuple[str, str]]:
    """Graphs and the programs that can run on them."""
    found = []
    for case, name in itertools.product((CASES[graph] for graph in graphs), NAMES):
        if name in declared.PROGRAMS:
            can = case.weighted or not declared.PROGRAMS[name].weights
        else:
            can = case.in_edges and (case.name, name) not in more.SLOW
        if can:
            found.append((case.name, name))
    return found


@functools.cache
def chosen() -> dict[Any, list[Any]]:
    return covering(pairs(CASES), WAYS, 2)


@functools.cache
def chosen_simulated() -> dict[Any, list[Any]]:
    return covering(pairs(SIMULATED), SIMULATED_WAYS, 2)


def test_all_pairs_of_choices_meet() -> None:
    assert missed(pairs(CASES), WAYS, chosen()) == set()
    assert missed(pairs(SIMULATED), SIMULATED_WAYS, chosen_simulated()) == set()


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = CASES[request.param]
    if not made.graphs:
        made.build(tmp_path_factory.mktemp("stores"))
    return made


@pytest.fixture
def tight(sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers shorter than lists, many partitions, dense frontiers, and few rows at a time."""
    sized(smallest_partition=4096, least_buffer=1024, few_edges=16, alone=64, piece=300, smallest_queue=3)
    monkeypatch.setattr(gpu_space, "ROOM", 50)
    monkeypatch.setattr(list_mover, "WINDOW", 70)
    monkeypatch.setattr(ranking, "AT_ONCE", 60)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[LazyCard]:
    card = LazyCard()
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    yield card
    assert card.held == {}


def assert_way(case: Any, name: str, way: tuple[str, str | None, str]) -> Any:
    recipe, budget, order = way
    graph, how = case.graphs[f"{order} store"], {"device": "cuda:0", "policy": recipe, "memory": budget, "threads": 2}
    try:
        if name in declared.PROGRAMS:
            result = declared.PROGRAMS[name].run(case, graph, **how)
            declared.assert_same(result, declared.PROGRAMS[name], case)
        else:
            run, read, expect = more.MORE[name]
            result = run(more.Places(case), graph, **how)
            assert read(result) == expect(more.Places(case))
        assert result.summary()["device"] == "cuda:0"
        return result
    except Exception as error:
        error.add_note(f"{name} on {case.name}, {way}")
        raise


@pytest.mark.parametrize(("case", "name"), pairs(CASES), indirect=["case"])
def test_every_way_gives_the_oracles_answer(case: Any, name: str, card: LazyCard, tight: None) -> None:
    for way in chosen()[case.name, name]:
        assert_way(case, name, way)
        assert card.held == {}


@pytest.mark.parametrize("recipe", [*RECIPES, "scaph:hbase"])
@pytest.mark.parametrize(
    "name", ["bfs", "sssp", "pagerank", "weakly_connected_components", "odd-steps", "spread-weighted", "katz"]
)
@pytest.mark.parametrize("case", ["skewed", "skewed-real", "grid"], indirect=True)
def test_bytes_and_requests_are_those_of_the_modelled_device(
    case: Any, name: str, recipe: str, card: LazyCard, tight: None
) -> None:
    run = (
        declared.PROGRAMS[name].run
        if name in declared.PROGRAMS
        else lambda c, g, **how: more.MORE[name][0](more.Places(c), g, **how)
    )
    for budget in ("90%", "200%") if recipe in CACHED else ("1%", None):
        how = {"policy": recipe, "memory": budget, "threads": 1}
        found = [
            run(case, case.graphs["natural store"], device=each, **how).summary()
            for each in ("cuda:0", "model:rtx2080ti")
        ]
        assert found[0]["transfer"].pop("row_bytes") >= 0
        for key in ("transfer", "engines", "iterations", "load", "cache"):
            assert found[0][key] == found[1][key], (key, budget)


@pytest.mark.parametrize(
    ("recipe", "name", "budget"),
    [
        ("emogi:hot", "pagerank", "200%"),
        ("hytgraph", "pagerank", "200%"),
        ("auto", "sssp", "90%"),
        ("auto", "katz", "90%"),
        ("scaph", "sssp", "200%"),
    ],
)
@pytest.mark.parametrize("case", ["skewed"], indirect=True)
def test_caches_are_of_use_there(case: Any, recipe: str, name: str, budget: str, card: LazyCard, tight: None) -> None:
    """So the test above would see a cache that serves nothing."""
    run = (
        declared.PROGRAMS[name].run
        if name in declared.PROGRAMS
        else lambda c, g, **how: more.MORE[name][0](more.Places(c), g, **how)
    )
    found = run(case, case.graphs["natural store"], device="cuda:0", policy=recipe, memory=budget, threads=1)
    assert found.summary()["cache"]["hit_edges"] > 0


def test_what_the_card_copies_is_what_the_link_counts(card: LazyCard, tight: None) -> None:
    """Whole partitions and resident edges: every byte that crosses is one that is counted."""
    graph = ist.read(CASES["skewed"].columns(), vertices=320)
    for budget in ("1%", None):
        card.record_of.clear()
        result = ist.sssp(graph, 1, device="cuda:0", policy="filter", memory=budget, threads=1)
        edges = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8)
        assert edges == result.summary()["transfer"]["bytes"] > 0


def test_uploaded_rows_are_counted(card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier, "COUNTERS", 4)
    graph = ist.read(CASES["skewed"].columns(), vertices=320)
    for recipe in ("filter", "subway", "emogi", "auto"):
        card.record_of.clear()
        found = ist.sssp(graph, 1, device="cuda:0", policy=recipe, memory="50%", threads=1).summary()
        copies = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype != np.uint8)
        # Positions of lists, and a weight for those without.
        others = copies - found["transfer"]["row_bytes"] - 8 * (320 + 1) - 4
        assert 0 <= others <= 8 * 8 + 8 * 5  # where partitions begin, and those that count all edges


class ReadingCard(LazyCard):
    """Counts the requests by which `push` reads its rows, in targets and in weights of four bytes.

    Threads that share a row request whole lines of 128 bytes; a thread that has one for itself, entry by entry.
    """

    requests = 0

    def launch(self, kernel: Any, stream: int, *arguments: Any) -> None:
        super().launch(kernel, stream, *arguments)
        work = self.record_of[-1]
        if work.name == "push":
            run = work.do

            def counted() -> None:
                self.requests += requests(*arguments[:8])
                run()

            work.do = counted


def requests(
    kind: int, room: int, vertices: Any, begins: Any, weight_begins: Any, lengths: Any, counts: Any, width: int
) -> int:
    rows = slice(kind * room, kind * room + int(counts[kind]))
    if width == 1:
        return 2 * int(lengths[rows].sum())
    first, last = begins[rows] * 4 // 128, ((begins[rows] + lengths[rows]) * 4 - 1) // 128
    return 2 * int((last - first + 1).sum())


def test_what_kernels_read_by_zero_copy_is_what_the_link_counts(
    monkeypatch: pytest.MonkeyPatch, card: LazyCard, tight: None
) -> None:
    reading = ReadingCard()
    monkeypatch.setattr(cuda_device, "open_card", lambda number: reading)
    graph = ist.read(CASES["skewed"].columns(), vertices=320)
    result = ist.sssp(graph, 1, device="cuda:0", policy="emogi", memory="1%", threads=1)
    assert reading.requests == result.summary()["transfer"]["requests"] > 0
    assert reading.held == {}


simulator = pytest.mark.skipif(
    not cuda_module.simulated(), reason="set NUMBA_ENABLE_CUDASIM=1 to run kernels in numba-cuda's simulator"
)


@pytest.fixture
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide tolerances: the simulator takes a second for an iteration, and a kernel that is wrong errs by more."""
    close = {name: program for name, program in declared.PROGRAMS.items() if program.tol == kinds.TOL}
    monkeypatch.setattr(kinds, "TOL", 1e-3)
    for name, program in close.items():
        monkeypatch.setitem(declared.PROGRAMS, name, replace(program, tol=1e-3))


@simulator
@pytest.mark.usefixtures("few_iterations")
@pytest.mark.parametrize(("case", "name"), pairs(SIMULATED), indirect=["case"])
def test_the_simulator_gives_the_oracles_answer(case: Any, name: str, tight: None) -> None:
    for way in chosen_simulated()[case.name, name]:
        assert_way(case, name, way)


@simulator
@pytest.mark.parametrize(("recipe", "budget"), [("hytgraph", "200%"), ("emogi:hot", "200%")])
@pytest.mark.parametrize("case", ["skewed-real"], indirect=True)
def test_the_simulator_has_caches(case: Any, recipe: str, budget: str, tight: None) -> None:
    assert assert_way(case, "sssp", (recipe, budget, "natural")).summary()["cache"]["hit_edges"] > 0


@simulator
@pytest.mark.parametrize("recipe", ["filter", "subway", "emogi"])
@pytest.mark.parametrize("case", ["skewed-real"], indirect=True)
def test_the_simulator_reads_from_disk(case: Any, recipe: str, tight: None, sized: Any) -> None:
    """Whole partitions, and lists that the host packs, through page-locked buffers (`devices/cuda/disk_link.py`)."""
    sized(pinned=4096)
    graph, expected = case.graphs["natural store"], case.graphs["natural memory"]
    source = 0
    found = ist.sssp(graph, source, device="cuda:0", policy=recipe, memory="1%", threads=2, far="disk")
    assert np.array_equal(found.filled(), ist.sssp(expected, source, device="cpu").filled())
    assert [note for note in found.trace.notes if note.startswith("edges are read from disk through")]
