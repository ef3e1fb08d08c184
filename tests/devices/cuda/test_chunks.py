"""The chunks of a GPU have the places and the lists that those of the processor have, after any iterations and
batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isthmus.cache.hot_subgraph import VERTEX_BYTES, HotSubgraph
from isthmus.devices.cuda.chunks import CudaChunkedLists
from isthmus.devices.cuda.uses import CudaUses
from tests import sides
from tests.cache.test_vertex_cache import iterate
from tests.devices.cuda.test_vertex_cache import small
from tests.gpus import LazyCard

from isthmus.cache.chunks import ChunkedLists
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.threads import Team

__all__ = ["small"]  # a fixture
DEGREES = [5, 1, 40, 3, 3, 3, 0, 7, 30, 1, 17, 17, 17, 0, 9, 60, 2, 2, 12, 8, 0] * 3
N = len(DEGREES)


def assert_same(found: ChunkedLists, expected: ChunkedLists, lists: list[Any]) -> None:
    lengths = np.concatenate([each.degrees() for each in lists])  # a place may be longer
    for name in ("begins", "sizes", "held", "wanted", "used", "lost"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for key in np.flatnonzero(expected.held).tolist():
        place = slice(int(expected.begins[key]), int(expected.begins[key]) + int(lengths[key]))
        assert found.targets[place].tolist() == expected.targets[place].tolist()
        assert expected.weights is None or found.weights[place].tolist() == expected.weights[place].tolist()  # type: ignore[index]


def two(
    card: LazyCard, space: CardSpace, lists: list[Any], capacity: int, kinds: Any, team: Team, **options: Any
) -> list[HotSubgraph]:
    """The caches of a GPU and of the processor."""
    entry = sum(np.dtype(each).itemsize for each in kinds if each is not None)
    size = VERTEX_BYTES * len(lists) * len(lists[0]) + capacity * entry
    names = ["out", "in"][: len(lists)]
    there = HotSubgraph(
        names, lists, space.near(size, np.uint8), kinds, team, chunked=CudaChunkedLists, uses=CudaUses, **options
    )
    there.attach(ListMover(RowSpace(space, N)), lambda lists: lists.arrays)
    return [there, HotSubgraph(names, lists, np.empty(size, np.uint8), kinds, team, **options)]


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
        caches = two(card, space, [far.side.lists], capacity, kinds, team, interval=interval)
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
        caches = two(card, space, lists, 400, (np.uint32, np.float64), team, interval=None, on_read=on_read)
        assert isinstance(caches[0].chunks, CudaChunkedLists)
        caches[0].chunks.far = lambda array: array
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


def load(cache: HotSubgraph, keys: Any, lists: list[Any], far: list[Any], weights: list[Any]) -> None:
    for side in range(2):
        own = keys[(keys >= side * cache.room) & (keys < (side + 1) * cache.room)]
        cache.chunks.load(own, side * cache.room, lists[side].arrays, far[side], weights[side])


def test_lists_that_have_changed_are_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the processor's, on a GPU: only what has changed is copied, unless the list has moved or is not
    there.
    """
    from tests.stream.devices import test_reads

    card = LazyCard()
    with CardSpace(card) as space:

        def chunks(*given: Any) -> CudaChunkedLists:
            made = CudaChunkedLists(*given)
            made.attach(ListMover(RowSpace(space, 10)))
            made.far = lambda array: array
            return made

        monkeypatch.setattr("isthmus.cache.chunks.ChunkedLists", chunks)
        test_reads.test_only_changed_entries_of_a_list_are_copied()
    assert "refresh" in [work.name for work in card.done]
    assert card.held == {}


def test_far_lists_need_a_stream() -> None:
    team = Team(1)
    chunks = CudaChunkedLists(np.zeros(800, np.uint8), 3, (np.uint32, None), 8, team)
    with pytest.raises(NotImplementedError, match="no kernel reads far lists here"):
        chunks.load(
            np.array([0]), 0, (np.zeros(3, np.int64), np.ones(3, np.int64)), np.zeros(9, np.uint32), np.zeros(0)
        )
    team.close()
