"""Which lists to hold, with plain numbers: by HyTGraph's ranking, and by Grapin's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.list_caches import chosen, make

from isthmus.cache.ranking import HOTNESS, HUBS, USES, Counts, hubs
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists

DEGREES = [5, 1, 0, 4, 2, 30]
LISTS = Lists.of(np.concatenate([[0], np.cumsum(DEGREES)]))
NO_MEMORY = np.empty(0, np.uint8)


def marked(marks):
    return np.flatnonzero(marks).tolist()


def marks(*values):
    return np.array(values, np.uint8)


def counted(team, *values, ranking=HOTNESS):
    """Counts that have these words."""
    counts = Counts(ranking, len(values), team, NO_MEMORY)
    counts.words[:] = values
    return counts


def candidates(counts, lists, capacity):
    return counts.choose([lists], np.zeros(len(lists), np.uint8), capacity, capacity)


@pytest.mark.parametrize("ranking", [HOTNESS, USES], ids=["HyTGraph", "Grapin"])
def test_uses_of_a_period_are_counted_and_stay_at_the_largest(team, ranking):
    """In the highest byte of a list's word, from a list of rows, marks, or all vertices."""
    counts = counted(team, *(value << ranking.current for value in (254, 255, 3, 0, 0, 0)), ranking=ranking)
    sparse, dense, all_active = Frontier(6, 1), Frontier(6, 1), Frontier(6, 1)
    for front in (sparse, dense):
        front.start(np.array([0, 1, 4]))
    dense.list = None
    all_active.start(None)
    for frontier, expected in (
        (sparse, [255, 255, 3, 0, 1, 0]),
        (dense, [255, 255, 3, 0, 2, 0]),
        (all_active, [255, 255, 4, 1, 3, 1]),
    ):
        counts.use_active(frontier, 0, None)
        assert (counts.words.astype(np.int64) >> ranking.current).tolist() == expected
        assert counts.heat(np.arange(6)).tolist() == expected


def test_uses_are_counted_over_four_periods(team):
    counts, row = Counts(USES, 1, team, NO_MEMORY), np.array([0], np.uint32)
    for count in (300, 2, 0, 1):
        for _ in range(count):
            counts.use(row, 0)
        if count != 1:
            counts.end_period()
    assert counts.words.view(np.uint8).tolist() == [255, 2, 0, 1]
    assert counts.heat(np.array([0])).tolist() == [258]
    counts.end_period()
    assert counts.words.view(np.uint8).tolist() == [2, 0, 1, 0]
    assert USES.levels == 2 * (4 * 255 + 1) * 33


def test_hytgraph_counts_anew_in_every_period(team):
    counts = counted(team, 9, 255, 0)
    counts.end_period()
    assert counts.words.tolist() == [0, 0, 0]


def test_the_hottest_that_fit(team):
    counts = counted(team, 1, 9, 200, 7, 7, 0)
    assert marked(candidates(counts, LISTS, 5)) == [1, 3]  # of the two equally hot the one with more edges
    assert marked(candidates(counts, LISTS, 7)) == [1, 3, 4]
    assert marked(candidates(counts, LISTS, 12)) == [0, 1, 3, 4]
    assert marked(candidates(counts, LISTS, 1000)) == [0, 1, 3, 4]  # 2 has no edges, 5 was never used
    assert marked(candidates(counts, LISTS, 0)) == []


def test_grapin_prefers_held_lists_then_shorter_ones(team):
    counts, held = counted(team, 1, 9, 200, 7, 7, 0, ranking=USES), marks(0, 0, 0, 1, 0, 1)

    def hottest(capacity, held):
        return marked(counts.choose([LISTS], held, 30, capacity))

    assert hottest(5, held) == [1, 3], "of the two equally hot the one that is held"
    assert hottest(3, 0 * held) == [1, 4], "then the shorter one"
    assert hottest(12, held) == [0, 1, 3, 4]
    assert hottest(42, held) == [0, 1, 3, 4, 5], "what is held stays while there is space, though it was not used"
    assert hottest(1000, 0 * held) == [0, 1, 3, 4]


