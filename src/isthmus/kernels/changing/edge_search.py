"""Finding edges in lists that are not sorted: the loops by which a batch learns which of its edges exist, and where.

The distinct edges of a batch are sorted by tail and then head. Their arcs on one side of a graph are sorted by vertex,
the arcs of one vertex are a group, and a list is read once for all of its group. An edge that is only inserted is
looked for in the shorter of its two lists; one that may be deleted or reweighed in both, since both of its arcs must be
found to be changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8, uint64

from isthmus.kernels.changing.packed_array import DELETE, INSERT, NOTHING, REWEIGH
from isthmus.kernels.compile.atomics import prefetch
from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.store.arc_keys import radix_sort

STEP, SHORT_STEP = 64, 16  # entries compared at once
FEW = 16  # edges looked for in a list one by one; more, by a bitmap in one pass over the list
FAR, NEAR = 16, 4  # edges or lists ahead: prefetch where a list lies, then the list
AHEAD, LINE = 128, 16  # entries of a list that are prefetched, by lines of 64 bytes; the processor goes on by itself


@inline
def matching(targets: Any, e: Any, stop: Any, wanted: Any, hit: Any) -> Any:
    """The entry of a step from e on that matches: number `hit`, or the first one if a list has an entry twice, as only
    a forged one has.
    """
    at = e + hit - uint64(1)
    if at >= stop or targets[at] != wanted:
        at = e
        while targets[at] != wanted:
            at += uint64(1)
    return int64(at)


@inline
def position(targets: Any, begin: Any, end: Any, wanted: Any) -> Any:
    """Where targets[begin:end] has `wanted`, or -1.

    Each step adds up the numbers, from 1 on, of the entries that match, which is one at most in the lists of a sound
    store. Positions are unsigned, or the loops would not become vector instructions. The last step looks beyond the
    list, at entries that do not count.
    """
    e, stop = uint64(begin), uint64(end)
    kind = targets.dtype.type
    while e + uint64(STEP) <= stop:
        hit = kind(0)
        for k in range(uint64(STEP)):
            hit += kind(k + uint64(1)) if targets[e + k] == wanted else kind(0)
        if hit:
            return matching(targets, e, stop, wanted, uint64(hit))
        e += uint64(STEP)
    while e < stop and e + uint64(SHORT_STEP) <= uint64(targets.size):
        hit, left = kind(0), kind(min(stop - e, uint64(SHORT_STEP)))
        for k in range(uint64(SHORT_STEP)):
            hit += kind(k + uint64(1)) if (targets[e + k] == wanted) & (kind(k) < left) else kind(0)
        if hit:
            return matching(targets, e, stop, wanted, uint64(hit))
        e += uint64(SHORT_STEP)
    while e < stop:
        if targets[e] == wanted:
            return int64(e)
        e += uint64(1)
    return int64(-1)


@kernel
def find_edges(
    sources: Any,
    heads: Any,
    first: Any,
    last: Any,
    vertices: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    in_begins: Any,
    in_ends: Any,
    in_targets: Any,
    exists: Any,
) -> None:
    """Whether each edge sources[i] -> heads[i] exists, in any order, looked for in the shorter of its two lists."""
    for i in range(first, last):
        if i + FAR < last:
            a, b = min(int64(sources[i + FAR]), vertices), min(int64(heads[i + FAR]), vertices)
            prefetch(begins, a)
            prefetch(ends, a)
            prefetch(in_begins, b)
            prefetch(in_ends, b)
        if i + NEAR < last:
            a, b = int64(sources[i + NEAR]), int64(heads[i + NEAR])
            if a < vertices and b < vertices:
                if ends[a] - begins[a] <= in_ends[b] - in_begins[b]:
                    prefetch(targets, begins[a])
                else:
                    prefetch(in_targets, in_begins[b])
        u, v = int64(sources[i]), int64(heads[i])
        exists[i] = uint8(0)
        if u >= vertices or v >= vertices:
            continue
        if ends[u] - begins[u] <= in_ends[v] - in_begins[v]:
            exists[i] = uint8(position(targets, begins[u], ends[u], heads[i]) >= 0)
        else:
            exists[i] = uint8(position(in_targets, in_begins[v], in_ends[v], sources[i]) >= 0)


@kernel
def group_rows(order: Any, us: Any, vs: Any, wishes: Any, tails: Any, heads: Any, cuts: Any, once: Any) -> Any:
    """The distinct edges of a batch whose rows are sorted by `order`; returns their number.

    Edge g has the rows order[cuts[g]:cuts[g + 1]]; once[g] is 1 if all of them are inserts.
    """
    count, u, v = -1, us[0], vs[0]
    for i in range(order.size):
        row = int64(order[i])
        if count < 0 or us[row] != u or vs[row] != v:
            count += 1
            u, v = us[row], vs[row]
            tails[count], heads[count] = u, v
            cuts[count], once[count] = i, uint8(1)
        once[count] &= uint8(wishes[row] == INSERT)
    cuts[count + 1] = order.size
    return count + 1


@kernel
def sort_arcs(
    tails: Any,
    heads: Any,
    forward: Any,
    backward: Any,
    low: Any,
    high: Any,
    keys: Any,
    spare: Any,
    spare_ends: Any,
    vertices: Any,
    others: Any,
    ends: Any,
) -> None:
    """The arcs of sorted edges at vertices low:high, sorted by vertex and other end: at the tails (`forward`), the
    heads, or both.

    An edge has two ends, 2 * e at its head and 2 * e + 1 at its tail; `ends` gets that of each arc. With both, no tail
    exceeds its head, so the backward arcs of a vertex come first, and a self loop has a single arc. The arrays from
    `keys` on have exactly the size that is needed; `keys`, `spare` and `spare_ends` are scratch.
    """
    count = 0
    if backward:
        for e in range(heads.size):
            v = int64(heads[e])
            if low <= v < high and not (forward and tails[e] == heads[e]):
                keys[count], ends[count] = uint64(v), 2 * e
                count += 1
    if forward:
        for e in range(tails.size):
            u = int64(tails[e])
            if low <= u < high:
                keys[count], ends[count] = uint64(u), 2 * e + 1
                count += 1
    radix_sort(keys, ends, spare, spare_ends)
    for i in range(count):
        tail, head = tails[ends[i] >> 1], heads[ends[i] >> 1]
        vertices[i], others[i] = (tail, head) if ends[i] & 1 else (head, tail)


@kernel
def measure(vertices: Any, edge_ends: Any, begins: Any, ends: Any, known: Any, lengths: Any) -> None:
    """The length of the list at each end of an edge. Vertices from `known` on have no list yet."""
    for i in range(vertices.size):
        if i + FAR < vertices.size:
            a = min(int64(vertices[i + FAR]), known)
            prefetch(begins, a)
            prefetch(ends, a)
        u = int64(vertices[i])
        lengths[edge_ends[i]] = ends[u] - begins[u] if u < known else 0


@inline
def choose_sought(
    first: Any, last: Any, vertices: Any, edge_ends: Any, lengths: Any, once: Any, sought: Any, cuts: Any
) -> Any:
    """Which of the arcs first:last are looked for, and where those of each vertex begin among them; returns the number
    of groups.

    They are all arcs, except where an edge has an empty list and so cannot exist, or is looked for `once` and has a
    shorter list.
    """
    count, groups, before = 0, 0, int64(-1)
    for i in range(first, last):
        end = edge_ends[i]
        own, other = lengths[end], lengths[end ^ 1]
        u = int64(vertices[i])
        sought[count], cuts[groups] = i, count
        wanted = (own > 0) & (other > 0) & ((once[end >> 1] == 0) | (own <= other))
        groups += wanted & (u != before)
        before = u if wanted else before
        count += wanted
    cuts[groups] = count
    return groups


@inline
def find_many(
    sought: Any, low: Any, high: Any, others: Any, begin: Any, end: Any, targets: Any, bits: Any, places: Any
) -> None:
    for j in range(low, high):
        v = int64(others[sought[j]])
        bits[v >> 6] |= uint64(1) << uint64(v & 63)
    for e in range(uint64(begin), uint64(end)):
        v = uint64(targets[e])
        if not bits[v >> uint64(6)] >> (v & uint64(63)) & uint64(1):
            continue
        a, b = low, high  # the arc to v among the sorted ones
        while b - a > 1:
            middle = (a + b) // 2
            if uint64(others[sought[middle]]) <= v:
                a = middle
            else:
                b = middle
        places[sought[a]] = int64(e)
    for j in range(low, high):
        bits[int64(others[sought[j]]) >> 6] = uint64(0)


@kernel
def find_arcs(
    first: Any,
    last: Any,
    vertices: Any,
    others: Any,
    edge_ends: Any,
    lengths: Any,
    once: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    bits: Any,
    places: Any,
    exists: Any,
    old: Any,
) -> None:
    """Look for arcs of first:last, which are all arcs of some vertices: the slots of those found, whether their edges
    exist, and weights.

    `bits` has a bit for every vertex that may occur, all 0 before and after.
    """
    sought, cuts = np.empty(last - first, np.int64), np.empty(last - first + 1, np.int64)
    groups = choose_sought(first, last, vertices, edge_ends, lengths, once, sought, cuts)
    for g in range(groups):
        if g + NEAR < groups:
            a = int64(vertices[sought[cuts[g + NEAR]]])
            for e in range(begins[a], min(ends[a], begins[a] + AHEAD), LINE):
                prefetch(targets, e)
        low, high = cuts[g], cuts[g + 1]
        u = int64(vertices[sought[low]])
        if high - low > FEW:
            find_many(sought, low, high, others, begins[u], ends[u], targets, bits, places)
            continue
        for j in range(low, high):
            i = sought[j]
            places[i] = position(targets, begins[u], ends[u], others[i])
    read_weights(sought[: cuts[groups]], edge_ends, weights, places, exists, old)


@inline
def read_weights(sought: Any, edge_ends: Any, weights: Any, places: Any, exists: Any, old: Any) -> None:
    for j in range(sought.size):
        if weights.size and j + FAR < sought.size and places[sought[j + FAR]] >= 0:
            prefetch(weights, places[sought[j + FAR]])
        place, e = places[sought[j]], edge_ends[sought[j]] >> 1
        if place >= 0 and exists[e] == 0:  # otherwise the weight was read from the other arc
            exists[e] = uint8(1)
            if weights.size:
                old[e] = weights[place]


@kernel
def fold(
    first: Any,
    last: Any,
    order: Any,
    cuts: Any,
    wishes: Any,
    weights: Any,
    exists: Any,
    old: Any,
    actions: Any,
    final: Any,
    odd: Any,
) -> Any:
    """What a batch does to each of the edges first:last in the end: its wishes, in order of arrival, one after the
    other.

    Edge g has the wishes order[cuts[g]:cuts[g + 1]]. A wish is INSERT (an edge that exists gets the new weight),
    DELETE, or REWEIGH. `final` gets the new weight, or that of a deleted edge. Returns (inserts of existing edges,
    deletes and new weights of missing ones); `odd` gets the first row of each kind.
    """
    repeated, missing = int64(0), int64(0)
    for g in range(first, last):
        there = exists[g] != 0
        before = there
        weight = old[g] if old.size else 0
        for i in range(cuts[g], cuts[g + 1]):
            row = int64(order[i])
            wish = wishes[row]
            if wish == INSERT:
                if there:
                    repeated += 1
                    odd[0] = min(odd[0], row)
                there = True
                if weights.size:
                    weight = weights[row]
            elif not there:
                missing += 1
                odd[1] = min(odd[1], row)
            elif wish == DELETE:
                there = False
            elif weights.size:
                weight = weights[row]
        actions[g] = uint8(NOTHING)
        if there and not before:
            actions[g] = uint8(INSERT)
        elif before and not there:
            actions[g] = uint8(DELETE)
        elif before and old.size and weight != old[g]:
            actions[g] = uint8(REWEIGH)
        if final.size:
            final[g] = old[g] if actions[g] == DELETE else weight
    return repeated, missing


@kernel
def keep_changes(
    vertices: Any,
    others: Any,
    ends: Any,
    places: Any,
    actions: Any,
    final: Any,
    old: Any,
    new_vertices: Any,
    new_others: Any,
    new_actions: Any,
    new_places: Any,
    new_weights: Any,
    new_old: Any,
    cuts: Any,
) -> Any:
    """The arcs that change, with what their edges have; returns (arcs, groups), or (-1, 0) if one that should exist was
    not found.
    """
    at, groups, last, lost = 0, 0, int64(-1), False
    for i in range(ends.size):
        e = ends[i] >> 1
        action = actions[e]
        lost |= (action > INSERT) & (places[i] < 0)
        new_vertices[at], new_others[at], new_actions[at], new_places[at] = vertices[i], others[i], action, places[i]
        if final.size:
            new_weights[at], new_old[at] = final[e], old[e]
        if action != NOTHING:
            cuts[groups] = at
            groups += int64(vertices[i]) != last
            last = int64(vertices[i])
            at += 1
    cuts[groups] = at
    return (-1, 0) if lost else (at, groups)
