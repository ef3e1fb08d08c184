"""Packed lists are the lists, whatever their types and however the work is shared out."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.kernels.loops.gather import pack
from isthmus.threads import Team

NOBODY = 99


def packed(source, begins, lengths, places):
    """The same in NumPy: where nothing was copied stands NOBODY."""
    out = np.full(int((places + lengths).max(initial=0)) + 3, NOBODY, source.dtype)
    for begin, length, place in zip(begins, lengths, places, strict=True):
        out[place : place + length] = source[begin : begin + length]
    return out


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_lists_lie_side_by_side(dtype, threads):
    random = np.random.default_rng(5)
    source = random.integers(0, 90, 20_000).astype(dtype)
    lengths = random.integers(0, 70, 400)
    begins = random.integers(0, source.size - 70, 400)
    places = np.cumsum(lengths) - lengths
    wanted = packed(source, begins, lengths, places)
    out = np.full(wanted.size, NOBODY, dtype)
    team = Team(threads)
    team.split(lambda first, last: pack(source, begins, lengths, places, out, first, last), lengths.size)
    team.close()
    assert np.array_equal(out, wanted)


def test_only_the_lists_asked_for_and_only_where_they_go():
    source = np.arange(10, dtype=np.uint32)
    begins, lengths, places = np.array([7, 0, 4]), np.array([3, 0, 2]), np.array([5, 2, 0])
    out = np.full(9, NOBODY, np.uint32)
    pack(source, begins, lengths, places, out, 1, 3)
    assert out.tolist() == [4, 5] + [NOBODY] * 7
    pack(source, begins, lengths, places, out, 0, 1)
    assert out.tolist() == [4, 5, NOBODY, NOBODY, NOBODY, 7, 8, 9, NOBODY]


def test_counts_of_other_types_and_nothing_to_do():
    source = np.arange(6, dtype=np.float64)
    out = np.zeros(4)
    begins, lengths, places = (np.array(column, np.uint32) for column in ([2, 5], [3, 1], [0, 3]))
    pack(source, begins, lengths, places, out, 0, 0)
    assert not out.any()
    pack(source, begins, lengths, places, out, 0, 2)
    assert out.tolist() == [2, 3, 4, 5]
