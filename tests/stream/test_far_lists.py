"""Maintained programs on lists that are far (`stream/maintain/maintained.py`): some lists at a time, and nothing else
is read.

The graph is the one of tests/stream/far.py: what a program did not ask for is wrong there, so that answers would be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.answers import Case, assert_same, by_vertex, cases
from tests.stream.edits import Model
from tests.stream.far import FarGraph, far_stream
from tests.stream.plain import Plain

import isthmus as ist
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH

TITLES = [case.title for case in cases(0)]


class Batches:
    """Random batches of inserts, deletes, new weights, and vertices that come and go; `kept` is never removed."""

    def __init__(self, seed: int, directed: bool, weighted: bool, vertices: int = 40) -> None:
        self.draw, self.count, self.kept = np.random.default_rng(seed), vertices, 0
        self.plain = Plain(directed, weighted).put([(*self.pair(), self.weight()) for _ in range(4 * vertices)])
        self.plain.put([(0, 1, 1)])

    def pair(self, extra: int = 0) -> tuple[int, int]:
        u, v = self.draw.integers(0, self.count + extra, 2).tolist()
        return u, v

    def weight(self) -> int:
        return int(self.draw.integers(1, 9))

    def rows(self, size: int) -> list[Any]:
        there = sorted(self.plain.edges)
        known = [there[k] for k in self.draw.choice(len(there), min(size, len(there)), replace=False)]
        changed = [(DELETE if self.draw.random() < 0.6 else REWEIGH, u, v, self.weight()) for u, v in known]
        if not self.plain.weighted:
            changed = [row for row in changed if row[0] == DELETE]
        return changed + [(INSERT, *self.pair(3), self.weight()) for _ in range(size)]

    def apply(self, live: Any) -> Any:
        """Apply the next batch; returns its report."""
        rows, added, removed = self.rows(int(self.draw.choice([1, 4, 25]))), [], []
        if self.draw.random() < 0.4:
            used = {end for row in rows for end in row[1:3]} | {self.kept}
            removed = [v for v in sorted(self.plain.vertices - used) if self.draw.random() < 0.1]
            added = [int(v) for v in self.draw.integers(1000, 1010, 2) if v not in removed]
        edits = self.plain.edits(rows, added, removed)
        self.plain.apply(rows, added, removed)
        return live.apply_edits(edits)


def assert_answers(live: Any, batches: Batches, programs: list[Case]) -> None:
    assert isinstance(live.graph, FarGraph)
    for case in programs:
        assert_same(by_vertex(live[case.title]), case.expected(batches.plain, None), 1.01 * case.tol)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_answers_are_right_after_every_batch(title: str, directed: bool, weighted: bool) -> None:
    chosen = [case for case in cases(0, weighted) if case.title == title]
    if not chosen:
        pytest.skip("needs weights")
    for seed in range(2):
        batches = Batches(seed, directed, weighted)
        with far_stream(batches.plain.read(), [chosen[0].wanted()], most=(5, 60)[seed], threads=2) as live:
            assert_answers(live, batches, chosen)
            for _ in range(8):
                batches.apply(live)
                assert_answers(live, batches, chosen)


@pytest.mark.parametrize("title", ["bfs", "sssp", "widest_path", "weakly_connected_components"])
@pytest.mark.parametrize("seed", range(4))
def test_loops_and_edges_both_ways(title: str, seed: int) -> None:
    model = Model(seed + 900, (12, 60)[seed % 2], names=seed == 3)
    case = next(each for each in cases(model.source) if each.title == title)
    with far_stream(model.graph(), [case.wanted()], threads=2) as live:
        for _ in range(8):
            live.apply(**model.batch())
            assert by_vertex(live[title]) == by_vertex(case.scratch(live.graph.frozen()))


@ist.accumulative(threshold=1e-7)
def even(delta, degree):  # type: ignore[no-untyped-def]
    return 0.7 * delta / degree


@ist.accumulative(threshold=1e-7)
def weighed(delta, weight):  # type: ignore[no-untyped-def]
    return 0.02 * delta * weight / 9


@ist.monotone(initial=np.inf)
def crowded(value, degree):  # type: ignore[no-untyped-def]
    return value + degree


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["even", "weighed", "crowded"])
def test_programs_of_a_user(name: str, directed: bool) -> None:
    program = {"even": even, "weighed": weighed, "crowded": crowded(0)}[name]
    batches = Batches(5, directed, True)
    with far_stream(batches.plain.read(), [program], threads=2) as live:
        for _ in range(8):
            batches.apply(live)
            assert live.check() == {}


def test_katz_by_passes_is_as_exact_as_its_tol() -> None:
    """Its bound is for each vertex: single precision would exceed it unnoticed."""
    batches = Batches(6, True, False)
    with far_stream(batches.plain.read(), [ist.Katz(alpha=0.02, tol=1e-11)], threads=2) as live:
        program = live.batches.programs["katz"]
        for _ in range(4):
            program._lost = 1.0  # so that a pass computes the residuals
            batches.apply(live)
            with live.graph.frozen() as frozen:
                exact = by_vertex(ist.katz(frozen, alpha=0.02, tol=1e-13))
            found = by_vertex(live["katz"])
            assert found.keys() == exact.keys() and max(abs(found[v] - exact[v]) for v in exact) <= 4e-11


@pytest.mark.parametrize("name", ["even", "pagerank", "php", "katz"])
def test_residuals_are_computed_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rounding may have come to is too much after every batch: a pass over all edges makes it nothing."""
    wanted = {
        "even": even,
        "pagerank": ist.PageRank(weight=True),
        "php": ist.PHP(0),
        "katz": ist.Katz(alpha=0.005, weight=True),
    }[name]
    batches = Batches(6, True, True)
    with far_stream(batches.plain.read(), [wanted], threads=2) as live:
        program, derived = live.batches.programs[name], []
        derive = program._derive
        for number in range(1, 5):
            monkeypatch.setattr(program, "_derive", lambda: (derived.append(1), derive()))
            program._lost = 1.0
            batches.apply(live)
            assert program._lost < 1e-9 and len(derived) == number
            monkeypatch.setattr(program, "_derive", derive)  # of a check, which may do so too
            assert live.check() == {}


