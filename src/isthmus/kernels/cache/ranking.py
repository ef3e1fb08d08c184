"""Use counts of lists, the rank of a list, and the selection of the hottest lists that fit.

A key is a list: a vertex of one side, whose keys begin at `offset`. A list's word has a byte for each period: the
highest one counts uses in the current period, the others uses in the periods before. HyTGraph's words have one byte,
Grapin's have four. `current`: bits by which the byte of the current period is shifted.

`order` says how lists are ranked: (sizes, held_first, shorter_first). `sizes` exceeds the bits of a list's length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.rows import skip_unmarked

MOST = 255  # uses that a byte counts; it stays there


@inline
def use(words: Any, key: Any, current: Any) -> Any:
    """Count one more use in the current period."""
    if int64(words[key]) >> current < MOST:  # an overflow would make the hottest list cold
        words[key] = int64(words[key]) + (1 << current)


@kernel
def use_rows(rows: Any, offset: Any, words: Any, current: Any) -> Any:
    """Count one use of the lists of these rows."""
    for i in range(rows.size):
        use(words, int64(rows[i]) + offset, int64(current))


@kernel
def use_range(first: Any, last: Any, marks: Any, all_active: Any, offset: Any, words: Any, current: Any) -> Any:
    """Count one use of the lists of the marked vertices of first:last; `all_active`: of all."""
    eight = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if all_active or marks[u]:
            use(words, u + offset, int64(current))
        else:
            u = skip_unmarked(eight, u, last)


@kernel
def end_period(first: Any, last: Any, words: Any) -> Any:
    """The current period becomes the last one; the oldest is forgotten. Words of one byte become 0."""
    for key in range(first, last):
        words[key] = int64(words[key]) >> 8


@inline
def uses(word: Any) -> Any:
    """All uses that a word has counted."""
    whole = int64(word)
    return (whole & MOST) + ((whole >> 8) & MOST) + ((whole >> 16) & MOST) + (whole >> 24)


@inline
def level_of(word: Any, held: Any, length: Any, longest: Any, order: Any) -> Any:
    """Rank of a list: by uses, then by `order`. 0: it cannot be a candidate, as it was not used, or is empty or too
    long.
    """
    sizes, held_first, shorter_first = order
    level = int64(0)
    if length > 0 and length <= longest:
        used = uses(word)
        if held_first:
            used = 2 * used + (1 if held else 0)
        if used > 0:
            bits, rest = int64(0), int64(length)
            while rest > 0:
                rest >>= 1
                bits += 1
            level = used * sizes + (sizes - bits if shorter_first else bits)
    return level


@kernel
def entries_by_level(
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    offset: Any,
    words: Any,
    held: Any,
    longest: Any,
    order: Any,
    levels: Any,
) -> Any:
    """Entries of the candidates at each level, of the vertices first:last of one side."""
    entries = np.zeros(levels, np.int64)
    for u in range(first, last):
        length = int64(list_ends[u] - list_begins[u])
        level = level_of(words[u + offset], held[u + offset] != 0, length, longest, order)
        if level > 0:
            entries[level] += length
    return entries


@kernel
def mark_hottest(
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    offset: Any,
    words: Any,
    held: Any,
    longest: Any,
    order: Any,
    level: Any,
    space: Any,
    marks: Any,
) -> Any:
    """Mark the candidates above `level`, and those on it until they use up `space` entries."""
    for u in range(first, last):
        length = int64(list_ends[u] - list_begins[u])
        mine = level_of(words[u + offset], held[u + offset] != 0, length, longest, order)
        if mine > 0 and mine == level:
            space -= length
        if mine > level or (mine > 0 and mine == level and space >= 0):
            marks[u + offset] = 1


@kernel
def levels_of(keys: Any, words: Any, lengths: Any, order: Any, levels: Any) -> Any:
    """The levels of lists that are held, and the entries at each level."""
    found, entries = np.empty(keys.size, np.int32), np.zeros(levels, np.int64)
    for i in range(keys.size):
        key = int64(keys[i])
        length = int64(lengths[key])
        found[i] = level_of(words[key], True, length, length, order)
        entries[found[i]] += length
    return found, entries


@kernel
def new_entries(first: Any, last: Any, found: Any, chosen: Any, list_begins: Any, list_ends: Any) -> Any:
    """(entries of the lists that are found and not chosen yet, entries of all that are found)."""
    fresh = total = int64(0)
    for u in range(first, last):
        if found[u]:
            total += list_ends[u] - list_begins[u]
            if not chosen[u]:
                fresh += list_ends[u] - list_begins[u]
    return fresh, total
