"""Checks of adjacency lists, with offsets past 2**32."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.kernels.store.list_checks import FINE, NOT_SORTED, OUT_OF_RANGE, REPEATED, check_lists


@pytest.mark.parametrize("first", [0, 2**33])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_lists_anywhere_in_a_section(first: int, dtype: type) -> None:
    offsets = np.array([first, first + 2, first + 2, first + 5])
    good = np.array([1, 2, 0, 1, 1], dtype)
    status, forward, backward, loops = check_lists(offsets, first, 0, good, None, 0, 3, False)
    assert (status, loops) == (FINE, 0)
    assert forward != backward
    assert check_lists(offsets, first, 0, good, None, 0, 3, True)[0] == REPEATED
    assert check_lists(offsets, first, 0, good[::-1].copy(), None, 0, 3, False)[0] == NOT_SORTED
    assert check_lists(offsets, first, 0, good, None, 0, 2, False)[0] == OUT_OF_RANGE


def test_sums_do_not_depend_on_the_cut() -> None:
    offsets = np.array([0, 3, 3, 5])
    targets = np.array([0, 1, 2, 0, 2], np.uint32)
    whole = check_lists(offsets, 0, 0, targets, None, 0, 3, True)
    first = check_lists(offsets, 0, 0, targets[:2], None, 0, 3, True)
    second = check_lists(offsets, 1, 1, targets[1:], None, 0, 3, True)
    assert whole[0] == first[0] == second[0] == FINE
    for i in (1, 2, 3):
        assert (int(first[i]) + int(second[i])) % 2**64 == int(whole[i])


def test_turned_round_the_sums_change_places() -> None:
    weights = np.array([7, 8, 9], np.uint32)
    out = check_lists(np.array([0, 2, 3]), 0, 0, np.array([0, 1, 0], np.uint32), weights, 0, 2, True)
    into = check_lists(np.array([0, 2, 3]), 0, 0, np.array([0, 1, 0], np.uint32), weights[[0, 2, 1]], 0, 2, True)
    assert (out[1], out[2]) == (into[2], into[1])
    assert (out[1], out[2]) != (out[2], out[1])
