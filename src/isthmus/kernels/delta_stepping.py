"""Shortest paths over near edges: delta-stepping, all threads together (Meyer and Sanders 2003; Beamer's GAP Benchmark Suite).

Distances fall into buckets of width delta, which are emptied in order. Each member has buckets of its own: a ring of RING of them
from the current one on, and one for all beyond. A bucket is a chain of chunks of vertices. To empty the current bucket, members
lay the chunks of theirs on their tables, take first from their own, so that what is close together stays with one, and then from
others'; what they find for the same bucket again they work on themselves as long as it is little, without meeting the others
(Zhang et al. 2020).

A vertex stands in a bucket as often as its distance fell into it. Whoever finds it settled since, or relaxed at this very
distance (which two members may do at once, to no harm), leaves it; when chunks run out, `requeue` puts every vertex that is
not settled where it belongs, once, and the rest goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, types, uint64
from numba.extending import overload

from isthmus.kernels.atomics import atomic_add, atomic_load, atomic_min, prefetch
from isthmus.kernels.compile import inline, kernel
from isthmus.kernels.gang import FREE, LINE, meet

CHUNK = 128  # vertices
RING = 1 << 10
NONE = np.int64(1) << 62  # a bucket there is not
LITTLE = 8  # chunks that a member works on without the others
AHEAD = 16  # edges whose heads are asked for in advance
SOON = 4  # vertices whose edges are
MOST_EDGES, MOST_ROUNDS = 1 << 23, 1 << 14  # of a member, after which all come back, so that an interrupt is heard

# Words of the gate: three of NEXT for rounds in turn, as one is cleared while others look at two.
NEXT, STOP, USED, LOST, BEYOND = (FREE + LINE * line for line in (0, 3, 4, 5, 6))
LINES = 7
# Words of a member's own
FREED, LEAST, ROUNDS, VERTICES, EDGES = range(5)
OWN = LINE


@inline
def bucket_of(distance: Any, per: Any) -> Any:
    """The bucket of a distance, `per` of them to a unit; never less for a larger distance."""
    return int64(min(distance * per, 4e18))


@inline
def wide(distance: Any) -> Any:
    """A distance to calculate with: narrow whole numbers as 64 bits."""
    return distance + int64(0)


def too_far(distance: Any, weight: Any, cutoff: Any) -> Any:
    """Whether a path is longer than the cutoff. Whole numbers are compared before they are added, for a sum must not wrap; others
    after, for a difference may round where the sum does not.
    """
    raise NotImplementedError("compiled")


@overload(too_far, strict=False)  # whose annotations need not be those of lambdas
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
    chunk: Any, count: Any, current: Any, per: Any, cutoff: Any, list_begins: Any, list_ends: Any, targets: Any, weights: Any,
    distances: Any, relaxed: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any,
) -> Any:  # fmt: skip
    """Follow the edges of a chunk's vertices that are not settled, and free the chunk; returns how many edges."""
    edges = int64(0)
    beyond = False
    first = chunk * CHUNK
    last = first + count
    for i in range(first, last):
        if i + 2 * SOON < last:
            v = int64(items[i + 2 * SOON])
            prefetch(distances, v)
            prefetch(relaxed, v)
            prefetch(list_begins, v)  # where lists have no gaps the end is the next word
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
        begin, end = uint64(list_begins[u]), uint64(list_ends[u])  # unsigned: no look at whether an index counts from the end
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
def come_near(current: Any, per: Any, distances: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any) -> Any:
    """Look through the bucket of all beyond the ring: into the ring with what it reaches now, away with what is settled."""
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
    current: Any, at: Any, table: Any, laid: Any, taken: Any, items: Any, links: Any, heads: Any, fills: Any, own: Any, gate: Any
) -> Any:
    """Chunks that nobody took from a member's table, back into its current bucket."""
    slot = current & (RING - 1)
    for turn in range(taken[at], laid[at]):
        chunk, count = table[turn] // (CHUNK + 1), table[turn] % (CHUNK + 1)
        if count == CHUNK:  # behind the first, which alone may have room
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
    """The first bucket that has something, from the current one on."""
    last = min(own[LEAST], current + RING)
    for bucket in range(current, last):
        if heads[bucket & (RING - 1)] >= 0:
            return bucket
    return own[LEAST]


@kernel
def relax_all(
    member: Any, members: Any, gate: Any, current: Any, per: Any, cutoff: Any, list_begins: Any, list_ends: Any, targets: Any,
    weights: Any, distances: Any, relaxed: Any, items: Any, links: Any, tables: Any, laid: Any, taken: Any, all_heads: Any,
    all_fills: Any, owns: Any,
) -> Any:  # fmt: skip
    """Empty buckets from the current one on until none is left, chunks ran out, or it is time to come back.

    Returns the current bucket; NONE: nothing is left.
    """
    heads, fills, own = all_heads[member], all_fills[member], owns[member]
    edges = int64(0)
    times = 0
    while True:
        now, turn = times % 3 * LINE, times % 3 * members
        # Every member's first bucket, the first of all, and its chunks on the table
        atomic_min(gate, NEXT + now, first_bucket(current, heads, own))
        if not meet(gate, members, 2 * times + 1):
            return NONE
        # Only what was settled before this meeting: chunks may run out before the next one, when some have not looked yet.
        if atomic_load(gate, STOP) != 0 or times == MOST_ROUNDS:
            if times:
                before = ((times - 1) % 3 * members + member) * LINE
                take_back(current, before, tables[member], laid, taken, items, links, heads, fills, own, gate)
            own[EDGES] += edges
            return current
        current = atomic_load(gate, NEXT + now)
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
                    chunk, count, current, per, cutoff, list_begins, list_ends, targets, weights, distances, relaxed, items, links,
                    heads, fills, own, gate,
                )  # fmt: skip
        for _ in range(LITTLE):
            chunk, count = heads[slot], fills[slot]
            if chunk < 0:
                break
            heads[slot], fills[slot] = links[chunk], CHUNK
            edges += relax(
                chunk, count, current, per, cutoff, list_begins, list_ends, targets, weights, distances, relaxed, items, links,
                heads, fills, own, gate,
            )  # fmt: skip
        if edges > MOST_EDGES or atomic_load(gate, LOST) != 0:
            gate[STOP] = 1
        times += 1


@kernel
def requeue(
    current: Any, per: Any, none: Any, distances: Any, items: Any, links: Any, all_heads: Any, all_fills: Any, owns: Any, gate: Any
) -> Any:
    """Every vertex with a distance that is not settled into a bucket of member 0, and nothing else into any."""
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
