"""What a small batch costs (`stream/maintain/maintained.py`): the edges that each program reads, against those of a
computation from scratch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.answers import Case, assert_same, by_vertex, cases

import isthmus as ist

SCALE, BATCHES = 12, 6
MOST = 0.05  # of the edges that a computation from scratch reads, for exact answers
MOST_SCORES = 0.5  # a changed score spreads far: with a tol of 1e-6, a few edges concern most vertices of a small graph


def recomputed(case: Case, graph: Any) -> int:
    """Edges that the algorithm itself reads: `ist.pagerank`, say, and not the first answer of a stream."""
    return sum(iteration.active_edges for iteration in case.scratch(graph).trace)


@pytest.fixture(scope="module", params=[True, False], ids=["directed", "undirected"])
def streamed(request: pytest.FixtureRequest) -> Any:
    """Efforts of a few batches of 4 edges, by program, and the graph that they have made."""
    graph = ist.generate("rmat", scale=SCALE, weights="1:9", seed=5, directed=request.param)
    source = graph.busiest()
    programs = {case.title: case for case in cases(source, alpha=1e-5)}
    with ist.stream(graph, [case.wanted() for case in programs.values()], threads=2) as live:
        scratch = {name: recomputed(case, live.graph.frozen()) for name, case in programs.items()}
        reports, draw = [], np.random.default_rng(1)
        for _ in range(BATCHES):
            sources, targets = draw.integers(0, graph.vertices, (2, 2))
            busy = [int(v) for v in draw.permutation(graph.vertices) if live.graph.out_degree(v)][:2]
            gone = [(v, int(draw.choice(live.graph.neighbors(v)))) for v in busy]
            reports.append(
                live.apply(inserts=(sources, targets, draw.integers(1, 9, 2).astype(np.int32)), deletes=gone)
            )
        yield live, programs, scratch, reports


def test_every_program_of_the_registry_is_there(streamed: Any) -> None:
    live, programs, scratch, _ = streamed
    assert set(live) == set(programs) and live.graph.edges > 20_000
    assert all(count >= live.graph.arcs / 2 for count in scratch.values())


@pytest.mark.parametrize("title", [case.title for case in cases(0)])
def test_small_batches_read_a_small_part(streamed: Any, title: str) -> None:
    _, programs, scratch, reports = streamed
    read = [report.programs[title]["edges_read"] for report in reports]
    most = MOST_SCORES if programs[title].tol else MOST
    assert sorted(read)[len(read) // 2] <= most * scratch[title], (read, scratch[title])


@pytest.mark.parametrize("title", [case.title for case in cases(0)])
def test_and_the_answers_are_right(streamed: Any, title: str) -> None:
    live, programs, *_ = streamed
    case, frozen = programs[title], live.graph.frozen()
    options = {**case.options, "tol": 1e-9} if "tol" in case.options else case.options
    assert_same(by_vertex(live[title]), by_vertex(getattr(ist, case.algorithm)(frozen, **options)), 1.01 * case.tol)


@pytest.mark.parametrize("name", ["pagerank", "php", "katz"])
def test_scores_of_a_large_grid_are_corrected_nearby(name: str) -> None:
    """Where a changed edge is far from most vertices, few are touched, compared with a run of the algorithm itself."""
    graph, tol = ist.generate("grid", rows=120, columns=120), 1e-4
    options: dict[str, Any] = {"pagerank": {}, "php": {"source": 7000}, "katz": {"alpha": 0.05}}[name] | {"tol": tol}
    scratch = sum(iteration.active_edges for iteration in getattr(ist, name)(graph, **options).trace)
    wanted = {"pagerank": ist.PageRank, "php": ist.PHP, "katz": ist.Katz}[name](**options)
    with ist.stream(graph, [wanted]) as live:
        for at in (3000, 9000, 14_000):
            report = live.apply(inserts=[(at, at + 2)], deletes=[(at, at + 1)])
            assert report.programs[name]["edges_read"] <= 0.1 * scratch
