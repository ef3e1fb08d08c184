"""Lists that a cache keeps: laid out one behind the other, and copied in as they come by."""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.atomics import atomic_exchange
from isthmus.kernels.compile import kernel


@kernel
def lay_out(
    lists: Any, count: Any, wanted: Any, filled: Any, list_begins: Any, list_ends: Any, begins: Any, targets: Any, weights: Any,
    weighted: Any,
) -> Any:  # fmt: skip
    """From `lists`, the first `count` of which have room in this order, to all that are wanted; returns how many.

    Lists that stay move towards the front, none over one before it; the others are forgotten; room is set aside behind them
    for those awaited. All in place: at this point there may be no memory to spare.
    """
    kept = at = int64(0)
    for i in range(count):
        u = int64(lists[i])
        if not filled[u]:
            continue
        if not wanted[u]:
            filled[u] = 0
            continue
        begin = int64(begins[u])
        size = list_ends[u] - list_begins[u]
        if begin != at:
            for k in range(size):
                targets[at + k] = targets[begin + k]
            if weighted:
                for k in range(size):
                    weights[at + k] = weights[begin + k]
        begins[u] = at
        lists[kept] = u
        at += size
        kept += 1
    for u in range(wanted.size):
        if wanted[u] and not filled[u]:
            begins[u] = at
            lists[kept] = u
            at += list_ends[u] - list_begins[u]
            kept += 1
    return kept


@kernel
def keep_rows(
    vertices: Any, begins: Any, weight_begins: Any, lengths: Any, list_begins: Any, list_ends: Any, targets: Any, weights: Any,
    wanted: Any, filled: Any, kept_begins: Any, kept_targets: Any, kept_weights: Any, weighted: Any,
) -> Any:  # fmt: skip
    """Copy the rows that are wanted, whole and not there yet; returns how many. `filled` turns 2 while a list is copied."""
    count = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        size = list_ends[u] - list_begins[u]
        if not wanted[u] or filled[u] or lengths[i] != size or size == 0:
            continue
        if atomic_exchange(filled, u, uint8(2)) != 0:
            continue  # another thread has it too
        to = int64(kept_begins[u])
        for k in range(size):
            kept_targets[to + k] = targets[begins[i] + k]
        if weighted:
            for k in range(size):
                kept_weights[to + k] = weights[weight_begins[i] + k]
        filled[u] = uint8(1)
        count += 1
    return count
