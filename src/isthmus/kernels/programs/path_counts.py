"""Vertex passes of betweenness (Brandes): shortest-path counts from up to 64 sources, and dependencies on the way back.

`here` has one bit per source; the arrays of path counts, gains and levels have `width` adjacent entries per vertex, one
for each source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint64

from isthmus.kernels.compile.atomics import lowest_bit
from isthmus.kernels.compile.kernel import inline, kernel


@inline
def arrive(u: Any, level: Any, width: Any, seen: Any, here: Any, coming: Any, paths: Any, levels: Any) -> Any:
    fresh = coming[u]
    seen[u] |= fresh
    here[u] = fresh
    coming[u] = 0
    finite = True
    while fresh != 0:
        at = u * width + lowest_bit(fresh)
        levels[at] = level
        finite &= paths[at] < np.inf
        fresh &= fresh - uint64(1)
    return finite


@kernel
def arrive_rows(rows: Any, level: Any, width: Any, seen: Any, here: Any, coming: Any, paths: Any, levels: Any) -> Any:
    """Record that the searches in `coming` have reached the rows; returns whether all path counts are finite."""
    finite = True
    for i in range(rows.size):
        finite &= arrive(int64(rows[i]), level, width, seen, here, coming, paths, levels)
    return finite


@kernel
def arrive_range(
    first: Any,
    last: Any,
    marks: Any,
    level: Any,
    width: Any,
    seen: Any,
    here: Any,
    coming: Any,
    paths: Any,
    levels: Any,
) -> Any:
    """The same for the marked vertices of first:last."""
    finite = True
    for u in range(first, last):
        if marks[u]:
            finite &= arrive(int64(u), level, width, seen, here, coming, paths, levels)
    return finite


@inline
def at_level(u: Any, level: Any, width: Any, levels: Any) -> Any:
    """The sources at distance `level` from u, as bits."""
    found = uint64(0)
    for s in range(width):
        if levels[u * width + s] == level:
            found |= uint64(1) << uint64(s)
    return found


@kernel
def return_rows(rows: Any, level: Any, width: Any, here: Any, levels: Any) -> Any:
    """On the way back, set `here` of the rows to the searches that reached them at `level`."""
    for i in range(rows.size):
        u = int64(rows[i])
        here[u] = at_level(u, level, width, levels)


@kernel
def return_range(first: Any, last: Any, level: Any, width: Any, here: Any, levels: Any, marks: Any) -> Any:
    """The same for the vertices of first:last that were reached at `level`; marks them."""
    for u in range(first, last):
        found = at_level(int64(u), level, width, levels)
        if found != 0:
            here[u] = found
            marks[u] = 1


@inline
def settle(
    u: Any, width: Any, end: Any, here: Any, settled: Any, paths: Any, gains: Any, scores: Any, counts: Any
) -> Any:
    rest = here[u]
    settled[u] |= rest
    while rest != 0:
        s = lowest_bit(rest)
        at = u * width + s
        scores[u] += paths[at] * gains[at] + end
        gains[at] += 1 / paths[at]
        counts[s] += 1
        rest &= rest - uint64(1)


@kernel
def settle_rows(rows: Any, width: Any, end: Any, here: Any, settled: Any, paths: Any, gains: Any, scores: Any) -> Any:
    """Add the rows' dependencies, plus `end` for each path that ends there, to their scores, and set the gains they
    pass on.

    All vertices that depend on the rows must be done. Returns how many were settled, by source.
    """
    counts = np.zeros(width, np.int64)
    for i in range(rows.size):
        settle(int64(rows[i]), width, end, here, settled, paths, gains, scores, counts)
    return counts


@kernel
def settle_range(
    first: Any,
    last: Any,
    marks: Any,
    width: Any,
    end: Any,
    here: Any,
    settled: Any,
    paths: Any,
    gains: Any,
    scores: Any,
) -> Any:
    """The same for the marked vertices of first:last."""
    counts = np.zeros(width, np.int64)
    for u in range(first, last):
        if marks[u]:
            settle(int64(u), width, end, here, settled, paths, gains, scores, counts)
    return counts


@inline
def forget(u: Any, width: Any, unreached: Any, seen: Any, settled: Any, paths: Any, gains: Any, levels: Any) -> Any:
    seen[u] = settled[u] = 0
    for at in range(u * width, (u + 1) * width):
        paths[at] = gains[at] = 0.0
        levels[at] = unreached


@kernel
def forget_rows(
    rows: Any, width: Any, unreached: Any, seen: Any, settled: Any, paths: Any, gains: Any, levels: Any
) -> Any:
    """Reset the rows to unreached."""
    for i in range(rows.size):
        forget(int64(rows[i]), width, unreached, seen, settled, paths, gains, levels)


@kernel
def forget_range(
    first: Any, last: Any, width: Any, unreached: Any, seen: Any, settled: Any, paths: Any, gains: Any, levels: Any
) -> Any:
    """The same for first:last."""
    for u in range(first, last):
        forget(int64(u), width, unreached, seen, settled, paths, gains, levels)
