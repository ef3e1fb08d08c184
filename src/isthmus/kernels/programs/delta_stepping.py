"""Shortest paths over near edges: delta-stepping, all threads together (Meyer and Sanders 2003; Beamer's GAP Benchmark
Suite).

Distances are divided into buckets of width delta, which are emptied in order. Each member (thread) has its own buckets:
a ring of RING buckets from the current one on, and one for all later ones. A bucket is a chain of chunks of vertices.
To empty the current bucket, each member puts the chunks of its own bucket into its table. It takes chunks first from
its own table, so that nearby vertices stay with one member, then from the tables of others. New vertices for the
current bucket it processes itself while they are few, without waiting for the others (Zhang et al. 2020).

A vertex is entered into a bucket each time its distance falls into that bucket. A member skips a vertex that is settled
or was already relaxed at its present distance. Two members may relax the same vertex at once, which does no harm. When
chunks run out, `requeue` enters every unsettled vertex once into its bucket and drops all other entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, types, uint64
from numba.extending import overload

from isthmus.kernels.compile.atomics import atomic_add, atomic_load, atomic_min, prefetch
from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.barrier import FREE, LINE, meet

CHUNK = 128  # vertices
RING = 1 << 10
NONE = np.int64(1) << 62  # no bucket
LITTLE = 8  # chunks of new vertices that a member processes alone
AHEAD = 16  # edges; the distance of the target this many edges ahead is prefetched
SOON = 4  # vertices; the edges of the vertex this many ahead are prefetched
MOST_EDGES, MOST_ROUNDS = 1 << 23, 1 << 14  # of a member, after which all return, so that an interrupt is noticed

# Words of the gate. NEXT has three, used in turn by rounds: one is cleared while members may still read the other two.
NEXT, STOP, USED, LOST, BEYOND = (FREE + LINE * line for line in (0, 3, 4, 5, 6))
LINES = 7
# Words that each member has for itself
FREED, LEAST, ROUNDS, VERTICES, EDGES = range(5)
OWN = LINE


@inline
def bucket_of(distance: Any, per: Any) -> Any:
    """The bucket of a distance, with `per` buckets per unit; monotone in the distance."""
    return int64(min(distance * per, 4e18))


@inline
def wide(distance: Any) -> Any:
    """A distance for arithmetic: narrow integers become 64 bits."""
    return distance + int64(0)


def too_far(distance: Any, weight: Any, cutoff: Any) -> Any:
    """Whether a path is longer than the cutoff. Integers are compared before they are added, since a sum could
    overflow; reals are compared after, since a difference may be rounded where the sum is not.
    """
    raise NotImplementedError("compiled")


@overload(too_far, strict=False)  # not strict: the lambdas have no annotations
def too_far_compiled(distance: Any, weight: Any, cutoff: Any) -> Any:
    if isinstance(distance, types.Float):
        return lambda distance, weight, cutoff: distance + weight > cutoff
    return lambda distance, weight, cutoff: weight > cutoff - distance


@inline
def push(v: Any, slot: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any) -> Any:
    """Put v into the bucket at `slot`."""
    at = fills[slot]
    if at == CHUNK:
        chunk = own[FREED]
        if chunk >= 0:
            own[FREED] = links[chunk]
        else:
            chunk = atomic_add(gate, USED, 1)
            if chunk >= links.size:
                gate[LOST] = 1
                return
        links[chunk] = heads[slot]
        heads[slot] = chunk
        at = 0
    items[heads[slot] * CHUNK + at] = v
    fills[slot] = at + 1


@inline
def push_far(v: Any, bucket: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any) -> Any:
    push(v, RING, items, links, heads, fills, own, gate)
    own[LEAST] = min(own[LEAST], bucket)


@inline
def relax(
    chunk: Any,
    count: Any,
    current: Any,
    per: Any,
    cutoff: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    distances: Any,
    relaxed: Any,
    items: Any,
    links: Any,
    heads: Any,
    fills: Any,
    own: Any,
    gate: Any,
) -> Any:
    """Follow the edges of a chunk's unsettled vertices, and free the chunk; returns the number of edges."""
    edges = int64(0)
    beyond = False
    first = chunk * CHUNK
    last = first + count
    for i in range(first, last):
        if i + 2 * SOON < last:
            v = int64(items[i + 2 * SOON])
            prefetch(distances, v)
            prefetch(relaxed, v)
            prefetch(list_begins, v)  # without gaps, the list's end is the next word
        if i + SOON < last:
            at = list_begins[int64(items[i + SOON])]
            prefetch(targets, at)
            if weights is not None:
                prefetch(weights, at)
        u = int64(items[i])
        du = wide(distances[u])
        if bucket_of(du, per) != current or wide(relaxed[u]) == du:
            continue
        relaxed[u] = du
        begin, end = uint64(list_begins[u]), uint64(list_ends[u])  # unsigned: no check for negative indices
        edges += int64(end - begin)
        for e in range(begin, end):
            if e + uint64(AHEAD) < end:
                prefetch(distances, int64(targets[e + uint64(AHEAD)]))
            v = int64(targets[e])
            w = weights[e] if weights is not None else 1
            if too_far(du, w, cutoff):
                beyond = True
                continue
            new = du + w
            if new < distances[v] and new < atomic_min(distances, v, new):
                bucket = bucket_of(new, per)
                if bucket < current + RING:
                    push(v, bucket & (RING - 1), items, links, heads, fills, own, gate)
                else:
                    push_far(v, bucket, items, links, heads, fills, own, gate)
    if beyond:
        gate[BEYOND] = 1
    own[VERTICES] += count
    links[chunk] = own[FREED]
    own[FREED] = chunk
    return edges


