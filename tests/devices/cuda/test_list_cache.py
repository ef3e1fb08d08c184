"""Grapin's list cache on a GPU has the places and the lists of the processor's, after any iterations and batches.

That of HyTGraph is in `test_contiguous.py`: `devices/cuda/contiguous.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.devices.cuda.test_contiguous import small
from tests.gpus import LazyCard
from tests.list_caches import iterate, memory_bytes

from isthmus.cache.chunks import Chunked
from isthmus.cache.list_cache import ListCache
from isthmus.cache.mover import Attached
from isthmus.cache.ranking import HOTNESS, USES, Ranking
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.list_cache import on_card
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.threads import Team

__all__ = ["small"]  # a fixture
DEGREES = [5, 1, 40, 3, 3, 3, 0, 7, 30, 1, 17, 17, 17, 0, 9, 60, 2, 2, 12, 8, 0] * 3
N = len(DEGREES)


def assert_same(found: Chunked, expected: Chunked, lists: list[Any]) -> None:
    lengths = np.concatenate([each.degrees() for each in lists])  # a place may be longer
    for name in ("begins", "sizes", "held", "chosen", "used", "lost"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for key in np.flatnonzero(expected.held).tolist():
        place = slice(int(expected.begins[key]), int(expected.begins[key]) + int(lengths[key]))
        assert found.targets[place].tolist() == expected.targets[place].tolist()
        assert expected.weights is None or found.weights[place].tolist() == expected.weights[place].tolist()  # type: ignore[index]


def two(
    space: CardSpace, lists: list[Any], capacity: int, kinds: Any, team: Team, **options: Any
) -> tuple[ListCache, ListCache]:
    """The caches of a GPU and of the processor."""
    size, names = memory_bytes(USES, len(lists) * len(lists[0]), capacity, kinds), ["out", "in"][: len(lists)]
    given = (kinds, team, USES)
    there = ListCache(names, lists, space.near(size, np.uint8), *given, place=on_card(), **options)
    there.attach(ListMover(RowSpace(space, N), lambda array: array), lambda lists: lists.arrays)
    return there, ListCache(names, lists, np.empty(size, np.uint8), *given, **options)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sets(st.integers(0, N - 1), min_size=1), min_size=1, max_size=14),
    st.sampled_from([0, 40, 200, 500]),
    st.sampled_from([(np.uint32, None), (np.uint32, np.float64), (np.uint64, np.int32)]),
    st.sampled_from([0.0, 0.2]),
)
def test_iterations(rounds: Any, capacity: int, kinds: Any, interval: float) -> None:
    far, card, team = sides.far(DEGREES, *kinds), LazyCard(), Team(1)
    with CardSpace(card) as space:
        caches = two(space, [far.side.lists], capacity, kinds, team, interval=interval)
        for active in rounds:
            found, expected = (iterate(cache, far, active) for cache in caches)
            assert found == expected
            assert_same(caches[0].chunks, caches[1].chunks, [far.side.lists])
    team.close()
    assert card.held == {}


@pytest.mark.parametrize("on_read", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_batches(seed: int, on_read: bool) -> None:
    """Lists are loaded from far memory when a snapshot advances; some that have changed go, and those around them
    move.
    """
    draw, card, team = np.random.default_rng(seed), LazyCard(), Team(1)
    lists = [sides.lists_of(draw.permutation(DEGREES), draw.integers(0, 3, N)) for _ in range(2)]
    far = [draw.integers(0, 1 << 30, each.slots).astype(np.uint32) for each in lists]
    weights = [each / 2 for each in far]
    with CardSpace(card) as space:
        caches = two(space, lists, 400, (np.uint32, np.float64), team, interval=None, on_read=on_read)
        for _ in range(8):
            uses = [draw.integers(0, N, 20).astype(np.uint32) for _ in range(2)]
            changed = [np.unique(draw.integers(0, N, 3)) for _ in range(2)]
            for cache in caches:
                for side, name in enumerate(cache.names):
                    cache.use(name, uses[side])
                    if on_read:
                        rows = np.unique(uses[side])
                        load(
                            cache,
                            cache.admit(name, rows, lists[side].ends[rows] - lists[side].begins[rows]),
                            lists,
                            far,
                            weights,
                        )
                load(cache, cache.replace(lists, changed), lists, far, weights)
                cache.end_period()
            assert_same(caches[0].chunks, caches[1].chunks, lists)
            assert caches[1].chunks.held.any()
    team.close()
    assert card.held == {}


def load(cache: ListCache, keys: Any, lists: list[Any], far: list[Any], weights: list[Any]) -> None:
    for side in range(2):
        own = keys[(keys >= side * cache.side_keys) & (keys < (side + 1) * cache.side_keys)]
        cache.chunks.load(own, side * cache.side_keys, lists[side].arrays, far[side], weights[side])


def test_a_cache_outlasts_runs() -> None:
    """It is attached to one after the other, and released by each; what it has counted and holds stays."""
    far, card, team = sides.far(DEGREES), LazyCard(), Team(1)
    with CardSpace(card) as memory:
        there, here = two(memory, [far.side.lists], 500, (np.uint32, np.int32), team, interval=0.2)
        for _ in range(3):
            with CardSpace(card) as run:
                there.attach(ListMover(RowSpace(run, N)), lambda lists: lists.arrays)
                for active in (range(0, N, 2), range(0, N, 3)):
                    assert iterate(there, far, active) == iterate(here, far, active)
                there.detach()
            assert there.counts.attached is None and there.layout.attached is None
            assert_same(there.chunks, here.chunks, [far.side.lists])
            assert there.counts.words.tolist() == here.counts.words.tolist()
    team.close()
    assert card.held == {}


def test_a_cache_that_stays_keeps_its_mover_from_run_to_run() -> None:
    """Lists of a stream also move between runs; a run brings only its frontier."""
    lists, card, team = [sides.lists_of(DEGREES)], LazyCard(), Team(1)
    with CardSpace(card) as space:
        cache, _ = two(space, lists, 200, (np.uint32, None), team, interval=None)
        cache.detach()
        assert cache.layout.attached is None and cache.counts.attached is None
        home = Attached(ListMover(RowSpace(space, N)), lambda lists: lists.arrays)
        cache.stay(home)
        for _ in range(2):
            cache.attach(ListMover(RowSpace(space, N)), lambda lists: lists.arrays)
            assert cache.layout.attached is cache.counts.attached is home
            cache.detach()
            assert cache.layout.attached is cache.counts.attached is home
    team.close()
    assert card.held == {}


@pytest.mark.parametrize("ranking", [HOTNESS, USES])
def test_a_run_attaches_no_cache_that_can_hold_nothing(ranking: Ranking) -> None:
    """Of a stream, the index is near memory all the same."""
    lists, memory = sides.lists_of(DEGREES), np.zeros(ranking.index_bytes * N, np.uint8)
    cache = ListCache(["out"], [lists], memory, (np.uint32, None), None, ranking, place=on_card())
    assert (cache.capacity, cache.bytes) == (0, memory.size if ranking.chunked else 0)
