"""`live.check()`: right answers are not suspected, wrong ones are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist


@ist.accumulative(initial=1.0, threshold=1e-6, column="score")
def spread(delta, degree, share=0.5):  # type: ignore[no-untyped-def]
    return share * delta / degree


@pytest.fixture
def graph() -> Any:
    rng = np.random.default_rng(3)
    return ist.read((rng.integers(0, 60, 300), rng.integers(0, 60, 300)), directed=False, parallel="drop")


def test_searches_that_reach_less_than_all(graph: Any) -> None:
    """A run from scratch keeps such distances in 32 bits, a stream in 64."""
    with ist.stream(graph, [ist.MultiSourceBFS(sources=[0, 1])]) as live:
        live.apply(add_vertices=[1000])
        assert live.check() == {}


def test_own_accumulative_programs_are_judged_by_their_threshold(graph: Any) -> None:
    with ist.stream(graph, spread(source=0)) as live:
        live.apply(inserts=[(0, 50), (0, 51)])
        live.apply(deletes=[(0, int(v)) for v in graph.neighbors(0)[:2]])
        assert live.check() == {}
        before = [array.copy() for array in live.batches.programs["spread"].state.arrays]  # type: ignore[attr-defined]
        live.check()
        for array, old in zip(live.batches.programs["spread"].state.arrays, before, strict=True):  # type: ignore[attr-defined]
            assert np.array_equal(array[:60], old[:60]), "a check changes nothing"


@pytest.mark.parametrize("program", [spread(source=0), ist.BFS(source=0), ist.PageRank(tol=1e-6)])
def test_a_wrong_answer_is_found(graph: Any, program: Any) -> None:
    with ist.stream(graph, program) as live:
        name = next(iter(live))
        live.apply(inserts=[(0, 50)])
        kept: Any = live.batches.programs[name]
        kept.state.arrays[0][7] += 1  # too far, or too much
        kept._published[7] += 1
        live.apply(add_vertices=[2000])
        assert list(live.check()) == [name]


def test_a_path_is_opened_in_no_time_per_level() -> None:
    """One step of the loop per level would take half a minute."""
    n = 100_000
    path = ist.read((np.arange(n - 1), np.arange(1, n)), directed=False)
    with ist.stream(path, ist.BFS(source=0)) as live:
        assert live["bfs"].filled()[-1] == n - 1
        live.apply(deletes=[(n - 2, n - 1)])
        assert live["bfs"].values[-1] is np.ma.masked
