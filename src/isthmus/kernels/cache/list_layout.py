"""Lists in a vertex cache: laid out one after the other, and copied in when delivered."""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_exchange
from isthmus.kernels.compile.kernel import kernel


@kernel
def lay_out(
    lists: Any,
    count: Any,
    wanted: Any,
    filled: Any,
    list_begins: Any,
    list_ends: Any,
    begins: Any,
    targets: Any,
    weights: Any,
    weighted: Any,
) -> Any:
    """Rearrange the cache from the first `count` of `lists` to all wanted lists; returns how many these are.

    Lists that stay move to the front and keep their order; the others are dropped; after them, space is reserved for
    wanted lists that are not there yet. It works in place, since there may be no free memory.
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
    vertices: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    wanted: Any,
    filled: Any,
    kept_begins: Any,
    kept_targets: Any,
    kept_weights: Any,
    weighted: Any,
) -> Any:
    """Copy rows that are wanted, whole and not in the cache yet; returns how many. `filled` is 2 while a list is being
    copied.
    """
    count = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        size = list_ends[u] - list_begins[u]
        if not wanted[u] or filled[u] or lengths[i] != size or size == 0:
            continue
        if atomic_exchange(filled, u, uint8(2)) != 0:
            continue  # another thread copies the same list
        to = int64(kept_begins[u])
        for k in range(size):
            kept_targets[to + k] = targets[begins[i] + k]
        if weighted:
            for k in range(size):
                kept_weights[to + k] = weights[weight_begins[i] + k]
        filled[u] = uint8(1)
        count += 1
    return count
