"""Partitions that stay near: as many as a part of near memory holds; the least recently used is evicted.

Scaph keeps its high-value partitions on the device the same way. All places are of one size, that of the largest
partition, so memory never fragments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isthmus.engines.engine import Side
from isthmus.link.link import Array, Extents, Link


@dataclass
class Place:
    """Where a partition lies: edge e at targets[e - base], its weight at weights[e - weight_base]."""

    targets: Array
    weights: Array | None
    base: int
    weight_base: int


class KeptPartitions:
    """Whole partitions of one side, near."""

    def __init__(self, side: Side, link: Link, memory: Array) -> None:
        self._side, self._link, self._memory = side, link, memory
        parts, block = side.partitions, link.profile.block
        most = int(parts.slots.max()) if len(parts) else 0
        self._zone = blocks_of(most, side.width, block) * block
        self._weight_zone = blocks_of(most, side.weight_width, block) * block if side.weight_width else 0
        self.size = self._zone + self._weight_zone
        self.room = memory.size // self.size if self.size else 0
        self._free = list(range(self.room))
        self._slots: dict[int, int] = {}  # partition: slot, the least recently used first

    def __contains__(self, partition: int) -> bool:
        return partition in self._slots

    def __iter__(self) -> Iterator[int]:
        return iter(self._slots)

    def reserve(self, partition: int, held: set[int], wanted: Array) -> bool:
        """Find a place for a partition, if need be by evicting the least recently used one that is not held; False: all
        are held.

        Partitions not `wanted` are evicted first. The caller must read the partition before it is used.
        """
        if not self._free:
            others = [p for p in self._slots if p not in held]
            if not others:
                return False
            evicted = next((p for p in others if not wanted[p]), others[0])
            self._free.append(self._slots.pop(evicted))
        self._slots[partition] = self._free.pop()
        return True

    @property
    def free(self) -> int:
        """Places that hold nothing."""
        return len(self._free)

    def evict(self, partition: int) -> None:
        self._free.append(self._slots.pop(partition))

    def use(self, partition: int) -> None:
        """Make a partition the most recently used."""
        self._slots[partition] = self._slots.pop(partition)

    def read(self, partition: int, channel: int) -> tuple[int, int]:
        """Bring a partition to its place; returns bytes moved and requests."""
        side, block, cuts = self._side, self._link.profile.block, self._side.partitions.cuts
        start = self._slots[partition] * self.size
        columns = []
        for section, width, zone in ((0, side.width, 0), (1, side.weight_width, self._zone)):
            if width:
                at = int(cuts[partition]) * width // block * block
                end = -(-int(cuts[partition + 1]) * width // block) * block
                columns.append((side.first_section + section, at, end - at, start + zone))
        extents = Extents(*(np.array(column, np.int64) for column in zip(*columns, strict=True)))
        return extents.bytes, self._link.move(extents, self._memory, channel)

    def place(self, partition: int) -> Place:
        """Where a near partition lies."""
        side, block = self._side, self._link.profile.block
        start, cut = self._slots[partition] * self.size, int(side.partitions.cuts[partition])
        targets = self._memory[start : start + self._zone].view(side.target_dtype)
        base = cut * side.width // block * block // side.width
        if not side.weight_width:
            return Place(targets, None, base, 0)
        weights = self._memory[start + self._zone : start + self.size].view(side.weight_dtype)
        return Place(targets, weights, base, cut * side.weight_width // block * block // side.weight_width)


def blocks_of(entries: int, width: int, block: int) -> int:
    """Blocks that this number of entries touches at most."""
    return -(-entries * width // block) + 1
