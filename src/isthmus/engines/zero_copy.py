"""Zero-copy: only the blocks that hold active lists, neighbours merged (ImpTM-zero-copy in HyTGraph; EMOGI).

On a disk a block is 4 KB and a hundred requests are in flight. `gap` widens what counts as a neighbour: reading
over a gap smaller than bandwidth / request rate is cheaper than a second request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from isthmus.engines.engine import Delivery, Engine, GetBuffer, Side, Task, zones
from isthmus.frontier import Frontier
from isthmus.kernels import rows
from isthmus.link.link import Array, Link


ROWS_PER_BLOCK = 64  # rows planned at once per block of the buffer: bounds the plan's own memory


class ZeroCopy(Engine):
    """Reads the blocks of active lists."""

    name = "zero_copy"

    def __init__(self, gap: int = 0) -> None:
        self.gap = gap

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        """One task for all: HyTGraph combines zero-copy partitions."""
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int) -> Iterator[Delivery]:
        side, block = task.side, link.profile.block
        vertices, edge_begins, edge_ends = active_rows(task, frontier)
        row = skip = 0
        while row < vertices.size:
            buffer = get_buffer()
            start = time.perf_counter()
            most = min(vertices.size - row, buffer.bytes.size // block * ROWS_PER_BLOCK + 1)
            kept = np.empty(most, vertices.dtype)
            begins, weight_begins, lengths, at, sizes, weight_at, weight_sizes = (np.empty(most, np.int64) for _ in range(7))
            row, skip, used, count, weight_count = rows.plan_rows(
                vertices, edge_begins, edge_ends, row, skip, side.width, side.weight_width, block, self.gap,
                buffer.room, buffer.weight_room, kept, begins, weight_begins, lengths, at, sizes, weight_at, weight_sizes,
            )  # fmt: skip
            extents = zones(side, at[:count], sizes[:count], weight_at[:weight_count], weight_sizes[:weight_count], buffer)
            requests = link.move(extents, buffer.bytes, channel) if count else 0
            yield Delivery(
                task, buffer.targets(side.target_dtype), buffer.weights(side.weight_dtype) if side.weight_width else None,
                vertices=kept[:used], begins=begins[:used], weight_begins=weight_begins[:used], lengths=lengths[:used],
                buffer=buffer, bytes=extents.bytes, requests=requests, seconds=time.perf_counter() - start,
            )  # fmt: skip


def active_rows(task: Task, frontier: Frontier) -> tuple[Array, Array, Array]:
    """The active vertices of a task's partitions, and their edges there."""
    parts, offsets = task.side.partitions, task.side.offsets
    if task.whole and frontier.list is not None:
        return clipped(frontier.list, offsets, 0, int(offsets[-1]))
    pieces = []
    for begin, end in runs(task.partitions):
        vertices = frontier.rows(int(parts.first[begin]), int(parts.last[end - 1]))
        pieces.append(clipped(vertices, offsets, int(parts.cuts[begin]), int(parts.cuts[end])))
    if len(pieces) == 1:
        return pieces[0]
    return tuple(np.concatenate(column) for column in zip(*pieces, strict=True))  # type: ignore[return-value]


def clipped(vertices: Array, offsets: Array, low: int, high: int) -> tuple[Array, Array, Array]:
    begins, ends = np.empty(vertices.size, np.int64), np.empty(vertices.size, np.int64)
    rows.clip_rows(vertices, offsets, low, high, begins, ends)
    return vertices, begins, ends


def runs(chosen: Array) -> Iterator[tuple[int, int]]:
    """Stretches first:last of consecutive partition numbers."""
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [chosen.size]])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(chosen[start]), int(chosen[end - 1]) + 1