def test_lists_of_two_sides_are_ranked_together(team):
    counts = counted(team, 1, 3, 2, 3, 1, 9, ranking=USES)
    lists, held = [sides.lists_of([2, 2, 2]), sides.lists_of([2, 2, 0])], np.zeros(6, np.uint8)
    assert [marked(counts.choose(lists, held, 2, capacity)) for capacity in (2, 5, 6, 8, 99)] == [
        [1],
        [1, 3],
        [1, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
    ]


def test_the_first_that_does_not_fit_is_the_end(team):
    """5 edges, then 4, then 2, then 1, all equally hot."""
    equal = counted(team, 7, 7, 0, 7, 7, 0)
    assert marked(candidates(equal, LISTS, 8)) == [0]
    assert marked(candidates(equal, LISTS, 9)) == [0, 3]
    assert marked(candidates(equal, LISTS, 11)) == [0, 3, 4]


def initial(lists, capacity, team, ranking=HOTNESS):
    """What a cache chooses before anything was used. Its capacity is a multiple of 8 entries."""
    cache = make([lists], capacity, team, ranking)
    assert cache.capacity == capacity and not cache.counts.words.any()
    return chosen(cache)


def test_at_first_the_longest_lists_are_chosen(team):
    lists = sides.lists_of([5, 1, 0, 3, 2, 31])
    assert initial(lists, 8, team) == [0, 3]
    assert initial(lists, 40, team) == [0, 3, 5]
    assert initial(lists, 40, team, USES) == [], "Grapin's cache begins empty"


def test_a_list_larger_than_the_cache_does_not_empty_it(team):
    assert marked(candidates(counted(team, 1, 1, 1, 1, 1, 255), LISTS, 12)) == [0, 1, 3, 4]


def test_sums_above_32_bits(team):
    lists = Lists.of(np.arange(7) << 32)
    counts = counted(team, 1, 2, 3, 4, 5, 6)
    assert marked(candidates(counts, lists, 3 << 32)) == [3, 4, 5]
    assert marked(candidates(counts, lists, (3 << 32) - 1)) == [4, 5]
    assert marked(hubs(lists, 2 << 32)) == [0, 1]


def test_hubs_by_degree_however_often_they_are_used(team):
    assert marked(hubs(LISTS, 9)) == [0, 3]
    assert marked(hubs(LISTS, 100)) == [0, 1, 3, 4, 5]
    # Exactly, where hotness takes lists of 4 and 5 edges for equally long.
    lists = sides.lists_of([4, 5, 1])
    assert marked(hubs(lists, 5)) == [1]
    assert marked(candidates(counted(team, 1, 1, 1), lists, 5)) == [0]
    assert initial(sides.lists_of([4, 5]), 8, team, HUBS) == [1]
    assert initial(sides.lists_of([4, 5]), 8, team) == [0]
    assert marked(candidates(counted(team, 0, 9, 0, 0, 9, 0), LISTS, 9)) == [1, 4]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 33), st.integers(0, 255), st.booleans()), max_size=40),
    st.integers(0, 1 << 36),
    st.booleans(),
)
def test_candidates_are_a_sort_and_a_prefix_sum(team, vertices, capacity, grapin):
    ranking, most = (USES, (1 << 32) - 1) if grapin else (HOTNESS, 1 << 33)
    degrees, hotness, held = (np.array([vertex[i] for vertex in vertices], np.int64) for i in range(3))
    degrees = np.minimum(degrees, most)
    lists = Lists.of(np.concatenate([[0], np.cumsum(degrees)]))
    found = counted(team, *hotness.tolist(), ranking=ranking).choose([lists], held, capacity, capacity)
    bits = np.array([int(degree).bit_length() for degree in degrees], np.int64)
    rank = 66 * (2 * hotness + held) - bits if grapin else 64 * hotness + bits
    order = np.argsort(-rank, kind="stable")
    used = (hotness[order] > 0) | (held[order] > 0 if grapin else np.zeros(order.size, np.bool_))
    order = order[used & (degrees[order] > 0) & (degrees[order] <= capacity)]
    assert marked(found) == sorted(order[np.cumsum(degrees[order]) <= capacity].tolist())
    assert degrees[found != 0].sum() <= capacity
    assert degrees[hubs(lists, capacity) != 0].sum() <= capacity


# When the cache goes over to the candidates.


def differs(team, hotness, before, capacity):
    """The candidates, and whether they are worth a refresh of a cache that chose those before."""
    counts = counted(team, *hotness)
    found = candidates(counts, LISTS, capacity)
    return marked(found), counts.differs(found, before, [LISTS])


def test_small_changes_of_the_candidates_are_not_worth_a_refresh(team):
    """5 + 2 edges are held. One new edge of 8 is not more than 30 %, four of 11 are."""
    held = marks(1, 0, 0, 0, 1, 0)
    assert differs(team, [9, 8, 0, 0, 7, 0], held, 8) == ([0, 1, 4], False)
    assert differs(team, [9, 0, 0, 8, 7, 0], held, 11) == ([0, 3, 4], True)


def test_grapin_goes_over_to_any_candidates(team):
    counts = counted(team, 9, 8, 0, 0, 7, 0, ranking=USES)
    assert counts.differs(marks(1, 0, 0, 0, 1, 0), marks(1, 0, 0, 0, 1, 0), [LISTS])


