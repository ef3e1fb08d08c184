"""Triangles through changed edges of a simple graph: each is counted once, at the first of its changed edges.

Pairs of vertices (one per changed edge) are grouped by their first end. Its neighbours are marked once for the whole
group, and the neighbours of every second end are then looked up among the marks. A directed graph has lists of two
sides, in which a neighbour may appear twice.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_add, atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel

NEXT_TO_FIRST, COUNTED = 1, 2  # bits of a mark


@inline
def place(keys: Any, u: Any, v: Any) -> Any:
    """The place of the pair among the sorted `keys`, smaller number << 32 | larger; or their number, if it is not
    there.
    """
    key = (min(u, v) << 32) | max(u, v)
    low, high = int64(0), int64(keys.size)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.size and keys[low] == key else int64(keys.size)


@inline
def add(v: Any, amount: Any, counts: Any, changed: Any, changes: Any, count: Any) -> None:
    atomic_add(counts, v, amount)
    if changed[v] == 0 and atomic_exchange(changed, v, uint8(1)) == 0:
        changes[atomic_add(count, 0, int64(1))] = v


@kernel
def count_joined(
    firsts: Any,
    seconds: Any,
    cuts: Any,
    begin: Any,
    end: Any,
    keys: Any,
    touched: Any,
    sign: Any,
    sides: Any,
    out: Any,
    into: Any,
    marks: Any,
    counts: Any,
    changed: Any,
    changes: Any,
    count: Any,
) -> Any:
    """Add `sign` to the corners of all triangles of the pairs in the groups begin:end; returns the edges read.

    Group i is cuts[i]:cuts[i + 1]. `touched` marks the ends of all pairs; `keys` are all pairs, sorted. A triangle that
    has several of them counts at the one with the smallest key. `marks` is zero for each vertex, and is left so.
    """
    edges = int64(0)
    for i in range(begin, end):
        u = int64(firsts[cuts[i]])
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            edges += ends[u] - begins[u]
            for e in range(begins[u], ends[u]):
                marks[int64(targets[e])] = NEXT_TO_FIRST
        marks[u] = 0
        mine = int64(0)
        for j in range(cuts[i], cuts[i + 1]):
            v = int64(seconds[j])
            own = place(keys, u, v)
            found = int64(0)
            for side in range(sides):
                begins, ends, targets = out if side == 0 else into
                edges += ends[v] - begins[v]
                for e in range(begins[v], ends[v]):
                    w = int64(targets[e])
                    if marks[w] != NEXT_TO_FIRST or w == v:
                        continue
                    if sides == 2:
                        marks[w] |= COUNTED
                    if touched[w] and (place(keys, u, w) < own or place(keys, v, w) < own):
                        continue
                    found += 1
                    add(w, sign, counts, changed, changes, count)
            if sides == 2:
                for side in range(sides):
                    begins, ends, targets = out if side == 0 else into
                    for e in range(begins[v], ends[v]):
                        marks[int64(targets[e])] &= NEXT_TO_FIRST
            if found:
                mine += found
                add(v, sign * found, counts, changed, changes, count)
        if mine:
            add(u, sign * mine, counts, changed, changes, count)
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            for e in range(begins[u], ends[u]):
                marks[int64(targets[e])] = 0
    return edges
