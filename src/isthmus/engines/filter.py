"""Filter: whole partitions, in bulk (ExpTM-filter in HyTGraph, as in GraphReduce and Graphie).

Every byte of an active partition moves, active or not; reads are long and the link runs at full bandwidth.
Neighbouring partitions make one extent. A task fills a buffer, so that even small partitions keep many reads in flight;
HyTGraph's k = 4 bounds its tasks likewise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isthmus.engines.engine import Buffer, Cost, Delivery, Engine, GetBuffer, Pass, Ranges, Rows, Side, Task, zones
from isthmus.frontier import Frontier
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.loops import rows
from isthmus.link.link import Array, Link


class Filter(Engine):
    """Reads whole partitions. `together`: the most partitions in a task; None: as many as a buffer holds."""

    name = "filter"
    code = 1
    colour = "#0077bb"
    rereads_when_link_bound = True
    observes = "bandwidth"

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost:
        """The cost of reading every block, in long reads."""
        return Cost(scan.block_bytes, scan.reads, float(scan.profile.seconds(scan.block_bytes, 0)))

    def __init__(self, together: int | None = None) -> None:
        self.together = together

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        """Cut by size, in order: a prefix sum gives the places where a buffer is full."""
        if not chosen.size:
            return []
        # In each zone an extent may touch one more block at each end than its bytes need; zones share a buffer by
        # width.
        narrow = min(side.width, side.weight_width or side.width)
        slack = (2 * side.entry_bytes // narrow + 1) * side.block
        sizes = side.partitions.slots[chosen] * side.entry_bytes + slack
        ends = np.cumsum(sizes)
        tasks = []
        start = 0
        while start < chosen.size:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + room, "right")))
            if self.together is not None:
                stop = min(stop, start + self.together)
            tasks.append(Task(self, side, chosen[start:stop]))
            start = stop
        return tasks

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        side, parts = task.side, task.side.partitions
        starts, stops = neighbours(task.partitions)
        begin, end = parts.cuts[starts], parts.cuts[stops + 1]
        first, last = parts.first[starts], parts.last[stops]
        while begin.size:
            buffer = get_buffer()
            before = clock()
            # Almost always everything fits; a single partition larger than the buffer comes in pieces.
            stop = end if begin.size > 1 else np.minimum(end, begin + capacity(side, buffer))
            delivery = self._bring(task, Ranges(first, last, begin, stop, begin, begin), link, buffer, channel)
            assert isinstance(delivery.edges, Ranges)
            delivery.whole = delivery.edges
            if frontier.list is not None:
                delivery.edges = as_rows(delivery.whole, frontier, side)
            delivery.seconds = clock() - before
            yield delivery
            left = stop < end
            begin, end, first, last = stop[left], end[left], first[left], last[left]

    def _bring(self, task: Task, ranges: Ranges, link: Link, buffer: Buffer, channel: int) -> Delivery:
        side, block = task.side, link.profile.block
        at, sizes = outward(ranges.begin, ranges.end, side.width, block)
        weight_at, weight_sizes = (
            outward(ranges.begin, ranges.end, side.weight_width, block) if side.weight_width else (at[:0], at[:0])
        )
        extents = zones(side, at, sizes, weight_at, weight_sizes, buffer)
        requests = link.move(extents, buffer.bytes, channel)
        count = at.size
        # Entry e of a run lies in the buffer at e - base.
        ranges.base = (at - extents.places[:count]) // side.width
        if side.weight_width:
            ranges.weight_base = (weight_at - (extents.places[count:] - buffer.room)) // side.weight_width
        weights = buffer.weights(side.weight_dtype) if side.weight_width else None
        return Delivery(task, buffer.targets(side.target_dtype), weights, ranges, buffer, extents.bytes, requests)


def neighbours(chosen: Array) -> tuple[Array, Array]:
    """First and last of each stretch of consecutive partition numbers."""
    breaks = np.flatnonzero(np.diff(chosen) != 1)
    return chosen[np.concatenate([[0], breaks + 1])], chosen[np.concatenate([breaks, [chosen.size - 1]])]


def capacity(side: Side, buffer: Buffer) -> int:
    """Slots that surely fit a buffer, whatever their alignment."""
    fit = (buffer.room - 2 * side.block) // side.width
    if side.weight_width:
        fit = min(fit, (buffer.weight_room - 2 * side.block) // side.weight_width)
    return max(1, fit)


def outward(begin: Array, end: Array, width: int, block: int) -> tuple[Array, Array]:
    """Offsets and lengths in bytes of the whole blocks that hold entries begin:end."""
    at = begin * width // block * block
    return at, -(-end * width // block) * block - at


def as_rows(ranges: Ranges, frontier: Frontier, side: Side) -> Rows:
    """The active vertices of ranges as rows, so that the kernel does not scan the others."""
    pieces = []
    for k in range(ranges.first.size):
        vertices = frontier.rows(int(ranges.first[k]), int(ranges.last[k]))
        begins, weight_begins, lengths = (np.empty(vertices.size, np.int64) for _ in range(3))
        rows.rows_in_range(
            vertices,
            *side.lists.arrays,
            ranges.begin[k],
            ranges.end[k],
            ranges.base[k],
            ranges.weight_base[k],
            begins,
            weight_begins,
            lengths,
        )
        pieces.append((vertices, begins, weight_begins, lengths))
    return (
        Rows(*(np.concatenate(column) for column in zip(*pieces, strict=True))) if len(pieces) > 1 else Rows(*pieces[0])
    )
