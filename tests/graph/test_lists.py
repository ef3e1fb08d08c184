"""Lists: two views of stored offsets, or begins and ends with gaps between them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.sides import lists_of

from isthmus.graph.lists import Lists

# of each vertex: its list, the gap behind it.
SHAPES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20)


def test_stored_offsets_become_two_views_of_one_array():
    offsets = np.array([0, 3, 3, 7])
    lists = Lists.of(offsets)
    assert np.shares_memory(lists.begins, offsets)
    assert np.shares_memory(lists.ends, offsets)
    assert (lists.begins.tolist(), lists.ends.tolist()) == ([0, 3, 3], [3, 3, 7])
    assert (len(lists), lists.slots, lists.arcs, lists.has_gaps) == (3, 7, 7, False)
    assert lists.arcs_before() is lists.begins


def test_no_vertex():
    lists = Lists.of(np.zeros(1, np.int64))
    assert (len(lists), lists.slots, lists.arcs, lists.degrees().size) == (0, 0, 0, 0)
    empty = np.empty(0, np.int64)
    assert (Lists(empty, empty).slots, Lists(empty, empty).arcs, Lists(empty, empty, 9).has_gaps) == (0, 0, True)


def test_slots_are_not_arcs():
    lists = Lists(np.array([0, 4, 10]), np.array([3, 4, 12]))
    assert (lists.slots, lists.arcs, lists.has_gaps) == (12, 5, True)
    assert Lists(lists.begins, lists.ends, 20).slots == 20
    begins, ends = lists.arrays
    assert begins is lists.begins and ends is lists.ends
    assert lists.degrees().tolist() == [3, 0, 2]
    assert lists.degrees(np.uint32).dtype == np.uint32
    assert lists.arcs_before().tolist() == [0, 3, 3]


def test_lists_that_follow_each_other_have_no_gaps():
    lists = Lists(np.array([0, 300]), np.array([300, 700]))
    assert (lists.arcs, lists.slots, lists.has_gaps) == (700, 700, False)


def test_a_gap_behind_the_last_list_alone_is_one():
    lists = Lists(np.array([0, 2]), np.array([2, 3]), 4)
    assert lists.has_gaps
    assert lists.arcs_before().tolist() == [0, 2]


@given(SHAPES)
def test_counts_are_those_of_the_lists(shape: list[tuple[int, int]]) -> None:
    degrees, gaps = [degree for degree, _ in shape], [gap for _, gap in shape]
    lists = lists_of(degrees, gaps)
    assert lists.arcs == sum(degrees)
    assert lists.slots == sum(degrees) + sum(gaps)
    assert lists.degrees().tolist() == degrees
    assert lists.arcs_before().tolist() == [sum(degrees[:v]) for v in range(len(degrees))]