def test_strengths_are_summed_anew() -> None:
    """Sums of weights that differences may have made inexact."""
    batches = Batches(7, True, True)
    with far_stream(batches.plain.read(), [ist.PageRank(weight=True)], threads=1) as live:
        program = live.batches.programs["pagerank"]
        for _ in range(4):
            program._inexact[: live.graph.vertices] = 1.0
            batches.apply(live)
            begins, ends, _, weights = live.graph.sides["out"].arrays()
            n = live.graph.vertices
            assert program._strength[:n].tolist() == [weights[begins[v] : ends[v]].sum() for v in range(n)]


def test_a_hub_larger_than_a_piece() -> None:
    """Its list comes by itself. Triangles of edges at two hubs need both of their lists."""
    spokes = np.array([(hub, v) for hub in (0, 1) for v in range(2, 400)])
    with far_stream(
        ist.read(tuple(spokes.T), directed=False), [ist.CoreNumber(), ist.TriangleCount(), ist.BFS(0)], most=10
    ) as live:
        for change in ({"inserts": [(0, 1)]}, {"deletes": [(0, 1), (0, 5)]}, {"inserts": [(5, 6), (0, 5), (0, 1)]}):
            live.apply(**change)
            assert live.check() == {}


def changed(live: Any, draw: Any, count: int) -> Any:
    busy = [int(v) for v in draw.permutation(live.graph.vertices) if live.graph.out_degree(int(v))][:count]
    gone = [(v, int(draw.choice(live.graph.neighbors(v)))) for v in busy]
    inserts = (*draw.integers(0, live.graph.vertices, (2, count)), draw.integers(1, 9, count).astype(np.int32))
    return live.apply(inserts=inserts, deletes=gone)


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("directed", [True, False])
def test_small_batches_read_a_small_part(title: str, directed: bool, sized: Any) -> None:
    """No recomputation in disguise. Lists by themselves are as cheap as in bulk, as if the graph were far larger than
    it is.
    """
    sized(lone_list=1, least_table=64)
    graph = ist.generate("rmat", scale=11, weights="1:9", seed=5, directed=directed)
    case = next(each for each in cases(graph.busiest(), alpha=1e-5) if each.title == title)
    scratch = sum(iteration.active_edges for iteration in case.scratch(graph).trace)
    draw, read = np.random.default_rng(1), []
    with far_stream(graph, [case.wanted()], most=2000, threads=2) as live:
        for _ in range(6):
            read.append(changed(live, draw, 2).programs[title]["edges_read"])
        assert np.median(read) <= (0.8 if case.tol else 0.1) * scratch, (read, scratch)
        assert live.check() == {}


@pytest.mark.parametrize("name", ["pagerank", "php"])
def test_scores_of_a_large_grid_are_corrected_nearby(name: str, sized: Any) -> None:
    """A changed edge concerns few vertices, so few lists are read, and no pass is made."""
    sized(lone_list=1)
    graph = ist.generate("grid", rows=120, columns=120)
    wanted = ist.PageRank(tol=1e-4) if name == "pagerank" else ist.PHP(7000, tol=1e-4)
    with far_stream(graph, [wanted], most=2000) as live:
        for at in (3000, 7100, 14_000):
            report = live.apply(inserts=[(at, at + 2)], deletes=[(at, at + 1)])
            assert report.programs[name]["edges_read"] < graph.arcs / 4
        assert live.check() == {}


@pytest.mark.parametrize("directed", [True, False])
def test_a_batch_takes_few_passes(directed: bool, sized: Any) -> None:
    """As many changes as 100,000 of a quarter of a billion edges: 3 or 4 passes, where a run from scratch takes 7
    to 9.
    """
    sized(lone_list=4)
    graph = ist.generate("rmat", scale=13, seed=5, directed=directed)
    draw, read = np.random.default_rng(1), []
    with far_stream(graph, [ist.PageRank(tol=1e-4)], most=1 << 20, threads=2) as live:
        scratch = sum(iteration.active_edges for iteration in ist.pagerank(graph, tol=1e-4).trace)
        for _ in range(5):
            ends = draw.integers(0, graph.vertices, (2, graph.edges // 5400))
            busy = [int(v) for v in draw.permutation(graph.vertices) if live.graph.out_degree(int(v))][
                : graph.edges // 5400
            ]
            gone = [(v, int(draw.choice(live.graph.neighbors(v)))) for v in busy]
            read.append(live.apply(inserts=tuple(ends), deletes=gone).programs["pagerank"]["edges_read"])
        assert np.median(read) <= 0.6 * scratch and live.check() == {}, (read, scratch)
