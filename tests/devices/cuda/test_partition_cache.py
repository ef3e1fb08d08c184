"""Whole partitions that a GPU keeps: what is served is what the store holds."""

from __future__ import annotations

import numpy as np
from tests import sides
from tests.gpus import LazyCard

from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.devices.cuda.partition_cache import CudaPartitionCache
from isthmus.engines.filter import Filter
from isthmus.threads import Team


def test_partitions_that_stay_are_served() -> None:
    far, card, team = sides.far([10, 40, 3, 17, 0, 25, 60, 8] * 4), LazyCard(), Team(1)
    side, engine = far.side, Filter()
    with CardSpace(card) as space:
        cache = CudaPartitionCache([side], space.near(6000, np.uint8), sides.BLOCK)
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
