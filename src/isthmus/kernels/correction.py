"""Loops that correct answers before edges disappear: vertices that depend on a deleted edge lose their value.

A value depends on the edge from its vertex's parent. Those that lose it are reset to their initial value, and so are their children.
Each vertex has one parent, so one thread only resets it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8

from isthmus.kernels.atomics import atomic_add, atomic_exchange
from isthmus.kernels.compile import inline, kernel

NOBODY = np.uint32(0xFFFFFFFF)  # the parent of a vertex that has none
LOCKED = np.uint32(0xFFFFFFFE)  # the parent of a vertex whose value is being written


@inline
def note(v: Any, changed: Any, changes: Any, count: Any) -> None:
    """Add a vertex to the list of those that have changed, once."""
    if changed[v] == 0 and atomic_exchange(changed, v, uint8(1)) == 0:
        changes[atomic_add(count, 0, int64(1))] = v


@inline
def reset(v: Any, values: Any, parents: Any, initial: Any, initials: Any, lost: Any, lost_count: Any) -> None:
    values[v] = initials[v] if initials.size else initial
    parents[v] = NOBODY
    lost[atomic_add(lost_count, 0, int64(1))] = v


@kernel
def cut_off(
    tails: Any, heads: Any, first: Any, last: Any, values: Any, parents: Any, changed: Any, changes: Any, count: Any, initial: Any,
    initials: Any, lost: Any, lost_count: Any
) -> None:  # fmt: skip
    """Reset the heads of these arcs that depend on them."""
    for i in range(first, last):
        v = int64(heads[i])
        if parents[v] == tails[i]:
            note(v, changed, changes, count)
            reset(v, values, parents, initial, initials, lost, lost_count)


@kernel
def cut_off_all(
    rows: Any, first: Any, last: Any, begins: Any, ends: Any, targets: Any, values: Any, parents: Any, changed: Any, changes: Any,
    count: Any, initial: Any, initials: Any, lost: Any, lost_count: Any
) -> Any:  # fmt: skip
    """Reset all vertices that depend on an edge of these vertices; returns how many edges they have."""
    edges = int64(0)
    for i in range(first, last):
        u = int64(rows[i])
        edges += ends[u] - begins[u]
        for e in range(begins[u], ends[u]):
            v = int64(targets[e])
            if int64(parents[v]) == u:
                note(v, changed, changes, count)
                reset(v, values, parents, initial, initials, lost, lost_count)
    return edges


@kernel
def take_changes(
    changes: Any, count: Any, changed: Any, now: Any, before: Any, vertices: Any, old: Any, new: Any
) -> Any:
    """Clear the list of changed vertices, bring `before` up to date, and return how many values really differ; they are listed."""
    found = 0
    for i in range(count):
        v = int64(changes[i])
        changed[v] = 0
        if now[v] != before[v]:
            vertices[found], old[found], new[found] = v, before[v], now[v]
            before[v] = now[v]
            found += 1
    return found
