"""The vertex-centric cache (HyTGraph, journal version, section VII): lists of the vertices used most often.

`cache/hotness.py` decides which lists to hold; this file holds them. New lists are copied when they cross the link for
the work itself. Near memory: 12 bytes per vertex besides the lists.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.cache import hotness
from isthmus.cache.cache import Cache, Held
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Frontier
from isthmus.kernels.cache import list_layout
from isthmus.link.link import Array

# Hotness, wanted, filled, marks of misses: a byte each; where its list begins; a place in their order.
VERTEX_BYTES = 12
# Vertices of a range that are looked up at once; a range of vertices without edges can be as long as the graph.
AT_ONCE = 1 << 16


class VertexCache(Cache):
    """Lists of one side. `by_degree`: hold the longest lists, however often they are used."""

    def __init__(
        self, side: Side, memory: Array, team: Any, by_degree: bool = False, interval: float = hotness.INTERVAL
    ) -> None:
        self._side, self._team, self._by_degree, self._interval = side, team, by_degree, interval
        n = len(side.lists)
        # so that weights are aligned.
        self.capacity = max(0, (memory.size - VERTEX_BYTES * n) // side.entry_bytes // 8 * 8)
        self._targets = memory[: self.capacity * side.width].view(side.target_dtype)
        weights = memory[self.capacity * side.width :][: self.capacity * side.weight_width]
        self._weights = weights.view(side.weight_dtype) if side.weight_width else None
        self._hotness, self._filled = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._misses = np.zeros(-(-n // 8) * 8, np.uint8)  # whole words, as marks are
        self._wanted = (
            hotness.hubs(side.lists, self.capacity)
            if by_degree
            else hotness.initial_candidates(side.lists, self.capacity, team)
        )
        self._begins = np.zeros(n, np.uint32 if self.capacity < 1 << 32 else np.int64)  # of each list that has space
        self._lists = np.empty(min(n, self.capacity), np.uint32)  # vertices, in the order of their lists in memory
        self._count = 0
        self._processed = self.refreshes = 0
        self._engine = Held()
        self._lock = threading.Lock()
        self.bytes = memory.size
        self._lay_out()

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        if not self.capacity:
            return frontier, iter(())
        hits = (self._delivery(vertices.astype(np.int64)) for vertices in held_of(frontier, self._filled))
        return frontier.without(self._filled, self._misses, self._team), hits

    def everything(self) -> Iterator[Delivery]:
        return (self._delivery(vertices) for vertices in all_held(self._filled)) if self.capacity else iter(())

    def _delivery(self, vertices: Array) -> Delivery:
        begins = self._begins[vertices].astype(np.int64)
        lists = self._side.lists
        rows = Rows(vertices, begins, begins, lists.ends[vertices] - lists.begins[vertices])
        return Delivery(Task(self._engine, self._side, np.empty(0, np.int64)), self._targets, self._weights, rows)

    def refresh(self, frontier: Frontier) -> None:
        if not self.capacity or self._by_degree:
            return
        hotness.heat(self._hotness, frontier, self._team)
        self._processed += frontier.count
        seen = hotness.check(
            self._hotness, self._wanted, self._processed, self._side.lists, self.capacity, self._team, self._interval
        )
        if seen.due:
            self._processed = 0
            self._hotness[:] = 0
        if seen.changed:
            self.refreshes += 1
            self._wanted = seen.wanted
            self._lay_out()

    def forget(self) -> None:
        self._filled[:] = 0

    def _lay_out(self) -> None:
        """Move the lists that stay together, drop the others, and reserve space for wanted lists that are still to
        come.
        """
        weights = self._targets[:0] if self._weights is None else self._weights
        self._count = list_layout.lay_out(
            self._lists,
            self._count,
            self._wanted,
            self._filled,
            *self._side.lists.arrays,
            self._begins,
            self._targets,
            weights,
            self._weights is not None,
        )

    def keep(self, delivery: Delivery) -> None:
        side = delivery.task.side
        if side is not self._side or not self.capacity or isinstance(delivery.task.engine, Held):
            return
        weights = delivery.weights if self._weights is not None else None
        none = self._targets[:0]
        for vertices, begins, weight_begins, lengths in pieces(delivery):
            list_layout.keep_rows(
                vertices,
                begins,
                weight_begins,
                lengths,
                *side.lists.arrays,
                delivery.targets,
                none if weights is None else weights,
                self._wanted,
                self._filled,
                self._begins,
                self._targets,
                none if weights is None else self._weights,
                weights is not None,
            )

    def facts(self) -> dict[str, Any]:
        return {"refreshes": self.refreshes}


def held_of(frontier: Frontier, filled: Array) -> Iterator[Array]:
    """The active vertices whose lists are there, a bounded number at a time."""
    step = sizes.now.cache_vertices if frontier.list is None else max(1, frontier.vertices)
    for first in range(0, frontier.vertices, step):
        active = frontier.rows(first, min(first + step, frontier.vertices))
        hits = active[filled[active] != 0]
        if hits.size:
            yield hits


def all_held(filled: Array) -> Iterator[Array]:
    """All vertices whose lists are there, a bounded number at a time."""
    step = sizes.now.cache_vertices
    for first in range(0, filled.size, step):
        lists = np.flatnonzero(filled[first : first + step]) + first
        if lists.size:
            yield lists


def pieces(delivery: Delivery) -> Iterator[tuple[Array, Array, Array, Array]]:
    """The rows of a delivery; for ranges, all vertices in them, a bounded number at a time."""
    edges = delivery.edges
    if delivery.whole is None:
        assert isinstance(edges, Rows)
        yield edges.vertices, edges.begins, edges.weight_begins, edges.lengths
        return
    ranges, lists = delivery.whole, delivery.task.side.lists
    for k in range(ranges.first.size):
        for first in range(int(ranges.first[k]), int(ranges.last[k]), AT_ONCE):
            last = min(first + AT_ONCE, int(ranges.last[k]))
            low, high = (
                np.maximum(lists.begins[first:last], ranges.begin[k]),
                np.minimum(lists.ends[first:last], ranges.end[k]),
            )
            yield np.arange(first, last), low - ranges.base[k], low - ranges.weight_base[k], high - low
