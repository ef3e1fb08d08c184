"""HyTGraph's list cache on a GPU holds the lists that the processor's holds, after any iterations, and serves what the
store has.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.gpus import LazyCard
from tests.list_caches import memory_bytes

from isthmus.cache.list_cache import HERE, ListCache
from isthmus.cache.ranking import HOTNESS, HUBS, Ranking
from isthmus.devices.cuda import gpu_space, list_mover, ranking
from isthmus.devices.cuda.contiguous import CudaContiguous
from isthmus.devices.cuda.frontier import CudaFrontier
from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.devices.cuda.gpu_space import RowSpace
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_cache import on_card
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.devices.cuda.worker import OnCard
from isthmus.devices.model.figures import find
from isthmus.engines.engine import Rows
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.threads import Team

DEGREES = [5, 0, 40, 3, 3, 3, 0, 0, 300, 1, 17, 17, 17, 0, 9, 60, 2, 2, 0, 8, 0]
N = len(DEGREES)
ACTIVE = st.one_of(st.none(), st.sets(st.integers(0, N - 1), min_size=1))


@pytest.fixture(autouse=True, scope="module")
def small() -> Any:
    """Few rows, entries and vertices at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_space, "ROOM", 4)
        patch.setattr(list_mover, "WINDOW", 16)
        patch.setattr(ranking, "AT_ONCE", 5)
        yield


def kinds_of(far: sides.Far) -> tuple[Any, Any]:
    return far.side.target_dtype, far.side.weight_dtype if far.side.weight_width else None


def cache_of(far: sides.Far, memory: Any, team: Team, order: Ranking, link: CudaLink | None = None) -> ListCache:
    """A cache of the processor, or of a GPU whose link takes memory."""
    place = HERE if link is None else on_card(link)
    return ListCache(["out"], [far.side.lists], memory, kinds_of(far), team, order, place=place)


def check(cache: ListCache, other: ListCache, far: sides.Far) -> None:
    """Both chose and hold the same lists, and those that are held are as in the store."""
    layout, lists = cache.layout, far.side.lists
    assert isinstance(layout, CudaContiguous)
    assert np.array_equal(layout.chosen, other.layout.chosen)
    assert np.array_equal(layout.held, other.layout.held)
    assert np.array_equal(cache.counts.words, other.counts.words)
    assert set(layout.order[: layout.count].tolist()) == set(np.flatnonzero(other.layout.chosen).tolist())
    taken = np.zeros(cache.capacity, np.int64)
    for u in np.flatnonzero(layout.chosen).tolist():
        at, edges = int(layout.places[u]), np.arange(lists.begins[u], lists.ends[u])
        taken[at : at + edges.size] += 1
        if layout.held[u]:
            assert layout.targets[at : at + edges.size].tolist() == edges.tolist()
            if layout.weights is not None:
                assert layout.weights[at : at + edges.size].tolist() == (3 * edges + 1).tolist()
    assert taken.max(initial=0) <= 1


def frontier_of(on: OnCard, active: set[int] | None, dense: bool) -> CudaFrontier:
    frontier = CudaFrontier(N, 1)
    frontier.start(None if active is None else np.array(sorted(active), np.int64))
    if dense:
        frontier.list = None
    frontier.attach(on)
    return frontier


def iterate(cache: Any, far: Any, frontier: Any, engine: Any) -> tuple[list[int], Any]:
    """One iteration as the loop does it: vertices served, and their rows; what is brought is offered to the cache."""
    side = far.side
    misses, hits = cache.serve(frontier, side)
    served = [int(u) for delivery in hits for u in delivery.edges.vertices]
    cache.refresh(frontier)
    for task in engine.tasks(side, np.arange(len(side.partitions)), 52 * sides.BLOCK):
        for delivery in engine.deliver(task, misses, far.link, lambda: far.buffer(64), 0):
            cache.keep(delivery)
            delivery.targets[:] = 0
    return served, misses


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(ACTIVE, st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 500),
    st.sampled_from([(np.uint32, None), (np.uint32, np.int32), (np.uint64, np.float64)]),
    st.sampled_from([HOTNESS, HOTNESS, HUBS]),
)
def test_it_holds_what_the_processors_cache_holds(iterations: Any, capacity: int, kinds: Any, order: Ranking) -> None:
    far, card, team = sides.far(DEGREES, *kinds), LazyCard(), Team(1)
    size = memory_bytes(order, N, capacity, kinds)
    other = cache_of(far, np.empty(size + 8, np.uint8)[:size], team, order)
    link = CudaLink([], find("rtx2080ti"), card)
    cache = cache_of(far, link.near(size), team, order, link)
    for run in range(0, len(iterations), 5):  # a cache outlasts runs
        with closing(CardLists(card)) as lists, OnCard(card, lists) as on:
            cache.attach(ListMover(RowSpace(on, N)), on.lists)
            for active, dense, filtered in iterations[run : run + 5]:
                engine = Filter() if filtered else ZeroCopy()
                served, misses = iterate(cache, far, frontier_of(on, active, dense), engine)
                expected, others = iterate(other, far, far.frontier(active, dense), engine)
                assert served == expected
                assert misses.rows(0, N).tolist() == others.rows(0, N).tolist()
                assert misses.count == others.count
                if cache.capacity:
                    check(cache, other, far)
            cache.detach()
    assert cache.facts() == other.facts()
    link.close()
    team.close()
    assert card.held == {}


def test_a_delivery_says_where_all_lists_lie() -> None:
    far, card, team = sides.far(DEGREES), LazyCard(), Team(1)
    link = CudaLink([], find("rtx2080ti"), card)
    cache = cache_of(far, link.near(memory_bytes(HOTNESS, N, 1000, kinds_of(far))), team, HOTNESS, link)
    with closing(CardLists(card)) as lists, OnCard(card, lists) as on:
        cache.attach(ListMover(RowSpace(on, N)), on.lists)
        iterate(cache, far, frontier_of(on, None, True), Filter())
        (delivery,) = cache.everything()
        assert isinstance(delivery.edges, Rows)
        # The longest came in pieces.
        assert delivery.edges.vertices.tolist() == [u for u in range(N) if 0 < DEGREES[u] < 300]
        for u in delivery.edges.vertices.tolist():
            at = int(delivery.places[u])
            assert delivery.targets[at : at + DEGREES[u]].tolist() == list(
                range(*far.side.lists.begins[[u]], *far.side.lists.ends[[u]])
            )
        cache.forget()
        assert list(cache.everything()) == []
    link.close()
    team.close()
    assert card.held == {}