@inline
def come_near(
    current: Any, per: Any, distances: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any
) -> Any:
    """Sort the bucket of all later vertices: move those that now fall into the ring there, and drop settled ones."""
    chunk, count = heads[RING], fills[RING]
    heads[RING], fills[RING], own[LEAST] = -1, CHUNK, NONE
    while chunk >= 0:
        for i in range(chunk * CHUNK, chunk * CHUNK + count):
            v = int64(items[i])
            bucket = bucket_of(wide(distances[v]), per)
            if bucket >= current + RING:
                push_far(v, bucket, items, links, heads, fills, own, gate)
            elif bucket >= current:
                push(v, bucket & (RING - 1), items, links, heads, fills, own, gate)
        after = links[chunk]
        links[chunk] = own[FREED]
        own[FREED] = chunk
        chunk, count = after, CHUNK


@inline
def take_back(
    current: Any,
    at: Any,
    table: Any,
    laid: Any,
    taken: Any,
    items: Any,
    links: Any,
    heads: Any,
    fills: Any,
    own: Any,
    gate: Any,
) -> Any:
    """Put the chunks left in a member's table back into its current bucket."""
    slot = current & (RING - 1)
    for turn in range(taken[at], laid[at]):
        chunk, count = table[turn] // (CHUNK + 1), table[turn] % (CHUNK + 1)
        if count == CHUNK:  # after the first chunk, the only one that may have room
            if heads[slot] < 0:
                heads[slot], links[chunk] = chunk, -1
            else:
                links[chunk] = links[heads[slot]]
                links[heads[slot]] = chunk
            continue
        for i in range(chunk * CHUNK, chunk * CHUNK + count):
            push(items[i], slot, items, links, heads, fills, own, gate)
        links[chunk] = own[FREED]
        own[FREED] = chunk


@inline
def first_bucket(current: Any, heads: Any, own: Any) -> Any:
    """The first non-empty bucket from the current one on."""
    last = min(own[LEAST], current + RING)
    for bucket in range(current, last):
        if heads[bucket & (RING - 1)] >= 0:
            return bucket
    return own[LEAST]


