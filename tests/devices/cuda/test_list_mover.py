"""Lists that move on a card, in parts and windows of any size, and what is held for that is freed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import sides
from tests.gpus import LazyCard
from tests.list_caches import check_patching

from isthmus.cache.partition_cache import PartitionCache
from isthmus.devices.cuda import gpu_space, list_mover
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.engines.filter import Filter
from isthmus.threads import Team

LENGTHS = np.array([5, 1, 40, 1100, 3, 3, 77, 2])
FROMS = np.cumsum(LENGTHS + np.arange(1, 9)) - LENGTHS
TOS = np.cumsum(LENGTHS) - LENGTHS
SIZE = int(FROMS[-1] + LENGTHS[-1])


@pytest.fixture
def mover(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(gpu_space, "ROOM", 3)
    monkeypatch.setattr(list_mover, "WINDOW", 64)
    card = LazyCard()
    with CardSpace(card) as space:
        yield ListMover(RowSpace(space, 100), lambda array: array)
    assert card.held == {}


def near(mover: ListMover, array: Any) -> Any:
    found = mover.space.upload(array)
    mover.space.finish()
    return found


def expected(source: Any, sink: Any) -> Any:
    found = sink.copy()
    for begin, to, length in zip(FROMS, TOS, LENGTHS, strict=True):
        found[to : to + length] = source[begin : begin + length]
    return found


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.float64])
@pytest.mark.parametrize("way", ["copy", "fetch"])
def test_lists_are_copied_to_other_memory(mover: ListMover, way: str, dtype: Any) -> None:
    sources, sinks = (
        (near(mover, np.arange(2 * SIZE).astype(dtype) + k) for k in (0, 1)),
        [np.zeros(SIZE, dtype) for _ in range(2)],
    )
    pairs = list(zip(sources, (near(mover, sink) for sink in sinks), strict=True))
    getattr(mover, way)(FROMS, TOS, LENGTHS, pairs)
    for source, sink in pairs:
        assert np.array_equal(sink, expected(source, np.zeros(SIZE, dtype)))


def test_lists_move_to_the_front_of_their_own_memory(mover: ListMover) -> None:
    arrays = [near(mover, np.arange(SIZE).astype(dtype)) for dtype in (np.uint32, np.float64)]
    moved = [expected(array.copy(), array.copy()) for array in arrays]
    mover.shift(FROMS, TOS, LENGTHS, arrays)
    for found, each in zip(arrays, moved, strict=True):
        assert np.array_equal(found[: LENGTHS.sum()], each[: LENGTHS.sum()])


def test_no_lists_are_no_work(mover: ListMover) -> None:
    nothing = np.empty(0, np.int64)
    before = len(mover.space.card.record_of)
    mover.copy(nothing, nothing, nothing, [(nothing, nothing)])
    mover.shift(nothing, nothing, nothing, [nothing])
    assert len(mover.space.card.record_of) == before


def test_columns_are_counted_when_they_are_uploaded(mover: ListMover) -> None:
    array = near(mover, np.arange(SIZE))
    mover.copy(FROMS, TOS, LENGTHS, [(array, near(mover, np.zeros(SIZE, np.int64)))])
    assert mover.rows.uploaded_bytes == 24 * LENGTHS.size


def test_only_changed_entries_of_a_list_are_copied(mover: ListMover) -> None:
    """As on the processor: what has not changed stays, unless the list has moved or is not held."""
    team = Team(1)
    check_patching(mover, team)
    assert "patch_lists" in [work.name for work in mover.space.card.done]
    team.close()


def test_far_lists_need_a_stream() -> None:
    """A run has no far arrays that kernels could read."""
    nothing, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    with CardSpace(LazyCard()) as space:
        mover = ListMover(RowSpace(space, 10))
        with pytest.raises(NotImplementedError, match="no kernel reads far lists here"):
            mover.fetch(nothing, nothing, one, [(np.zeros(9, np.uint32), np.zeros(9, np.uint32))])


def test_partitions_that_stay_are_served() -> None:
    """Whole partitions that a GPU keeps: they are what the store holds."""
    far, card, team = sides.far([10, 40, 3, 17, 0, 25, 60, 8] * 4), LazyCard(), Team(1)
    side, engine = far.side, Filter()
    with CardSpace(card) as space:
        cache = PartitionCache([side], space.near(6000, np.uint8), sides.BLOCK)
        cache.attach(ListMover(RowSpace(space, 100)), lambda lists: lists.arrays)
        frontier = far.frontier(None)
        activity = frontier.activity(side.partitions, side.lists, side.width, side.weight_width, side.block, team)
        served = sides.Edges()
        for _ in range(2):
            near, others = cache.held(side, activity, frontier)
            served = sum((sides.edges_of(delivery, frontier) for delivery in near), sides.Edges())
            brought = sides.Edges()
            for task in engine.tasks(side, np.flatnonzero(others.edges), 52 * sides.BLOCK):
                for delivery in engine.deliver(task, frontier, far.link, lambda: far.buffer(64), 0):
                    brought += sides.edges_of(delivery, frontier)
                    delivery.whole = delivery.edges if delivery.whole is None else delivery.whole
                    cache.keep(delivery)
                    delivery.targets[:] = 0
            cache.refresh(frontier)
            assert served + brought == far.edges(range(far.vertices))
        assert served
        assert "copy_lists" in [work.name for work in card.done]
    team.close()
    assert card.held == {}
