"""Byte counts of how often vertices were used, and who of them are the hottest. All over ranges of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile import inline, kernel
from isthmus.kernels.rows import skip_unmarked

HOTTEST = 255
LEVELS = HOTTEST + 1


@inline
def heat(hotness: Any, u: Any) -> Any:
    if hotness[u] < HOTTEST:  # a byte that wraps would turn the hottest vertex cold
        hotness[u] += 1


@kernel
def heat_rows(rows: Any, hotness: Any) -> Any:
    """The rows were used once more."""
    for i in range(rows.size):
        heat(hotness, int64(rows[i]))


@kernel
def heat_range(first: Any, last: Any, marks: Any, everyone: Any, hotness: Any) -> Any:
    """The marked vertices of first:last were used once more; `everyone`: all of them."""
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if everyone or marks[u]:
            heat(hotness, u)
        else:
            u = skip_unmarked(words, u, last)


@kernel
def edges_by_level(first: Any, last: Any, hotness: Any, offsets: Any, capacity: Any) -> Any:
    """Edges at each level of hotness; lists longer than `capacity` do not count."""
    edges = np.zeros(LEVELS, np.int64)
    for u in range(first, last):
        degree = offsets[u + 1] - offsets[u]
        if degree <= capacity:
            edges[hotness[u]] += degree
    return edges


@kernel
def mark_hot(first: Any, last: Any, hotness: Any, offsets: Any, capacity: Any, level: Any, room: Any, marks: Any) -> Any:
    """Mark who has edges and is hotter than `level`, or on it while `room` edges last; unmark the others."""
    for u in range(first, last):
        degree = offsets[u + 1] - offsets[u]
        marks[u] = 0
        if degree == 0 or degree > capacity or hotness[u] < level or hotness[u] == 0:
            continue
        if hotness[u] == level:
            room -= degree
            if room < 0:
                continue
        marks[u] = 1


@kernel
def fresh_edges(first: Any, last: Any, candidates: Any, held: Any, offsets: Any) -> Any:
    """(edges of the candidates that are not held, edges of all candidates)."""
    fresh = total = int64(0)
    for u in range(first, last):
        if candidates[u]:
            total += offsets[u + 1] - offsets[u]
            if not held[u]:
                fresh += offsets[u + 1] - offsets[u]
    return fresh, total
