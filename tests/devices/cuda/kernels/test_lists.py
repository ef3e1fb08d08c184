"""Kernels over lists, run on the processor: every entry goes to its place, and nothing else is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.devices.cuda.kernels import lists, rows
from isthmus.devices.cuda.kernels.skeleton import WIDTHS, far_widths

LENGTHS = np.array([0, 1, 31, 32, 33, 1023, 1024, 5000, 2], np.int64)
BEGINS = np.array([7, 7, 100, 200, 301, 400, 1500, 3001, 9000], np.int64)
ROOM, THREADS = LENGTHS.size, 600
SOURCE = np.arange(10_000, dtype=np.uint32)
KERNELS, ROWS = lists.build(gpu=False), rows.build(gpu=False)


def room() -> tuple[Any, ...]:
    return *(np.empty(3 * ROOM, dtype) for dtype in (np.uint32, np.int64, np.int64, np.int64)), np.zeros(3, np.int64)


def found(columns: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """The rows that were sorted: vertex, begin, weight begin, length."""
    *given, counts = columns
    return sorted(
        tuple(int(column[kind * ROOM + k]) for column in given) for kind in range(3) for k in range(counts[kind])
    )


@pytest.mark.parametrize("widths", [WIDTHS, far_widths(32)])
def test_rows_are_fetched_from_far_memory_once_and_by_whole_lines(widths: tuple[int, ...]) -> None:
    tos = np.concatenate([[0], np.cumsum(LENGTHS + 3)[:-1]])
    columns = room()
    ROWS.sort_rows(THREADS, np.arange(ROOM, dtype=np.uint32), BEGINS, tos, LENGTHS, ROOM, *columns)
    near = np.zeros(10_000, np.uint32)
    for kind, width in enumerate(widths):
        KERNELS.fetch(THREADS, kind, ROOM, *columns, width, 32, SOURCE, near)
    expected = np.zeros(10_000, np.uint32)
    for begin, to, length in zip(BEGINS, tos, LENGTHS, strict=True):
        expected[to : to + length] = SOURCE[begin : begin + length]
    assert np.array_equal(near, expected)


def test_rows_that_a_cache_has_chosen_are_found_and_copied() -> None:
    list_begins, list_ends = BEGINS, BEGINS + LENGTHS
    chosen, held = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1], np.uint8), np.array([0, 0, 1, 0, 0, 0, 0, 0, 0], np.uint8)
    lengths = LENGTHS.copy()
    lengths[5] -= 1  # came in pieces
    columns = room()
    KERNELS.sort_chosen(
        THREADS,
        np.arange(ROOM, dtype=np.uint32),
        BEGINS,
        BEGINS + 1,
        lengths,
        chosen,
        held,
        list_begins,
        list_ends,
        ROOM,
        *columns,
    )
    assert [row[0] for row in found(columns)] == [1, 4, 6, 7, 8]
    assert held.tolist() == [0, 1, 1, 0, 1, 0, 1, 1, 1]
    places = np.array([0, 10, 20, 30, 40, 100, 200, 2000, 8000], np.uint32)
    weights, kept, kept_weights = SOURCE / 2, np.zeros(10_000, np.uint32), np.zeros(10_000)
    for kind, width in enumerate(WIDTHS):
        KERNELS.keep(THREADS, kind, ROOM, *columns, width, places, SOURCE, weights, True, kept, kept_weights)
    for u in (1, 4, 6, 7, 8):
        to, begin, length = int(places[u]), int(BEGINS[u]), int(LENGTHS[u])
        assert np.array_equal(kept[to : to + length], SOURCE[begin : begin + length])
        assert np.array_equal(kept_weights[to : to + length], weights[begin + 1 : begin + 1 + length])
    assert np.count_nonzero(kept) == LENGTHS[[1, 4, 6, 7, 8]].sum()


def test_of_a_range_only_whole_lists_are_kept() -> None:
    list_begins, list_ends = BEGINS, BEGINS + LENGTHS
    held, columns = np.zeros(ROOM, np.uint8), room()
    KERNELS.sort_chosen_range(
        THREADS, 1, ROOM, 150, 3000, 100, 50, np.ones(ROOM, np.uint8), held, list_begins, list_ends, ROOM, *columns
    )
    assert found(columns) == [(u, BEGINS[u] - 100, BEGINS[u] - 50, LENGTHS[u]) for u in (3, 4, 5, 6)]
    assert np.flatnonzero(held).tolist() == [3, 4, 5, 6]


def test_rows_of_cached_lists_are_made_from_their_vertices() -> None:
    columns, places = room(), np.arange(0, 90, 10, dtype=np.uint32)
    KERNELS.sort_held(THREADS, np.array([0, 2, 8], np.uint32), places, BEGINS, BEGINS + LENGTHS, ROOM, *columns)
    assert found(columns) == [(2, 20, 20, 31), (8, 80, 80, 2)]


@pytest.mark.parametrize("threads", [1, 7, 600])
def test_lists_are_copied_entry_by_entry(threads: int) -> None:
    starts, tos = np.concatenate([[0], np.cumsum(LENGTHS)[:-1]]), np.concatenate([[0], np.cumsum(LENGTHS + 5)[:-1]])
    sink = np.zeros(10_000, np.uint32)
    KERNELS.copy_lists(threads, LENGTHS.sum(), starts, BEGINS, tos, SOURCE, sink)
    again, scratch = np.zeros(10_000, np.uint32), np.empty(100, np.uint32)
    for low in range(0, int(LENGTHS.sum()), 100):
        high = min(low + 100, int(LENGTHS.sum()))
        KERNELS.take(threads, low, high, starts, BEGINS, SOURCE, scratch)
        KERNELS.put(threads, low, high, starts, tos, scratch, again)
    expected = np.zeros(10_000, np.uint32)
    for begin, to, length in zip(BEGINS, tos, LENGTHS, strict=True):
        expected[to : to + length] = SOURCE[begin : begin + length]
    assert np.array_equal(sink, expected)
    assert np.array_equal(again, expected)
