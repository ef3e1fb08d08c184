"""Compaction: active lists are read, small gaps included, and packed side by side (ExpTM-compaction in HyTGraph;
Subway).

On a disk lists are read as by zero-copy, across gaps that cost less than another request, and then packed by all cores,
or by one if few vertices are active. Whole blocks are charged. Packing pays when the packed lists are used again, in
further runs or from a cache. A link that packs by itself (a GPU's host) gets only the places of the lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Self

from isthmus import sizes
from isthmus.engines.engine import Buffer, Cost, Delivery, Engine, GetBuffer, Pass, Resources, Rows, Side, Task, packed
from isthmus.engines.zero_copy import read_rows, windows
from isthmus.frontier import Frontier
from isthmus.kernels.compile.compile_clock import clock
from isthmus.link.link import Array, Extents, Link
from isthmus.link.packers import ALONE, Packers
from isthmus.link.requests import ListSpans

INDEX_BYTES = 8  # of a packed list


class Compaction(Engine):
    """Reads active lists and packs them by `threads` threads; reads across gaps of up to `gap` bytes."""

    name = "compaction"
    code = 4
    colour = "#119966"
    stage = 2

    @classmethod
    def make(cls, resources: Resources) -> Self:
        return cls(resources.threads, resources.link.profile.break_even_gap)

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost:
        """The cost of reading every block, in long reads, and then packing all lists."""
        seconds = float(scan.profile.seconds(scan.block_bytes, 0)) + scan.edge_bytes / scan.profile.compaction
        return Cost(scan.block_bytes, scan.reads, seconds)

    def __init__(self, threads: int, gap: int = 0) -> None:
        self.gap, self._packers = gap, Packers(threads)

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        """One task for all: HyTGraph combines the partitions to be packed."""
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        side, cores = task.side, 1 if frontier.count < sizes.now.few_rows else None
        for among in windows(task, frontier):
            row = skip = 0
            while row < among[0].size:
                buffer = get_buffer()
                start = clock()
                if link.packs:
                    row, skip, delivery = read_rows(
                        task, among, row, skip, 0, partial(packed_by, link, cores), buffer, channel, 1
                    )
                else:
                    unpacked, lists = halves(buffer, side)
                    row, skip, delivery = read_rows(
                        task, among, row, skip, self.gap, link.gather, unpacked, channel, link.profile.block
                    )
                    self._pack(delivery, lists, side, ALONE if cores == 1 else self._packers)
                delivery.buffer = buffer
                delivery.seconds = clock() - start
                yield delivery

    def _pack(self, delivery: Delivery, lists: Buffer, side: Side, packers: Packers) -> None:
        rows = delivery.edges
        assert isinstance(rows, Rows)
        places = packed(rows.lengths)
        targets, weights = (
            lists.targets(side.target_dtype),
            lists.weights(side.weight_dtype) if side.weight_width else None,
        )
        packers.pack(delivery.targets, rows.begins, rows.lengths, places, targets)
        if weights is not None:
            assert delivery.weights is not None
            packers.pack(delivery.weights, rows.weight_begins, rows.lengths, places, weights)
        delivery.targets, delivery.weights = targets, weights
        delivery.edges = Rows(rows.vertices, places, places, rows.lengths)

    def close(self) -> None:
        self._packers.close()


def packed_by(link: Link, cores: int | None, extents: Extents, buffer: Array, lists: ListSpans, channel: int) -> int:
    """Let the link pack lists of any length, with an index of where each begins; `cores`: None means all."""
    return link.pack(extents, buffer, INDEX_BYTES * lists.begins.size, channel, cores)


def halves(buffer: Buffer, side: Side) -> tuple[Buffer, Buffer]:
    """Half of a buffer to read into, half to pack into; packed lists never take more than the blocks they came in."""
    block = side.block
    half = buffer.bytes.size // 2 // block * block
    entry = (side.width, side.weight_width)
    return Buffer(buffer.bytes[:half], entry, block), Buffer(buffer.bytes[half:], entry, block)
