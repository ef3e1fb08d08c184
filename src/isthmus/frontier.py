"""Active vertices: a byte map, and a queue for each thread while there are few.

Kernels mark a vertex in the byte map of the next iteration, atomically. The thread that marks it first puts it in its
own queue. While the queues hold every marked vertex, the frontier is sparse and inactive vertices cost nothing: road
networks need thousands of iterations. When a queue overflows, only the byte map is used.

This is not Grus's bitmap-directed frontier, which writes bytes without atomics and then makes its queue by a scan of
the whole map. On a processor an atomic mark costs little more than a write, and a scan in every iteration would be most
of the time on road networks. A modelled device is charged for Grus's: plain writes, which are part of an edge's update,
and a scan of a byte per vertex in every iteration, for all recipes alike (`devices/model/modelled_clock.py`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions
from isthmus.kernels.loops import rows, vertices

Array = np.ndarray[Any, Any]
QUEUE_SHARE = 64  # a queue holds a 64th of the vertices: sorting more costs more than a scan


def frontier_bytes(vertices: int, threads: int) -> int:
    """Near memory a frontier takes."""
    return 2 * vertices + 4 * threads * queue_size(vertices)


def queue_size(vertices: int) -> int:
    return max(sizes.now.smallest_queue, vertices // QUEUE_SHARE)


@dataclass
class Activity:
    """What is active in each partition: vertices, edges, and the link blocks that hold them."""

    vertices: Array
    edges: Array
    blocks: Array
    partition_edges: Array  # edges of each partition, active or not
    last_edges: Array | None = None  # what was active one iteration ago; None before the first
    whole_slots: Array | None = None  # of each partition, gaps included; None: there are no gaps

    @property
    def partition_slots(self) -> Array:
        """Entries of each partition when it moves whole: its edges, and the gaps between them."""
        return self.partition_edges if self.whole_slots is None else self.whole_slots

    @property
    def active(self) -> Array:
        """Partitions with any active edge."""
        return np.flatnonzero(self.edges)


class Frontier:
    """The active vertices of this iteration and of the next."""

    def __init__(self, vertices: int, threads: int, repeats: bool = False) -> None:
        self.vertices = vertices
        # Whether there is a list depends on the number of active vertices alone, not on who marked them.
        self.repeats = repeats
        whole = -(-vertices // 8) * 8  # kernels also read the marks as 64-bit words
        self.marks = np.zeros(whole, np.uint8)
        self.next_marks = np.zeros(whole, np.uint8)
        self.queues = np.empty((threads, queue_size(vertices)), np.uint32)
        self.used = np.zeros(threads, np.int64)  # entries wanted in each queue; more than its size: overflow
        self.list: Array | None = np.empty(0, np.uint32)  # the active vertices, ascending; None: see the marks
        self.all_active = False
        self.loose = False  # queues may hold vertices twice, or vertices that are no longer marked
        self.count = 0

    def any(self) -> bool:
        return self.count > 0

    def start(self, active: Array | None) -> None:
        """Begin with these active vertices: numbers, a mask, or None for all."""
        self.all_active = active is None
        if active is None:
            self.list, self.count = None, self.vertices
            return
        if active.dtype == bool:
            self.marks[: active.size] = active
            self.count = int(np.count_nonzero(active))
        else:
            active = np.unique(active)  # and no pass over all marks
            self.marks[active] = 1
            self.count = active.size
        few = self.count <= self.queues.shape[1]
        self.list = (np.flatnonzero(active) if active.dtype == bool else active).astype(np.uint32) if few else None

    def wake(self, first: int, last: int) -> None:
        """Make the vertices first:last active next, besides those already marked."""
        self.next_marks[first:last] = 1
        self.used[0] = self.queues.shape[1] + 1  # no queue holds them: only the marks are used

    def wake_all(self, chosen: Array) -> None:
        """Make these vertices active next, besides those already marked."""
        fresh = chosen[self.next_marks[chosen] == 0]
        self.next_marks[fresh] = 1
        begin, end = int(self.used[0]), int(self.used[0] + fresh.size)
        if end <= self.queues.shape[1]:
            self.queues[0, begin:end] = fresh
        self.used[0] = end

    def defer(self, values: Array, bound: Any, sign: int, team: Any) -> None:
        """Defer active vertices with sign * value > bound to the next iteration. Dense frontiers only."""
        kept = team.split(
            lambda a, b: vertices.defer_range(a, b, self.marks, self.next_marks, values, bound, sign), self.vertices
        )
        self.count = int(sum(kept))
        self.used[0] = self.queues.shape[1] + 1  # no queue holds them

    def none_next(self) -> bool:
        """Whether no vertex will be active next."""
        return not self.used.any()

    def take_marks(self, count: int) -> None:
        """Take over marks that were rewritten from outside, with `count` active vertices."""
        self.list, self.all_active, self.count = None, False, count

    def bits(self, out: Array) -> None:
        """The marks as a bitmap, vertex v at bit v % 64 of word v // 64."""
        packed = np.packbits(self.marks, bitorder="little")
        out.view(np.uint8)[: packed.size] = packed

    def without(self, held: Array, scratch: Array, team: Any) -> Frontier:
        """A frontier of the active vertices that are not held, with the same next iteration. `scratch`: as large as the
        marks.
        """
        others = copy.copy(self)
        others.all_active = False
        if self.list is not None:
            others.list = self.list[held[self.list] == 0]
            others.count = int(others.list.size)
        else:
            others.marks = scratch
            kept = team.split(
                lambda a, b: vertices.mark_others(a, b, self.marks, self.all_active, held, scratch), self.vertices
            )
            others.count = int(sum(kept))
        return others

    def advance(self) -> None:
        """Make the vertices marked for the next iteration active."""
        self._clear()
        self.marks, self.next_marks = self.next_marks, self.marks
        self.all_active = False
        if (self.used <= self.queues.shape[1]).all():
            parts = [queue[:used] for queue, used in zip(self.queues, self.used, strict=True) if used]
            self.list = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.uint32)
            if self.loose:  # some were processed already, and some of those marked again
                self.list = np.unique(self.list[self.marks[self.list] != 0])
            self.count = int(self.list.size)
        else:
            self.list = None
            self.count = int(np.count_nonzero(self.marks))
        if self.repeats:
            self._list_if_few()
        self.used[:] = 0

    def _list_if_few(self) -> None:
        """Have a list if the active vertices fit one queue."""
        if self.count > self.queues.shape[1]:
            self.list = None
        elif self.list is None:
            self.list = np.flatnonzero(self.marks).astype(np.uint32)

    def _clear(self) -> None:
        if self.list is not None:
            self.marks[self.list] = 0
        else:
            self.marks[:] = 0

    def rows(self, first: int, last: int) -> Array:
        """The active vertices of first:last, ascending."""
        if self.list is not None:
            begin, end = np.searchsorted(self.list, (first, last))
            return self.list[begin:end]
        out = np.empty(last - first, np.uint32)
        return out[: rows.list_marked(self.marks, self.all_active, first, last, out)]

    def activity(
        self,
        partitions: Partitions,
        lists: Lists,
        width: int,
        weight_width: int,
        block: int,
        team: Any,
        shares: bool = True,
    ) -> Activity:
        """The activity of each partition, by one pass over the active vertices. `shares`: a block of several lists
        counts once.
        """
        count = len(partitions)
        vertices, edges, blocks = np.zeros((3, count), np.int64)
        found = Activity(vertices, edges, blocks, partitions.arcs, whole_slots=partitions.slots)
        if self.list is not None:
            rows.activity_of_rows(
                self.list,
                *lists.arrays,
                partitions.cuts,
                width,
                weight_width,
                block,
                shares,
                found.vertices,
                found.edges,
                found.blocks,
            )
            return found

        def one(p: int) -> None:
            rows.activity_of_range(
                p,
                partitions.first[p],
                partitions.last[p],
                self.marks,
                self.all_active,
                *lists.arrays,
                partitions.cuts[p],
                partitions.cuts[p + 1],
                width,
                weight_width,
                block,
                shares,
                found.vertices,
                found.edges,
                found.blocks,
            )

        team.each(one, count)
        return found

    def counted_edges(self, lists: Lists, begins: Array, ends: Array) -> int | None:
        """Active edges in ranges of slots, if they were counted before; None: the marks tell."""
        return None

    def take_deltas(self, values: Array, residual: Array, deltas: Array, team: Any) -> None:
        """The deltas of the active vertices: their residuals, which are added to their values."""
        if self.list is not None:
            vertices.take_rows(self.list, values, residual, deltas)
            return
        team.split(
            lambda a, b: vertices.take_range(a, b, self.marks, self.all_active, values, residual, deltas), self.vertices
        )

    def edges(self, lists: Lists, team: Any) -> int:
        """How many edges the active vertices have."""
        if self.all_active:
            return lists.arcs
        if self.list is not None:
            return int(rows.edges_of_rows(self.list, *lists.arrays))
        return int(sum(team.split(lambda a, b: rows.edges_of_range(a, b, self.marks, *lists.arrays), self.vertices)))
