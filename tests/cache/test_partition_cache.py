"""Partitions that stay near: what is served is what the store holds, whoever comes and goes, and within the memory."""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides

from isthmus.cache.mover import HostMover
from isthmus.cache.partition_cache import BETTER, PartitionCache
from isthmus.engines.engine import Task
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.threads import Team

BLOCK = sides.BLOCK
KINDS = [(target, weight) for target in (np.uint32, np.uint64) for weight in (None, np.int32, np.float64)]
DEGREES = [5, 0, 40, 3, 3, 3, 0, 0, 300, 1, 17, 17, 17, 0, 9, 60, 2, 2, 0]
GAPS = [n * 7 % 11 for n in range(len(DEGREES))]  # slots behind each list, where there are any


@pytest.fixture(scope="module")
def team():
    team = Team(1)
    yield team
    team.close()


@pytest.fixture
def often():
    """Threads take turns after microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def make(far, places, others=()):
    """A cache with room for so many partitions."""
    one = PartitionCache([far.side, *others], aligned_empty(1 << 20, np.uint8), BLOCK)
    size = one.bytes // one.room
    cache = PartitionCache([far.side, *others], aligned_empty(places * size + BLOCK, np.uint8), BLOCK)
    assert (cache.room, cache.bytes) == (places, places * size)
    return cache


def iterate(cache, far, active, team, dense=False, blocks=64, engine=None):
    """One iteration: what was served, what came over the link, and the bytes that did."""
    frontier = far.frontier(active, dense)
    side = far.side
    cache.refresh(frontier)
    activity = frontier.activity(side.partitions, side.lists, side.width, side.weight_width, BLOCK, team)
    held, others = cache.held(side, activity, frontier)
    served = sides.delivered(held, frontier, cache.keep)
    engine, moved, brought = engine or Filter(), 0, sides.Edges()
    for task in engine.tasks(side, np.flatnonzero(others.edges), (blocks - 12) * BLOCK):
        for delivery in engine.deliver(task, frontier, far.link, lambda: far.buffer(blocks), 0):
            brought += sides.edges_of(delivery, frontier)
            moved += delivery.bytes
            cache.keep(delivery)
            delivery.targets[:] = 0  # its buffer is filled with something else now
    assert sum(served.values()) == activity.edges.sum() - others.edges.sum(), "what is said to be served is"
    return served, brought, moved


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    places=st.integers(1, 12),
    dense=st.booleans(),
    blocks=st.sampled_from([20, 64, 400]),
    rounds=st.lists(st.sets(st.integers(0, len(DEGREES) - 1), min_size=1), min_size=1, max_size=12),
    gaps=st.sampled_from([None, GAPS]),
)
def test_served_and_brought_are_all_active_edges_each_once(team, kind, places, dense, blocks, rounds, gaps):
    """After any sequence of iterations, with partitions larger than a buffer, and with a hub that is cut in pieces."""
    far = sides.far(DEGREES, *kind, gaps=gaps)
    cache = make(far, places)
    for active in rounds:
        served, brought, _ = iterate(cache, far, active, team, dense, blocks)
        assert served + brought == far.edges(active)
        held = cache._places[0]
        assert np.unique(held[held >= 0]).size == np.count_nonzero(held >= 0) <= places, "two in one place"


def test_what_is_read_in_turn_stays(team):
    """Least recently used would find nothing; here as much as there is room for, from the second iteration on."""
    far = sides.far([30] * 40)
    cache = make(far, 7)
    parts = len(far.side.partitions)
    assert parts > 20
    moved = [iterate(cache, far, range(40), team)[2] for _ in range(12)]
    assert len(set(moved[1:])) == 1, "nobody is evicted for being served instead of read"
    assert moved[1] < moved[0] * (1 - 5 / parts)  # blocks at the ends are read for a neighbour


def test_one_that_is_used_more_takes_a_place_when_it_is_better(team):
    far = sides.far([30] * 12, partition=30 * 8)  # a partition each
    assert len(far.side.partitions) == 12
    cache = make(far, 2)
    held = lambda: set(np.flatnonzero(cache._places[0] >= 0).tolist())  # noqa: E731
    iterate(cache, far, [0, 1], team)
    assert held() == {0, 1}
    for _ in range(BETTER):
        iterate(cache, far, [5], team)
        assert held() == {0, 1}
    iterate(cache, far, [5], team)
    assert 5 in held()
    assert len(held()) == 2
    served, brought, _ = iterate(cache, far, [5], team)
    assert (served, brought) == (far.edges([5]), sides.Edges())


def test_being_served_counts_as_much_as_being_brought(team):
    far = sides.far([30] * 12, partition=30 * 8)
    cache = make(far, 2)
    for _ in range(10):
        iterate(cache, far, [0, 1], team)
    for _ in range(10):
        iterate(cache, far, [5], team)
    assert np.flatnonzero(cache._places[0] >= 0).tolist() == [0, 1]
    for _ in range(BETTER):
        iterate(cache, far, [5], team)
    assert cache._places[0][5] >= 0


class Slow:
    """Targets during whose copying something else happens."""

    def __init__(self, targets, happens):
        self.targets, self.happens = targets, happens

    def __getitem__(self, where):
        self.happens()
        return self.targets[where]


def test_a_partition_that_comes_while_it_is_being_kept_is_kept_once(team):
    far = sides.far([30] * 12, partition=30 * 8)
    cache = make(far, 2)
    frontier, engine = far.frontier(range(12)), Filter()
    bring = lambda: next(engine.deliver(Task(engine, far.side, np.array([5])), frontier, far.link, far.buffer, 0))  # noqa: E731
    first = bring()
    first.targets = Slow(first.targets, lambda: cache.keep(bring()))
    cache.keep(first)
    assert cache._owners == [(0, 5)]
    served, brought, _ = iterate(cache, far, [5, 6], team)
    assert (served, brought) == (far.edges([5]), far.edges([6]))


def test_a_place_that_is_worked_on_is_not_taken_away(team):
    """Between asking what is held and working on it, others come by that are worth more."""
    far = sides.far([30] * 12, partition=30 * 8)
    cache = make(far, 2)
    iterate(cache, far, [0, 1], team)
    frontier = far.frontier([0, 1, 5])
    cache.refresh(frontier)
    activity = frontier.activity(far.side.partitions, far.side.lists, 4, 4, BLOCK, team)
    held, _ = cache.held(far.side, activity, frontier)
    engine = Filter()
    for _ in range(10 * BETTER):
        for delivery in engine.deliver(Task(engine, far.side, np.array([5])), frontier, far.link, far.buffer, 0):
            cache.keep(delivery)
    assert sides.delivered(held, frontier) == far.edges([0, 1])
    cache.refresh(frontier)
    for delivery in engine.deliver(Task(engine, far.side, np.array([5])), frontier, far.link, far.buffer, 0):
        cache.keep(delivery)
    assert cache._places[0][5] >= 0, "in the next iteration it may"


def test_single_lists_and_partitions_in_pieces_are_not_kept(team):
    far = sides.far([300] * 4, partition=300 * 8)
    cache = make(far, 4)
    iterate(cache, far, range(4), team, engine=ZeroCopy())
    iterate(cache, far, range(4), team, blocks=20)
    assert (cache._places[0] < 0).all()


def test_forgotten(team):
    far = sides.far([30] * 4, partition=30 * 8)
    cache = make(far, 4)
    iterate(cache, far, range(4), team)
    cache.forget()
    cache._targets[:] = 7
    served, brought, _ = iterate(cache, far, range(4), team)
    assert (served, brought) == (sides.Edges(), far.edges(range(4)))
    served, brought, _ = iterate(cache, far, range(4), team)
    assert (served, brought) == (far.edges(range(4)), sides.Edges())


def test_two_sides_share_the_places(team):
    out, into = sides.far([30] * 6, partition=30 * 8), sides.far([20] * 9, partition=30 * 8, name="in")
    cache = make(out, 5, [into.side])
    for _ in range(3):
        for far in (out, into):
            active = range(far.vertices)
            served, brought, _ = iterate(cache, far, active, team)
            assert served + brought == far.edges(active)
    places = np.concatenate(cache._places)
    assert sorted(places[places >= 0].tolist()) == list(range(5))


def test_the_same_edges_by_two_names(team):
    """Both directions of an undirected graph are one side in the store: nothing is kept twice."""
    far = sides.far([30] * 6, partition=30 * 8)
    cache = make(far, 6, [far.side])
    served, brought, _ = iterate(cache, far, range(6), team)
    assert (served, brought) == (sides.Edges(), far.edges(range(6)))
    served, brought, _ = iterate(cache, far, range(6), team)
    assert (served, brought) == (far.edges(range(6)), sides.Edges())


@pytest.mark.parametrize("degrees", [[], [0, 0, 0]])
def test_no_edges(team, degrees):
    far = sides.far(degrees)
    cache = PartitionCache([far.side], aligned_empty(1 << 12, np.uint8), BLOCK)
    assert (cache.room, cache.bytes) == (0, 0)
    frontier = far.frontier(range(len(degrees)))
    activity = frontier.activity(far.side.partitions, far.side.lists, 4, 4, BLOCK, team)
    assert cache.held(far.side, activity, frontier) == ([], activity)


def test_memory_for_none(team):
    far = sides.far(DEGREES)
    cache = PartitionCache([far.side], aligned_empty(100, np.uint8), BLOCK)
    for _ in range(3):
        served, brought, _ = iterate(cache, far, range(len(DEGREES)), team)
        assert (served, brought) == (sides.Edges(), far.edges(range(len(DEGREES))))
    assert (cache.room, cache.bytes) == (0, 0)


def test_threads_that_keep_at_once(team, often):
    """Members keep while others work on what was served; the same partition may come to two of them."""
    far = sides.far([60] * 60, partition=60 * 8)
    parts = len(far.side.partitions)
    draw = np.random.default_rng(1)
    cache = make(far, 8)
    engine = Filter()
    overlaps, end = 0, time.monotonic() + 80
    for number in itertools.count():
        active = draw.choice(60, 25, replace=False).tolist()
        frontier = far.frontier(active, dense=bool(number % 2))
        cache.refresh(frontier)
        activity = frontier.activity(far.side.partitions, far.side.lists, 4, 4, BLOCK, team)
        held, others = cache.held(far.side, activity, frontier)
        chosen = np.flatnonzero(others.edges)
        busy, served = [0, 0], sides.delivered(held, frontier)

        def member(which, chosen=chosen, frontier=frontier, held=held, busy=busy, served=served):
            nonlocal overlaps
            for turn in range(6):
                if which == 0:
                    assert sides.delivered(held, frontier) == served
                else:
                    for p in chosen[turn % 2 :: 2]:
                        for delivery in engine.deliver(
                            Task(engine, far.side, np.array([p])), frontier, far.link, far.buffer, 0
                        ):
                            cache.keep(delivery)
                busy[min(which, 1)] += 1
                overlaps += 0 < busy[0] < 6 and 0 < busy[1] < 12

        sides.together(3, member)
        places = cache._places[0]
        assert np.unique(places[places >= 0]).size == np.count_nonzero(places >= 0)
        assert len(set(cache._owners)) == len(cache._owners) <= 8
        if (overlaps > 200 and number > 50) or time.monotonic() > end:
            break
    assert overlaps > 20, "they never met"
    served, brought, _ = iterate(cache, far, range(60), team)
    assert served + brought == far.edges(range(60))
    assert parts == 60


class Interrupted(HostMover):
    """Calls `meanwhile` once, before it copies."""

    meanwhile = None

    def copy(self, *given):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().copy(*given)


def test_a_place_that_is_being_filled_keeps_its_partition(team):
    """While one thread copies a partition, another brings a partition that is used far more often."""
    far, engine = sides.far([60, 60], partition=60 * 8), Filter()
    cache, mover, frontier = make(far, 1), Interrupted(team), far.frontier(None)
    cache.attach(mover, lambda lists: lists.arrays)

    def keep(p):
        for delivery in engine.deliver(Task(engine, far.side, np.array([p])), frontier, far.link, far.buffer, 0):
            cache.keep(delivery)

    mover.meanwhile = lambda: [keep(1) for _ in range(9)]
    keep(0)
    assert mover.meanwhile is None
    activity = frontier.activity(far.side.partitions, far.side.lists, 4, 4, BLOCK, team)
    held, others = cache.held(far.side, activity, frontier)
    assert sides.delivered(held, frontier) == far.edges([0])
    assert others.edges.tolist() == [0, 60]
    cache.refresh(frontier)
    keep(1)
    assert sides.delivered(cache.held(far.side, activity, frontier)[0], frontier) == far.edges([1]), "later it goes"


def test_edges_beyond_32_bits(team):
    """Partitions behind 2**33 arcs."""
    offsets = np.array([0, 1 << 33, (1 << 33) + 5000, (1 << 33) + 5003])
    side = sides.make_side(Lists.of(offsets), np.uint32, np.int32, 32 << 20, "out", 4096)
    far = sides.Far(side, sides.Endless())
    cache = PartitionCache([side], aligned_empty(80 << 20, np.uint8), 4096)
    last = len(side.partitions) - 1
    frontier = far.frontier([1, 2])
    engine = Filter()
    buffer = lambda: sides.Buffer(aligned_empty(80 << 20, np.uint8), (4, 4), 4096)  # noqa: E731
    (delivery,) = engine.deliver(Task(engine, side, np.array([last])), frontier, far.link, buffer, 0)
    expected = sides.edges_of(delivery, frontier)
    cache.keep(delivery)
    held, others = cache.held(side, frontier.activity(side.partitions, side.lists, 4, 4, 4096, team), frontier)
    assert sides.delivered(held, frontier) == expected
    assert sum(expected.values()) == 5003
    assert min(edge[1] for edge in expected) == 0, "targets wrap at 2**32 in this link"
    assert not others.edges.any()
