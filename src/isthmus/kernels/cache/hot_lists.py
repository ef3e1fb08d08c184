"""Loops of the hot subgraph: which lists to hold, and how they move within and between its chunks.

A key is a list: a vertex of one side. Its hotness is a word of four bytes, uses in the current period and in the last
three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint32

from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.rows import skip_unmarked

CURRENT = 24  # bits by which the byte of the current period is shifted
MOST = 255  # uses that a byte holds; it stays there
SIZES = 33  # bits of a list's length, and none
LEVELS = 2 * (4 * MOST + 1) * SIZES


@inline
def use(hotness: Any, key: Any) -> Any:
    if (hotness[key] >> uint32(CURRENT)) < MOST:  # an overflow would make the hottest list cold
        hotness[key] += uint32(1) << uint32(CURRENT)


@kernel
def use_rows(rows: Any, offset: Any, hotness: Any) -> Any:
    """Count one use of the lists of these rows, whose keys begin at `offset`."""
    for i in range(rows.size):
        use(hotness, int64(rows[i]) + offset)


@kernel
def use_range(first: Any, last: Any, marks: Any, all_active: Any, offset: Any, hotness: Any) -> Any:
    """Count one use of the lists of the marked vertices of first:last; `all_active`: of all."""
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if all_active or marks[u]:
            use(hotness, u + offset)
        else:
            u = skip_unmarked(words, u, last)


@kernel
def end_period(first: Any, last: Any, hotness: Any) -> Any:
    """The current period becomes the last one; the oldest is forgotten."""
    for key in range(first, last):
        hotness[key] >>= uint32(8)


@inline
def uses(word: Any) -> Any:
    """All uses that a word of hotness has counted."""
    mask = uint32(MOST)
    return (
        int64(word & mask)
        + int64((word >> uint32(8)) & mask)
        + int64((word >> uint32(16)) & mask)
        + int64(word >> uint32(24))
    )


@inline
def level_of(word: Any, held: Any, length: Any, longest: Any) -> Any:
    """Rank of a list: by uses; among equals those that are held come first, then shorter ones. 0: it cannot be a
    candidate.
    """
    if length == 0 or length > longest:
        return int64(0)
    used = 2 * uses(word) + (1 if held else 0)
    if used == 0:
        return int64(0)
    bits = int64(0)
    while length > 0:
        length >>= 1
        bits += 1
    return used * SIZES + SIZES - bits


@kernel
def entries_by_level(first: Any, last: Any, hotness: Any, held: Any, lengths: Any, longest: Any) -> Any:
    """Entries of the lists at each level."""
    entries = np.zeros(LEVELS, np.int64)
    for key in range(first, last):
        entries[level_of(hotness[key], held[key], int64(lengths[key]), longest)] += lengths[key]
    return entries


@kernel
def levels_of(keys: Any, hotness: Any, lengths: Any) -> Any:
    """The levels of lists that are held, and the entries at each level."""
    found, entries = np.empty(keys.size, np.int32), np.zeros(LEVELS, np.int64)
    for i in range(keys.size):
        key = int64(keys[i])
        length = int64(lengths[key])
        found[i] = level_of(hotness[key], True, length, length)
        entries[found[i]] += length
    return found, entries


@kernel
def mark_candidates(
    first: Any, last: Any, hotness: Any, held: Any, lengths: Any, longest: Any, level: Any, room: Any, wanted: Any
) -> Any:
    """Mark the lists above `level`, and those on it until they use up `room` entries; unmark the others."""
    for key in range(first, last):
        if lengths[key] == 0:
            if wanted[key]:
                wanted[key] = 0
            continue
        mine = level_of(hotness[key], held[key], int64(lengths[key]), longest)
        if mine > 0 and mine == level:
            room -= lengths[key]
        wanted[key] = mine > level or (mine > 0 and mine == level and room >= 0)


@kernel
def drop_unwanted(
    first: Any, last: Any, wanted: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any
) -> Any:
    """Drop the lists that have a place and are not wanted; counts their entries by chunk."""
    for key in range(first, last):
        if begins[key] >= 0 and not wanted[key]:
            drop(key, begins, sizes, held, chunk, dropped)


@kernel
def drop_keys(keys: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any) -> Any:
    """Drop these lists, if they have a place."""
    for i in range(keys.size):
        key = int64(keys[i])
        if begins[key] >= 0:
            drop(key, begins, sizes, held, chunk, dropped)


@inline
def drop(key: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any) -> Any:
    dropped[int64(begins[key]) // chunk] += int64(sizes[key])
    begins[key] = -1
    sizes[key] = 0
    held[key] = 0


@inline
def shift(targets: Any, weights: Any, weighted: Any, begin: Any, to: Any, size: Any) -> Any:
    for k in range(size):
        targets[to + k] = targets[begin + k]
    if weighted:
        for k in range(size):
            weights[to + k] = weights[begin + k]


@kernel
def still_placed(members: Any, begins: Any) -> Any:
    """Move the members of one chunk that still have places to the front; returns how many there are."""
    kept = int64(0)
    for i in range(members.size):
        if begins[int64(members[i])] >= 0:
            members[kept] = members[i]
            kept += 1
    return kept


@kernel
def compact(
    members: Any, base: Any, begins: Any, sizes: Any, held: Any, targets: Any, weights: Any, weighted: Any
) -> Any:
    """Move the lists of one chunk, in the order of their places, to its front; returns (how many there are, entries
    used).
    """
    kept, at = int64(0), int64(base)
    for i in range(members.size):
        key = int64(members[i])
        begin, size = int64(begins[key]), int64(sizes[key])
        if begin < 0:
            continue
        if begin != at:
            if held[key]:
                shift(targets, weights, weighted, begin, at, size)
            begins[key] = at
        members[kept] = key
        kept += 1
        at += size
    return kept, at - base


@kernel
def pour(
    members: Any,
    count: Any,
    at: Any,
    room: Any,
    begins: Any,
    sizes: Any,
    held: Any,
    targets: Any,
    weights: Any,
    weighted: Any,
) -> Any:
    """Move the last lists of a chunk to `at` in another chunk, while they fit its `room`; returns (how many moved,
    their entries).
    """
    moved = entries = int64(0)
    while moved < count:
        key = int64(members[count - 1 - moved])
        size = int64(sizes[key])
        if entries + size > room:
            break
        if held[key]:
            shift(targets, weights, weighted, int64(begins[key]), at + entries, size)
        begins[key] = at + entries
        entries += size
        moved += 1
    return moved, entries


@kernel
def copy_lists(
    first: Any, last: Any, froms: Any, tos: Any, lengths: Any, targets: Any, weights: Any, weighted: Any
) -> None:
    """Copy lists to places that none of them has."""
    for i in range(first, last):
        shift(targets, weights, weighted, int64(froms[i]), int64(tos[i]), int64(lengths[i]))


@kernel
def allocate(keys: Any, lengths: Any, order: Any, chunk: Any, used: Any, begins: Any, sizes: Any, wanted: Any) -> Any:
    """Give lists, of these lengths, places behind what chunks hold, each in one chunk; a list that fits nowhere is not
    wanted any more.

    Chunks are taken in `order`. A list that does not fit the current one goes into the first that has room for it.
    """
    place = int64(0)
    most = int64(chunk)  # no chunk has more room
    for i in range(keys.size):
        key = int64(keys[i])
        size = int64(lengths[i])
        if size > most:
            wanted[key] = 0
            continue
        if used[order[place]] + size > chunk:
            best, place_found = int64(0), int64(-1)
            for k in range(order.size):
                room = chunk - used[order[k]]
                best = max(best, room)
                if room >= size:
                    place_found = k
                    break
            if place_found < 0:
                most = best
                wanted[key] = 0
                continue
            place = place_found
        c = int64(order[place])
        begins[key] = c * chunk + used[c]
        sizes[key] = size
        used[c] += size


@kernel
def load(
    keys: Any,
    first: Any,
    last: Any,
    offset: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    begins: Any,
    held: Any,
    near_targets: Any,
    near_weights: Any,
    weighted: Any,
) -> None:
    """Copy lists of one side, whose keys begin at `offset`, to their places."""
    for i in range(first, last):
        key = int64(keys[i])
        begin = int64(list_begins[key - offset])
        length = int64(list_ends[key - offset]) - begin
        bring(begin, length, int64(begins[key]), targets, weights, near_targets, near_weights, weighted)
        held[key] = 1


@inline
def bring(
    begin: Any, length: Any, to: Any, targets: Any, weights: Any, near_targets: Any, near_weights: Any, weighted: Any
) -> Any:
    for k in range(length):
        near_targets[to + k] = targets[begin + k]
    if weighted:
        for k in range(length):
            near_weights[to + k] = weights[begin + k]


@kernel
def refresh(
    keys: Any,
    groups: Any,
    first: Any,
    last: Any,
    offset: Any,
    cuts: Any,
    others: Any,
    actions: Any,
    positions: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    begins: Any,
    held: Any,
    near_targets: Any,
    near_weights: Any,
    weighted: Any,
) -> None:
    """Bring lists of one side that have changed up to date; groups[i] has the changes of keys[i], as
    `packed.change_lists` took them.

    `positions` in their lists of arcs that were deleted or reweighed. Of a list that is held, only entries that have
    changed are copied. If it is not what it should have been before the changes, all of it is copied.
    """
    for i in range(first, last):
        key = int64(keys[i])
        begin, to = int64(list_begins[key - offset]), int64(begins[key])
        length = int64(list_ends[key - offset]) - begin
        low, high = int64(cuts[groups[i]]), int64(cuts[groups[i] + 1])
        inserts = deletes = int64(0)
        same = held[key] != 0
        for c in range(low, high):
            inserts += actions[c] == INSERT
            deletes += actions[c] == DELETE
        for c in range(low, high):
            if actions[c] != INSERT:
                at = int64(positions[c])
                # Targets are unique.
                same = same and 0 <= at < length - inserts + deletes and near_targets[to + at] == others[c]
        if not same:
            bring(begin, length, to, targets, weights, near_targets, near_weights, weighted)
            held[key] = 1
            continue
        for c in range(low, high):
            at = int64(positions[c])
            if actions[c] != INSERT and at < length:
                bring(begin + at, int64(1), to + at, targets, weights, near_targets, near_weights, weighted)
        kept = length - inserts
        bring(begin + kept, inserts, to + kept, targets, weights, near_targets, near_weights, weighted)
