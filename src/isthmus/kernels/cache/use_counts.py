"""Use counts of vertices, one byte each, and the selection of the hottest vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.rows import skip_unmarked

HOTTEST = 255
SIZES = 64  # bits of a list's length
LEVELS = (HOTTEST + 1) * SIZES


@inline
def heat(hotness: Any, u: Any) -> Any:
    if hotness[u] < HOTTEST:  # an overflow would make the hottest vertex cold
        hotness[u] += 1


@kernel
def heat_rows(rows: Any, hotness: Any) -> Any:
    """Count one more use of the rows."""
    for i in range(rows.size):
        heat(hotness, int64(rows[i]))


@kernel
def heat_range(first: Any, last: Any, marks: Any, all_active: Any, hotness: Any) -> Any:
    """Count one more use of the marked vertices of first:last; `all_active`: of all."""
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if all_active or marks[u]:
            heat(hotness, u)
        else:
            u = skip_unmarked(words, u, last)


@inline
def level_of(count: Any, degree: Any) -> Any:
    """The level of a vertex: by uses, then by the bits of its list's length. 0: no edges, or never used."""
    if count == 0 or degree == 0:
        return int64(0)
    bits = int64(0)
    while degree > 0:
        degree >>= 1
        bits += 1
    return int64(count) * SIZES + bits


@kernel
def edges_by_level(first: Any, last: Any, hotness: Any, list_begins: Any, list_ends: Any, capacity: Any) -> Any:
    """Edges at each level; lists longer than `capacity` do not count."""
    edges = np.zeros(LEVELS, np.int64)
    for u in range(first, last):
        degree = list_ends[u] - list_begins[u]
        if degree <= capacity:
            edges[level_of(hotness[u], degree)] += degree
    return edges


@kernel
def mark_hot(
    first: Any,
    last: Any,
    hotness: Any,
    list_begins: Any,
    list_ends: Any,
    capacity: Any,
    level: Any,
    room: Any,
    marks: Any,
) -> Any:
    """Mark the vertices above `level`, and those on it until they use up `room` edges; unmark the others."""
    for u in range(first, last):
        degree = list_ends[u] - list_begins[u]
        mine = level_of(hotness[u], degree) if degree <= capacity else int64(0)
        if mine > 0 and mine == level:
            room -= degree
        marks[u] = mine > level or (mine > 0 and mine == level and room >= 0)


@kernel
def fresh_edges(first: Any, last: Any, candidates: Any, held: Any, list_begins: Any, list_ends: Any) -> Any:
    """(edges of the candidates that are not held, edges of all candidates)."""
    fresh = total = int64(0)
    for u in range(first, last):
        if candidates[u]:
            total += list_ends[u] - list_begins[u]
            if not held[u]:
                fresh += list_ends[u] - list_begins[u]
    return fresh, total
