"""Partitions: every edge lies in exactly one, a cut may fall into a gap, and gaps count as slots only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sides import lists_of

from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions, cut, joined, partition_bytes

SHAPES = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.just(0), st.integers(0, 40))), max_size=25)


def check(parts: Partitions, lists: Lists) -> None:
    """Partitions hold all slots, name the vertices that have edges in them, and count these edges."""
    assert parts.cuts[0] == 0
    assert parts.cuts[-1] == (lists.slots if len(lists) else 0)
    assert (np.diff(parts.cuts) > 0).all()
    assert parts.slots.tolist() == np.diff(parts.cuts).tolist()
    assert (parts.first <= parts.last).all()
    assert (parts.first[1:] >= parts.first[:-1]).all()
    for p in range(len(parts)):
        inside = np.minimum(lists.ends, parts.cuts[p + 1]) - np.maximum(lists.begins, parts.cuts[p])
        with_edges = np.flatnonzero(inside > 0)
        assert parts.arcs[p] == inside[with_edges].sum()
        assert ((with_edges >= parts.first[p]) & (with_edges < parts.last[p])).all()
        if with_edges.size:
            assert (
                parts.first[p] == with_edges[0] or parts.cuts[p] == 0 or lists.begins[parts.first[p]] >= parts.cuts[p]
            )


def check_whole(parts: Partitions, lists: Lists, step: int) -> None:
    """A list that is no longer than a partition, with the gap behind it, is not cut."""
    begins = lists.begins
    ends = np.append(begins[1:], lists.slots)[: begins.size]
    first_cut_behind = np.searchsorted(parts.cuts, begins, "right")
    cut_off = parts.cuts[np.minimum(first_cut_behind, len(parts))] < ends
    assert (ends - begins > step)[cut_off & (begins < ends)].all()


@settings(deadline=None)  # the first compiles
@given(SHAPES, st.integers(1, 30))
@example([(3, 100), (0, 0), (2, 0)], 5)
@example([(0, 50)], 5)
def test_lists_with_gaps(shape: Any, step: int) -> None:
    lists = lists_of([degree for degree, _ in shape], [gap for _, gap in shape])
    parts = cut(lists, 4, 4 * step)
    check(parts, lists)
    check_whole(parts, lists, step)
    assert parts.slots.max(initial=0) < 2 * step  # also where gaps are longer than that
    threes = joined(parts, 3)
    check(threes, lists)
    assert threes.cuts.tolist() == [*parts.cuts[:-1:3].tolist(), parts.cuts[-1]]
    assert threes.first.tolist() == parts.first[::3].tolist()
    assert threes.last.tolist() == [int(parts.last[p : p + 3][-1]) for p in range(0, len(parts), 3)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=25), st.integers(1, 30))
def test_lists_without_gaps(degrees: list[int], step: int) -> None:
    lists = lists_of(degrees)
    parts = cut(lists, 1, step)
    check(parts, lists)
    check_whole(parts, lists, step)
    assert parts.arcs is parts.slots
    twos = joined(parts, 2)
    assert twos.arcs is twos.slots
    spread = lists_of(degrees, [0] * len(degrees))
    again = cut(spread, 1, step)
    for mine, other in (
        (parts.cuts, again.cuts),
        (parts.first, again.first),
        (parts.last, again.last),
        (parts.arcs, again.arcs),
    ):
        assert mine.tolist() == other.tolist()


def test_a_partition_that_is_all_gap_has_no_vertices() -> None:
    parts = cut(lists_of([3, 2], [20, 0]), 1, 5)
    assert parts.cuts.tolist() == [0, 5, 10, 15, 20, 25]
    assert parts.arcs.tolist() == [3, 0, 0, 0, 2]
    assert (parts.last - parts.first).tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("gaps", [None, [0]])
def test_a_hub_is_cut_into_pieces(gaps: Any) -> None:
    parts = cut(lists_of([10], gaps), 1, 4)
    assert parts.cuts.tolist() == [0, 4, 8, 10]
    assert (parts.first.tolist(), parts.last.tolist()) == ([0, 0, 0], [1, 1, 1])


def test_a_list_that_begins_at_a_cut_belongs_to_the_partition_behind_it() -> None:
    parts = cut(Lists.of(np.array([0, 4, 8, 8, 12])), 4, 16)
    assert parts.cuts.tolist() == [0, 4, 8, 12]
    assert (parts.first.tolist(), parts.last.tolist()) == ([0, 1, 3], [1, 2, 4])


@pytest.mark.parametrize(
    ("edge_bytes", "size"),
    [
        (0, 16 << 10),
        (512 * 16384, 16 << 10),
        (512 * 16385, 20 << 10),
        (512 * 20480, 20 << 10),
        (1 << 34, 32 << 20),
        (1 << 40, 32 << 20),
    ],
)
def test_a_partition_is_a_512th_of_the_edges_in_whole_blocks(edge_bytes: int, size: int) -> None:
    assert partition_bytes(edge_bytes) == size


@pytest.mark.parametrize(("most", "size"), [(0, 4096), (4096, 4096), (4097, 8192), (1 << 30, 1 << 20)])
def test_a_partition_is_no_larger_than_allowed(most: int, size: int) -> None:
    assert partition_bytes(512 << 20, most) == size


def test_a_partition_holds_a_slot_at_least() -> None:
    assert cut(lists_of([3]), 8, 4).cuts.tolist() == [0, 1, 2, 3]
