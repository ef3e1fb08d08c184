"""Checks over adjacency lists, for `verify` and for graphs that change."""

from __future__ import annotations

from typing import Any

from numba import int64, uint64

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.loops.rows import place_of
from isthmus.kernels.store.random_edges import mix

FINE, OUT_OF_RANGE, NOT_SORTED, REPEATED = range(4)
PROBLEMS = {
    OUT_OF_RANGE: "a target is not a vertex",
    NOT_SORTED: "a list is not sorted",
    REPEATED: "a list repeats a target, in a graph without parallel edges",
}


@kernel
def check_lists(
    offsets: Any, first_arc: Any, overlap: Any, targets: Any, weights: Any, first_vertex: Any, n: Any, simple: Any
) -> Any:
    """(status, sum of hashes of arcs, sum of hashes of the reversed arcs, self loops).

    `targets` are the arcs from `first_arc` on; the first `overlap` of them only serve to check the order.
    A `simple` graph has no parallel edges.
    """
    r = place_of(first_arc, offsets)
    forward = backward = uint64(0)
    loops = 0
    for i in range(targets.size):
        arc = first_arc + i
        fresh = i == 0
        while offsets[r + 1] <= arc:
            r += 1
            fresh = True
        u, v = uint64(first_vertex + r), uint64(targets[i])
        if v >= uint64(n):
            return OUT_OF_RANGE, forward, backward, loops
        if not fresh and targets[i] < targets[i - 1]:
            return NOT_SORTED, forward, backward, loops
        if simple and not fresh and targets[i] == targets[i - 1]:
            return REPEATED, forward, backward, loops
        if i < overlap:
            continue
        bits = uint64(0) if weights is None else uint64(weights[i]) * uint64(0xD6E8FEB86659FD93)
        forward += mix(mix(u + uint64(1)) + v + bits)
        backward += mix(mix(v + uint64(1)) + u + bits)
        loops += u == v
    return FINE, forward, backward, loops


@kernel
def hash_arcs(begins: Any, ends: Any, targets: Any, first: Any, last: Any, backward: Any, secret: Any) -> Any:
    """The sum of hashes of the arcs in lists first:last, or of the reversed ones (`backward`)."""
    total = uint64(0)
    for u in range(first, last):
        own = uint64(u) if backward else mix(uint64(u) + secret)
        for e in range(begins[u], ends[u]):
            v = uint64(targets[e])
            total += mix(mix(v + secret) + own) if backward else mix(own + v)
    return total


@kernel
def find_repeated(begins: Any, ends: Any, targets: Any, first: Any, last: Any, bits: Any) -> Any:
    """The first of these vertices whose list has an entry twice, or -1. `bits`: one for each vertex, all 0 before and
    after.
    """
    for u in range(first, last):
        fresh = True
        for e in range(begins[u], ends[u]):
            v = uint64(targets[e])
            bit = uint64(1) << (v & uint64(63))
            fresh &= (bits[v >> uint64(6)] & bit) == uint64(0)
            bits[v >> uint64(6)] |= bit
        for e in range(begins[u], ends[u]):
            bits[uint64(targets[e]) >> uint64(6)] = uint64(0)
        if not fresh:
            return int64(u)
    return int64(-1)
