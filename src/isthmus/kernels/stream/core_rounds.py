"""Core numbers of a graph that changes, as `core_changes.py` has them, with the neighbours of some vertices at a time.

Lists are (begins, ends, neighbours) by vertex, but only the lists of `rows` are there. Other vertices that need a look
are queued for the next round. A candidate that cannot rise is LEAVING until its list has come. Until then its
neighbours count it as a supporter; then each neighbour that was looked at before counts one supporter less.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.stream.core_changes import CANDIDATE, OUT, UNSEEN, lifted, lowered, note

LEAVING = 3


@kernel
def add_supports(
    begins: Any, ends: Any, targets: Any, offset: Any, cores: Any, supports: Any, first: Any, last: Any
) -> None:
    """Add the neighbours in lists first:last to the supports of their vertices. Lists begin with that of vertex
    `offset`.
    """
    for i in range(first, last):
        v = offset + i
        for e in range(begins[i], ends[i]):
            w = int64(targets[e])
            supports[v] += w != v and cores[w] >= cores[v]


@kernel
def sink_rows(
    rows: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    cores: Any,
    supports: Any,
    waiting: Any,
    counts: Any,
    queue: Any,
    used: Any,
    changed: Any,
    changes: Any,
    count: Any,
) -> Any:
    """Lower those of these vertices that have too little support, and queue others that this leaves with too little;
    returns how many.
    """
    for i in range(rows.size):
        v = int64(rows[i])
        waiting[v] = 0
        old = int64(cores[v])
        if supports[v] >= old:
            continue
        for e in range(begins[v], ends[v]):
            w = int64(targets[e])
            if w != v:
                counts[min(cores[w], old)] += 1
        fresh, enough = lowered(old, counts)
        cores[v], supports[v] = fresh, enough
        note(v, changed, changes, count)
        for e in range(begins[v], ends[v]):
            w = int64(targets[e])
            if w != v and fresh < cores[w] and cores[w] <= old:
                supports[w] -= 1
                if supports[w] < cores[w] and waiting[w] == 0:
                    waiting[w] = 1
                    queue[used] = w
                    used += 1
    return used


@kernel
def climb_rows(
    rows: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    cores: Any,
    supports: Any,
    stages: Any,
    left: Any,
    seen: Any,
    found: Any,
    pile: Any,
    height: Any,
) -> Any:
    """Look at candidates for the first time, or let those that are leaving go.

    Returns (candidates in `seen`, those in `pile` that will leave).
    """
    for i in range(rows.size):
        v = int64(rows[i])
        k = cores[v]
        if stages[v] == CANDIDATE and left[v] < 0:
            total = int64(0)
            for e in range(begins[v], ends[v]):
                w = int64(targets[e])
                total += w != v and (cores[w] > k or (cores[w] == k and supports[w] > k and stages[w] != OUT))
            left[v] = total
            if total > k:
                for e in range(begins[v], ends[v]):
                    w = int64(targets[e])
                    if cores[w] == k and stages[w] == UNSEEN and supports[w] > k:
                        stages[w] = CANDIDATE
                        left[w] = -1
                        seen[found] = w
                        found += 1
                continue
        stages[v] = OUT
        for e in range(begins[v], ends[v]):
            w = int64(targets[e])
            if w != v and cores[w] == k and stages[w] == CANDIDATE and left[w] >= 0:
                left[w] -= 1
                if left[w] <= k:
                    stages[w] = LEAVING
                    pile[height] = w
                    height += 1
    return found, height


@kernel
def lift(seen: Any, found: Any, cores: Any, stages: Any, changed: Any, changes: Any, count: Any) -> Any:
    """Raise the candidates that are left by one; they come first in `seen`. Returns how many."""
    return lifted(seen, found, cores, stages, changed, changes, count)


@kernel
def support_rows(rows: Any, begins: Any, ends: Any, targets: Any, cores: Any, supports: Any, stages: Any) -> None:
    """Count the supports of vertices that have risen, and let them support those that were above them by one."""
    for i in range(rows.size):
        v = int64(rows[i])
        k, total = cores[v], int64(0)
        for e in range(begins[v], ends[v]):
            w = int64(targets[e])
            if w != v:
                total += cores[w] >= k
                if cores[w] == k and stages[w] == UNSEEN:
                    supports[w] += 1
        supports[v] = total
