"""Graphs that have changed, in memory and on disk: every algorithm gives the oracle's answer on the current snapshot,
in every way.

Each graph of the suite is reached by batches from another one: edges that were missing, too many or had other weights,
vertices that came and went. So lists are not sorted, have gaps, and numbers do not follow ids.
"""

from __future__ import annotations

import functools
import itertools
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import cases as kinds
from tests.conformance import test_layered
from tests.conformance.test_conformance import assert_same, tight
from tests.conformance.test_more import MORE, SLOW, Places
from tests.covering import covering, missed
from tests.declared import arguments
from tests.stream.packed import assert_packed

import isthmus as ist
from isthmus import sizes
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Edits
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.ingest.build import store_again
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.public import function_of
from isthmus.runtime.results.agreement import difference

__all__ = ["tight"]  # a fixture
NAMES = (
    "skewed",
    "skewed-real",
    "grid",
    "star",
    "path",
    "two-components",
    "loops-and-parallels",
    "one-loop",
    "no-edges",
    "strings",
    "sparse-ids",
)
FARS: dict[str, dict[str, Any]] = {
    "near": {},
    "ram": {"far": "ram"},
    "model": {"device": "model:rtx2080ti"},
    "disk": {},
}
WAYS = [
    way
    for way in itertools.product(kinds.RECIPES, FARS, ("1%", "50%", None), (1, 2))
    if (way[1] == "near") == (way[2] is None)
]
# Lists on disk are read and patched in many pieces.
SMALL = {"staging": 1, "merged": 4096, "gathered": 4096, "few_bytes": 0}
WAYS_EACH = 2


def simple(case: kinds.Case) -> kinds.Case:
    """The case without parallel edges."""
    once: dict[Any, Any] = {}
    for u, v, w in case.edges:
        once.setdefault((u, v) if case.directed or u <= v else (v, u), w)
    return replace(case, edges=[(u, v, w) for (u, v), w in once.items()], graphs={}, answers={})


CASES = {case.name: simple(case) for case in kinds.cases() if case.name in NAMES}
PROGRAMS = {program.name: program for program in kinds.PROGRAMS}


def extra(case: kinds.Case, k: int) -> Any:
    """An id that the case does not have, below or above its own."""
    if case.edges and isinstance(case.edges[0][0], str):
        return f"{'!~'[k % 2]}{k}"
    return -8 - k if k % 2 else 10**17 + k


def edits(case: kinds.Case, rows: list[Any], **vertices: list[Any]) -> Edits:
    text = bool(case.edges) and isinstance(case.edges[0][0], str)
    kind: Any = object if text else np.int64
    columns = [np.array([row[k] for row in rows], each) for k, each in enumerate((np.uint8, kind, kind))]
    weights = np.array([row[3] for row in rows], np.float64 if case.real else np.int32) if case.weighted else None
    return Edits(*columns, weights, **{name: np.array(users, kind) for name, users in vertices.items()})


