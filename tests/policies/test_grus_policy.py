"""Grus's choice with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isthmus.policies.grus_policy import TAU_ALL_ACTIVE, TAU_SEARCH, prefetched, region

GB = 1 << 30
SIZES = np.array([1 * GB, 2 * GB, 28 * GB])  # state, offsets, edges


@pytest.mark.parametrize(("tau", "edges"), [(TAU_SEARCH, 4 * GB), (TAU_ALL_ACTIVE, int(0.8 * 8 * GB)), (0, 0)])
def test_tau_is_a_share_of_the_memory_left(tau, edges):
    """11 GB near: 8 are left for 28 GB of edges."""
    assert prefetched(SIZES, 11 * GB, tau).tolist() == [1 * GB, 2 * GB, edges]


def test_a_graph_that_fits_is_prefetched_whole():
    assert prefetched(SIZES, 31 * GB, TAU_SEARCH).tolist() == SIZES.tolist()


def test_nothing_is_prefetched_below_the_first_that_does_not_fit():
    assert prefetched(np.array([10, 100, 5]), 40, 0.5).tolist() == [10, 15, 0]
    assert prefetched(np.array([50, 100, 5]), 40, 0.5).tolist() == [20, 0, 0]
    assert prefetched(np.array([10, 20, 30]), 31, 0.5).tolist() == [10, 20, 0]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (None, [0, 1, 2]),
        (5, [4, 5, 6]),  # around the source
        (0, [0, 1, 2]),  # as far as the ends allow
        (9, [7, 8, 9]),
    ],
)
def test_the_region(source, wanted):
    assert np.flatnonzero(region(np.full(10, 100), 300, source)).tolist() == wanted


def test_a_region_of_whole_partitions():
    assert np.flatnonzero(region(np.full(10, 100), 399)).tolist() == [0, 1, 2]
    assert np.flatnonzero(region(np.full(10, 100), 99, 5)).tolist() == []
    assert region(np.full(10, 100), 5000, 5).all()
    assert region(np.empty(0, np.int64), 5000).size == 0


sizes = hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(1, 1 << 36))


@given(sizes, st.integers(0, 1 << 40), st.data())
def test_the_region_fits_and_holds_the_source(sizes, room, data):
    source = data.draw(st.integers(0, sizes.size - 1))
    for where in (None, source):
        chosen = np.flatnonzero(region(sizes, room, where))
        assert sizes[chosen].sum() <= room
        assert (np.diff(chosen) == 1).all()
    if sizes[source] <= room:
        assert source in chosen


@given(sizes, st.integers(0, 1 << 40), st.floats(0, 1))
def test_no_more_is_prefetched_than_there_is_room(sizes, near_bytes, tau):
    found = prefetched(sizes, near_bytes, tau)
    assert found.sum() <= near_bytes
    assert (found <= sizes).all()
    assert (found >= 0).all()
