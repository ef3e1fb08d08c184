"""Active vertices less those that are held, put off, or worked on already: nobody is lost, nobody counts twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sides import lists_of

from isthmus import sizes
from isthmus.frontier import Frontier, frontier_bytes, queue_size
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut
from isthmus.threads import Team


@pytest.fixture(scope="module", params=[1, 3], ids="{} threads".format)
def team(request):
    team = Team(request.param)
    yield team
    team.close()


def active(frontier):
    return set(frontier.rows(0, frontier.vertices).tolist())


def make(n, chosen, kind):
    frontier = Frontier(n, 2)
    frontier.start(None if kind == "all_active" else np.array(sorted(chosen), np.int64))
    if kind == "dense":
        frontier.list = None
    return frontier


subsets = st.integers(1, 70).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)), st.sets(st.integers(0, n - 1)))
)


@settings(max_examples=150, deadline=None)
@given(drawn=subsets, kind=st.sampled_from(["sparse", "dense", "all_active"]))
def test_without_those_that_are_held(team, drawn, kind):
    n, chosen, held = drawn
    frontier = make(n, chosen, kind)
    before = active(frontier)
    marks = np.zeros(n, np.uint8)
    marks[list(held)] = 1
    scratch = np.ones(frontier.marks.size, np.uint8)
    scratch[n:] = 0
    others = frontier.without(marks, scratch, team)
    assert active(others) == before - held
    assert others.count == len(before - held)
    assert others.any() == bool(before - held)
    assert active(frontier) == before, "the frontier itself stays as it was"
    lists = Lists.of(np.arange(n + 1) * 3)
    assert others.edges(lists, team) == 3 * len(before - held)
    assert others.next_marks is frontier.next_marks
    assert others.queues is frontier.queues
    assert others.used is frontier.used


@settings(max_examples=150, deadline=None)
@given(drawn=subsets, bound=st.integers(-20, 20), sign=st.sampled_from([1, -1]), data=st.data())
def test_those_put_off_are_active_next(team, drawn, bound, sign, data):
    n, chosen, woken = drawn
    values = np.array(data.draw(st.lists(st.integers(-30, 30), min_size=n, max_size=n)))
    frontier = make(n, chosen, "dense")
    frontier.defer(values, float(bound), sign, team)
    stay = {v for v in chosen if values[v] * sign <= bound}
    assert active(frontier) == stay
    assert frontier.count == len(stay)
    frontier.next_marks[list(woken)] = 1  # as a kernel does, into queues that are full
    frontier.advance()
    assert active(frontier) == (chosen - stay) | woken
    assert frontier.count == len((chosen - stay) | woken)


@settings(max_examples=150, deadline=None)
@given(
    events=st.lists(st.tuples(st.integers(0, 29), st.booleans(), st.integers(0, 1)), max_size=60),
    room=st.integers(1, 40),
    repeats=st.booleans(),
)
def test_loose_queues(events, room, repeats):
    """Marked, followed and marked again: queues hold vertices twice, or that are not marked any more."""
    with sizes.using(smallest_queue=room):
        frontier = Frontier(30, 2, repeats)
    frontier.loose = True
    frontier.start(np.array([3]))
    marked = set()
    for v, mark, member in events:
        if mark and v not in marked:
            if frontier.used[member] < room:
                frontier.queues[member, frontier.used[member]] = v
            frontier.used[member] += 1
        frontier.next_marks[v] = mark
        (marked.add if mark else marked.discard)(v)
    frontier.advance()
    assert active(frontier) == marked
    assert frontier.count == len(marked)
    if frontier.list is not None:
        assert frontier.list.tolist() == sorted(marked)
    if repeats:
        assert (frontier.list is not None) == (len(marked) <= room), "whoever marked them"
    frontier.advance()
    assert not frontier.any()
    assert not frontier.marks.any()
    assert not frontier.next_marks.any()


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    arcs=st.integers(1, 30),
    weight_width=st.sampled_from([0, 4, 8]),
    shares=st.booleans(),
    gap=st.sampled_from([None, 0, 3, 40]),
)
def test_everyone_is_as_active_as_all_of_them(team, lengths, arcs, weight_width, shares, gap):
    """Where lists have gaps, too: these are no edges, and blocks that hold nothing else are not touched."""
    lists = lists_of(lengths, None if gap is None else [gap] * len(lengths))
    partitions = cut(lists, 4 + weight_width, arcs * (4 + weight_width))
    all_active, dense = (
        make(len(lengths), range(len(lengths)), kind).activity(partitions, lists, 4, weight_width, 64, team, shares)
        for kind in ("all_active", "dense")
    )
    for name in ("vertices", "edges", "blocks"):
        assert getattr(all_active, name).tolist() == getattr(dense, name).tolist()
    assert all_active.edges.tolist() == all_active.partition_edges.tolist()
    assert all_active.partition_slots.sum() == lists.slots


@pytest.mark.parametrize("kind", ["sparse", "dense", "all_active"])
def test_the_active_vertices_of_a_range(kind):
    frontier = make(300, range(0, 300, 7), kind)
    expected = range(300) if kind == "all_active" else range(0, 300, 7)
    for first, last in ((0, 300), (100, 140), (140, 140), (295, 300)):
        assert frontier.rows(first, last).tolist() == [v for v in expected if first <= v < last]


@pytest.mark.parametrize("as_mask", [False, True])
@pytest.mark.parametrize("count", [0, 3, 4, 5])
def test_a_start_with_no_more_vertices_than_a_queue_holds_is_sparse(sized, count, as_mask):
    sized(smallest_queue=4)
    frontier, chosen = Frontier(20, 1), np.arange(count) * 3
    frontier.start(np.isin(np.arange(20), chosen) if as_mask else chosen)
    assert (active(frontier), frontier.count, frontier.all_active) == (set(chosen.tolist()), count, False)
    assert (frontier.list is not None) == (count <= 4)


def test_nothing_is_active_before_the_start():
    frontier = Frontier(9, 2)
    assert (frontier.count, frontier.any(), frontier.none_next(), active(frontier)) == (0, False, True, set())


@pytest.mark.parametrize(("vertices", "threads"), [(1000, 1), (8 * 4096, 3), (64 * 10_000, 2), (64 * 12_345, 1)])
def test_the_memory_that_it_takes(vertices, threads):
    frontier = Frontier(vertices, threads)
    arrays = (frontier.marks, frontier.next_marks, frontier.queues)
    assert frontier_bytes(vertices, threads) == sum(array.nbytes for array in arrays)
    assert queue_size(vertices) == max(4096, vertices // 64)


# Vertices that a program wakes


@pytest.mark.parametrize("threads", [1, 2])
def test_waking_a_run_of_vertices(threads):
    frontier = Frontier(10, threads)
    frontier.start(np.array([0]))
    frontier.wake(3, 6)
    frontier.advance()
    assert (active(frontier), frontier.count, frontier.list) == ({3, 4, 5}, 3, None)
    frontier.advance()
    assert not frontier.any()


def test_woken_vertices_join_those_already_marked():
    frontier = Frontier(10, 2)
    frontier.start(None)
    assert frontier.none_next()
    frontier.next_marks[7] = 1
    frontier.queues[1, 0] = 7
    frontier.used[1] = 1
    frontier.wake_all(np.array([2, 7, 9]))
    assert not frontier.none_next()
    frontier.advance()
    assert frontier.list.tolist() == [2, 7, 9]
    assert active(frontier) == {2, 7, 9}
    frontier.wake_all(np.array([], np.int64))
    assert frontier.none_next()


def test_waking_more_than_a_queue_holds():
    vertices = queue_size(0) + 50
    frontier = Frontier(vertices, 1)
    frontier.start(np.array([1]))
    frontier.wake_all(np.arange(vertices))
    frontier.advance()
    assert (frontier.list, frontier.count) == (None, vertices)
    assert active(frontier) == set(range(vertices))
