"""Kernels that count uses of lists and choose the hottest, run on the processor, beside those of the processor."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.devices.cuda.kernels import uses
from isthmus.kernels.cache import hot_lists

DRAW = np.random.default_rng(4)
COUNT, OFFSET = 500, 40
LENGTHS = DRAW.integers(0, 300, COUNT) * DRAW.integers(0, 2, COUNT)
ENDS = np.cumsum(LENGTHS)
LISTS = (ENDS - LENGTHS, ENDS)
KERNELS = uses.build(gpu=False)


def words() -> np.ndarray:
    """Of keys from OFFSET on, with bytes that are full and bytes that are not."""
    return DRAW.choice(np.array([0, 0, 1, 3, 254, 255], np.uint8), 4 * (OFFSET + COUNT)).view(np.uint32)


def by_key(array: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(OFFSET, array.dtype), array])


def test_uses_are_counted_up_to_the_most() -> None:
    rows, marks = DRAW.permutation(COUNT)[:200].astype(np.uint32), DRAW.integers(0, 2, 504).astype(np.uint8)
    found = words()
    expected = found.copy()
    hot_lists.use_rows(rows, OFFSET, expected)
    KERNELS.use_rows(16, rows, OFFSET, found)
    assert np.array_equal(found, expected)
    for every in (False, True):
        hot_lists.use_range(0, COUNT, marks, every, OFFSET, expected)
        KERNELS.use_marked(16, COUNT, marks, every, OFFSET, found)
        assert np.array_equal(found, expected)
    hot_lists.end_period(0, expected.size, expected)
    KERNELS.end_period(16, found)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("capacity", [0, 100, 5000, 20_000, 10**6])
def test_the_same_candidates_are_marked(capacity: int) -> None:
    counted, held = words(), DRAW.integers(0, 2, OFFSET + COUNT).astype(np.uint8)
    given, lengths = (OFFSET, counted, held, *LISTS, 200), by_key(LENGTHS.astype(np.uint32))
    entries, chosen, sums = np.zeros(hot_lists.LEVELS, np.int64), np.zeros(2, np.int64), np.empty(COUNT, np.int64)
    KERNELS.count_entries(16, COUNT, *given, entries)
    every = hot_lists.entries_by_level(0, lengths.size, counted, held, lengths, 200)
    assert np.array_equal(entries[1:], every[1:]) and entries[0] == 0
    KERNELS.find_level(16, np.cumsum(entries), capacity, chosen)
    level, room = (int(each) for each in chosen)
    assert entries[level + 1 :].sum() + room == capacity and (level == 0 or entries[level:].sum() > capacity)
    KERNELS.entries_on_level(16, 0, COUNT, *given, chosen, sums)
    found, expected = np.zeros(lengths.size, np.uint8), np.zeros(lengths.size, np.uint8)
    KERNELS.mark_candidates(16, 0, COUNT, *given, chosen, np.cumsum(sums), found)
    hot_lists.mark_candidates(0, lengths.size, counted, held, lengths, 200, level, room, expected)
    assert np.array_equal(found, expected)
    assert int(lengths[found != 0].sum()) <= capacity and (found.any() or capacity < 5000)
    KERNELS.take_room(16, np.cumsum(sums), chosen)
    assert chosen[1] == room - sums.sum()


def test_cold_lists_and_heat() -> None:
    counted, keys = words(), (DRAW.permutation(COUNT)[:100] + OFFSET).astype(np.uint32)
    sizes, entries, cold = (
        DRAW.integers(1, 90, 100).astype(np.uint32),
        np.zeros(hot_lists.LEVELS, np.int64),
        np.empty(100, np.uint8),
    )
    KERNELS.count_held(16, keys, sizes, counted, entries)
    lengths = np.zeros(OFFSET + COUNT, np.uint32)
    lengths[keys] = sizes
    levels, expected = hot_lists.levels_of(keys, counted, lengths)
    assert np.array_equal(entries, expected)
    level = int(np.median(levels))
    chosen, sums = np.array([level, int(sizes[levels == level].sum()) // 2]), np.empty(100, np.int64)
    KERNELS.held_on_level(16, keys, sizes, counted, chosen, sums)
    assert np.array_equal(sums, np.where(levels == level, sizes, 0))
    sums = np.cumsum(sums)
    KERNELS.mark_cold(16, keys, sizes, counted, chosen, sums, cold)
    assert np.array_equal(cold, (levels < level) | ((levels == level) & (sums > chosen[1])))
    heats = np.empty(100, np.uint16)
    KERNELS.heat(16, keys, counted, heats)
    assert heats.tolist() == counted[keys].view(np.uint8).reshape(-1, 4).sum(axis=1).tolist()


def test_words_move_with_their_vertices() -> None:
    counted = words()
    expected = counted.copy()
    expected[[2, 9]] = counted[[50, 60]]
    KERNELS.move_words(16, np.array([50, 60]), np.array([2, 9]), counted)
    assert np.array_equal(counted, expected)
