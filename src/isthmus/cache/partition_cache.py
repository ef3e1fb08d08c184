"""A cache of whole partitions, for reads in bulk: the partitions that arrive first stay until others are used more.

A loop that reads the same partitions in the same order in every iteration would never hit a cache that evicts the least
recently used. So a partition is evicted only for one with at least `BETTER` more uses, and never in an iteration that
works on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from isthmus.cache.cache import Cache, Held
from isthmus.cache.mover import Copy, Mover, copier, copy_part
from isthmus.cache.partition_places import blocks_of
from isthmus.engines.engine import Delivery, Ranges, Side, Task
from isthmus.engines.filter import as_rows
from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

BETTER = 2  # uses that a partition must have more than the one it replaces
NONE, COMING = -1, -2  # no place; a place that is being filled


class PartitionCache(Cache):
    """Places of one size, that of the largest partition, shared by all sides."""

    def __init__(self, sides: list[Side], memory: Array, block: int) -> None:
        self._sides = {side.name: number for number, side in enumerate(sides)}
        most = max((int(side.partitions.slots.max()) for side in sides if len(side.partitions)), default=0)
        side = sides[0]
        self._zone = blocks_of(most, side.width, block) * block
        self._weight_zone = blocks_of(most, side.weight_width, block) * block if side.weight_width else 0
        size = self._zone + self._weight_zone
        self.room = memory.size // size if most else 0
        # All targets first, all weights after them, so that one array each serves every place.
        self._targets = memory[: self.room * self._zone].view(side.target_dtype)
        weights = memory[self.room * self._zone : self.room * size]
        self._weights = weights.view(side.weight_dtype) if side.weight_width else None
        self._places = [np.full(len(side.partitions), NONE, np.int64) for side in sides]
        self._uses = [np.zeros(len(side.partitions), np.int64) for side in sides]
        self._owners: list[tuple[int, int]] = []  # of each place: side, partition
        self._worth = np.zeros(self.room, np.int64)  # of each place: uses of the partition in it
        self._serving = np.zeros(self.room, np.bool_)  # places that this iteration works on
        self._filling = np.zeros(self.room, np.bool_)  # places that a thread copies a partition to
        self._lock = threading.Lock()
        self._engine = Held()
        self._copy: Copy = copy_part
        self.bytes = self.room * size

    def attach(self, mover: Mover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self._copy = copier(mover)

    def detach(self) -> None:
        self._copy = copy_part

    def refresh(self, frontier: Frontier) -> None:
        self._serving[:] = False

    def forget(self) -> None:
        for places in self._places:
            places[:] = NONE
        self._owners.clear()
        self._filling[:] = False

    def held(self, side: Side, activity: Activity, frontier: Frontier) -> tuple[list[Delivery], Activity]:
        number = self._sides[side.name]
        places = self._places[number]
        here = np.flatnonzero((places >= 0) & (activity.edges > 0))
        if not here.size:
            return [], activity
        parts, at = side.partitions, places[here]
        self._uses[number][here] += 1
        self._worth[at] = self._uses[number][here]
        self._serving[at] = True
        base = parts.cuts[here] - at * (self._zone // side.width)
        weight_base = parts.cuts[here] - at * (self._weight_zone // side.weight_width) if side.weight_width else base
        ranges = Ranges(parts.first[here], parts.last[here], parts.cuts[here], parts.cuts[here + 1], base, weight_base)
        edges = ranges if frontier.list is None else as_rows(ranges, frontier, side)
        delivery = Delivery(Task(self._engine, side, here), self._targets, self._weights, edges)
        counts = (activity.vertices.copy(), activity.edges.copy(), activity.blocks.copy())
        others = Activity(*counts, activity.partition_edges, whole_slots=activity.whole_slots)
        for column in (others.vertices, others.edges, others.blocks):
            column[here] = 0
        return [delivery], others

    def keep(self, delivery: Delivery) -> None:
        ranges, side = delivery.whole, delivery.task.side
        if ranges is None or not self.room:
            return
        number, parts = self._sides[side.name], side.partitions
        for p in delivery.task.partitions.tolist():
            begin, end = int(parts.cuts[p]), int(parts.cuts[p + 1])
            k = int(np.searchsorted(ranges.begin, begin, "right")) - 1
            if k < 0 or end > int(ranges.end[k]):
                continue  # the partition came in pieces
            place = self._place_for(number, p)
            if place == NONE:
                continue
            at, size = begin - int(ranges.base[k]), end - begin
            self._copy(self._targets, place * (self._zone // side.width), delivery.targets, at, size)
            if self._weights is not None and delivery.weights is not None:
                at = begin - int(ranges.weight_base[k])
                self._copy(self._weights, place * (self._weight_zone // side.weight_width), delivery.weights, at, size)
            self._places[number][p] = place
            self._filling[place] = False

    def _place_for(self, side: int, p: int) -> int:
        """The place to keep a partition in, or NONE; a place that changes its partition serves no hits until it is
        filled.
        """
        with self._lock:
            uses = self._uses[side]
            uses[p] += 1
            if self._places[side][p] != NONE:
                return NONE
            place = len(self._owners)
            if place < self.room:
                self._owners.append((side, p))
            else:
                worth = np.where(self._serving | self._filling, np.iinfo(np.int64).max - BETTER, self._worth)
                place = int(worth.argmin())
                if uses[p] < worth[place] + BETTER:
                    return NONE
                other, q = self._owners[place]
                self._places[other][q] = NONE
                self._owners[place] = (side, p)
            self._places[side][p], self._filling[place] = COMING, True
            self._worth[place] = uses[p]
            return place
