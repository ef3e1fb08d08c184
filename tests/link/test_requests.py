"""Requests of lists that a kernel reads where they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isthmus.link.link import Extents
from isthmus.link.requests import ListSpans, count, fetched


def naive(begin: int, length: int, line: int, sector: int) -> list[int]:
    """Byte by byte: which sectors of which lines."""
    touched: dict[int, set[int]] = {}
    for byte in range(begin, begin + length):
        touched.setdefault(byte // line, set()).add(byte % line // sector)
    counts = [0] * (line // sector)
    for sectors in touched.values():
        counts[max(sectors) - min(sectors)] += 1
    return counts


def counted(*lists: tuple[int, int]) -> list[int]:
    begins, lengths = np.array(lists, np.int64).reshape(-1, 2).T
    return count(begins, lengths).tolist()


def test_by_hand():
    assert counted((0, 128)) == [0, 0, 0, 1]
    assert counted((0, 4)) == [1, 0, 0, 0], "a short list is a short request"
    assert counted((32, 64)) == [0, 1, 0, 0]
    assert counted((4, 128)) == [1, 0, 0, 1], "an unaligned list touches one line more"
    assert counted((96, 128)) == [1, 0, 1, 0]
    assert counted((0, 1280)) == [0, 0, 0, 10]
    assert counted((124, 8)) == [2, 0, 0, 0]


def test_neighbours_do_not_share_a_request():
    """HyTGraph, figure 4: as many edges in more vertices take more requests."""
    assert sum(counted(*((16 * i, 16) for i in range(8)))) == 8
    assert sum(counted((0, 128))) == 1


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 600)), max_size=8),
    st.sampled_from([(128, 32), (64, 64), (256, 32)]),
)
def test_any_lists(lists: list[tuple[int, int]], sizes: tuple[int, int]) -> None:
    begins, lengths = np.array(lists, np.int64).reshape(-1, 2).T
    expected = np.zeros(sizes[0] // sizes[1], np.int64)
    for begin, length in lists:
        expected += naive(begin, length, *sizes)
    assert count(begins, lengths, *sizes).tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 300)), min_size=1, max_size=20))
def test_as_many_as_hytgraph_counts(lists: list[tuple[int, int]]) -> None:
    """Formula (3): ceil(length / 128), and one more where the list is misaligned so that it needs it."""
    begins, lengths = np.array(lists, np.int64).T * 4
    least = -(-lengths // 128)
    more = (begins % 128 + lengths > least * 128).astype(int)
    assert count(begins, lengths).sum() == (least + more).sum()


def test_both_arrays_of_a_weighted_list():
    lists = ListSpans(np.array([3, 10, 8]), np.array([10, 10, 9]), (4, 8), section=2)
    extents = lists.extents()
    assert extents.sections.tolist() == [2, 2, 3, 3], "the empty list is left out"
    assert extents.offsets.tolist() == [12, 32, 24, 64]
    assert extents.lengths.tolist() == [28, 4, 56, 8]


def test_nothing():
    assert counted() == [0, 0, 0, 0]
    empty = np.empty(0, np.int64)
    assert ListSpans(empty, empty, (4,)).extents().bytes == 0


def test_beyond_32_bits():
    assert counted((5 * 2**32 - 2, 4)) == [2, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 300)), max_size=10), st.sampled_from([64, 128]))
def test_a_core_that_packs_lists_fetches_whole_pieces(gaps: list[tuple[int, int]], piece: int) -> None:
    """Lists in order, some side by side."""
    at, rows, touched = 0, [], set()
    for gap, length in gaps:
        at += gap
        rows.append((at, length))
        touched |= {byte // piece for byte in range(at, at + length)}
        at += length
    begins, lengths = np.array(rows, np.int64).reshape(-1, 2).T
    nothing = np.zeros(begins.size, np.int64)
    assert fetched(Extents(nothing, begins, lengths, nothing), piece) == len(touched) * piece


def test_pieces_of_two_sections_are_not_shared() -> None:
    nothing = np.zeros(2, np.int64)
    assert fetched(Extents(np.array([0, 1]), nothing, np.array([4, 4]), nothing), 64) == 128
