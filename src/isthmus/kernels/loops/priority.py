"""Contribution of a partition's active vertices (HyTGraph): the sum of their deltas, whatever their signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.loops.rows import place_of, skip_unmarked


@kernel
def contribution_of_rows(
    vertices: Any, list_begins: Any, list_ends: Any, cuts: Any, deltas: Any, priorities: Any
) -> Any:
    """Add the contributions of `vertices`, which ascend, to every partition that holds some of their edges."""
    p = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        begin, end = list_begins[u], list_ends[u]
        if begin == end:
            continue
        if cuts[p + 1] <= begin:
            p = place_of(begin, cuts)
        more = abs(deltas[u])
        priorities[p] += more
        while cuts[p + 1] < end:
            p += 1
            priorities[p] += more


@kernel
def contribution_of_range(
    first: Any,
    last: Any,
    marks: Any,
    all_active: Any,
    list_begins: Any,
    list_ends: Any,
    begin: Any,
    end: Any,
    deltas: Any,
) -> Any:
    """The same for one partition, whose active vertices are marked; `all_active`: all of them."""
    total = 0.0
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if not all_active and marks[u] == 0:
            u = skip_unmarked(words, u, last)
        elif max(list_begins[u], begin) < min(list_ends[u], end):
            total += abs(deltas[u])
    return total
