"""Arcs as sortable keys: source and target packed in 64 bits, distributed into buckets, radix-sorted, combined.

A key is `source << bits | target` with `bits` just wide enough for a target, so that the bits that vary are
adjacent and a radix sort needs few passes. Every step is stable: of two parallel arcs, the one read first stays
first. `weights` may be None everywhere; Numba then compiles the loop without them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.rows import place_of
from isthmus.kernels.store.random_edges import mix

DIGIT = 11  # bits per radix pass: 2048 counters stay in the L1 cache
RADIX = 1 << DIGIT
KEEP, FIRST, MIN, SUM = range(4)  # what to do with parallel arcs
FORWARD, BACKWARD, BOTH = range(3)  # which directions of an edge become arcs


@kernel
def pack(sources: Any, targets: Any, weights: Any, bits: Any, way: Any, drop_loops: Any, keys: Any, kept: Any) -> Any:
    """Keys of the edges, in order; returns (how many, how many self loops were seen).

    BOTH writes the two directions of an edge next to each other, so that "first" means the same edge in the
    lists of either end; a self loop is written once.
    """
    shift = uint64(bits)
    count = 0
    loops = 0
    for e in range(sources.size):
        u, v = uint64(sources[e]), uint64(targets[e])
        if u == v:
            loops += 1
            if drop_loops:
                continue
        if way != BACKWARD:
            keys[count] = u << shift | v
            if weights is not None:
                kept[count] = weights[e]
            count += 1
        if way == BACKWARD or (way == BOTH and u != v):
            keys[count] = v << shift | u
            if weights is not None:
                kept[count] = weights[e]
            count += 1
    return count, loops


@inline
def bucket_of(key: Any, table: Any, shift: Any, splitters: Any) -> Any:
    """The bucket that holds `key`: bucket b starts at splitters[b]; `table` gives a lower bound for it."""
    b = int64(table[(key - splitters[0]) >> shift])
    while b + 1 < splitters.size and key >= splitters[b + 1]:
        b += 1
    return b


@kernel
def lookup_table(splitters: Any, shift: Any, table: Any) -> Any:
    """For each stretch of 2**shift keys from the first splitter on, the bucket of its smallest key."""
    b = 0
    for cell in range(table.size):
        key = splitters[0] + (uint64(cell) << shift)
        while b + 1 < splitters.size and key >= splitters[b + 1]:
            b += 1
        table[cell] = b


@kernel
def scatter(
    keys: Any,
    weights: Any,
    table: Any,
    shift: Any,
    splitters: Any,
    starts: Any,
    buckets: Any,
    out: Any,
    out_weights: Any,
) -> Any:
    """Distribute `keys` by bucket, stably; bucket b ends up at out[starts[b]:starts[b + 1]]."""
    starts[:] = 0
    for i in range(keys.size):
        b = bucket_of(keys[i], table, shift, splitters)
        buckets[i] = b
        starts[b + 1] += 1
    for b in range(1, starts.size):
        starts[b] += starts[b - 1]
    at = starts[:-1].copy()
    for i in range(keys.size):
        b = buckets[i]
        out[at[b]] = keys[i]
        if weights is not None:
            out_weights[at[b]] = weights[i]
        at[b] += 1


@kernel
def gather(parts: Any, weights: Any, begins: Any, ends: Any, out: Any, out_weights: Any) -> Any:
    """Copy the ranges begins[i]:ends[i] one after the other."""
    at = 0
    for i in range(begins.size):
        for j in range(begins[i], ends[i]):
            out[at] = parts[j]
            if weights is not None:
                out_weights[at] = weights[j]
            at += 1
    return at


@kernel
def radix_sort(keys: Any, weights: Any, spare: Any, spare_weights: Any) -> Any:
    """Sort `keys` in place, and `weights` with them; `spare` is scratch of the same size."""
    n = keys.size
    if n < 2:
        return
    low = keys[0]
    differing = uint64(0)
    ordered = True
    for i in range(1, n):
        differing |= keys[i] ^ low
        ordered &= keys[i - 1] <= keys[i]
    if ordered:
        return
    width = 0
    while width < 64 and differing >> uint64(width):
        width += 1
    passes = (width + DIGIT - 1) // DIGIT
    digit = uint64((width + passes - 1) // passes)
    mask = (uint64(1) << digit) - uint64(1)
    counts = np.zeros((passes, RADIX), np.int64)
    for i in range(n):
        key = keys[i]
        for k in range(passes):
            counts[k, key & mask] += 1
            key >>= digit
    a, b, wa, wb = keys, spare, weights, spare_weights
    for k in range(passes):
        shift = uint64(k) * digit
        total = 0
        for d in range(RADIX):
            here = counts[k, d]
            counts[k, d] = total
            total += here
        for i in range(n):
            d = (a[i] >> shift) & mask
            at = counts[k, d]
            counts[k, d] = at + 1
            b[at] = a[i]
            if weights is not None:
                wb[at] = wa[i]
        a, b, wa, wb = b, a, wb, wa
    if passes & 1:
        # a loop compiles in a fraction of the time of keys[:] = spare, whose error message has numbers.
        for i in range(n):
            keys[i] = spare[i]
            if weights is not None:
                weights[i] = spare_weights[i]


@kernel
def combine(
    keys: Any, weights: Any, bits: Any, parallel: Any, targets: Any, out_weights: Any, rows: Any, counts: Any
) -> Any:
    """Turn sorted keys into adjacency lists; parallel arcs are kept or merged into one.

    `rows` and `counts` receive the sources that occur and how many arcs each has.
    Returns (arcs, rows, self loops).
    """
    shift = uint64(bits)
    mask = (uint64(1) << shift) - uint64(1)
    arcs = 0
    row = -1
    loops = 0
    last_source = uint64(0)
    for i in range(keys.size):
        u, v = keys[i] >> shift, keys[i] & mask
        if parallel != KEEP and i > 0 and keys[i] == keys[i - 1]:
            if weights is not None:
                if parallel == MIN:
                    out_weights[arcs - 1] = min(out_weights[arcs - 1], weights[i])
                elif parallel == SUM:
                    out_weights[arcs - 1] += weights[i]
            continue
        if row < 0 or u != last_source:
            row += 1
            rows[row] = u
            counts[row] = 0
            last_source = u
        counts[row] += 1
        targets[arcs] = v
        if weights is not None:
            out_weights[arcs] = weights[i]
        arcs += 1
        loops += u == v
    return arcs, row + 1, loops


@kernel
def fill_offsets(rows: Any, starts: Any, end: Any, first: Any, out: Any) -> Any:
    """out[i] = where the list of vertex first + i starts, given the rows that have arcs; `end` follows the last."""
    r = max(place_of(uint64(first), rows), 0)
    for i in range(out.size):
        while r < rows.size and rows[r] < uint64(first + i):
            r += 1
        out[i] = starts[r] if r < rows.size else end


@kernel
def imbalance(sources: Any, targets: Any, weights: Any) -> Any:
    """A sum of hashes that is 0 over all arcs if each occurs as often in one direction as in the other."""
    total = uint64(0)
    for e in range(sources.size):
        u, v = uint64(sources[e]), uint64(targets[e])
        w = uint64(0) if weights is None else mix(uint64(int64(weights[e])))
        total += mix(mix(mix(u + uint64(1)) + v) + w) - mix(mix(mix(v + uint64(1)) + u) + w)
    return total
