"""Corrected rates, with plain numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.link.link import Profile
from isthmus.policies.rate_correction import LEAST_SECONDS, LIMIT, LINK_BOUND, PACE, Observation, corrected

DISK = Profile("a disk", 2e9, 1e5, 4096, 128, True)


def bulk(rate, seconds=1.0, waited=1.0):
    return Observation(int(rate * seconds), 0, seconds, waited * seconds)


def blocks(rate, seconds=1.0, waited=1.0):
    return Observation(0, int(rate * seconds), seconds, waited * seconds)


def test_one_observation_moves_a_rate_part_of_the_way():
    assert 1e9 < corrected(DISK, DISK, bulk(1e9)).bandwidth < 2e9
    assert corrected(DISK, DISK, bulk(1e9)).bandwidth == pytest.approx(2e9 * 0.5**PACE)
    assert corrected(DISK, DISK, blocks(2e5)).request_rate == pytest.approx(1e5 * 2**PACE)
    assert corrected(DISK, DISK, bulk(2e9)) == DISK


def test_only_the_rate_that_was_seen_moves():
    assert corrected(DISK, DISK, bulk(1e9)).request_rate == DISK.request_rate
    assert corrected(DISK, DISK, blocks(1e4)).bandwidth == DISK.bandwidth


@pytest.mark.parametrize("rate", [5e8, 1.3e9, 3e9])
def test_many_observations_arrive_at_what_was_seen(rate):
    now = DISK
    for _ in range(60):
        now = corrected(DISK, now, bulk(rate, 0.5))
    assert now.bandwidth == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(("seen", "kept"), [(bulk(1.0), 2e9 / LIMIT), (bulk(1e15), 2e9 * LIMIT)])
def test_never_further_than_the_limit(seen, kept):
    now = DISK
    for _ in range(100):
        now = corrected(DISK, now, seen)
    assert now.bandwidth == kept
    assert corrected(DISK, now, bulk(2e9)).bandwidth != kept, "and back again"


@pytest.mark.parametrize(
    "seen",
    [
        bulk(1e9, seconds=LEAST_SECONDS / 2),  # too short
        bulk(1e9, waited=0.4),  # the processor was busy: the link could have been faster
        Observation(0, 0, 1.0, 1.0),  # nothing moved
        Observation(0, 0, 0.0, 0.0),
        Observation(int(1e9), 50_000, 1.0, 1.0),  # half and half by the rates: whose fault is it?
    ],
)
def test_what_says_nothing(seen):
    assert corrected(DISK, DISK, seen) is DISK


@pytest.mark.parametrize(
    "seen", [bulk(1e9, seconds=LEAST_SECONDS), bulk(1e9, waited=LINK_BOUND), Observation(9 * 10**8, 5_000, 1.0, 1.0)]
)
def test_the_least_that_says_something(seen):
    """Just long enough, just enough I/O wait, and by the rates 0.45 s of 0.5 s in bulk: just enough for one engine."""
    assert corrected(DISK, DISK, seen).bandwidth < DISK.bandwidth


def test_almost_one_engine_is_one():
    assert corrected(DISK, DISK, Observation(int(1.9e9), 5_000, 2.0, 2.0)).bandwidth < DISK.bandwidth
    assert corrected(DISK, DISK, Observation(int(1e8), 95_000, 2.0, 2.0)).request_rate < DISK.request_rate


@given(
    st.lists(st.tuples(st.integers(0, 10**13), st.integers(0, 10**9), st.floats(0, 1e4), st.floats(0, 1)), max_size=20)
)
def test_rates_stay_within_the_limit_whatever_is_seen(seen):
    now = DISK
    for bulk_bytes, count, seconds, share in seen:
        now = corrected(DISK, now, Observation(bulk_bytes, count, seconds, seconds * share))
        assert DISK.bandwidth / LIMIT <= now.bandwidth <= DISK.bandwidth * LIMIT
        assert DISK.request_rate / LIMIT <= now.request_rate <= DISK.request_rate * LIMIT
        assert (now.block, now.depth, now.name) == (DISK.block, DISK.depth, DISK.name)
