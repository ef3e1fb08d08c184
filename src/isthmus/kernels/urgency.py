"""Which partitions have something waiting, and how urgent it is: the least value, times a sign, of their marked vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile import inline, kernel
from isthmus.kernels.rows import skip_unmarked


@inline
def note(u: Any, p: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """Vertex u is marked; who lies behind its partition has no edges, so nothing to do."""
    if p < 0 or u >= last[p]:
        marks[u] = 0
    else:
        urgency[p] = min(urgency[p], float(values[u] * sign))


@kernel
def note_rows(rows: Any, first: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """These vertices are marked; `first`, `last`: the vertices of each partition."""
    for i in range(rows.size):
        u = np.int64(rows[i])
        note(u, np.searchsorted(first, u, side="right") - 1, last, values, sign, marks, urgency)


@kernel
def note_range(begin: Any, end: Any, first: Any, last: Any, values: Any, sign: Any, marks: Any, urgency: Any) -> Any:
    """Look for marked vertices among begin:end, while others may be marking more."""
    words = marks.view(np.uint64)
    p = np.searchsorted(first, begin, side="right") - 1
    u = np.int64(begin) - 1
    while u + 1 < end:
        u += 1
        if marks[u] == 0:
            u = skip_unmarked(words, u, end)
            continue
        while p + 1 < first.size and first[p + 1] <= u:
            p += 1
        note(u, p, last, values, sign, marks, urgency)
