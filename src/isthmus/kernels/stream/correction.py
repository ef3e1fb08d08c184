"""Loops that correct answers before edges disappear: vertices that depend on a deleted edge lose their value.

A vertex whose parent edge is deleted is an orphan. A neighbour that gives the same value, and cannot depend on the
orphan, becomes its parent (`adopt` in kernels/loops/incremental.py); otherwise the orphan loses its value and its
children become orphans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_add, atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel

NOBODY = np.uint32(0xFFFFFFFF)  # the parent of a vertex that has none
LOCKED = np.uint32(0xFFFFFFFE)  # the parent of a vertex whose value is being written


@inline
def note(v: Any, changed: Any, changes: Any, count: Any) -> None:
    """Add a vertex to the list of those that have changed, once."""
    if changed[v] == 0 and atomic_exchange(changed, v, uint8(1)) == 0:
        changes[atomic_add(count, 0, int64(1))] = v


@inline
def orphan(v: Any, orphaned: Any, orphans: Any, count: Any) -> None:
    """Add a vertex to the list of orphans, once."""
    if orphaned[v] == 0 and atomic_exchange(orphaned, v, uint8(1)) == 0:
        orphans[atomic_add(count, 0, int64(1))] = v


@kernel
def orphan_heads(
    tails: Any, heads: Any, first: Any, last: Any, parents: Any, orphaned: Any, orphans: Any, count: Any
) -> None:
    """The heads of these arcs that depend on them become orphans."""
    for i in range(first, last):
        v = int64(heads[i])
        if parents[v] == tails[i]:
            orphan(v, orphaned, orphans, count)


@kernel
def orphan_children(
    rows: Any,
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    parents: Any,
    orphaned: Any,
    orphans: Any,
    count: Any,
) -> Any:
    """All vertices that depend on these become orphans; returns how many edges were read."""
    edges = int64(0)
    for i in range(first, last):
        u = int64(rows[i])
        edges += ends[u] - begins[u]
        for e in range(begins[u], ends[u]):
            v = int64(targets[e])
            if int64(parents[v]) == u:
                orphan(v, orphaned, orphans, count)
    return edges


@kernel
def reset(
    orphans: Any,
    adopted: Any,
    first: Any,
    last: Any,
    orphaned: Any,
    values: Any,
    levels: Any,
    parents: Any,
    changed: Any,
    changes: Any,
    count: Any,
    initial: Any,
    initials: Any,
    lost: Any,
    lost_count: Any,
) -> None:
    """Adopted orphans keep their value; the others get their initial one, and are listed in `lost`."""
    for i in range(first, last):
        v = int64(orphans[i])
        if adopted[i]:
            orphaned[v] = 0
            continue
        note(v, changed, changes, count)
        values[v] = initials[v] if initials.size else initial
        if levels.size:
            levels[v] = 0
        parents[v] = NOBODY
        lost[atomic_add(lost_count, 0, int64(1))] = v


@kernel
def take_changes(
    changes: Any, count: Any, changed: Any, now: Any, before: Any, vertices: Any, old: Any, new: Any
) -> Any:
    """Clear the list of changed vertices, and return how many values really differ; they are listed."""
    found = 0
    for i in range(count):
        v = int64(changes[i])
        changed[v] = 0
        if now[v] != before[v]:
            vertices[found], old[found], new[found] = v, before[v], now[v]
            found += 1
    return found
