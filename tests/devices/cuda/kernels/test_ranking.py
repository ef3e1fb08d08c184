"""Kernels that count uses of lists and choose the hottest, run on the processor, beside those of the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.cache.ranking import HOTNESS, USES, Ranking
from isthmus.devices.cuda.kernels import ranking as cuda
from isthmus.kernels.cache import ranking as processor

DRAW = np.random.default_rng(4)
COUNT, OFFSET = 500, 40
LENGTHS = DRAW.integers(0, 300, COUNT) * DRAW.integers(0, 2, COUNT)
ENDS = np.cumsum(LENGTHS)
LISTS = (ENDS - LENGTHS, ENDS)
KERNELS = cuda.build(gpu=False)
both = pytest.mark.parametrize("ranking", [HOTNESS, USES], ids=["HyTGraph", "Grapin"])


def words(ranking: Ranking) -> np.ndarray:
    """Of keys from OFFSET on, with bytes that are full and bytes that are not."""
    some = np.array([0, 0, 1, 3, 254, 255], np.uint8)
    return DRAW.choice(some, ranking.periods * (OFFSET + COUNT)).view(ranking.dtype)


@both
def test_uses_are_counted_up_to_the_most(ranking: Ranking) -> None:
    rows, marks = DRAW.permutation(COUNT)[:200].astype(np.uint32), DRAW.integers(0, 2, 504).astype(np.uint8)
    found = words(ranking)
    expected = found.copy()
    processor.use_rows(rows, OFFSET, expected, ranking.current)
    KERNELS.use_rows(16, rows, OFFSET, found, ranking.current)
    assert np.array_equal(found, expected)
    for every in (False, True):
        processor.use_range(0, COUNT, marks, every, OFFSET, expected, ranking.current)
        KERNELS.use_marked(16, COUNT, marks, every, OFFSET, found, ranking.current)
        assert np.array_equal(found, expected)
    processor.end_period(0, expected.size, expected)
    KERNELS.end_period(16, found)
    assert np.array_equal(found, expected)


@both
@pytest.mark.parametrize("capacity", [0, 100, 5000, 20_000, 10**6])
def test_the_same_candidates_are_marked(ranking: Ranking, capacity: int) -> None:
    counted, held = words(ranking), DRAW.integers(0, 2, OFFSET + COUNT).astype(np.uint8)
    near: tuple[Any, ...] = (OFFSET, counted, held, *LISTS, 200, ranking.order)
    here: tuple[Any, ...] = (0, COUNT, *LISTS, OFFSET, counted, held, 200, ranking.order)
    entries, cutoff, sums = np.zeros(ranking.levels, np.int64), np.zeros(2, np.int64), np.empty(COUNT, np.int64)
    KERNELS.count_entries(16, COUNT, *near, entries)
    assert np.array_equal(entries, processor.entries_by_level(*here, ranking.levels)) and entries[0] == 0
    KERNELS.find_level(16, np.cumsum(entries), capacity, cutoff)
    level, space = (int(each) for each in cutoff)
    assert entries[level + 1 :].sum() + space == capacity and (level == 0 or entries[level:].sum() > capacity)
    KERNELS.entries_on_level(16, 0, COUNT, *near, cutoff, sums)
    found, expected = np.zeros(OFFSET + COUNT, np.uint8), np.zeros(OFFSET + COUNT, np.uint8)
    KERNELS.mark_candidates(16, 0, COUNT, *near, cutoff, np.cumsum(sums), found)
    processor.mark_hottest(*here, level, space, expected)
    assert np.array_equal(found, expected) and not found[:OFFSET].any()
    assert int(LENGTHS[found[OFFSET:] != 0].sum()) <= capacity and (found.any() or capacity < 5000)
    KERNELS.take_space(16, np.cumsum(sums), cutoff)
    assert cutoff[1] == space - sums.sum()


def test_lists_on_a_level_are_marked_while_they_fit() -> None:
    """On a level that is not the one that the capacity gives."""
    counted, held = DRAW.integers(0, 3, COUNT).astype(np.uint8), np.zeros(COUNT, np.uint8)
    level, sums = HOTNESS.sizes + 8, np.empty(COUNT, np.int64)
    near: tuple[Any, ...] = (0, counted, held, *LISTS, 200, HOTNESS.order)
    for space in (0, 500, 10**6):
        expected, found, cutoff = np.zeros(COUNT, np.uint8), np.full(COUNT, 7, np.uint8), np.array([level, space])
        processor.mark_hottest(0, COUNT, *LISTS, 0, counted, held, 200, HOTNESS.order, level, space, expected)
        KERNELS.entries_on_level(16, 0, COUNT, *near, cutoff, sums)
        KERNELS.mark_candidates(16, 0, COUNT, *near, cutoff, np.cumsum(sums), found)
        assert np.array_equal(found, expected)


def test_entries_of_new_candidates_are_added_up() -> None:
    candidates, chosen = (DRAW.integers(0, 2, COUNT).astype(np.uint8) for _ in range(2))
    found = np.zeros(2, np.int64)
    KERNELS.count_new(16, COUNT, candidates, chosen, *LISTS, found)
    assert tuple(found) == processor.new_entries(0, COUNT, candidates, chosen, *LISTS)


def test_cold_lists_and_heat() -> None:
    counted, keys = words(USES), (DRAW.permutation(COUNT)[:100] + OFFSET).astype(np.uint32)
    sizes, entries = DRAW.integers(1, 90, 100).astype(np.uint32), np.zeros(USES.levels, np.int64)
    KERNELS.count_held(16, keys, sizes, counted, USES.order, entries)
    lengths = np.zeros(OFFSET + COUNT, np.uint32)
    lengths[keys] = sizes
    levels, expected = processor.levels_of(keys, counted, lengths, USES.order, USES.levels)
    assert np.array_equal(entries, expected)
    level, cold = int(np.median(levels)), np.empty(100, np.uint8)
    cutoff, sums = np.array([level, int(sizes[levels == level].sum()) // 2]), np.empty(100, np.int64)
    KERNELS.held_on_level(16, keys, sizes, counted, USES.order, cutoff, sums)
    assert np.array_equal(sums, np.where(levels == level, sizes, 0))
    sums = np.cumsum(sums)
    KERNELS.mark_cold(16, keys, sizes, counted, USES.order, cutoff, sums, cold)
    assert np.array_equal(cold, (levels < level) | ((levels == level) & (sums > cutoff[1])))


@both
def test_heat_is_all_uses(ranking: Ranking) -> None:
    counted, keys = words(ranking), (DRAW.permutation(COUNT)[:100] + OFFSET).astype(np.uint32)
    heats = np.empty(100, np.uint16)
    KERNELS.heat(16, keys, counted, heats)
    assert heats.tolist() == counted[keys].view(np.uint8).reshape(-1, ranking.periods).sum(axis=1).tolist()


def test_words_move_with_their_vertices() -> None:
    counted = words(USES)
    expected = counted.copy()
    expected[[2, 9]] = counted[[50, 60]]
    KERNELS.move_words(16, np.array([50, 60]), np.array([2, 9]), counted)
    assert np.array_equal(counted, expected)
