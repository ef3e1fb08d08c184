"""Lists that grow and shrink in place: the loops of a packed memory array.

The list of vertex v is targets[begins[v]:ends[v]]; its room ends at begins[v + 1], and begins[vertices] is the number of slots. Edges
of one vertex are changed by one thread, in any order of the list: a new edge goes to the tail, and the last edge takes the place
of a deleted one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8, uint64

from isthmus.kernels.atomics import prefetch
from isthmus.kernels.compile import inline, kernel

NOTHING, INSERT, DELETE, REWEIGH = 0, 1, 2, 3  # what happens to an edge
STEP = 64  # entries compared at once
FEW = 16  # edges looked for in a list one by one; more, by a bitmap in one pass over the list
FAR, NEAR = 16, 8  # edges or lists ahead: prefetch where a list lies, then the list


@inline
def position(targets: Any, begin: Any, end: Any, wanted: Any) -> Any:
    """Where targets[begin:end] has `wanted`, or -1. Positions are unsigned, or the loop would not become vector instructions."""
    e, stop = uint64(begin), uint64(end)
    while e + uint64(STEP) <= stop:
        hits = targets.dtype.type(0)
        for k in range(uint64(STEP)):
            hits += targets.dtype.type(targets[e + k] == wanted)
        if hits:
            break
        e += uint64(STEP)
    while e < stop:
        if targets[e] == wanted:
            return int64(e)
        e += uint64(1)
    return int64(-1)


@kernel
def find_edges(
    sources: Any, heads: Any, first: Any, last: Any, vertices: Any, begins: Any, ends: Any, targets: Any, weights: Any,
    in_begins: Any, in_ends: Any, in_targets: Any, in_weights: Any, exists: Any, old: Any
) -> None:  # fmt: skip
    """Whether each edge sources[i] -> heads[i] exists, and its weight, looked for in the shorter of the two lists that have it."""
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
            e = position(targets, begins[u], ends[u], heads[i])
            if e >= 0:
                exists[i] = uint8(1)
                if weights.size:
                    old[i] = weights[e]
        else:
            e = position(in_targets, in_begins[v], in_ends[v], sources[i])
            if e >= 0:
                exists[i] = uint8(1)
                if in_weights.size:
                    old[i] = in_weights[e]


@kernel
def fold(order: Any, cuts: Any, wishes: Any, weights: Any, exists: Any, old: Any, actions: Any, final: Any, odd: Any) -> Any:
    """What a batch does to each edge in the end: its wishes, in order of arrival, one after the other.

    Edge g has the wishes order[cuts[g]:cuts[g + 1]]. A wish is INSERT (an edge that exists gets the new weight), DELETE, or REWEIGH.
    Returns (inserts of existing edges, deletes and new weights of missing ones); `odd` gets the first row of each kind.
    """
    repeated, missing = int64(0), int64(0)
    for g in range(cuts.size - 1):
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
            final[g] = weight
    return repeated, missing


@inline
def take_out(targets: Any, weights: Any, at: Any, end: Any) -> Any:
    """Put the last entry of a list that ends at `end` in place of entry `at`; returns the new end."""
    end -= 1
    targets[at] = targets[end]
    if weights.size:
        weights[at] = weights[end]
    return end


@inline
def change_few(others: Any, actions: Any, fresh: Any, low: Any, high: Any, begin: Any, end: Any, targets: Any, weights: Any) -> Any:
    for i in range(low, high):
        if actions[i] == INSERT:
            continue
        e = position(targets, begin, end, others[i])
        if e < 0:
            return int64(-1)
        if actions[i] == DELETE:
            end = take_out(targets, weights, e, end)
        else:
            weights[e] = fresh[i]
    return end


@inline
def change_many(
    others: Any, actions: Any, fresh: Any, low: Any, high: Any, begin: Any, end: Any, targets: Any, weights: Any, bits: Any
) -> Any:
    left = 0
    for i in range(low, high):
        if actions[i] != INSERT:
            v = int64(others[i])
            bits[v >> 6] |= uint64(1) << uint64(v & 63)
            left += 1
    e = begin
    while left > 0 and e < end:
        v = int64(targets[e])
        if not bits[v >> 6] >> uint64(v & 63) & uint64(1):
            e += 1
            continue
        bits[v >> 6] ^= uint64(1) << uint64(v & 63)
        left -= 1
        a, b = low, high  # the entry of v among the sorted ones
        while b - a > 1:
            middle = (a + b) // 2
            if int64(others[middle]) <= v:
                a = middle
            else:
                b = middle
        if actions[a] == DELETE:
            end = take_out(targets, weights, e, end)  # and look at what came here
        else:
            weights[e] = fresh[a]
            e += 1
    return end if left == 0 else int64(-1)


@kernel
def change_lists(
    cuts: Any, first: Any, last: Any, sources: Any, others: Any, actions: Any, fresh: Any, begins: Any, ends: Any, targets: Any,
    weights: Any, bits: Any, needs: Any
) -> Any:  # fmt: skip
    """Apply the changes of groups first:last; group g has the changes cuts[g]:cuts[g + 1] of one vertex, sorted by target.

    Where new edges do not fit, none is added, and needs[g] becomes the room that the list needs. Returns False if an edge was not found.
    """
    for g in range(first, last):
        if g + FAR < last:
            a = int64(sources[cuts[g + FAR]])
            prefetch(begins, a)
            prefetch(ends, a)
        if g + NEAR < last:
            a = int64(sources[cuts[g + NEAR]])
            prefetch(targets, begins[a])
            prefetch(targets, ends[a] - 1)
            if weights.size:
                prefetch(weights, ends[a] - 1)
        low, high = cuts[g], cuts[g + 1]
        u = int64(sources[low])
        inserts = 0
        for i in range(low, high):
            inserts += actions[i] == INSERT
        begin, end = begins[u], ends[u]
        if inserts < high - low:
            if high - low - inserts <= FEW:
                end = change_few(others, actions, fresh, low, high, begin, end, targets, weights)
            else:
                end = change_many(others, actions, fresh, low, high, begin, end, targets, weights, bits)
            if end < 0:
                return False
            ends[u] = end
        needs[g] = 0
        if end + inserts > begins[u + 1]:
            needs[g] = end - begin + inserts
        elif inserts:
            append(low, high, others, actions, fresh, u, ends, targets, weights)
    return True


@inline
def append(low: Any, high: Any, others: Any, actions: Any, fresh: Any, u: Any, ends: Any, targets: Any, weights: Any) -> None:
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
    crowded: Any, needs: Any, begins: Any, ends: Any, vertices: Any, unit: Any, leaf: Any, height: Any, loose: Any, tight: Any, windows: Any
) -> Any:
    """Ranges of vertices to respread: for each crowded vertex the smallest window that is not too dense with what it needs.

    A window of height h has leaf * 2**h vertices; its density is the aligned room that its lists need over its slots. It may be
    `tight` in a leaf and `loose` at the root, and in between in proportion. `crowded` ascends. Returns how many windows there are,
    or -1 if even the root is too dense.
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


