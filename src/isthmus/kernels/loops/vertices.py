"""Passes over vertex arrays: taking deltas, sums, union-find roots."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel


@kernel
def take_rows(rows: Any, values: Any, residual: Any, deltas: Any) -> Any:
    for i in range(rows.size):
        u = int64(rows[i])
        deltas[u] = residual[u]
        values[u] += residual[u]
        residual[u] = 0.0


@kernel
def take_range(first: Any, last: Any, marks: Any, all_active: Any, values: Any, residual: Any, deltas: Any) -> Any:
    for u in range(first, last):
        if all_active or marks[u]:
            deltas[u] = residual[u]
            values[u] += residual[u]
            residual[u] = 0.0


@kernel
def take_again(rows: Any, values: Any, residual: Any, deltas: Any) -> Any:
    """As `take_rows`, while other threads may add to the residuals."""
    bits = residual.view(np.int64)
    for i in range(rows.size):
        u = int64(rows[i])
        bits_taken = atomic_exchange(bits, u, int64(0))
        deltas.view(np.int64)[u] = bits_taken
        values[u] += deltas[u]


@kernel
def mark_equal(values: Any, wanted: Any, list_begins: Any, list_ends: Any, marks: Any, first: Any, last: Any) -> Any:
    """Mark the vertices that have value `wanted` and at least one edge; returns how many."""
    count = 0
    for u in range(first, last):
        marks[u] = values[u] == wanted and list_ends[u] > list_begins[u]
        count += marks[u]
    return count


@kernel
def mark_left(left: Any, marks: Any, first: Any, last: Any) -> Any:
    """Remove the marked vertices from `left`, then mark exactly the vertices in `left`; returns how many."""
    count = 0
    for u in range(first, last):
        still = left[u] & (marks[u] ^ uint8(1))
        left[u] = still
        marks[u] = still
        count += still
    return count


@kernel
def mark_others(first: Any, last: Any, marks: Any, all_active: Any, held: Any, out: Any) -> Any:
    """Mark in `out` the marked vertices (`all_active`: all) that are not held; returns how many."""
    count = 0
    for u in range(first, last):
        out[u] = (all_active or marks[u]) and not held[u]
        count += out[u]
    return count


@kernel
def defer_range(first: Any, last: Any, marks: Any, next_marks: Any, values: Any, bound: Any, sign: Any) -> Any:
    """Defer marked vertices whose value, times the sign, exceeds the bound to the next iteration; returns how many stay
    marked.
    """
    count = 0
    for u in range(first, last):
        if marks[u]:
            if values[u] * sign > bound:
                marks[u] = 0
                next_marks[u] = 1
            else:
                count += 1
    return count


@inline
def root(parents: Any, u: Any) -> Any:
    while parents[u] != u:
        u = int64(parents[u])
    return u


@kernel
def compress(parents: Any, first: Any, last: Any) -> Any:
    """Point every vertex at its root."""
    for u in range(first, last):
        parents[u] = root(parents, int64(u))


@kernel
def smallest_member(parents: Any, naturals: Any, smallest: Any) -> Any:
    """For each root, the smallest natural number among its vertices."""
    for u in range(parents.size):
        r = int64(parents[u])
        if naturals[u] < smallest[r]:
            smallest[r] = naturals[u]


@kernel
def widen(narrow: Any, none: Any, infinity: Any, wide: Any, first: Any, last: Any) -> Any:
    """Copy numbers into a wider array, with `infinity` for `none`."""
    for v in range(first, last):
        wide[v] = infinity if narrow[v] == none else narrow[v]


@kernel
def reach(distances: Any, infinity: Any) -> Any:
    """(how many distances are not infinite, the largest of these or 0)."""
    count = 0
    farthest = distances.dtype.type(0)
    for distance in distances:  # no branch: it would be hard to predict
        reached = distance != infinity
        count += reached
        far = distance if reached else distances.dtype.type(0)
        farthest = far if far > farthest else farthest
    return count, farthest


@kernel
def count_labels(labels: Any, room: Any) -> Any:
    """(How many different labels there are, how often the commonest occurs). `room` gets the count of each label."""
    room[:] = 0
    different, most = 0, 0
    last, streak = int64(-1), 0  # neighbours often share a label, and additions to one element wait for each other
    for i in range(labels.size):
        label = int64(labels[i])
        if label != last:
            if streak:
                room[last] += streak
            last, streak = label, 0
        streak += 1
    if streak:
        room[last] += streak
    for i in range(room.size):
        different += room[i] > 0
        most = max(most, int64(room[i]))
    return different, most
