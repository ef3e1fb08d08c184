"""Traversals of edges that are all near: direction-optimising BFS, near-far shortest paths.

BFS after Beamer, Asanović, Patterson (2012): while the frontier is small, its edges are followed (top down); when
it holds a large part of the edges, the unvisited vertices look for a parent in it instead (bottom up) and stop at
the first. Shortest paths after Davidson et al. (2014), a delta-stepping with two piles: vertices nearer than a
bound are relaxed at once, the others wait until the bound moves.

Queues are shared; threads fill a small buffer of their own and reserve room for it with one atomic addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, int64, uint8, uint64

from isthmus.kernels.atomics import atomic_add, atomic_cas, atomic_exchange, atomic_min, prefetch
from isthmus.kernels.compile import inline, kernel

UNSEEN = np.iinfo(np.int32).max
BUFFER = 1024
AHEAD = 16  # edges whose heads are asked for in advance


@inline
def flush(buffer: Any, count: Any, queue: Any, tail: Any) -> Any:
    at = atomic_add(tail, 0, int64(count))
    for k in range(count):
        queue[at + k] = buffer[k]


@kernel
def top_down(queue: Any, first: Any, last: Any, offsets: Any, targets: Any, levels: Any, level: Any, out: Any, tail: Any) -> Any:
    """Follow the edges of queue[first:last]; returns the edges of the vertices found."""
    buffer = np.empty(BUFFER, np.uint32)
    count = 0
    edges = int64(0)
    for i in range(first, last):
        u = int64(queue[i])
        for e in range(offsets[u], offsets[u + 1]):
            v = int64(targets[e])
            if levels[v] == UNSEEN and atomic_cas(levels, v, int32(UNSEEN), int32(level)) == UNSEEN:
                if count == BUFFER:
                    flush(buffer, count, out, tail)
                    count = 0
                buffer[count] = v
                count += 1
                edges += offsets[v + 1] - offsets[v]
    flush(buffer, count, out, tail)
    return edges


@kernel
def top_down_alone(
    queue: Any, size: Any, offsets: Any, targets: Any, levels: Any, level: Any, limit: Any, out: Any, most_edges: Any
) -> Any:
    """Whole levels on one thread while they are small.

    Returns (vertices in the queue, whether they are in `out`, next level, edges of the queue, levels done, edges walked).
    """
    swapped = False
    done = 0
    walked = int64(0)
    a, b = queue, out
    edges = int64(0)
    for i in range(size):
        u = int64(a[i])
        edges += offsets[u + 1] - offsets[u]
    while size > 0 and edges <= most_edges and level <= limit and walked < 1 << 22:
        walked += edges
        count = 0
        edges = int64(0)
        for i in range(size):
            u = int64(a[i])
            for e in range(offsets[u], offsets[u + 1]):
                v = int64(targets[e])
                if levels[v] == UNSEEN:
                    levels[v] = level
                    b[count] = v
                    count += 1
                    edges += offsets[v + 1] - offsets[v]
        a, b = b, a
        swapped = not swapped
        size = count
        level += 1
        done += 1
    return size, swapped, level, edges, done, walked


@kernel
def bottom_up(first: Any, last: Any, offsets: Any, targets: Any, levels: Any, level: Any, front: Any, fresh: Any) -> Any:
    """Unseen vertices of first:last look for a neighbour in the frontier's bitmap; first is a multiple of 64.

    Returns how many found one.
    """
    found = 0
    for word in range(first >> 6, (last + 63) >> 6):
        bits = uint64(0)
        for v in range(word << 6, min((word + 1) << 6, last)):
            if levels[v] != UNSEEN:
                continue
            for e in range(offsets[v], offsets[v + 1]):
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
def bits_to_queue(front: Any, offsets: Any, queue: Any) -> Any:
    """(vertices, their edges)."""
    count = 0
    edges = int64(0)
    for word in range(front.size):
        bits = front[word]
        v = int64(word) << 6
        while bits:
            if bits & uint64(1):
                queue[count] = v
                count += 1
                edges += offsets[v + 1] - offsets[v]
            bits >>= uint64(1)
            v += 1
    return count, edges


@inline
def wide(distance: Any) -> Any:
    """A distance to calculate with: narrow whole numbers as 64 bits."""
    return distance + int64(0)


@kernel
def relax_near(
    queue: Any, first: Any, last: Any, offsets: Any, targets: Any, weights: Any, distances: Any, bound: Any, cutoff: Any,
    near: Any, near_tail: Any, near_marks: Any, far: Any, far_tail: Any, far_marks: Any, beyond: Any,
) -> Any:  # fmt: skip
    """Relax the edges of queue[first:last]; improved vertices go to the near or the far pile, each once.

    `beyond` is set where a path is longer than `cutoff`.
    """
    near_buffer, far_buffer = np.empty(BUFFER, np.uint32), np.empty(BUFFER, np.uint32)
    near_count = far_count = 0
    for i in range(first, last):
        u = int64(queue[i])
        # Taken off before the distance is read, and not overtaken by that read: an improvement from now on queues it again.
        atomic_exchange(near_marks, u, uint8(0))
        du = wide(distances[u])
        end = offsets[u + 1]
        for e in range(offsets[u], end):
            if e + AHEAD < end:
                prefetch(distances, int64(targets[e + AHEAD]))
            v = int64(targets[e])
            w = weights[e] if weights is not None else 1
            if w > cutoff - du:  # before it is added: a sum must not wrap
                beyond[0] = 1
                continue
            new = du + w
            if new < distances[v] and new < atomic_min(distances, v, new):
                if new < bound:
                    if near_marks[v] == 0 and atomic_exchange(near_marks, v, uint8(1)) == 0:
                        if near_count == BUFFER:
                            flush(near_buffer, near_count, near, near_tail)
                            near_count = 0
                        near_buffer[near_count] = v
                        near_count += 1
                elif far_marks[v] == 0 and atomic_exchange(far_marks, v, uint8(1)) == 0:
                    if far_count == BUFFER:
                        flush(far_buffer, far_count, far, far_tail)
                        far_count = 0
                    far_buffer[far_count] = v
                    far_count += 1
    flush(near_buffer, near_count, near, near_tail)
    flush(far_buffer, far_count, far, far_tail)


@kernel
def split_far(far: Any, size: Any, distances: Any, done: Any, bound: Any, near: Any, near_marks: Any, far_marks: Any) -> Any:
    """Move the far pile's vertices below `bound` to the near pile; those settled below `done` go away.

    Returns (near, far left).
    """
    count = left = 0
    for i in range(size):
        v = int64(far[i])
        if distances[v] < bound:
            far_marks[v] = 0
            if distances[v] >= done and near_marks[v] == 0:
                near_marks[v] = 1
                near[count] = v
                count += 1
        else:
            far[left] = v
            left += 1
    return count, left


@kernel
def smallest(far: Any, size: Any, distances: Any) -> Any:
    best = distances[int64(far[0])]
    for i in range(1, size):
        best = min(best, distances[int64(far[i])])
    return best


@inline
def next_bound(bound: Any, nearest: Any, delta: Any) -> Any:
    """A bound above the nearest waiting distance, however large and however badly it rounds."""
    return np.nextafter(max(bound, np.float64(nearest)) + delta, np.inf)


@kernel
def count_edges(queue: Any, size: Any, offsets: Any) -> Any:
    edges = int64(0)
    for i in range(size):
        u = int64(queue[i])
        edges += offsets[u + 1] - offsets[u]
    return edges




@kernel
def relax_alone(
    queue: Any, size: Any, offsets: Any, targets: Any, weights: Any, distances: Any, done: Any, bound: Any, delta: Any, cutoff: Any,
    near: Any, near_marks: Any, far: Any, far_size: Any, far_marks: Any, beyond: Any, most_edges: Any,
) -> Any:  # fmt: skip
    """Whole rounds on one thread while the near pile is small, moving the bound on when it is empty.

    Returns (near pile, whether it is in `near`, far pile, done, bound, rounds, edges walked).
    """
    a, b = queue, near
    swapped = False
    rounds = 0
    walked = int64(0)
    edges = count_edges(a, size, offsets)
    while edges <= most_edges and walked < 1 << 22:
        if size == 0:
            if far_size == 0:
                break
            done = bound
            bound = next_bound(bound, smallest(far, far_size, distances), delta)
            size, far_size = split_far(far, far_size, distances, done, bound, a, near_marks, far_marks)
            edges = count_edges(a, size, offsets)
            rounds += 1
            walked += far_size + size
            continue
        walked += edges
        count = 0
        edges = int64(0)
        for i in range(size):
            u = int64(a[i])
            near_marks[u] = 0
            du = wide(distances[u])
            for e in range(offsets[u], offsets[u + 1]):
                v = int64(targets[e])
                w = weights[e] if weights is not None else 1
                if w > cutoff - du:
                    beyond[0] = 1
                    continue
                new = du + w
                if new < distances[v]:
                    distances[v] = new
                    if new < bound:
                        if near_marks[v] == 0:
                            near_marks[v] = 1
                            b[count] = v
                            count += 1
                            edges += offsets[v + 1] - offsets[v]
                    elif far_marks[v] == 0:
                        far_marks[v] = 1
                        far[far_size] = v
                        far_size += 1
        a, b = b, a
        swapped = not swapped
        size = count
        rounds += 1
    return size, swapped, far_size, done, bound, rounds, walked


@kernel
def mean(weights: Any, step: Any) -> Any:
    total = 0.0
    count = 0
    for e in range(0, weights.size, step):
        total += weights[e]
        count += 1
    return total / max(count, 1)