@kernel
def lay_out(first: Any, last: Any, begins: Any, ends: Any, needs: Any, unit: Any, base: Any, slots: Any, fresh: Any) -> Any:
    """Where the lists of first:last begin when `slots` slots from `base` on are shared out; False if they are too few.

    Each list gets its aligned need; what is left goes to all in proportion to their length plus one.
    """
    need, share = int64(0), np.float64(0)
    for v in range(first, last):
        size = wanted(v, begins, ends, needs)
        need += aligned(size, unit)
        share += size + 1
    free = (slots - need) // unit
    if free < 0:
        return False
    at, before = base, np.float64(0)
    given = int64(0)
    for v in range(first, last):
        fresh[v - first] = at + given * unit
        size = wanted(v, begins, ends, needs)
        at += aligned(size, unit)
        before += size + 1
        given = int64(free * min(before / share, 1.0))
    return True


@kernel
def respread(first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, fresh: Any) -> None:
    """Move the lists of first:last within their slots to begin at `fresh`: all to the left, then each to its place, from the right."""
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
    windows: Any, low: Any, high: Any, begins: Any, ends: Any, targets: Any, weights: Any, needs: Any, unit: Any, fresh: Any
) -> None:
    """Respread each of the windows low:high. `fresh` has room for the vertices of the largest."""
    for k in range(low, high):
        first, last = windows[k, 0], windows[k, 1]
        base = begins[first]
        lay_out(first, last, begins, ends, needs, unit, base, begins[last] - base, fresh)
        respread(first, last, begins, ends, targets, weights, fresh)


@kernel
def copy_lists(
    first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, fresh: Any, new_ends: Any, new_targets: Any, new_weights: Any
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
    first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, offsets: Any, new_targets: Any, new_weights: Any
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
