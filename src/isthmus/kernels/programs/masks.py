"""Multi-source search: a 64-bit word per vertex, with one bit for each search."""

from __future__ import annotations

from typing import Any

from numba import int64, uint64

from isthmus.kernels.compile.kernel import inline, kernel


@inline
def arrive(u: Any, level: Any, seen: Any, here: Any, coming: Any, distances: Any) -> Any:
    fresh = coming[u]
    seen[u] |= fresh
    here[u] = fresh
    coming[u] = 0
    search = 0
    while fresh != 0:
        if fresh & uint64(1) != 0:
            distances[search, u] = level
        fresh >>= uint64(1)
        search += 1


@kernel
def arrive_rows(rows: Any, level: Any, seen: Any, here: Any, coming: Any, distances: Any) -> Any:
    """Record that the searches in `coming` have reached the rows, at distance `level`."""
    for i in range(rows.size):
        arrive(int64(rows[i]), level, seen, here, coming, distances)


@kernel
def arrive_range(
    first: Any, last: Any, marks: Any, level: Any, seen: Any, here: Any, coming: Any, distances: Any
) -> Any:
    """The same for the marked vertices of first:last."""
    for u in range(first, last):
        if marks[u]:
            arrive(int64(u), level, seen, here, coming, distances)
