"""Urgency of partitions with active vertices: the least value, times a sign, of their marked vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.loops.rows import place_of, skip_unmarked


@inline
def note(u: Any, p: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """Update the urgency of partition p by marked vertex u. A vertex past the end of its partition has no edges and is
    unmarked.
    """
    if p < 0 or u >= last[p]:
        marks[u] = 0
    else:
        urgency[p] = min(urgency[p], float(values[u] * sign))


@kernel
def note_rows(rows: Any, first: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """Update urgencies by these marked vertices; partition p has the vertices first[p]:last[p]."""
    for i in range(rows.size):
        u = np.int64(rows[i])
        note(u, place_of(u, first), last, values, sign, marks, urgency)


@kernel
def note_range(begin: Any, end: Any, first: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """Update urgencies by the marked vertices of begin:end; other threads may mark more meanwhile."""
    words = marks.view(np.uint64)
    p = place_of(begin, first)
    u = np.int64(begin) - 1
    while u + 1 < end:
        u += 1
        if marks[u] == 0:
            u = skip_unmarked(words, u, end)
            continue
        while p + 1 < first.size and first[p + 1] <= u:
            p += 1
        note(u, p, last, values, sign, marks, urgency)
