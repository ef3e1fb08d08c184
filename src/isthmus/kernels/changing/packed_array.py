"""Lists that grow and shrink in place: the loops of a packed memory array.

The list of vertex v is targets[begins[v]:ends[v]]; its room ends at begins[v + 1], and begins[vertices] is the number
of slots. Edges of one vertex are changed by one thread, in any order of the list: a new edge goes to the tail, and the
last edge takes the place of a deleted one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile.atomics import prefetch
from isthmus.kernels.compile.kernel import inline, kernel

NOTHING, INSERT, DELETE, REWEIGH = 0, 1, 2, 3  # what happens to an edge
FAR, NEAR = 16, 4  # lists ahead: prefetch where a list lies, then the slots that will change
MOST = 8  # slots of a list that are prefetched
# of windows on Kronecker 20: 1,500 a batch of 100,000 changes with 0, 380 with 4, 160 with 8; more makes long lists run
# full.
SPREAD = 8


@inline
def take_out(
    low: Any, high: Any, actions: Any, places: Any, deletes: Any, end: Any, targets: Any, weights: Any, gone: Any
) -> Any:
    """Close the holes of deleted entries, which have the target `gone`, with entries of the tail; returns the new
    end.
    """
    kept = end - deletes
    tail = kept
    for i in range(low, high):
        hole = places[i]
        if actions[i] == DELETE and hole < kept:
            while targets[tail] == gone:
                tail += 1
            targets[hole] = targets[tail]
            if weights.size:
                weights[hole] = weights[tail]
            tail += 1
    return kept


@kernel
def change_lists(
    cuts: Any,
    first: Any,
    last: Any,
    sources: Any,
    others: Any,
    actions: Any,
    places: Any,
    fresh: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    needs: Any,
) -> Any:
    """Apply the changes of groups first:last; group g has the changes cuts[g]:cuts[g + 1] of one vertex.

    The edges to delete or reweigh are in the slots `places`. Where new edges do not fit, none is added, and needs[g]
    becomes the room that the list needs. Returns False if an edge is not in its place.
    """
    gone = ~targets.dtype.type(0)  # no vertex has this number
    for g in range(first, last):
        if g + FAR < last:
            a = int64(sources[cuts[g + FAR]])
            prefetch(begins, a)
            prefetch(ends, a)
        if g + NEAR < last:
            prefetch_places(cuts[g + NEAR], cuts[g + NEAR + 1], sources, places, ends, targets, weights)
        low, high = cuts[g], cuts[g + 1]
        u = int64(sources[low])
        inserts, deletes = 0, 0
        for i in range(low, high):
            if actions[i] == INSERT:
                inserts += 1
                continue
            at = places[i]
            if targets[at] != others[i]:
                return False
            if actions[i] == DELETE:
                deletes += 1
                targets[at] = gone
            else:
                weights[at] = fresh[i]
        if deletes:
            ends[u] = take_out(low, high, actions, places, deletes, ends[u], targets, weights, gone)
        needs[g] = 0
        if ends[u] + inserts > begins[u + 1]:
            needs[g] = ends[u] - begins[u] + inserts
        elif inserts:
            append(low, high, others, actions, fresh, u, ends, targets, weights)
    return True


@inline
def prefetch_places(low: Any, high: Any, sources: Any, places: Any, ends: Any, targets: Any, weights: Any) -> None:
    """Prefetch the slots that a group of changes will touch: the tail of its list, and the first of its places."""
    tail = ends[int64(sources[low])] - 1
    prefetch(targets, tail)
    if weights.size:
        prefetch(weights, tail)
    for i in range(low, min(high, low + MOST)):
        if places[i] >= 0:
            prefetch(targets, places[i])
            if weights.size:
                prefetch(weights, places[i])


@inline
def append(
    low: Any, high: Any, others: Any, actions: Any, fresh: Any, u: Any, ends: Any, targets: Any, weights: Any
) -> None:
    end = ends[u]
    for i in range(low, high):
        if actions[i] == INSERT:
            targets[end] = others[i]
            if weights.size:
                weights[end] = fresh[i]
            end += 1
    ends[u] = end


@kernel
def append_late(
    chosen: Any, cuts: Any, sources: Any, others: Any, actions: Any, fresh: Any, ends: Any, targets: Any, weights: Any
) -> None:
    """Add the new edges of groups that have room now."""
    for g in chosen:
        append(cuts[g], cuts[g + 1], others, actions, fresh, int64(sources[cuts[g]]), ends, targets, weights)


@inline
def aligned(size: Any, unit: Any) -> Any:
    return (size + unit - 1) // unit * unit


@inline
def wanted(u: Any, begins: Any, ends: Any, needs: Any) -> Any:
    """The room that vertex u must have."""
    return needs[u] if needs.size and needs[u] else ends[u] - begins[u]


@kernel
def choose_windows(
    crowded: Any,
    needs: Any,
    begins: Any,
    ends: Any,
    vertices: Any,
    unit: Any,
    leaf: Any,
    height: Any,
    loose: Any,
    tight: Any,
    windows: Any,
) -> Any:
    """Ranges of vertices to respread: for each crowded vertex the smallest window that is not too dense with what it
    needs.

    A window of height h has leaf * 2**h vertices; its density is the aligned room that its lists need over its slots.
    It may be `tight` in a leaf and `loose` at the root, and in between in proportion. `crowded` ascends. Returns how
    many windows there are, or -1 if even the root is too dense.
    """
    count = 0
    for i in range(crowded.size):
        u = int64(crowded[i])
        if count and u < windows[count - 1, 1]:
            continue
        first = u // leaf * leaf
        last = min(first + leaf, vertices)
        need = int64(0)
        for v in range(first, last):
            need += aligned(wanted(v, begins, ends, needs), unit)
        h = 0
        while True:
            bound = tight + (loose - tight) * h / max(height, 1)
            if need <= bound * (begins[last] - begins[first]):
                break
            if h >= height:
                return -1
            h += 1
            size = leaf << h
            low = u // size * size
            high = min(low + size, vertices)
            for v in range(low, first):
                need += aligned(wanted(v, begins, ends, needs), unit)
            for v in range(last, high):
                need += aligned(wanted(v, begins, ends, needs), unit)
            first, last = low, high
        while count and windows[count - 1, 0] >= first:
            count -= 1
        windows[count, 0], windows[count, 1] = first, last
        count += 1
    return count


@inline
def share_of(size: Any) -> Any:
    """The share of a list in what is free: the edges that it may expect, and some times their standard deviation.

    In proportion to the size alone (VCSR), short lists would have no gap, and most of the windows would be theirs.
    """
    return size + 1 + SPREAD * np.sqrt(size + 1.0)


@kernel
def lay_out(
    first: Any, last: Any, begins: Any, ends: Any, needs: Any, unit: Any, base: Any, slots: Any, fresh: Any
) -> Any:
    """Where the lists of first:last begin when `slots` slots from `base` on are shared out; False if they are too few.

    Each list gets its aligned need; what is left is shared out by `share_of`.
    """
    need, share = int64(0), np.float64(0)
    for v in range(first, last):
        size = wanted(v, begins, ends, needs)
        need += aligned(size, unit)
        share += share_of(size)
    free = (slots - need) // unit
    if free < 0:
        return False
    at, before = base, np.float64(0)
    given = int64(0)
    for v in range(first, last):
        fresh[v - first] = at + given * unit
        size = wanted(v, begins, ends, needs)
        at += aligned(size, unit)
        before += share_of(size)
        given = int64(free * min(before / share, 1.0))
    return True


@kernel
def respread(first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, fresh: Any) -> None:
    """Move the lists of first:last within their slots to begin at `fresh`: all to the left, then each to its place,
    from the right.
    """
    at = begins[first]
    for v in range(first, last):
        size, begin = ends[v] - begins[v], begins[v]
        if begin != at:
            for k in range(size):
                targets[at + k] = targets[begin + k]
            if weights.size:
                for k in range(size):
                    weights[at + k] = weights[begin + k]
        begins[v], ends[v] = at, at + size
        at += size
    for i in range(last - first):
        v = last - 1 - i
        size, begin, place = ends[v] - begins[v], begins[v], fresh[v - first]
        if begin != place:
            for j in range(size):
                k = size - 1 - j
                targets[place + k] = targets[begin + k]
            if weights.size:
                for j in range(size):
                    k = size - 1 - j
                    weights[place + k] = weights[begin + k]
        begins[v], ends[v] = place, place + size


@kernel
def respread_windows(
    windows: Any,
    low: Any,
    high: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    needs: Any,
    unit: Any,
    fresh: Any,
) -> None:
    """Respread each of the windows low:high. `fresh` has room for the vertices of the largest."""
    for k in range(low, high):
        first, last = windows[k, 0], windows[k, 1]
        base = begins[first]
        lay_out(first, last, begins, ends, needs, unit, base, begins[last] - base, fresh)
        respread(first, last, begins, ends, targets, weights, fresh)


@kernel
def copy_lists(
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    fresh: Any,
    new_ends: Any,
    new_targets: Any,
    new_weights: Any,
) -> None:
    """Copy the lists of first:last into other arrays, to begin at `fresh`."""
    for v in range(first, last):
        begin, size, place = begins[v], ends[v] - begins[v], fresh[v]
        for k in range(size):
            new_targets[place + k] = targets[begin + k]
        if new_weights.size:
            for k in range(size):
                new_weights[place + k] = weights[begin + k]
        new_ends[v] = place + size


@kernel
def has_parallel(begins: Any, ends: Any, targets: Any, first: Any, last: Any) -> Any:
    """The first of these vertices whose sorted list has an entry twice, or -1."""
    for v in range(first, last):
        for e in range(begins[v] + 1, ends[v]):
            if targets[e] == targets[e - 1]:
                return v
    return -1


@kernel
def compact_sorted(
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    offsets: Any,
    new_targets: Any,
    new_weights: Any,
) -> None:
    """Copy the lists of first:last to where they lie without gaps, sorted by target."""
    for v in range(first, last):
        begin, size, place = begins[v], ends[v] - begins[v], offsets[v]
        ascending = True
        for k in range(1, size):
            ascending &= targets[begin + k - 1] < targets[begin + k]
        if ascending:
            for k in range(size):
                new_targets[place + k] = targets[begin + k]
            if weights.size:
                for k in range(size):
                    new_weights[place + k] = weights[begin + k]
            continue
        order = np.argsort(targets[begin : begin + size])
        for k in range(size):
            new_targets[place + k] = targets[begin + order[k]]
        if weights.size:
            for k in range(size):
                new_weights[place + k] = weights[begin + order[k]]


@kernel
def list_sums(first: Any, last: Any, begins: Any, ends: Any, weights: Any, sums: Any) -> None:
    """The sum of each list's weights."""
    for v in range(first, last):
        total = 0.0
        for e in range(begins[v], ends[v]):
            total += weights[e]
        sums[v] = total
