"""Partitions: ranges of vertices with about equally many edge bytes; a larger hub is cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus import sizes
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import BLOCK, Array
from isthmus.kernels.loops import rows

LARGEST = 32 << 20  # bytes


def partition_bytes(edge_bytes: int, most: int = LARGEST) -> int:
    """Bytes of a partition: a 512th of the edges, in whole blocks, within bounds (and at most `most`)."""
    size = min(max(edge_bytes // sizes.now.partitions, sizes.now.smallest_partition), LARGEST, max(most, BLOCK))
    return -(-size // BLOCK) * BLOCK


@dataclass(frozen=True)
class Partitions:
    """Partition p holds the slots cuts[p]:cuts[p+1], of vertices first[p]:last[p], and `arcs[p]` edges in them."""

    cuts: Array
    first: Array
    last: Array
    slots: Array  # of each partition, gaps included
    arcs: Array  # the same array where lists have no gaps

    def __len__(self) -> int:
        return int(self.first.size)


def cut(lists: Lists, entry_bytes: int, size: int) -> Partitions:
    """Cut the slots of `lists` into partitions of about `size` bytes at `entry_bytes` a slot.

    A list that is longer than that, including the gap after it, is cut into pieces.
    """
    begins, ends = lists.arrays
    step = max(1, size // entry_bytes)
    ideal = np.arange(0, lists.slots if len(lists) else 0, step, dtype=np.int64)
    if not ideal.size:
        none = np.empty(0, np.int64)
        return Partitions(np.zeros(1, np.int64), none, none, none, none)
    # The vertex whose list or gap each ideal cut falls into.
    owner = np.maximum(np.searchsorted(begins, ideal, "right") - 1, 0)
    following = np.where(owner + 1 < len(lists), begins[np.minimum(owner + 1, len(lists) - 1)], lists.slots)
    inside_hub = following - begins[owner] > step
    cuts = np.unique(np.concatenate([np.where(inside_hub, ideal, np.minimum(begins[owner], ideal)), [0, lists.slots]]))
    first = np.maximum(np.searchsorted(begins, cuts[:-1], "right") - 1, 0)
    first += ends[first] <= cuts[:-1]  # skip a vertex of which only the gap reaches past the cut
    last = np.searchsorted(begins, cuts[1:] - 1, "right")
    slots = np.diff(cuts)
    return Partitions(cuts, first, last, slots, arcs_in(lists, cuts, first, last) if lists.has_gaps else slots)


def arcs_in(lists: Lists, cuts: Array, first: Array, last: Array) -> Array:
    """The number of edges in each partition."""
    columns = (column.tolist() for column in (cuts[:-1], cuts[1:], first, last))
    return np.array([rows.arcs_between(*bounds, *lists.arrays) for bounds in zip(*columns, strict=True)], np.int64)


def joined(parts: Partitions, count: int) -> Partitions:
    """Partitions with every `count` neighbours merged into one."""
    firsts = np.arange(0, len(parts), count)
    lasts = np.minimum(firsts + count, len(parts))
    cuts = np.append(parts.cuts[firsts], parts.cuts[-1])
    slots = np.diff(cuts)
    arcs = slots if parts.arcs is parts.slots or not firsts.size else np.add.reduceat(parts.arcs, firsts)
    return Partitions(cuts, parts.first[firsts], parts.last[lasts - 1], slots, arcs)