def test_candidates_are_compared_whichever_vertices_are_active_now(team):
    """Algorithm 2 as printed compares the active vertices: here they would be 1 alone, which is not held."""
    assert not differs(team, [9, 1, 0, 0, 0, 0], marks(1, 0, 0, 0, 0, 0), 6)[1]  # 1 of 6 edges


def test_no_candidates_are_no_change(team):
    assert not differs(team, [0] * 6, np.zeros(6, np.uint8), 10)[1]
    counts, none = counted(team), np.empty(0, np.uint8)
    assert not counts.differs(none, none, [sides.lists_of([])])


def iterated(cache, far, active):
    """An iteration that only counts uses."""
    frontier = far.frontier(active)
    cache.serve(frontier, far.side)
    cache.refresh(frontier)
    return chosen(cache)


@pytest.mark.parametrize("ranking", [HOTNESS, USES], ids=["HyTGraph", "Grapin"])
def test_a_period_ends_after_more_than_the_interval(team, ranking):
    """Then counting begins anew, of uses and of vertices."""
    far = sides.far([8, 9, 9, 9, 9, 9], weight=None)
    for interval, periods in ((1, [[1, 2], [1, 2], [1, 2], [1]]), (0.5, [[1, 2], [1, 2]])):
        cache = make([far.side.lists], 72, team, ranking, interval=interval)
        for _ in range(2):
            for active in periods[:-1]:
                before, words = chosen(cache), cache.counts.words.copy()
                assert iterated(cache, far, active) == before
                assert (cache.counts.words > words).any(), "the period goes on"
            iterated(cache, far, periods[-1])
            assert (cache.counts.words.astype(np.int64) >> ranking.current == 0).all(), "the next period has begun"


def test_a_refused_refresh_stays_refused(team):
    """Algorithm 2 never resets c_tag, so the second period would change the cache without a refresh."""
    far = sides.far([20, 20, 20, 20, 2], weight=None)
    cache = make([far.side.lists], 48, team, HOTNESS, interval=0.0)
    assert iterated(cache, far, [2, 3]) == [2, 3]
    assert cache.refreshes == 1
    for _ in range(3):
        assert iterated(cache, far, [2, 3, 4]) == [2, 3], "2 of 42 edges are new"
    assert cache.refreshes == 1


def hits(trace, lists, capacity, count_first, team):
    """Edges served over iterations with these active vertices; a period ends with each of them.

    `count_first`: an iteration is counted before the candidates are found; otherwise the one before it.
    """
    held, before, last, found = np.zeros(len(lists), np.bool_), np.zeros(len(lists), np.uint8), [], 0
    for active in trace:
        found += int(lists.degrees()[active][held[active]].sum())
        counts = Counts(HOTNESS, len(lists), team, NO_MEMORY)
        counts.use(np.array(active if count_first else last, np.uint32), 0)
        last, now = active, candidates(counts, lists, capacity)
        before = now if counts.differs(now, before, [lists]) else before
        held &= before != 0
        held[active] |= before[active] != 0
    return found


def test_counting_before_the_choice_serves_lists_that_come_back_once(team):
    """A wave of a search: every vertex is active in two iterations, one after the other."""
    lists = Lists.of(np.arange(0, 41, 2))
    trace = [np.array([v, v + 1]) for v in range(19)]
    assert hits(trace, lists, 4, True, team) == 36  # the second time, each of 18
    assert hits(trace, lists, 4, False, team) == 0


def test_a_cache_counts_before_it_chooses(team):
    """The same wave through a cache serves as much."""
    far = sides.far([8] * 20, weight=None)
    cache, served = make([far.side.lists], 16, team, HOTNESS, interval=0.0), 0
    for v in range(19):
        frontier = far.frontier([v, v + 1])
        _, deliveries = cache.serve(frontier, far.side)
        served += sum(sides.delivered(deliveries, frontier).values())
        cache.refresh(frontier)
        cache.layout.held[[v, v + 1]] = cache.layout.chosen[[v, v + 1]]
    assert served == 18 * 8


# When vertices come and go


def test_words_follow_their_vertices(team):
    counts = counted(team, 1, 2, 3, 11, 12, 13, ranking=USES)
    counts.grow(2, 3, 5, NO_MEMORY)
    assert counts.words.tolist() == [1, 2, 3, 0, 0, 11, 12, 13, 0, 0]
    counts.renumber(5, 5, np.array([2]), np.array([0]), 2)
    assert counts.words.tolist() == [1, 2, 3, 0, 0, 13, 12, 0, 0, 0]
