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
from isthmus.programs.message import INT_MAX
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


def test_sum_of_residuals(team):
    residual = np.array([0.5, 100.0, -0.25, 3.0, 1.0])
    for front in fronts([0, 1, 2, 3]):
        found = priorities(front, PARTITIONS, LISTS, True, residual, residual, team)
        assert found.tolist() == [0.75, 3.0, 3.0]  # vertex 1 has no edges, 4 is not active, 3 is in two partitions


def test_everyone(team):
    front = Frontier(5, 1)
    front.start(None)
    residual = np.array([0.5, 100.0, 0.25, 3.0, 1.0])
    assert priorities(front, PARTITIONS, LISTS, True, residual, residual, team).tolist() == [0.75, 3.0, 4.0]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_a_leap_counts_twice_a_step(dtype, team):
    never = INT_MAX if dtype is np.int64 else np.inf
    values = np.array([10, 7, 11, never, 9], dtype)
    pending = np.array([5, 1, 5, INT_MAX // 2, 8], dtype)
    for front in fronts([0, 2, 3, 4]):
        found = priorities(front, PARTITIONS, LISTS, False, values, pending, team)
        # 10 is twice 5, not more; 11 is; INT_MAX is one more than twice its half, and infinity is more than anything.
        assert found.tolist() == [3, 2, 3]


def test_doubling_a_large_distance_does_not_wrap(team):
    far = np.full(5, INT_MAX - 1)
    for front in fronts([0]):
        assert priorities(front, PARTITIONS, LISTS, False, np.full(5, INT_MAX), far, team).tolist() == [1, 0, 0]


def test_unsigned_labels_do_not_wrap(team):
    values, pending = np.array([4, 4, 4, 4, 4], np.uint32), np.array([1, 1, 3, 0, 4], np.uint32)
    for front in fronts([0, 2, 3, 4]):
        assert priorities(front, PARTITIONS, LISTS, False, values, pending, team).tolist() == [3, 2, 3]


def test_larger_is_better_when_swapped(team):
    widths, pending = np.array([1.0, 0, 2, 0, 0]), np.array([4.0, 0, 3, 0, 0])
    front, _ = fronts([0, 2])
    assert priorities(front, PARTITIONS, LISTS, False, pending, widths, team).tolist() == [3, 0, 0]
    assert priorities(front, PARTITIONS, LISTS, False, widths, pending, team).tolist() == [2, 0, 0]


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
    ]  # fmt: skip
    for front in fronts(sorted(active), len(degrees)):
        assert priorities(front, partitions, Lists.of(offsets), True, residual, residual, team).tolist() == wanted


def test_filter_tasks_by_priority_then_zero_copy_then_compaction():
    stages = np.array([engine(name).stage for name in ("compaction", "filter", "zero_copy", "filter", "filter")])
    found = order(stages, np.array([99.0, 1, 50, 7, 7]))
    assert found.tolist() == [3, 4, 1, 2, 0]


def test_without_priorities_the_order_of_the_partitions_stays():
    assert order(np.zeros(4, np.int64), np.array([1.0, 3, 2, 4])).tolist() == [3, 1, 2, 0]
    assert order(np.zeros(4, np.int64), np.zeros(4)).tolist() == [0, 1, 2, 3]
