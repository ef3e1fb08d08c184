"""Partitions: runs of vertices with about equally many edge bytes; a hub larger than that is cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus import sizes
from isthmus.graph.files import BLOCK, Array

LARGEST = 32 << 20  # bytes


def partition_bytes(edge_bytes: int, most: int = LARGEST) -> int:
    """Bytes of a partition: a 512th of the edges, in whole blocks, within bounds (and at most `most`)."""
    size = min(max(edge_bytes // sizes.now.partitions, sizes.now.smallest_partition), LARGEST, max(most, BLOCK))
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True)
class Partitions:
    """Partition p holds the arcs cuts[p]:cuts[p+1], of vertices first[p]:last[p]."""

    cuts: Array
    first: Array
    last: Array

    def __len__(self) -> int:
        return int(self.first.size)

    @property
    def arcs(self) -> Array:
        return np.diff(self.cuts)


def cut(offsets: Array, entry_bytes: int, size: int) -> Partitions:
    """Cut the arcs behind `offsets` into partitions of about `size` bytes at `entry_bytes` an arc."""
    arcs = int(offsets[-1]) if offsets.size else 0
    step = max(1, size // entry_bytes)
    ideal = np.arange(0, arcs, step, dtype=np.int64)
    owner = np.searchsorted(offsets, ideal, "right") - 1  # the vertex whose list each ideal cut falls into
    inside_hub = offsets[owner + 1] - offsets[owner] > step if ideal.size else np.empty(0, np.bool_)
    cuts = np.unique(np.concatenate([np.where(inside_hub, ideal, offsets[owner]), [0, arcs]])) if arcs else np.zeros(1, np.int64)
    first = np.searchsorted(offsets, cuts[:-1], "right") - 1
    last = np.searchsorted(offsets, cuts[1:] - 1, "right")
    return Partitions(cuts, first, last)


def joined(parts: Partitions, count: int) -> Partitions:
    """Every `count` neighbours as one."""
    firsts = np.arange(0, len(parts), count)
    lasts = np.minimum(firsts + count, len(parts))
    return Partitions(np.append(parts.cuts[firsts], parts.cuts[-1]), parts.first[firsts], parts.last[lasts - 1])
