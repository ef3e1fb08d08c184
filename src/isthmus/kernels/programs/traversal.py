"""Direction-optimising breadth-first search over edges that are all near (Beamer, Asanović, Patterson 2012).

While the frontier is small, its edges are followed (top-down). When it holds a large part of the edges, each unvisited
vertex looks for a parent in the frontier instead, and stops at the first (bottom-up).

Queues are shared; each thread fills a small buffer and reserves space for it with one atomic addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int32, int64, uint64

from isthmus.kernels.compile.atomics import atomic_add, atomic_cas, atomic_load
from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.barrier import FREE, LINE, meet

UNSEEN = np.iinfo(np.int32).max
BUFFER = 1024
SHORT = 16  # mean degree up to which a level is divided evenly by vertices
TURN = 64  # vertices of a queue that a member takes at once
MOST_WALKED = 1 << 23  # edges after which a kernel returns, so that an interrupt is noticed


@inline
def flush(buffer: Any, count: Any, queue: Any, tail: Any) -> Any:
    at = atomic_add(tail, 0, int64(count))
    for k in range(count):
        queue[at + k] = buffer[k]


@kernel
def top_down(
    queue: Any,
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    levels: Any,
    level: Any,
    out: Any,
    tail: Any,
) -> Any:
    """Follow the edges of queue[first:last]; returns the edges of the vertices found."""
    buffer = np.empty(BUFFER, np.uint32)
    count = 0
    edges = int64(0)
    for i in range(first, last):
        u = int64(queue[i])
        for e in range(list_begins[u], list_ends[u]):
            v = int64(targets[e])
            if levels[v] == UNSEEN and atomic_cas(levels, v, int32(UNSEEN), int32(level)) == UNSEEN:
                if count == BUFFER:
                    flush(buffer, count, out, tail)
                    count = 0
                buffer[count] = v
                count += 1
                edges += list_ends[v] - list_begins[v]
    flush(buffer, count, out, tail)
    return edges


@kernel
def top_down_alone(
    queue: Any,
    size: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    levels: Any,
    level: Any,
    limit: Any,
    out: Any,
    most_edges: Any,
    counted: Any,
) -> Any:
    """Search whole levels with one thread while they are small; counted[k, :] = the vertices and edges of the k-th.

    Returns (vertices in the queue, whether they are in `out`, levels done, edges of the queue).
    """
    swapped = False
    done = 0
    walked = int64(0)
    a, b = queue, out
    edges = count_edges(a, size, list_begins, list_ends)
    while size > 0 and edges <= most_edges and level <= limit and done < counted.shape[0] and walked < MOST_WALKED:
        counted[done, 0], counted[done, 1] = size, edges
        walked += edges
        count = 0
        edges = int64(0)
        for i in range(size):
            u = int64(a[i])
            for e in range(list_begins[u], list_ends[u]):
                v = int64(targets[e])
                if levels[v] == UNSEEN:
                    levels[v] = level
                    b[count] = v
                    count += 1
                    edges += list_ends[v] - list_begins[v]
        a, b = b, a
        swapped = not swapped
        size = count
        level += 1
        done += 1
    return size, swapped, done, edges


# Three of each, used in turn by levels: one is cleared while members may read the other two.
HEAD, EDGES = FREE, FREE + 3 * LINE
LINES = 6


@inline
def follow(
    first: Any,
    last: Any,
    piles: Any,
    sizes: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    levels: Any,
    level: Any,
    out: Any,
    count: Any,
) -> Any:
    """Follow the edges of vertices first:last of all piles taken together; vertices found go to `out`.

    Returns (vertices in `out`, edges of those found).
    """
    edges = int64(0)
    before = 0
    for m in range(piles.shape[0]):
        for i in range(max(first - before, 0), min(last - before, sizes[m, 0])):
            u = int64(piles[m, i])
            for e in range(uint64(list_begins[u]), uint64(list_ends[u])):
                v = int64(targets[e])
                if levels[v] == UNSEEN and atomic_cas(levels, v, int32(UNSEEN), int32(level)) == UNSEEN:
                    out[count] = v
                    count += 1
                    edges += list_ends[v] - list_begins[v]
        before += sizes[m, 0]
    return count, edges


@kernel
def descend(
    member: Any,
    members: Any,
    gate: Any,
    piles: Any,
    sizes: Any,
    edges: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    levels: Any,
    level: Any,
    limit: Any,
    least_edges: Any,
    most_edges: Any,
    counted: Any,
) -> Any:
    """Search whole levels with all members while a level has between `least_edges` and `most_edges` edges.

    Each member puts the vertices it finds into its own pile, piles[level % 2, member], of sizes[level % 3, member, 0].
    If lists are short, each member takes the same part of the piles in every level, so that nearby vertices stay with
    one member. counted[k, :] = the vertices and edges of the k-th level; the last row gets (vertices now, levels done,
    edges now).
    """
    done = 0
    walked = int64(0)
    size = total(sizes[0])
    while (
        size > 0
        and least_edges <= edges <= most_edges
        and level <= limit
        and done < counted.shape[0] - 1
        and walked < MOST_WALKED
    ):
        now, then, turn = done % 3, (done + 1) % 3, done % 3 * LINE
        here, out = piles[done & 1], piles[done + 1 & 1, member]
        count, found = 0, int64(0)
        if edges <= SHORT * size:
            first, last = size * member // members, size * (member + 1) // members
            count, found = follow(
                first, last, here, sizes[now], list_begins, list_ends, targets, levels, level, out, count
            )
        else:
            while True:
                first = atomic_add(gate, HEAD + turn, TURN)
                if first >= size:
                    break
                last = min(first + TURN, size)
                count, more = follow(
                    first, last, here, sizes[now], list_begins, list_ends, targets, levels, level, out, count
                )
                found += more
        sizes[then, member, 0] = count
        atomic_add(gate, EDGES + turn, found)
        if not meet(gate, members, done + 1):
            return
        if member == 0:
            counted[done, 0], counted[done, 1] = size, edges
            before = (done + 2) % 3 * LINE
            gate[HEAD + before] = gate[EDGES + before] = 0
        walked += edges
        size, edges = total(sizes[then]), atomic_load(gate, EDGES + turn)
        level += 1
        done += 1
    if member == 0:
        counted[-1, 0], counted[-1, 1], counted[-1, 2] = size, done, edges


@inline
def total(sizes: Any) -> Any:
    count = int64(0)
    for m in range(sizes.shape[0]):
        count += sizes[m, 0]
    return count


@kernel
def bottom_up(
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    levels: Any,
    level: Any,
    front: Any,
    fresh: Any,
) -> Any:
    """Unseen vertices of first:last look for a neighbour in the frontier's bitmap; first is a multiple of 64.

    Returns how many found one.
    """
    found = 0
    for word in range(first >> 6, (last + 63) >> 6):
        bits = uint64(0)
        for v in range(word << 6, min((word + 1) << 6, last)):
            if levels[v] != UNSEEN:
                continue
            for e in range(uint64(list_begins[v]), uint64(list_ends[v])):  # unsigned: no check for negative indices
                u = uint64(targets[e])
                if front[u >> uint64(6)] >> (u & uint64(63)) & uint64(1):
                    levels[v] = level
                    bits |= uint64(1) << uint64(v & 63)
                    found += 1
                    break
        fresh[word] = bits
    return found


@kernel
def queue_to_bits(queue: Any, size: Any, front: Any) -> Any:
    front[:] = 0
    for i in range(size):
        v = uint64(queue[i])
        front[v >> uint64(6)] |= uint64(1) << (v & uint64(63))


@kernel
def bits_to_queue(front: Any, list_begins: Any, list_ends: Any, queue: Any) -> Any:
    """List the set bits in `queue`; returns (vertices, their edges)."""
    count = 0
    edges = int64(0)
    for word in range(front.size):
        bits = front[word]
        v = int64(word) << 6
        while bits:
            if bits & uint64(1):
                queue[count] = v
                count += 1
                edges += list_ends[v] - list_begins[v]
            bits >>= uint64(1)
            v += 1
    return count, edges


@kernel
def count_edges(queue: Any, size: Any, list_begins: Any, list_ends: Any) -> Any:
    edges = int64(0)
    for i in range(size):
        u = int64(queue[i])
        edges += list_ends[u] - list_begins[u]
    return edges


@kernel
def mean_weight(
    weights: Any, list_begins: Any, list_ends: Any, first: Any, last: Any, base: Any, step: Any, most: Any
) -> Any:
    """The mean absolute value of every step-th weight in the lists of first:last, at most `most`; weights[e - base] is
    that of edge e.
    """
    total = 0.0
    count = 0
    skip = int64(0)  # edges to skip before the next sample
    for u in range(first, last):
        e = list_begins[u] + skip
        while e < list_ends[u] and count < most:
            total += abs(float64(weights[e - base]))
            count += 1
            e += step
        if count == most:
            break
        skip = e - list_ends[u]
    return total / max(count, 1)


@kernel
def mean(weights: Any, step: Any) -> Any:
    """The mean of every step-th weight, if lists have no gaps."""
    total = 0.0
    count = 0
    for e in range(0, weights.size, step):
        total += weights[e]
        count += 1
    return total / max(count, 1)
