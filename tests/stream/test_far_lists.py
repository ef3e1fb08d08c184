"""Maintained programs on lists that are far (`stream/maintained.py`): some lists at a time, and nothing else is read.

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

from isthmus.kernels.packed import DELETE, INSERT, REWEIGH

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