def changed(case: kinds.Case, align: bool | None = None, folder: Path | None = None) -> AdvancingGraph:
    """A changing graph that batches have made into the case's; on disk, if there is a folder."""
    draw = random.Random(len(case.edges))
    other = (lambda w: w + 1) if case.weighted else (lambda w: None)
    first = [(u, v, other(w) if draw.random() < 0.3 else w) for u, v, w in case.edges if draw.random() < 0.6]
    ends = case.oracle.ids
    strangers = [extra(case, k) for k in range(7)]
    more = [(draw.choice(strangers), draw.choice([*ends, *strangers]), 5 if case.weighted else None) for _ in range(40)]
    first = list({(u, v) if case.directed or u <= v else (v, u): (u, v, w) for u, v, w in [*first, *more]}.values())
    draw.shuffle(first)
    graph = changing(replace_edges(case, first), align, folder)
    have, want = {(u, v): w for u, v, w in first}, {(u, v): w for u, v, w in case.edges}
    wrong = [(u, v) for u, v in have if (u, v) not in want and not {u, v} & set(strangers)]
    rows = [(DELETE, u, v, 0) for u, v in wrong]
    missing = [(INSERT, u, v, w) for (u, v), w in want.items() if (u, v) not in have]
    draw.shuffle(missing)
    half = len(missing) // 2
    graph.apply(edits(case, rows + missing[:half]))
    graph.apply(
        edits(case, [(INSERT, u, v, 9) for u, v, *_ in more] + [(DELETE, *row[1:]) for row in missing[: half // 3]])
    )
    graph.apply(edits(case, missing[: half // 3], removed=[s for s in strangers if s in graph][::2]))
    if isinstance(graph, OverlayGraph) and len(case.edges) % 2:
        graph.merge()
    again = [(INSERT, u, v, w) for (u, v), w in want.items() if (u, v) in have]
    reweighed = [(REWEIGH, u, v, w) for (u, v), w in want.items() if (u, v) in have and case.weighted]
    graph.apply(edits(case, [(DELETE, *row[1:]) for row in again[::4]], added=[v for v in ends if v not in graph]))
    graph.apply(
        edits(
            case,
            missing[half:] + again[::4] + [row for row in reweighed if row[1:3] not in {r[1:3] for r in again[::4]}],
        )
    )
    graph.apply(edits(case, [], removed=[s for s in strangers if s in graph]))
    return graph


def changing(graph: Any, align: bool | None, folder: Path | None) -> AdvancingGraph:
    if folder is None:
        return ChangingGraph(graph, 2, align)
    with store_again(graph, Path(tempfile.mkdtemp(dir=folder)) / "g.isthmus") as stored:
        return OverlayGraph(stored, 2)


def replace_edges(case: kinds.Case, edges: list[Any]) -> Any:
    return ist.read(replace(case, edges=edges, graphs={}, answers={}).columns(), directed=case.directed)


def case_of(name: str) -> kinds.Case:
    case = CASES[name]
    if not case.graphs:
        case.graphs["changing"] = changed(case, [None, True, False][len(name) % 3])
        with sizes.using(**SMALL):
            case.graphs["on disk"] = changed(case, folder=FOLDERS[0])
    return case


FOLDERS: list[Path] = []  # for stores


@pytest.fixture(scope="module", autouse=True)
def closed_at_the_end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    FOLDERS[:] = [tmp_path_factory.mktemp("changing")]
    with sizes.using(**SMALL):
        yield
    for case in CASES.values():
        for graph in case.graphs.values():
            graph.close()
        case.graphs.clear()


def how(way: Any) -> dict[str, Any]:
    recipe, far, budget, threads = way
    return {"policy": recipe, "memory": budget, "threads": threads, **FARS[far]}


def graph_for(case: kinds.Case, way: Any) -> Any:
    return case.graphs["on disk" if way[1] == "disk" else "changing"]


PAIRS = [(c, p) for c in CASES for p in PROGRAMS if CASES[c].weighted or not PROGRAMS[p].weights]
FURTHER = [(c, p) for c in CASES for p in MORE if (c, p) not in SLOW]
PROGRAM_RECIPE_FAR = (1, 2, 3)


@functools.cache
def chosen() -> dict[Any, Any]:
    return covering([*PAIRS, *FURTHER], WAYS, WAYS_EACH, [PROGRAM_RECIPE_FAR])


def test_all_pairs_of_choices_meet() -> None:
    assert missed([*PAIRS, *FURTHER], WAYS, chosen()) == set()


def test_no_algorithm_is_left_out() -> None:
    covered = {*MORE, *(program.algorithm for program in kinds.ALGORITHMS), test_layered.ALGORITHM}
    assert {name for name in ALGORITHMS.names() if name not in covered} == set(), (
        "it has no oracle; compare it with itself here"
    )


@pytest.mark.parametrize("name", list(CASES))
def test_batches_have_made_the_graph_of_the_case(name: str) -> None:
    """Otherwise the tests below would compare answers on other graphs; and they would show nothing if nothing was out
    of order.
    """
    case = case_of(name)
    graph = case.graphs["changing"]
    assert graph.number == 6 and graph.ids.natural(0, graph.vertices).tolist() == case.oracle.ids
    for side in ("out", "in"):
        assert_packed(graph.sides[side])
    fresh = ist.read(case.columns(), directed=case.directed, vertices=case.vertices)
    for v in case.oracle.ids:
        neighbours = fresh.neighbors(v).tolist()
        assert graph.neighbors(v).tolist() == neighbours
        if case.weighted and len(neighbours) < 50:
            assert [graph.edge_weights(v, u).tolist() for u in neighbours] == [
                fresh.edge_weights(v, u).tolist() for u in neighbours
            ]
    if len(case.edges) > 20:
        begins, ends, targets, _ = graph.sides["out"].arrays()
        lists = [targets[begins[v] : ends[v]].tolist() for v in range(graph.vertices)]
        assert any(each != sorted(each) for each in lists), "all lists are sorted"
        assert (ends[: graph.vertices] < begins[1 : graph.vertices + 1]).any(), "there are no gaps"


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("name", "program"), PAIRS)
def test_programs_of_the_suite(name: str, program: str) -> None:
    case = case_of(name)
    for way in chosen()[name, program]:
        try:
            assert_same(PROGRAMS[program].run(case, graph_for(case, way), **how(way)), PROGRAMS[program], case)
        except Exception as error:
            error.add_note(f"{program} on {name}, {way}")
            raise


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("name", "program"), FURTHER)
def test_further_programs(name: str, program: str) -> None:
    case = case_of(name)
    places, (run, read, expect) = Places(case), MORE[program]
    expected = expect(places)
    for way in chosen()[name, program]:
        assert read(run(places, graph_for(case, way), **how(way))) == expected, way


@pytest.mark.parametrize("name", ["skewed", "strings"])
def test_neural_networks(name: str) -> None:
    case = CASES[name]
    network, n = test_layered.unrolled(case), len(case.oracle.ids)
    draw = np.random.default_rng(1)
    inputs, biases = draw.normal(size=(3, n)), draw.normal(size=(test_layered.LAYERS, n))
    biases[0] = 0
    expected = test_layered.forward(case, inputs, biases)
    with changed(network) as graph:
        for way in WAYS[::11]:
            layers = [n] * test_layered.LAYERS
            result = ist.nn_inference(graph, inputs, layers, biases.ravel(), output_activation="identity", **how(way))
            assert result.values == pytest.approx(expected, rel=1e-9, abs=1e-9), way


@pytest.mark.parametrize("name", list(CASES))
def test_batches_have_made_the_same_graph_on_disk(name: str) -> None:
    case = case_of(name)
    near, far = case.graphs["changing"], case.graphs["on disk"]
    assert (far.vertices, far.edges, far.arcs, far.self_loops) == (
        near.vertices,
        near.edges,
        near.arcs,
        near.self_loops,
    )
    assert far.ids.natural(0, far.vertices).tolist() == case.oracle.ids
    for v in case.oracle.ids:
        assert far.neighbors(v).tolist() == near.neighbors(v).tolist()
        assert far.predecessors(v).tolist() == near.predecessors(v).tolist()
        for u in near.neighbors(v).tolist()[:20] if case.weighted else ():
            assert far.edge_weights(v, u).tolist() == near.edge_weights(v, u).tolist()
    if len(case.edges) > 20:
        assert far.sides["out"].overlay.added_tails.size and far.sides["out"].overlay.removed_slots.size, (
            "nothing is patched"
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS.names())
@pytest.mark.parametrize("where", ["changing", "on disk"])
def test_the_frozen_graph_gives_the_same_answer(algorithm: str, where: str) -> None:
    run, graph = function_of(ALGORITHMS[algorithm]), case_of("skewed").graphs[where]
    given = arguments(ALGORITHMS[algorithm], graph.snapshot)
    if given is not None:
        assert difference(run(graph.frozen(), **given), run(graph, **given)) is None


def test_a_session_follows_the_graph() -> None:
    """What a session holds near is that of the current snapshot, also where the arrays have grown."""
    case = CASES["skewed"]
    with changed(case) as graph, ist.session(graph, threads=2) as session:
        for number in range(3):
            for name in ("bfs", "sssp"):
                found, expected = getattr(session, name)(case.source), getattr(ist, name)(graph.frozen(), case.source)
                assert found.filled().tolist() == expected.filled().tolist(), (name, number)
            rows = [(INSERT, case.source, 1000 + 500 * number + k, 1) for k in range(400)]
            graph.apply(edits(case, rows, removed=[7 + number]))