@kernel
def relax_all(
    member: Any,
    members: Any,
    gate: Any,
    current: Any,
    per: Any,
    cutoff: Any,
    until: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    distances: Any,
    relaxed: Any,
    items: Any,
    links: Any,
    tables: Any,
    laid: Any,
    taken: Any,
    all_heads: Any,
    all_fills: Any,
    owns: Any,
) -> Any:
    """Empty buckets from the current one on until none is left, vertex `until` is settled, chunks run out, or it is
    time to return.

    Returns the current bucket; NONE: nothing is left. `until` = -1: settle all vertices.
    """
    heads, fills, own = all_heads[member], all_fills[member], owns[member]
    edges = int64(0)
    times = 0
    while True:
        now, turn = times % 3 * LINE, times % 3 * members
        # Find the first bucket of each member and of all; put its chunks into the tables.
        atomic_min(gate, NEXT + now, first_bucket(current, heads, own))
        if not meet(gate, members, 2 * times + 1):
            return NONE
        # Check STOP and not LOST: a fast member may set LOST in `come_near` before a slow one checks, and only some
        # would return.
        if atomic_load(gate, STOP) != 0 or times == MOST_ROUNDS:
            if times:
                before = ((times - 1) % 3 * members + member) * LINE
                take_back(current, before, tables[member], laid, taken, items, links, heads, fills, own, gate)
            own[EDGES] += edges
            return current
        current = atomic_load(gate, NEXT + now)
        # no member changes distances between two meetings.
        if until >= 0 and bucket_of(wide(distances[until]), per) < current:
            current = NONE
        if current == NONE:
            own[EDGES] += edges
            return NONE
        if own[LEAST] <= current:
            come_near(current, per, distances, items, links, heads, fills, own, gate)
        slot = current & (RING - 1)
        chunk, count = heads[slot], fills[slot]
        at = 0
        while chunk >= 0:
            tables[member, at] = chunk * (CHUNK + 1) + count
            at += 1
            chunk, count = links[chunk], CHUNK
        laid[(turn + member) * LINE] = at
        heads[slot], fills[slot] = -1, CHUNK
        taken[((times + 2) % 3 * members + member) * LINE] = 0
        if member == 0:
            gate[NEXT + (times + 2) % 3 * LINE] = NONE
            own[ROUNDS] += 1
        if not meet(gate, members, 2 * times + 2):
            return NONE
        for other in range(members):
            whose = (member + other) % members
            at = (turn + whose) * LINE
            while edges <= MOST_EDGES and atomic_load(gate, STOP) == 0 and atomic_load(taken, at) < laid[at]:
                place = atomic_add(taken, at, 1)
                if place >= laid[at]:
                    break
                chunk, count = tables[whose, place] // (CHUNK + 1), tables[whose, place] % (CHUNK + 1)
                edges += relax(
                    chunk,
                    count,
                    current,
                    per,
                    cutoff,
                    list_begins,
                    list_ends,
                    targets,
                    weights,
                    distances,
                    relaxed,
                    items,
                    links,
                    heads,
                    fills,
                    own,
                    gate,
                )
        for _ in range(LITTLE):
            chunk, count = heads[slot], fills[slot]
            if chunk < 0:
                break
            heads[slot], fills[slot] = links[chunk], CHUNK
            edges += relax(
                chunk,
                count,
                current,
                per,
                cutoff,
                list_begins,
                list_ends,
                targets,
                weights,
                distances,
                relaxed,
                items,
                links,
                heads,
                fills,
                own,
                gate,
            )
        if edges > MOST_EDGES or atomic_load(gate, LOST) != 0:
            gate[STOP] = 1
        times += 1


@kernel
def requeue(
    current: Any,
    per: Any,
    none: Any,
    distances: Any,
    items: Any,
    links: Any,
    all_heads: Any,
    all_fills: Any,
    owns: Any,
    gate: Any,
) -> Any:
    """Empty all buckets, then enter every reached and unsettled vertex into a bucket of member 0."""
    all_heads[:] = -1
    all_fills[:] = CHUNK
    owns[:, FREED], owns[:, LEAST] = -1, NONE
    gate[USED] = gate[LOST] = 0
    heads, fills, own = all_heads[0], all_fills[0], owns[0]
    for v in range(distances.size):
        if distances[v] == none:
            continue
        bucket = bucket_of(wide(distances[v]), per)
        if bucket >= current + RING:
            push_far(v, bucket, items, links, heads, fills, own, gate)
        elif bucket >= current:
            push(v, bucket & (RING - 1), items, links, heads, fills, own, gate)
