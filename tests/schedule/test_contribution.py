"""Contribution-driven order with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.engines.registry import engine
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions, cut
from isthmus.schedule.contribution import order, priorities
from isthmus.threads import Team

# Degrees 2, 0, 2, 6, 2 in partitions of 4 edges: vertex 3 is cut over two of them.
LISTS = Lists.of(np.array([0, 2, 2, 4, 10, 12]))
PARTITIONS = Partitions(np.array([0, 4, 8, 12]), np.array([0, 3, 3]), np.array([3, 4, 5]), np.full(3, 4), np.full(3, 4))


@pytest.fixture(scope="module")
def team():
    team = Team(2)
    yield team
    team.close()


def fronts(active, vertices=5):
    """The same active vertices as a list, and as marks alone."""
    sparse, dense = Frontier(vertices, 1), Frontier(vertices, 1)
    sparse.start(np.array(active, np.int64))
    dense.start(np.array(active, np.int64))
    dense.list = None
    return sparse, dense


def test_sum_of_deltas(team):
    residual = np.array([0.5, 100.0, -0.25, 3.0, 1.0])
    for front in fronts([0, 1, 2, 3]):
        found = priorities(front, PARTITIONS, LISTS, residual, team)
        assert found.tolist() == [0.75, 3.0, 3.0]  # vertex 1 has no edges, 4 is not active, 3 is in two partitions


def test_everyone(team):
    front = Frontier(5, 1)
    front.start(None)
    residual = np.array([0.5, 100.0, 0.25, 3.0, 1.0])
    assert priorities(front, PARTITIONS, LISTS, residual, team).tolist() == [0.75, 3.0, 4.0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 12), st.data())
def test_lists_and_marks_agree_with_a_plain_loop(team, degrees, size, data):
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    partitions = cut(Lists.of(offsets), 1, size)
    active = data.draw(st.sets(st.integers(0, len(degrees) - 1)))
    residual = np.arange(len(degrees)) * 0.5
    wanted = [
        sum(
            residual[v]
            for v in active
            if max(offsets[v], partitions.cuts[p]) < min(offsets[v + 1], partitions.cuts[p + 1])
        )
        for p in range(len(partitions))
    ]
    for front in fronts(sorted(active), len(degrees)):
        assert priorities(front, partitions, Lists.of(offsets), residual, team).tolist() == wanted


def test_filter_tasks_by_priority_then_zero_copy_then_compaction():
    stages = np.array([engine(name).stage for name in ("compaction", "filter", "zero_copy", "filter", "filter")])
    found = order(stages, np.array([99.0, 1, 50, 7, 7]))
    assert found.tolist() == [3, 4, 1, 2, 0]


def test_equal_priorities_leave_the_order_of_the_partitions():
    assert order(np.zeros(4, np.int64), np.array([1.0, 3, 2, 4])).tolist() == [3, 1, 2, 0]
    assert order(np.zeros(4, np.int64), np.zeros(4)).tolist() == [0, 1, 2, 3]


def test_without_deltas_filter_tasks_run_as_they_are_stored():
    """That is by hubs, in a store in hub order; zero-copy and compaction come after them all the same."""
    stages = np.array([engine(name).stage for name in ("filter", "filter", "compaction", "zero_copy", "filter")])
    assert order(stages).tolist() == [0, 1, 4, 3, 2]
