"""Triangle counting on lists of neighbours in a table, after removing repeated neighbours.

An entry is 2 * neighbour + a bit. When gathered, the bit is the direction of the edge. In a simple list (sorted, each
neighbour once) the bit is set if there are edges in both directions.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint32

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.store.radix_sort import sort_row


@kernel
def prefix_sums(counts: Any, offsets: Any) -> Any:
    """offsets[v] = the sum of the counts before v."""
    total = int64(0)
    for v in range(counts.size):
        offsets[v] = total
        total += counts[v]
    offsets[counts.size] = total


@kernel
def lay_out(first: Any, last: Any, base: Any, offsets: Any, cursors: Any) -> Any:
    for v in range(first, last):
        cursors[v] = offsets[v] - base


@kernel
def simplify(first: Any, last: Any, base: Any, offsets: Any, cursors: Any, table: Any, count: Any, degrees: Any) -> Any:
    """Make the lists of first:last simple; cursors are then at their ends.

    `count`: also add every neighbour to the degrees of both its ends.
    """
    for v in range(first, last):
        low = offsets[v] - base
        row = table[low : int64(cursors[v])]
        sort_row(row)
        kept = i = 0
        while i < row.size:
            begin, neighbour = i, int64(row[i]) >> 1
            while i < row.size and int64(row[i]) >> 1 == neighbour:
                i += 1
            both = int64(row[begin]) & 1 == 0 and int64(row[i - 1]) & 1 == 1
            row[kept] = 2 * neighbour + both
            kept += 1
        cursors[v] = low + kept
        if count and kept:
            atomic_add(degrees, v, uint32(kept))
            for i in range(kept):
                atomic_add(degrees, int64(row[i]) >> 1, uint32(1))


@kernel
def count_triangles(
    first: Any,
    last: Any,
    base: Any,
    table: Any,
    near: Any,
    near_end: Any,
    near_base: Any,
    near_table: Any,
    offsets: Any,
    cursors: Any,
    counts: Any,
) -> Any:
    """Count triangles v, a, w with v in first:last, a a neighbour of v in near:near_end, w a neighbour of both.

    Each corner counts the edges between the other two. All lists go up in rank, so each triangle is counted once.
    """
    for v in range(first, last):
        low, high = offsets[v] - base, int64(cursors[v])
        mine = int64(0)
        for i in range(low, high):
            a = int64(table[i]) >> 1
            if a < near or a >= near_end:
                continue
            j, k, end = low, offsets[a] - near_base, int64(cursors[a])
            others = int64(0)
            while j < high and k < end:
                x, y = int64(table[j]), int64(near_table[k])
                if x >> 1 == y >> 1:
                    mine += 1 + (y & 1)
                    others += 1 + (x & 1)
                    atomic_add(counts, x >> 1, 1 + (int64(table[i]) & 1))
                    j += 1
                    k += 1
                elif x < y:
                    j += 1
                else:
                    k += 1
            if others:
                atomic_add(counts, a, others)
        if mine:
            atomic_add(counts, v, mine)
