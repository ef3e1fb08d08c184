"""The vertex cache: what is served is what the store holds, after any sequence of iterations and refreshes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides

import isthmus as ist
from isthmus.cache.vertex_cache import VERTEX_BYTES, VertexCache
from isthmus.engines.compaction import Compaction
from isthmus.engines.engine import Rows, Task
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.policies import recipes
from isthmus.policies.policy import COMPACTION, FILTER, ZERO_COPY, Fixed
from isthmus.policies.recipes import Recipe
from isthmus.runtime.executor.executor import Executor
from isthmus.threads import Team

KINDS = [(target, weight) for target in (np.uint32, np.uint64) for weight in (None, np.int32, np.float64)]
DEGREES = [5, 0, 40, 3, 3, 3, 0, 0, 300, 1, 17, 17, 17, 0, 9, 60, 2, 2, 0, 8, 0]  # 21: no whole number of words
GAPS = [n * 7 % 11 for n in range(len(DEGREES))]  # slots behind each list, where there are any
ENGINES = {"filter": Filter(), "zero_copy": ZeroCopy(), "compaction": Compaction(1)}


@pytest.fixture(scope="module", params=[1, 3], ids="{} threads".format)
def team(request):
    team = Team(request.param)
    yield team
    team.close()


def make(far, capacity, team, **options):
    """A cache with room for about so many edges."""
    memory = aligned_empty(VERTEX_BYTES * far.vertices + capacity * far.side.entry_bytes, np.uint8)
    return VertexCache(far.side, memory, team, **options)


def iterate(cache, far, active, dense=False, engine="zero_copy", blocks=64):
    """One iteration as the loop does it: edges served, edges brought."""
    frontier, side = far.frontier(active, dense), far.side
    misses, hits = cache.serve(frontier, side)
    served = sides.delivered(hits, frontier, cache.keep)
    cache.refresh(frontier)
    brought = sides.Edges()
    if len(side.partitions):
        task = Task(ENGINES[engine], side, np.arange(len(side.partitions)))
        tasks = (
            [task] if engine != "filter" else ENGINES[engine].tasks(side, task.partitions, (blocks - 12) * sides.BLOCK)
        )
        for task in tasks:
            for delivery in task.engine.deliver(task, misses, far.link, lambda: far.buffer(blocks), 0):
                brought += sides.edges_of(delivery, misses)
                cache.keep(delivery)
                delivery.targets[:] = 0  # its buffer is filled with something else now
    return served, brought


def check(cache, far):
    """Everything that is held is as it is in the store, in room of its own, and within the capacity."""
    begins, lists, near = cache._begins, far.side.lists, cache._lists[: cache._count]
    assert lists.degrees()[near].sum() <= cache.capacity
    assert cache._weights is None or cache._weights.flags.aligned
    held = near[cache._filled[near] != 0]
    assert set(held.tolist()) == set(np.flatnonzero(cache._filled).tolist())
    assert set(near.tolist()) == set(np.flatnonzero(cache._wanted).tolist())
    for u in held.tolist():
        at, degree = int(begins[u]), int(lists.ends[u] - lists.begins[u])
        edges = np.arange(lists.begins[u], lists.ends[u])
        assert cache._targets[at : at + degree].tolist() == edges.tolist()
        if cache._weights is not None:
            assert cache._weights[at : at + degree].tolist() == (3 * edges + 1).tolist()


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    capacity=st.sampled_from([0, 8, 21, 64, 101, 500]),
    engine=st.sampled_from(list(ENGINES)),
    blocks=st.sampled_from([24, 64, 400]),
    by_degree=st.booleans(),
    interval=st.sampled_from([0.0, 0.2, 1.0]),
    rounds=st.lists(st.tuples(st.sets(st.integers(0, len(DEGREES) - 1)), st.booleans()), min_size=1, max_size=10),
    gaps=st.sampled_from([None, GAPS]),
)
def test_served_and_brought_are_all_active_edges_each_once(
    team, kind, capacity, engine, blocks, by_degree, interval, rounds, gaps
):
    """After any sequence of iterations; lists that come in pieces are not taken for whole."""
    far = sides.far(DEGREES, *kind, gaps=gaps)
    cache = make(far, capacity, team, by_degree=by_degree, interval=interval)
    assert cache.capacity <= capacity
    for active, dense in rounds:
        served, brought = iterate(cache, far, active, dense, engine, blocks)
        assert served + brought == far.edges(active)
        check(cache, far)


def test_a_few_vertices_at_a_time(team, sized):
    """Large frontiers are served piece by piece, which takes less memory."""
    far = sides.far(DEGREES)
    cache = make(far, 504, team)
    iterate(cache, far, range(len(DEGREES)))
    whole = list(cache.serve(far.frontier(None), far.side)[1])
    sized(cache_vertices=4)
    for deliveries in (cache.serve(far.frontier(None), far.side)[1], cache.everything()):
        pieces = list(deliveries)
        assert len(pieces) > len(whole) == 1
        assert sides.delivered(pieces, far.frontier(None)) == sides.delivered(whole, far.frontier(None))


def test_everyone(team):
    far = sides.far(DEGREES)
    cache = make(far, 100, team)
    for _ in range(3):
        frontier = far.frontier(None)
        misses, hits = cache.serve(frontier, far.side)
        found = sides.delivered(hits, frontier)
        found += sides.delivered(
            ENGINES["zero_copy"].deliver(
                Task(ENGINES["zero_copy"], far.side, np.arange(len(far.side.partitions))),
                misses,
                far.link,
                far.buffer,
                0,
            ),
            misses,
            cache.keep,
        )
        cache.refresh(frontier)
        assert found == far.edges(range(far.vertices))
    assert sum(1 for _ in cache.serve(far.frontier(None), far.side)[1]) == 1


def test_the_misses_share_what_comes_next(team):
    far = sides.far(DEGREES)
    cache = make(far, 104, team)
    iterate(cache, far, [2, 15])
    frontier = far.frontier([2, 3, 15])
    misses, (hit,) = cache.serve(frontier, far.side)
    assert (misses.list.tolist(), misses.count, hit.edges.vertices.tolist()) == ([3], 1, [2, 15])
    misses.next_marks[7] = 1
    misses.queues[0, 0], misses.used[0] = 7, 1
    frontier.advance()
    assert frontier.list.tolist() == [7]


def test_a_refresh_moves_what_stays_and_drops_the_rest(team):
    """Room for one long list or several short: the ones in use take over, a list at a time."""
    far = sides.far([40, 20, 20, 20, 20], weight=np.float64)
    cache = make(far, 40, team, interval=0.0)
    assert np.flatnonzero(cache._wanted).tolist() == [0], "at first the longest"
    iterate(cache, far, [0])
    check(cache, far)
    iterate(cache, far, [1, 2])  # hotter now than 0, whose uses were counted before
    assert np.flatnonzero(cache._filled).tolist() == [1, 2]
    check(cache, far)
    iterate(cache, far, [2, 3])
    assert np.flatnonzero(cache._filled).tolist() == [2, 3]
    check(cache, far)
    served, brought = iterate(cache, far, [2, 3, 4])
    assert (served, brought) == (far.edges([2, 3]), far.edges([4]))
    assert cache.facts() == {"refreshes": cache.refreshes}
    assert cache.refreshes >= 2


def test_by_degree_never_changes(team):
    far = sides.far([40, 20, 20, 20, 20])
    cache = make(far, 40, team, by_degree=True, interval=0.0)
    for active in ([0], [1, 2], [1, 2], [1, 2], [0]):
        served, _ = iterate(cache, far, active)
        check(cache, far)
    assert served == far.edges([0])
    assert cache.refreshes == 0


def test_forgotten(team):
    far = sides.far(DEGREES)
    cache = make(far, 500, team)
    iterate(cache, far, range(len(DEGREES)))
    assert cache._filled.any()
    cache._targets[:] = 7
    cache.forget()
    served, brought = iterate(cache, far, range(len(DEGREES)))
    assert (served, brought) == (sides.Edges(), far.edges(range(len(DEGREES))))
    check(cache, far)


@pytest.mark.parametrize("memory", [0, 7, VERTEX_BYTES * len(DEGREES), VERTEX_BYTES * len(DEGREES) + 3])
def test_memory_for_nothing(team, memory):
    far = sides.far(DEGREES)
    cache = VertexCache(far.side, aligned_empty(memory, np.uint8), team)
    assert (cache.capacity, cache.bytes) == (0, memory)
    for _ in range(2):
        served, brought = iterate(cache, far, range(len(DEGREES)))
        assert (served, brought) == (sides.Edges(), far.edges(range(len(DEGREES))))


@pytest.mark.parametrize("degrees", [[], [0, 0, 0]])
def test_no_edges(team, degrees):
    far = sides.far(degrees)
    cache = make(far, 80, team)
    served, brought = iterate(cache, far, range(len(degrees)))
    assert served == brought == sides.Edges()


def test_threads_that_keep_at_once(team):
    """All of them have the same lists to offer: each is copied once, whole, by one of them."""
    far = sides.far([200] * 400, partition=1 << 14)
    frontier = far.frontier(range(400))
    zero_copy = ENGINES["zero_copy"]
    deliveries = [
        list(
            zero_copy.deliver(
                Task(zero_copy, far.side, np.arange(len(far.side.partitions))),
                frontier,
                far.link,
                lambda: far.buffer(20_000),
                0,
            )
        )
        for _ in range(3)
    ]
    for _ in range(20):
        cache = make(far, 60_000, team, by_degree=True)

        def keep(number, cache=cache):
            for delivery in deliveries[number]:
                cache.keep(delivery)

        sides.together(3, keep)
        check(cache, far)
        assert np.count_nonzero(cache._filled) == 300


def test_edges_beyond_32_bits(team):
    offsets = np.array([0, 1 << 33, (1 << 33) + 5000, (1 << 33) + 5003])
    side = sides.make_side(Lists.of(offsets), np.uint32, np.int32, 32 << 20, "out", 4096)
    far = sides.Far(side, sides.Endless())
    cache = make(far, 6000, team)
    assert np.flatnonzero(cache._wanted).tolist() == [1, 2], "the hub alone exceeds the cache"
    frontier = far.frontier([1, 2])
    zero_copy, last = ENGINES["zero_copy"], np.array([len(side.partitions) - 1])
    buffer = lambda: sides.Buffer(aligned_empty(24 * 4096, np.uint8), (4, 4), 4096)  # noqa: E731
    expected = sides.delivered(
        zero_copy.deliver(Task(zero_copy, side, last), frontier, far.link, buffer, 0), frontier, cache.keep
    )
    misses, hits = cache.serve(frontier, side)
    assert sides.delivered(hits, frontier) == expected
    assert sum(expected.values()) == 5003
    assert misses.count == 0


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
    """Who is missing in the next iteration is known when it begins, not before."""
    asked, carry_out = [], Executor.carry_out
    monkeypatch.setattr(Executor, "carry_out", lambda self, *given: asked.append(given[-1]) or carry_out(self, *given))
    RUNS["pagerank"](graph, memory="80%", policy="v-zero_copy")
    assert asked
    assert not any(asked)
    RUNS["pagerank"](graph, memory="30%", policy="auto")
    assert any(asked), "as it is elsewhere"


def test_rows_are_what_it_hands_out(team):
    far = sides.far(DEGREES)
    cache = make(far, 500, team)
    iterate(cache, far, [2, 4])
    _, (hit,) = cache.serve(far.frontier([2, 4]), far.side)
    assert isinstance(hit.edges, Rows)
    assert (hit.bytes, hit.requests, hit.buffer) == (0, 0, None)
