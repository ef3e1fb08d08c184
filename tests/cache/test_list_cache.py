"""The list cache: it serves what the store holds, after any sequence of iterations and refreshes, by any ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.list_caches import DEGREES, ENGINES, GAPS, KINDS, assert_sound, check, held, iterate, of_side

import isthmus as ist
from isthmus.cache.chunks import Chunked
from isthmus.cache.list_cache import ListCache, fitting
from isthmus.cache.mover import HostMover
from isthmus.cache.ranking import HOTNESS, HUBS, USES
from isthmus.engines.engine import Rows, Task
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.policies import recipes
from isthmus.policies.policy import COMPACTION, FILTER, ZERO_COPY, Fixed
from isthmus.policies.recipes import Recipe
from isthmus.runtime.executor.executor import Executor

ALL = range(len(DEGREES))
RANKINGS = {"hotness": HOTNESS, "hubs": HUBS, "uses": USES}


@pytest.fixture(params=RANKINGS)
def ranking(request):
    return RANKINGS[request.param]


@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    ranking=st.sampled_from(list(RANKINGS.values())),
    capacity=st.sampled_from([0, 8, 21, 64, 101, 500, 2500]),
    engine=st.sampled_from(list(ENGINES)),
    blocks=st.sampled_from([24, 64, 400]),
    interval=st.sampled_from([0.0, 0.2, 1.0]),
    rounds=st.lists(st.tuples(st.sets(st.integers(0, len(DEGREES) - 1)), st.booleans()), min_size=1, max_size=10),
    gaps=st.sampled_from([None, GAPS]),
)
def test_served_and_brought_are_all_active_edges_each_once(
    team, kind, ranking, capacity, engine, blocks, interval, rounds, gaps
):
    """After any sequence of iterations; lists that come in pieces are not taken for whole."""
    far = sides.far(DEGREES, *kind, gaps=gaps)
    cache = of_side(far, capacity, team, ranking, interval=interval)
    assert cache.capacity <= capacity
    for active, dense in rounds:
        served, brought = iterate(cache, far, active, dense, engine, blocks)
        assert served + brought == far.edges(active)
        check(cache, far)
        if isinstance(cache.layout, Chunked):
            assert_sound(cache.layout)


def twice(cache, far, active=ALL):
    """Two iterations, after which the lists of the active vertices are held, as far as they fit."""
    for _ in range(2):
        iterate(cache, far, active)


def test_a_few_vertices_at_a_time(team, sized, ranking):
    """Large frontiers are served piece by piece, which takes less memory."""
    far = sides.far(DEGREES)
    cache = of_side(far, 504, team, ranking)
    twice(cache, far)
    whole = list(cache.serve(far.frontier(None), far.side)[1])
    sized(cache_vertices=4)
    for deliveries in (cache.serve(far.frontier(None), far.side)[1], cache.everything()):
        pieces = list(deliveries)
        assert len(pieces) > len(whole) == 1
        assert sides.delivered(pieces, far.frontier(None)) == sides.delivered(whole, far.frontier(None))


def test_all_vertices_are_active(team, ranking):
    far = sides.far(DEGREES)
    cache, zero_copy = of_side(far, 100, team, ranking), ENGINES["zero_copy"]
    task = Task(zero_copy, far.side, np.arange(len(far.side.partitions)))
    for _ in range(3):
        frontier = far.frontier(None)
        misses, hits = cache.serve(frontier, far.side)
        found = sides.delivered(hits, frontier)
        found += sides.delivered(zero_copy.deliver(task, misses, far.link, far.buffer, 0), misses, cache.keep)
        cache.refresh(frontier)
        assert found == far.edges(range(far.vertices))
    assert sum(1 for _ in cache.serve(far.frontier(None), far.side)[1]) == 1


def test_misses_share_the_next_frontier(team, ranking):
    far = sides.far(DEGREES)
    cache = of_side(far, 104 if ranking is not USES else 832, team, ranking, interval=0.0)
    twice(cache, far, [2, 15])
    frontier = far.frontier([2, 3, 15])
    misses, (hit,) = cache.serve(frontier, far.side)
    assert (misses.list.tolist(), misses.count, hit.edges.vertices.tolist()) == ([3], 1, [2, 15])
    misses.next_marks[7] = 1
    misses.queues[0, 0], misses.used[0] = 7, 1
    frontier.advance()
    assert frontier.list.tolist() == [7]


def test_rows_are_served_without_a_request(team, ranking):
    far = sides.far(DEGREES)
    cache = of_side(far, 2500, team, ranking, interval=0.0)
    twice(cache, far, [2, 4])
    _, (hit,) = cache.serve(far.frontier([2, 4]), far.side)
    assert isinstance(hit.edges, Rows)
    assert (hit.bytes, hit.requests, hit.buffer) == (0, 0, None)


def test_forgotten(team, ranking):
    far = sides.far(DEGREES)
    cache = of_side(far, 3000, team, ranking, interval=0.0)
    twice(cache, far)
    assert iterate(cache, far, ALL) == (far.edges(ALL), sides.Edges())
    cache.layout.targets[:] = 7
    cache.forget()
    assert iterate(cache, far, ALL) == (sides.Edges(), far.edges(ALL))
    check(cache, far)
    assert iterate(cache, far, ALL) == (far.edges(ALL), sides.Edges()), "they are kept again"


def test_refreshes_are_counted(team):
    """Grapin's cache goes over to the candidates whenever a period ends; HyTGraph's if enough of them are new; hubs
    never change.
    """
    far = sides.far(DEGREES)
    for ranking, refreshes in ((USES, 3), (HOTNESS, 0), (HUBS, 0)):
        cache = of_side(far, 3000, team, ranking, interval=0.0)
        for _ in range(3):
            iterate(cache, far, ALL)
        assert cache.facts() == {"refreshes": refreshes}


@pytest.mark.parametrize("extra", [None, 0, 3])
def test_memory_for_nothing(team, ranking, extra):
    """Less than the index of the vertices takes, or no more than that."""
    far = sides.far(DEGREES)
    for memory in (0, 7) if extra is None else (ranking.index_bytes * len(DEGREES) + extra,):
        cache = ListCache(
            ["out"], [far.side.lists], aligned_empty(memory, np.uint8), (np.uint32, np.int32), team, ranking
        )
        assert (cache.capacity, cache.bytes) == (0, memory)
        for _ in range(2):
            assert iterate(cache, far, ALL) == (sides.Edges(), far.edges(ALL))


@pytest.mark.parametrize("degrees", [[], [0, 0, 0]])
def test_no_edges(team, ranking, degrees):
    far = sides.far(degrees)
    cache = of_side(far, 80, team, ranking)
    assert iterate(cache, far, range(len(degrees))) == (sides.Edges(), sides.Edges())


def test_threads_that_keep_at_once(team):
    """All of them have the same lists to offer: each is copied once, whole, by one of them."""
    far = sides.far([200] * 400, partition=1 << 14)
    frontier, zero_copy = far.frontier(range(400)), ENGINES["zero_copy"]
    task = Task(zero_copy, far.side, np.arange(len(far.side.partitions)))
    deliveries = [list(zero_copy.deliver(task, frontier, far.link, lambda: far.buffer(20_000), 0)) for _ in range(3)]
    for _ in range(20):
        cache = of_side(far, 60_000, team, HUBS)

        def keep(number, cache=cache):
            for delivery in deliveries[number]:
                cache.keep(delivery)

        sides.together(3, keep)
        check(cache, far)
        assert len(held(cache)) == 300


def test_edges_beyond_32_bits(team):
    offsets = np.array([0, 1 << 33, (1 << 33) + 5000, (1 << 33) + 5003])
    side = sides.make_side(Lists.of(offsets), np.uint32, np.int32, 32 << 20, "out", 4096)
    far = sides.Far(side, sides.Endless())
    for ranking, capacity in ((HOTNESS, 6000), (USES, 48_000)):
        cache = of_side(far, capacity, team, ranking, interval=0.0)
        frontier = far.frontier([1, 2])
        cache.serve(frontier, side)
        cache.refresh(frontier)
        assert np.flatnonzero(cache.layout.chosen).tolist() == [1, 2], "the hub alone exceeds the cache"
        zero_copy, last = ENGINES["zero_copy"], np.array([len(side.partitions) - 1])
        buffer = lambda: sides.Buffer(aligned_empty(24 * 4096, np.uint8), (4, 4), 4096)  # noqa: E731
        task = Task(zero_copy, side, last)
        expected = sides.delivered(zero_copy.deliver(task, frontier, far.link, buffer, 0), frontier, cache.keep)
        misses, hits = cache.serve(frontier, side)
        assert sides.delivered(hits, frontier) == expected
        assert sum(expected.values()) == 5003
        assert misses.count == 0


def test_deliveries_that_are_not_kept(team):
    """Of a side that the cache does not hold, from the cache itself, and without the weights that it holds."""
    far, other = sides.far(DEGREES), sides.far(DEGREES, name="in")
    without = sides.far(DEGREES, weight=None)
    cache = of_side(far, 500, team, HUBS)
    for each in (other, without):
        frontier, engine = each.frontier(ALL), ENGINES["zero_copy"]
        task = Task(engine, each.side, np.arange(len(each.side.partitions)))
        for delivery in engine.deliver(task, frontier, each.link, lambda each=each: each.buffer(64), 0):
            cache.keep(delivery)
        assert held(cache) == []


class Recorded(HostMover):
    """Counts the calls that move lists."""

    calls = 0

    def keep(self, *given):
        self.calls += 1
        super().keep(*given)


def test_a_cache_of_this_machine_stays_attached_between_runs(team):
    """A run brings its own mover, which a cache that is attached for good does not use."""
    far = sides.far(DEGREES)
    cache, mover = of_side(far, 500, team, HOTNESS), Recorded(team)
    cache.attach(mover, lambda lists: lists.arrays)
    iterate(cache, far, ALL)
    cache.detach()
    iterate(cache, far, ALL)
    assert held(cache) and mover.calls == 0


@given(st.lists(st.lists(st.integers(0, 30)), min_size=1, max_size=2), st.integers(0, 100))
def test_the_length_up_to_which_all_lists_fit(lengths, capacity):
    """Lists up to this length fit, and those of the next length there is do not."""
    longest, every = (
        fitting([np.array(each, np.int64) for each in lengths], capacity),
        [length for each in lengths for length in each],
    )
    assert sum(length for length in every if length <= longest) <= capacity
    longer = [length for length in every if length > max(0, longest)]
    if longer:
        assert sum(length for length in every if length <= min(longer)) > capacity


# As part of a recipe, in whole runs.


@ist.accumulative(threshold=1e-12)
def spread(delta, degree, share=0.5):
    return share * delta / degree


RUNS: dict[str, Any] = {
    "bfs": lambda g, **how: ist.bfs(g, 5, **how),
    "sssp": lambda g, **how: ist.sssp(g, 5, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, tol=1e-9, **how),
    "pagerank, weighted": lambda g, **how: ist.pagerank(g, tol=1e-9, weight=True, **how),
    "spread": lambda g, **how: ist.run(spread(), g, **how),
    "two sides": lambda g, **how: ist.core_number(g, **how),
}
EXACT = ("bfs", "sssp", "two sides")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """3,001 vertices: no whole number of words. A store, so that nothing fits unless it is to."""
    draw = np.random.default_rng(3)
    count, n = 60_000, 3001
    sources, targets = (n * draw.random(count) ** 2).astype(np.int64), (n * draw.random(count) ** 1.5).astype(np.int64)
    path = tmp_path_factory.mktemp("g") / "g.isthmus"
    with ist.ingest((sources, targets, draw.integers(1, 50, count).astype(np.int32)), path, vertices=n) as graph:
        yield graph


@pytest.fixture
def by_vertices(monkeypatch, sized):
    """A recipe for each engine, with the cache."""
    sized(least_buffer=16 << 10, few_edges=16)
    sides.mostly_cache(monkeypatch, 16 << 10)
    for name, kind in (("filter", FILTER), ("zero_copy", ZERO_COPY), ("compaction", COMPACTION)):
        monkeypatch.setitem(
            recipes.RECIPES, f"v-{name}", Recipe(f"v-{name}", Fixed(f"v-{name}", kind), "vertices", ahead=True)
        )


@pytest.mark.usefixtures("by_vertices")
@pytest.mark.parametrize("engine", ["filter", "zero_copy", "compaction"])
@pytest.mark.parametrize("name", RUNS)
def test_the_same_answers(graph, name, engine):
    expected = RUNS[name](graph).values
    for memory, threads, far in (("20%", 1, "ram"), ("40%", 3, "auto"), ("70%", 2, "auto")):
        result = RUNS[name](graph, memory=memory, threads=threads, policy=f"v-{engine}", far=far)
        if name in EXACT:
            assert np.array_equal(result.values, expected)
        else:
            assert np.abs(result.values - expected).sum() < 2e-9 * max(1.0, expected.sum())
        facts = result.summary()
        assert facts["memory"]["near_peak"] <= facts["memory"]["budget"]
        active = result.trace.total("active_edges")
        assert facts["cache"]["hit_edges"] + facts["cache"]["miss_edges"] == active
    if name == "two sides":
        assert facts["cache"]["hit_edges"] == 0, "it holds one side only"
    elif name != "bfs":  # in which everybody is active once
        assert facts["cache"]["hit_edges"] > 0


@pytest.mark.usefixtures("by_vertices")
def test_what_is_served_does_not_move(graph):
    with_cache, without = (
        RUNS["pagerank"](graph, memory="80%", policy=policy).summary() for policy in ("v-zero_copy", "emogi")
    )
    share = with_cache["cache"]["hit_edges"] / (with_cache["cache"]["hit_edges"] + with_cache["cache"]["miss_edges"])
    assert share > 0.3
    assert with_cache["transfer"]["bytes"] < (1 - share / 2) * without["transfer"]["bytes"]


@pytest.mark.usefixtures("by_vertices")
def test_nothing_is_read_ahead(graph, monkeypatch):
    """The misses of the next iteration are known when it begins, not before."""
    ahead, fetch_ahead = [], Executor.fetch_ahead
    monkeypatch.setattr(Executor, "fetch_ahead", lambda self: ahead.append(self) or fetch_ahead(self))
    found = RUNS["pagerank"](graph, memory="80%", policy="v-zero_copy").summary()
    assert found["transfer"]["bytes"] > 0 and not ahead
    RUNS["pagerank"](graph, memory="30%", policy="auto")
    assert ahead, "as it is elsewhere"
