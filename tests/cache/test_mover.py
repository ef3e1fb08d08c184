"""Lists that move in the memory of this machine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.list_caches import check_patching

from isthmus.cache.mover import HostMover, Index, copier, copy_part

LENGTHS = np.array([5, 1, 40, 1100, 3, 3, 77, 2])
FROMS = np.cumsum(LENGTHS + np.arange(1, 9)) - LENGTHS
TOS = np.cumsum(LENGTHS) - LENGTHS
SIZE = int(FROMS[-1] + LENGTHS[-1])


def moved(source, sink):
    found = sink.copy()
    for begin, to, length in zip(FROMS, TOS, LENGTHS, strict=True):
        found[to : to + length] = source[begin : begin + length]
    return found


@pytest.mark.parametrize("way", ["copy", "fetch"])
def test_lists_are_copied_to_other_memory(team, way):
    pairs = [(np.arange(SIZE, dtype=dtype), np.zeros(SIZE, dtype)) for dtype in (np.uint32, np.float64)]
    getattr(HostMover(team), way)(FROMS, TOS, LENGTHS, pairs)
    for source, sink in pairs:
        assert np.array_equal(sink, moved(source, np.zeros(SIZE, source.dtype)))


def test_lists_move_to_the_front_of_their_own_memory(team):
    arrays = [np.arange(SIZE).astype(dtype) for dtype in (np.uint32, np.float64)]
    expected = [moved(array, array) for array in arrays]
    HostMover(team).shift(FROMS, TOS, LENGTHS, arrays)
    for found, each in zip(arrays, expected, strict=True):
        assert np.array_equal(found, each)


def test_only_changed_entries_of_a_list_are_copied(team):
    check_patching(HostMover(team), team)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_whole_chosen_and_not_held_fill_their_places(team, weighted):
    """Row 0 is held already, row 1 is not chosen, row 2 came in pieces, row 5 is empty."""
    lengths = np.array([3, 3, 3, 3, 2, 0])
    ends = np.cumsum(lengths)
    lists, begins = (ends - lengths, ends), np.array([0, 3, 6, 9, 14, 0])
    index = Index(np.array([1, 0, 1, 1, 1, 1], np.uint8), np.array([1, 0, 0, 0, 0, 0], np.uint8), begins)
    rows = (np.arange(6), ends - lengths + 10, ends - lengths + 20, np.where(np.arange(6) == 2, 2, lengths))
    pairs = [(np.arange(100, 200), np.zeros(20, np.int64)), (np.arange(100) / 2, np.zeros(20))][: 1 + weighted]
    HostMover(team).keep(rows, lists, index, pairs)
    assert index.held.tolist() == [1, 0, 0, 1, 1, 0]
    for (source, near), begin in zip(pairs, (10, 20), strict=False):
        expected = np.zeros(20)
        expected[9:12], expected[14:16] = source[begin + 9 : begin + 12], source[begin + 12 : begin + 14]
        assert near.tolist() == expected.tolist()


@pytest.mark.parametrize("by", [lambda team: copy_part, lambda team: copier(HostMover(team))], ids=["host", "mover"])
def test_a_run_of_entries_is_copied(team, by):
    near = np.zeros(9, np.uint32)
    by(team)(near, 2, np.arange(50, 90, dtype=np.uint32), 7, 3)
    assert near.tolist() == [0, 0, 57, 58, 59, 0, 0, 0, 0]
