"""Zero-copy: only the blocks that hold active lists, neighbours merged (ImpTM-zero-copy in HyTGraph; EMOGI).

On a disk a block is 4 KB and a hundred requests are in flight. Blocks up to `gap` bytes apart count as neighbours:
reading across a gap smaller than bandwidth / request rate is cheaper than a second request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from isthmus.engines.engine import Buffer, Cost, Delivery, Engine, GetBuffer, Pass, Resources, Rows, Side, Task, zones
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.loops import rows
from isthmus.link.link import Array, Extents, Link
from isthmus.link.requests import ListSpans

Bring = Callable[[Extents, Array, ListSpans, int], int]  # one of a link's ways to read
ROWS = 1 << 16  # vertices whose lists are looked up at once: this takes at most a few megabytes


class ZeroCopy(Engine):
    """Reads the blocks of active lists."""

    name = "zero_copy"
    code = 2
    colour = "#dd6611"
    stage = 1
    streams = True
    observes = "request_rate"

    @classmethod
    def make(cls, resources: Resources) -> Self:
        return cls(resources.link.profile.break_even_gap if resources.merges else 0)

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost:
        """The cost of one request per block, as for blocks far apart; a disk reads neighbouring blocks together."""
        return Cost(scan.block_bytes, scan.blocks, float(scan.profile.seconds(0, scan.blocks)))

    def __init__(self, gap: int = 0) -> None:
        self.gap = gap

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        """One task for all: HyTGraph combines zero-copy partitions."""
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        return lists_of(task, frontier, self.gap, link.gather, get_buffer, channel, link.profile.block)


def lists_of(
    task: Task, frontier: Frontier, gap: int, bring: Bring, get_buffer: GetBuffer, channel: int, block: int
) -> Iterator[Delivery]:
    """The active lists of a task, a buffer of them at a time."""
    for among in windows(task, frontier):
        row = skip = 0
        while row < among[0].size:
            buffer = get_buffer()
            start = clock()
            row, skip, delivery = read_rows(task, among, row, skip, gap, bring, buffer, channel, block)
            delivery.seconds = clock() - start
            yield delivery


def read_rows(
    task: Task,
    among: tuple[Array, Array, Array],
    row: int,
    skip: int,
    gap: int,
    bring: Bring,
    buffer: Buffer,
    channel: int,
    block: int,
) -> tuple[int, int, Delivery]:
    """Read as many rows as the buffer holds, from `row` without its first `skip` edges; returns the next `row` and
    `skip`.
    """
    side = task.side
    most = among[0].size - row
    kept = np.empty(most, among[0].dtype)
    columns = (np.empty(most, np.int64) for _ in range(8))  # arrays of their own: the delivery holds four of them
    edges, begins, weight_begins, lengths, at, sizes, weight_at, weight_sizes = columns
    row, skip, used, count, weight_count = rows.fill_with_rows(
        *among,
        row,
        skip,
        side.width,
        side.weight_width,
        block,
        gap,
        buffer.room,
        buffer.weight_room,
        kept,
        edges,
        begins,
        weight_begins,
        lengths,
        at,
        sizes,
        weight_at,
        weight_sizes,
    )
    extents = zones(side, at[:count], sizes[:count], weight_at[:weight_count], weight_sizes[:weight_count], buffer)
    widths = (side.width, side.weight_width) if side.weight_width else (side.width,)
    lists = ListSpans(edges[:used], edges[:used] + lengths[:used], widths, side.first_section)
    requests = bring(extents, buffer.bytes, lists, channel) if count else 0
    return (
        row,
        skip,
        Delivery(
            task,
            buffer.targets(side.target_dtype),
            buffer.weights(side.weight_dtype) if side.weight_width else None,
            Rows(kept[:used], begins[:used], weight_begins[:used], lengths[:used]),
            buffer,
            extents.bytes,
            requests,
            far_begins=edges[:used],
        ),
    )


def windows(task: Task, frontier: Frontier) -> Iterator[tuple[Array, Array, Array]]:
    """The active vertices of a task's partitions and their edges there, a bounded number at a time."""
    parts, lists = task.side.partitions, task.side.lists
    if task.all_active and frontier.list is not None:
        for at in range(0, frontier.list.size, ROWS):
            yield clipped(frontier.list[at : at + ROWS], lists, 0, lists.slots)
        return
    pieces: list[tuple[Array, Array, Array]] = []
    held = 0
    for begin, end in stretches(task.partitions):
        first, last = int(parts.first[begin]), int(parts.last[end - 1])
        for vertex in range(first, last, ROWS):
            vertices = frontier.rows(vertex, min(vertex + ROWS, last))
            if vertices.size:
                pieces.append(clipped(vertices, lists, int(parts.cuts[begin]), int(parts.cuts[end])))
                held += vertices.size
            if held >= ROWS:
                yield joined(pieces)
                pieces, held = [], 0
    if pieces:
        yield joined(pieces)


def joined(pieces: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    if len(pieces) == 1:
        return pieces[0]
    vertices, begins, ends = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return vertices, begins, ends


def clipped(vertices: Array, lists: Lists, low: int, high: int) -> tuple[Array, Array, Array]:
    begins, ends = np.empty(vertices.size, np.int64), np.empty(vertices.size, np.int64)
    rows.clip_rows(vertices, *lists.arrays, low, high, begins, ends)
    return vertices, begins, ends


def stretches(chosen: Array) -> Iterator[tuple[int, int]]:
    """Stretches first:last of consecutive partition numbers."""
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [chosen.size]])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(chosen[start]), int(chosen[end - 1]) + 1
