"""Whose edges to keep, with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isthmus.cache.hotness import candidates, check, heat, hubs, initial_candidates

from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.threads import Team

DEGREES = [5, 1, 0, 4, 2, 30]
LISTS = Lists.of(np.concatenate([[0], np.cumsum(DEGREES)]))


@pytest.fixture(scope="module", params=[1, 3], ids="{} threads".format)
def team(request):
    team = Team(request.param)
    yield team
    team.close()


def marked(marks):
    return np.flatnonzero(marks).tolist()


def counts(*values):
    return np.array(values, np.uint8)


def test_heat_counts_uses_and_stays_at_the_top(team):
    hotness = counts(254, 255, 3, 0, 0, 0)
    sparse, dense, all_active = Frontier(6, 1), Frontier(6, 1), Frontier(6, 1)
    for front in (sparse, dense):
        front.start(np.array([0, 1, 4]))
    dense.list = None
    all_active.start(None)
    heat(hotness, sparse, team)
    assert hotness.tolist() == [255, 255, 3, 0, 1, 0]
    heat(hotness, dense, team)
    assert hotness.tolist() == [255, 255, 3, 0, 2, 0]
    heat(hotness, all_active, team)
    assert hotness.tolist() == [255, 255, 4, 1, 3, 1]


def test_the_hottest_that_fit(team):
    hotness = counts(1, 9, 200, 7, 7, 0)
    assert marked(candidates(hotness, LISTS, 5, team)) == [1, 3]  # of the two equally hot the one with more edges
    assert marked(candidates(hotness, LISTS, 7, team)) == [1, 3, 4]
    assert marked(candidates(hotness, LISTS, 12, team)) == [0, 1, 3, 4]
    assert marked(candidates(hotness, LISTS, 1000, team)) == [0, 1, 3, 4]  # 2 has no edges, 5 was never used
    assert marked(candidates(hotness, LISTS, 0, team)) == []


def test_the_first_that_does_not_fit_is_the_end(team):
    """5 edges, then 4, then 2, then 1, all equally hot."""
    equal = counts(7, 7, 0, 7, 7, 0)
    assert marked(candidates(equal, LISTS, 8, team)) == [0]
    assert marked(candidates(equal, LISTS, 9, team)) == [0, 3]
    assert marked(candidates(equal, LISTS, 11, team)) == [0, 3, 4]


def test_at_first_the_longest_lists_are_wanted(team):
    assert marked(initial_candidates(LISTS, 9, team)) == [0, 3]
    assert marked(initial_candidates(LISTS, 39, team)) == [0, 3, 5]


def test_a_list_larger_than_the_cache_does_not_empty_it(team):
    assert marked(candidates(counts(1, 1, 1, 1, 1, 255), LISTS, 12, team)) == [0, 1, 3, 4]


def test_sums_above_32_bits(team):
    lists = Lists.of(np.arange(7) << 32)
    hotness = counts(1, 2, 3, 4, 5, 6)
    assert marked(candidates(hotness, lists, 3 << 32, team)) == [3, 4, 5]
    assert marked(candidates(hotness, lists, (3 << 32) - 1, team)) == [4, 5]
    assert marked(hubs(lists, 2 << 32)) == [0, 1]


def test_hubs_by_degree_whoever_is_used(team):
    assert marked(hubs(LISTS, 9)) == [0, 3]
    assert marked(hubs(LISTS, 100)) == [0, 1, 3, 4, 5]
    # Exactly, where at first 4 and 5 edges count as equal.
    assert marked(hubs(Lists.of(np.array([0, 4, 9, 10])), 5)) == [1]
    assert marked(initial_candidates(Lists.of(np.array([0, 4, 9, 10])), 5, team)) == [0]
    assert marked(candidates(counts(0, 9, 0, 0, 9, 0), LISTS, 9, team)) == [1, 4]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1 << 33), st.integers(0, 255)), max_size=40), st.integers(0, 1 << 36))
def test_candidates_are_a_sort_and_a_prefix_sum(team, vertices, capacity):
    degrees, hotness = (np.array([pair[i] for pair in vertices], np.int64) for i in (0, 1))
    lists = Lists.of(np.concatenate([[0], np.cumsum(degrees)]))
    found = candidates(hotness.astype(np.uint8), lists, capacity, team)
    bits = np.array([int(degree).bit_length() for degree in degrees], np.int64)
    order = np.argsort(-(hotness * 64 + bits), kind="stable")
    order = order[(hotness[order] > 0) & (degrees[order] <= capacity)]
    wanted = order[np.cumsum(degrees[order]) <= capacity]
    assert marked(found) == sorted(v for v in wanted if degrees[v])
    assert degrees[found != 0].sum() <= capacity
    assert degrees[hubs(lists, capacity) != 0].sum() <= capacity


NOBODY = np.zeros(6, np.uint8)


def test_a_look_is_due_after_more_than_the_interval(team):
    hotness = counts(9, 0, 0, 0, 0, 0)
    early = check(hotness, NOBODY, 6, LISTS, 10, team, interval=1)
    assert (early.due, early.changed) == (False, False)
    assert early.wanted is NOBODY
    late = check(hotness, NOBODY, 7, LISTS, 10, team, interval=1)
    assert (late.due, late.changed) == (True, True)
    assert marked(late.wanted) == [0]
    assert check(hotness, NOBODY, 4, LISTS, 10, team, interval=0.5).due
    assert not check(hotness, NOBODY, 3, LISTS, 10, team, interval=0.5).due


def test_small_changes_of_the_candidates_are_not_worth_a_refresh(team):
    """5 + 2 edges are held. One new edge of 8 is not more than 30 %, four of 11 are."""
    held = counts(1, 0, 0, 0, 1, 0)
    small = check(counts(9, 8, 0, 0, 7, 0), held, 7, LISTS, 8, team)
    assert (small.due, small.changed) == (True, False)
    assert small.wanted is held
    large = check(counts(9, 0, 0, 8, 7, 0), held, 7, LISTS, 11, team)
    assert large.changed
    assert marked(large.wanted) == [0, 3, 4]
    assert check(counts(9, 8, 0, 0, 7, 0), held, 7, LISTS, 8, team, changed=0).changed


def test_candidates_are_compared_whoever_is_active_now(team):
    """Algorithm 2 as printed compares the active vertices: here they would be 1 alone, which is not held."""
    held = counts(1, 0, 0, 0, 0, 0)
    assert not check(counts(9, 1, 0, 0, 0, 0), held, 7, LISTS, 6, team).changed  # 1 of 6 edges


def test_a_refused_look_stays_refused(team):
    """Algorithm 2 never resets c_tag, so the second look would change the cache without a refresh."""
    first = check(counts(9, 0, 0, 0, 0, 0), NOBODY, 7, LISTS, 6, team)
    assert first.changed
    second = check(counts(9, 1, 0, 0, 0, 0), first.wanted, 7, LISTS, 6, team)
    assert not second.changed
    assert marked(second.wanted) == marked(first.wanted)


def test_nothing_to_want(team):
    assert not check(NOBODY, NOBODY, 7, LISTS, 10, team).changed
    none = np.empty(0, np.uint8)
    assert not check(none, none, 1, np.zeros(1, np.int64), 10, team).changed


def hits(trace, lists, capacity, count_first, team):
    """Edges served by a cache over iterations with these active vertices; a look is always due."""
    vertices = len(lists)
    wanted, filled, found = np.zeros(vertices, np.uint8), np.zeros(vertices, np.bool_), 0
    before = np.empty(0, np.int64)
    for active in trace:
        found += int(lists.degrees()[active][filled[active]].sum())
        counted = np.zeros(vertices, np.uint8)
        counted[active if count_first else before] = 1
        before = active
        wanted = check(counted, wanted, vertices, lists, capacity, team, interval=0).wanted
        filled &= wanted != 0
        filled[active] |= wanted[active] != 0
    return found


def test_counting_before_the_look_catches_what_comes_back_once(team):
    """A wave of a search: every vertex is active in two iterations, one after the other."""
    lists = Lists.of(np.arange(0, 41, 2))
    trace = [np.array([v, v + 1]) for v in range(19)]
    assert hits(trace, lists, 4, True, team) == 36  # the second time, each of 18
    assert hits(trace, lists, 4, False, team) == 0
