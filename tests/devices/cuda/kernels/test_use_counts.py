"""Kernels of the vertex cache, run on the processor, beside those of the processor."""

from __future__ import annotations

import numpy as np

from isthmus.devices.cuda.kernels import use_counts
from isthmus.kernels.cache import use_counts as processor

RANDOM = np.random.default_rng(3)
COUNT = 500
DEGREES = RANDOM.integers(0, 300, COUNT) * RANDOM.integers(0, 2, COUNT)
ENDS = np.cumsum(DEGREES)
LISTS = (ENDS - DEGREES, ENDS)
KERNELS = use_counts.build(gpu=False)


def test_uses_are_counted_up_to_the_most() -> None:
    uses = RANDOM.choice(np.array([0, 3, 254, 255], np.uint8), COUNT)
    marks = RANDOM.integers(0, 2, 504).astype(np.uint8)
    for every in (False, True):
        expected, found = uses.copy(), uses.copy()
        processor.heat_range(0, COUNT, marks, every, expected)
        KERNELS.heat(16, COUNT, marks, every, found)
        assert np.array_equal(found, expected)


def test_edges_are_counted_by_level() -> None:
    uses, found = RANDOM.integers(0, 5, COUNT).astype(np.uint8), np.zeros(processor.LEVELS, np.int64)
    KERNELS.count_levels(16, COUNT, uses, *LISTS, 200, found)
    expected = processor.edges_by_level(0, COUNT, uses, *LISTS, 200)
    assert found[0] == 0
    assert np.array_equal(found[1:], expected[1:])


def test_vertices_on_a_level_are_marked_while_they_fit() -> None:
    uses = RANDOM.integers(0, 3, COUNT).astype(np.uint8)
    level = processor.SIZES + 8
    for room in (0, 500, 10**6):
        expected, found, sums = np.zeros(COUNT, np.uint8), np.full(COUNT, 7, np.uint8), np.empty(COUNT, np.int64)
        processor.mark_hot(0, COUNT, uses, *LISTS, 200, level, room, expected)
        KERNELS.edges_on_level(16, 0, COUNT, uses, *LISTS, 200, level, sums)
        KERNELS.mark_hot(16, 0, COUNT, uses, *LISTS, 200, level, np.cumsum(sums), room, found)
        assert np.array_equal(found, expected)


def test_edges_of_new_candidates_are_added_up() -> None:
    candidates, wanted = (RANDOM.integers(0, 2, COUNT).astype(np.uint8) for _ in range(2))
    found = np.zeros(2, np.int64)
    KERNELS.count_fresh(16, COUNT, candidates, wanted, *LISTS, found)
    assert tuple(found) == processor.fresh_edges(0, COUNT, candidates, wanted, *LISTS)


def test_active_vertices_that_are_not_held_are_marked() -> None:
    marks, held = (RANDOM.integers(0, 2, COUNT).astype(np.uint8) for _ in range(2))
    for every in (False, True):
        others, count = np.full(COUNT, 9, np.uint8), np.zeros(1, np.int64)
        KERNELS.mark_others(16, COUNT, marks, every, held, others, count)
        expected = (held == 0) & (every | (marks != 0))
        assert np.array_equal(others, expected)
        assert count[0] == expected.sum()
