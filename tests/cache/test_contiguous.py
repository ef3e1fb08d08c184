"""Lists one after the other: a refresh moves the lists that stay, and reserves space for the others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.list_caches import DEGREES, check, chosen, held, iterate, of_side

from isthmus.cache.ranking import HOTNESS, HUBS


def assert_contiguous(cache, lists):
    """All chosen lists, and only those, have a place, without gaps."""
    layout = cache.layout
    order = layout.order[: layout.count]
    assert sorted(order.tolist()) == chosen(cache)
    degrees = lists.degrees()[order]
    assert layout.begins_of(order).tolist() == (np.cumsum(degrees) - degrees).tolist()
    assert degrees.sum() <= cache.capacity


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(st.sets(st.integers(0, len(DEGREES) - 1)), min_size=1, max_size=8),
    capacity=st.sampled_from([0, 8, 64, 101, 500]),
    by_degree=st.booleans(),
)
def test_places_have_no_gaps(team, rounds, capacity, by_degree):
    far = sides.far(DEGREES)
    cache = of_side(far, capacity, team, HUBS if by_degree else HOTNESS, interval=0.0)
    for active in rounds:
        iterate(cache, far, active)
        assert_contiguous(cache, far.side.lists)


def test_a_refresh_moves_what_stays_and_drops_the_rest(team):
    """Space for one long list or several short ones: those in use take over, a list at a time."""
    far = sides.far([40, 20, 20, 20, 20], weight=np.float64)
    cache = of_side(far, 40, team, HOTNESS, interval=0.0)
    assert chosen(cache) == [0], "at first the longest"
    iterate(cache, far, [0])
    check(cache, far)
    iterate(cache, far, [1, 2])  # hotter now than 0, whose uses were counted before
    assert held(cache) == [1, 2]
    check(cache, far)
    iterate(cache, far, [2, 3])
    assert held(cache) == [2, 3]
    check(cache, far)
    served, brought = iterate(cache, far, [2, 3, 4])
    assert (served, brought) == (far.edges([2, 3]), far.edges([4]))
    assert cache.facts() == {"refreshes": cache.refreshes}
    assert cache.refreshes >= 2


def test_by_degree_never_changes(team):
    far = sides.far([40, 20, 20, 20, 20])
    cache = of_side(far, 40, team, HUBS, interval=0.0)
    for active in ([0], [1, 2], [1, 2], [1, 2], [0]):
        served, _ = iterate(cache, far, active)
        check(cache, far)
    assert served == far.edges([0])
    assert cache.refreshes == 0


def test_forgotten_lists_keep_their_places(team):
    far = sides.far(DEGREES)
    cache = of_side(far, 500, team, HOTNESS)
    iterate(cache, far, range(len(DEGREES)))
    before = cache.layout.begins.copy()
    cache.forget()
    assert held(cache) == [] and chosen(cache)
    assert (cache.layout.begins == before).all()
