"""Filter: whole partitions, in bulk (ExpTM-filter in HyTGraph, as in GraphReduce and Graphie).

Every byte of an active partition moves, active or not; reads are long and the link runs at full bandwidth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from isthmus.engines.engine import Buffer, Delivery, Engine, GetBuffer, Side, Task, zones
from isthmus.frontier import Frontier
from isthmus.kernels import rows
from isthmus.link.link import Array, Link

TOGETHER = 4  # HyTGraph: k = 4 neighbouring filter partitions make one task


class Filter(Engine):
    """Reads runs of neighbouring partitions as one extent each."""

    name = "filter"

    def __init__(self, together: int = TOGETHER) -> None:
        self.together = together

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        if not chosen.size:
            return []
        arcs = side.partitions.arcs[chosen]
        tasks: list[Task] = []
        start = 0
        used = int(arcs[0])
        most = room // side.entry_bytes
        for i in range(1, chosen.size + 1):
            # Neighbours only: a gap would be read for nothing, or need a second extent.
            fits = i < chosen.size and i - start < self.together and chosen[i] == chosen[i - 1] + 1 and used + int(arcs[i]) <= most
            if fits:
                used += int(arcs[i])
                continue
            tasks.append(Task(self, side, chosen[start:i]))
            if i < chosen.size:
                start, used = i, int(arcs[i])
        return tasks

    def deliver(self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int) -> Iterator[Delivery]:
        side, parts = task.side, task.side.partitions
        begin, end = int(parts.cuts[task.partitions[0]]), int(parts.cuts[task.partitions[-1] + 1])
        first, last = int(parts.first[task.partitions[0]]), int(parts.last[task.partitions[-1]])
        block = link.profile.block
        while begin < end:
            buffer = get_buffer()
            stop = min(end, begin + capacity(side, buffer, block))
            start = time.perf_counter()
            at, size = outward(begin, stop, side.width, block)
            weight_at, weight_size = outward(begin, stop, side.weight_width, block) if side.weight_width else (0, 0)
            extents = zones(
                side, np.array([at]), np.array([size]),
                np.array([weight_at] * bool(side.weight_width), np.int64), np.array([weight_size] * bool(side.weight_width), np.int64), buffer,
            )  # fmt: skip
            requests = link.move(extents, buffer.bytes, channel)
            delivery = Delivery(
                task, buffer.targets(side.target_dtype), buffer.weights(side.weight_dtype) if side.weight_width else None,
                first=first, last=last, begin=begin, end=stop, base=at // side.width,
                weight_base=weight_at // side.weight_width if side.weight_width else 0,
                buffer=buffer, bytes=extents.bytes, requests=requests, seconds=time.perf_counter() - start,
            )  # fmt: skip
            if frontier.list is not None:
                as_rows(delivery, frontier.rows(first, last), side)
            yield delivery
            begin = stop


def capacity(side: Side, buffer: Buffer, block: int) -> int:
    """Arcs that surely fit a buffer, whatever their alignment."""
    fit = (buffer.room - 2 * block) // side.width
    if side.weight_width:
        fit = min(fit, (buffer.weight_room - 2 * block) // side.weight_width)
    return max(1, fit)


def outward(begin: int, end: int, width: int, block: int) -> tuple[int, int]:
    """(offset, length) in bytes of the whole blocks that hold entries begin:end."""
    at = begin * width // block * block
    return at, -(-end * width // block) * block - at


def as_rows(delivery: Delivery, vertices: Array, side: Side) -> None:
    """Name the active rows of a run, so that the kernel skips the rest without looking at it."""
    begins, weight_begins, lengths = (np.empty(vertices.size, np.int64) for _ in range(3))
    rows.rows_in_range(
        vertices, side.offsets, delivery.begin, delivery.end, delivery.base, delivery.weight_base,
        begins, weight_begins, lengths,
    )  # fmt: skip
    delivery.vertices, delivery.begins = vertices, begins
    delivery.weight_begins, delivery.lengths = weight_begins, lengths
