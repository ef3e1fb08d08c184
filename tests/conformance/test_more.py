"""The further algorithms: program × recipe × far memory × budget × threads × order × graph gives one answer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests import cases as kinds
from tests import oracles
from tests.covering import covering, missed
from tests.programs.algorithms.test_betweenness_centrality import scaled
from tests.programs.algorithms.test_circuit import solved_sparsely
from tests.programs.algorithms.test_core_number import peeled
from tests.programs.algorithms.test_label_propagation import propagated
from tests.programs.algorithms.test_minimum_spanning_forest import found, kruskal
from tests.programs.algorithms.test_strongly_connected_components import smallest
from tests.programs.algorithms.test_triangle_count import coefficients, counts

import isthmus as ist

INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
CASES = {case.name: case for case in kinds.cases() if case.in_edges}
# For their oracles.
SLOW = {("star", "core_number"), ("star", "minimum_spanning_forest"), ("star", "local_clustering_coefficient")}
WAYS_EACH = 6  # of a graph and a program


class Places:
    """A case with its vertices named by their places in natural order."""

    def __init__(self, case: kinds.Case) -> None:
        place = {v: i for i, v in enumerate(case.oracle.ids)}
        self.case, self.n, self.directed = case, len(place), case.directed
        self.edges = [(place[u], place[v], w) for u, v, w in case.edges]
        self.sources = (
            case.oracle.ids[:3] if case.source in case.oracle.ids[:3] else [case.source, *case.oracle.ids[:2]]
        )


def widths(p: Places) -> list[Any]:
    reached = oracles.widest(p.case.oracle, p.case.source)
    ends = (-np.inf, np.inf) if p.case.real else (INT_MIN, INT_MAX)
    values = [reached.get(v, ends[0]) for v in p.case.oracle.ids]
    return [ends[1] if value == np.inf else value for value in values]


def hitting(p: Places, alpha: float) -> list[float]:
    """php, summed up walk by walk; the source takes no part again."""
    lists, source = p.case.oracle.out, p.case.source
    total, wave = dict.fromkeys(lists, 0.0), {source: 1.0}
    while max(wave.values(), default=0.0) > 1e-16:
        fresh: dict[Any, float] = {}
        for u, mass in wave.items():
            total[u] += mass
            for v, _ in lists[u]:
                if v != source:
                    fresh[v] = fresh.get(v, 0.0) + alpha * mass / len(lists[u])
        wave = fresh
    return [total[v] for v in p.case.oracle.ids]


def ids(p: Places, places: list[int]) -> list[Any]:
    return [p.case.oracle.ids[place] for place in places]


def distances(p: Places) -> list[list[int]]:
    searches = [oracles.bfs(p.case.oracle, source) for source in p.sources]
    return [[search.get(v, INT_MAX) for v in p.case.oracle.ids] for search in searches]


def walks(p: Places, alpha: float) -> list[list[float]]:
    ranks = [oracles.pagerank(p.case.oracle, alpha, {source: 1.0}) for source in p.sources]
    return [[rank[v] for v in p.case.oracle.ids] for rank in ranks]


def dependent(p: Places) -> list[float]:
    sums = oracles.betweenness(p.case.oracle, p.sources)
    return scaled(sums, p.n, p.directed, [p.case.oracle.ids.index(source) for source in p.sources], False)


def values(result: Any) -> Any:
    return result.filled().tolist()


def list_columns(result: Any) -> list[Any]:
    return [result.filled(name).tolist() for name in result.columns]


Run = Callable[..., Any]
# How to run it, how to read its answer, and what that should be.
MORE: dict[str, tuple[Run, Callable[[Any], Any], Callable[[Places], Any]]] = {
    "widest_path": (lambda p, g, **how: ist.widest_path(g, p.case.source, **how), values, widths),
    "katz": (
        lambda p, g, **how: ist.katz(g, 1e-3, normalized=False, tol=1e-9, **how),
        values,
        lambda p: pytest.approx(
            [value for _, value in sorted_by_place(p, oracles.katz(p.case.oracle, 1e-3))], rel=1e-8
        ),
    ),
    "php": (
        lambda p, g, **how: ist.php(g, p.case.source, 0.7, 1e-9, **how),
        values,
        lambda p: pytest.approx(hitting(p, 0.7), abs=2e-9),
    ),
    "multi_source_bfs": (lambda p, g, **how: ist.multi_source_bfs(g, p.sources, **how), list_columns, distances),
    "personalized_pagerank": (
        lambda p, g, **how: ist.personalized_pagerank(g, p.sources, 0.6, tol=1e-9, **how),
        list_columns,
        lambda p: [pytest.approx(ranks, abs=1e-9) for ranks in walks(p, 0.6)],
    ),
    "betweenness_centrality": (
        lambda p, g, **how: ist.betweenness_centrality(g, sources=p.sources, normalized=False, **how),
        list_columns,
        lambda p: [pytest.approx(dependent(p), rel=1e-9, abs=1e-12, nan_ok=True)],
    ),
    "label_propagation": (
        lambda p, g, **how: ist.label_propagation(g, 3, **how),
        values,
        lambda p: ids(p, propagated(p.edges, p.n, p.directed, 3)),
    ),
    "core_number": (lambda p, g, **how: ist.core_number(g, **how), values, lambda p: peeled(p.edges, p.n)),
    "strongly_connected_components": (
        lambda p, g, **how: ist.strongly_connected_components(g, **how),
        values,
        lambda p: ids(p, smallest(p.edges, p.n, p.directed)),
    ),
    "minimum_spanning_forest": (
        lambda p, g, **how: ist.minimum_spanning_forest(g, **how),
        found,
        lambda p: [(*ids(p, [u, v]), w) for u, v, w in kruskal(p.edges, p.n)],
    ),
    "triangle_count": (lambda p, g, **how: ist.triangle_count(g, **how), values, lambda p: counts(p.edges, p.n)),
    "local_clustering_coefficient": (
        lambda p, g, **how: ist.local_clustering_coefficient(g, **how),
        values,
        lambda p: pytest.approx(coefficients(p.edges, p.n, p.directed), rel=1e-12),
    ),
    "circuit": (
        lambda p, g, **how: ist.circuit(g, named(p, held(p)), tol=1e-9, **how),
        values,
        lambda p: pytest.approx(solved_sparsely(p.edges, p.n, held(p)).tolist(), abs=1e-8, nan_ok=True),
    ),
}


def held(p: Places) -> dict[int, float]:
    """A few vertices by their places, with voltages."""
    return {place: 1.0 - i for i, place in enumerate(sorted({0, p.n // 3, p.n - 1}))}


def named(p: Places, by_place: dict[int, Any]) -> dict[Any, Any]:
    return {p.case.oracle.ids[place]: value for place, value in by_place.items()}


def sorted_by_place(p: Places, answer: dict[Any, Any]) -> list[Any]:
    return [(v, answer[v]) for v in p.case.oracle.ids]


@pytest.fixture(scope="module")
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Places:
    case = CASES[request.param]
    if not case.graphs:
        case.build(tmp_path_factory.mktemp("stores"))
    return Places(case)


PAIRS = [(case, name) for case in CASES for name in MORE if (case, name) not in SLOW]


@pytest.mark.parametrize(("places", "name"), PAIRS, indirect=["places"])
def test_every_way_gives_the_oracles_answer(places: Places, name: str) -> None:
    run, read, expect = MORE[name]
    expected = expect(places)
    for way in chosen()[places.case.name, name]:
        result = run(places, places.case.graph(way), **kinds.how(way))
        assert read(result) == expected, way
        kinds.assert_device(result, way)


@functools.cache
def chosen() -> dict[Any, list[kinds.Way]]:
    return covering(PAIRS, kinds.ways(), WAYS_EACH, [kinds.PROGRAM_RECIPE_FAR])


def test_all_pairs_of_choices_meet() -> None:
    assert missed(PAIRS, kinds.ways(), chosen(), [kinds.PROGRAM_RECIPE_FAR]) == set()
