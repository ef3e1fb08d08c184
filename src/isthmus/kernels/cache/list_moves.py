"""Lists that are copied into a cache, move within it, or are patched there.

Kernels for GPUs share `bring` and `patch`.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.compile.atomics import atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel


@kernel
def copy_lists(first: Any, last: Any, froms: Any, tos: Any, lengths: Any, source: Any, sink: Any) -> None:
    """Copy lists, one after the other. Within an array, lists in the order of their places may move to the front."""
    for i in range(first, last):
        begin, to = int64(froms[i]), int64(tos[i])
        for k in range(int64(lengths[i])):
            sink[to + k] = source[begin + k]


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
    chosen: Any,
    held: Any,
    near_begins: Any,
    near_targets: Any,
    near_weights: Any,
    weighted: Any,
) -> Any:
    """Copy rows that are chosen, whole and not in the cache yet; returns how many. `held` is 2 while a list is being
    copied.
    """
    count = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        size = list_ends[u] - list_begins[u]
        if not chosen[u] or held[u] or lengths[i] != size or size == 0:
            continue
        if atomic_exchange(held, u, uint8(2)) != 0:
            continue  # another thread copies the same list
        to = int64(near_begins[u])
        for k in range(size):
            near_targets[to + k] = targets[begins[i] + k]
        if weighted:
            for k in range(size):
                near_weights[to + k] = weights[weight_begins[i] + k]
        held[u] = uint8(1)
        count += 1
    return count


@kernel
def patch_lists(
    first: Any,
    last: Any,
    begins: Any,
    lengths: Any,
    tos: Any,
    held: Any,
    groups: Any,
    cuts: Any,
    others: Any,
    actions: Any,
    positions: Any,
    targets: Any,
    weights: Any,
    weighted: Any,
    near_targets: Any,
    near_weights: Any,
) -> None:
    """Bring lists that have changed up to date; groups[i] has the changes of list i, as `packed.change_lists` took
    them.

    List i has lengths[i] entries from begins[i] on in far memory; its place begins at tos[i], and held[i] says whether
    the place has been filled. `positions`: those of arcs that were deleted or reweighed, in their lists.
    """
    for i in range(first, last):
        low, high = int64(cuts[groups[i]]), int64(cuts[groups[i] + 1])
        far, near = (targets, weights), (near_targets, near_weights)
        patch(begins[i], lengths[i], tos[i], held[i], low, high, others, actions, positions, far, near, weighted)


@inline
def patch(
    begin: Any,
    length: Any,
    to: Any,
    held: Any,
    low: Any,
    high: Any,
    others: Any,
    actions: Any,
    positions: Any,
    far: Any,
    near: Any,
    weighted: Any,
) -> None:
    """Bring one list up to date, by its changes low:high. Of a list that is held, only entries that have changed are
    copied. If it is not what it should have been before the changes, all of it is copied.
    """
    inserts, deletes, same = int64(0), int64(0), held != 0
    for c in range(low, high):
        inserts += 1 if actions[c] == INSERT else 0
        deletes += 1 if actions[c] == DELETE else 0
    for c in range(low, high):
        if same and actions[c] != INSERT:
            at = int64(positions[c])
            same = at >= 0 and at < length - inserts + deletes
            if same:
                same = near[0][to + at] == others[c]  # targets are unique
    if same:
        for c in range(low, high):
            at = int64(positions[c])
            if actions[c] != INSERT and at < length:
                bring(begin + at, 1, to + at, far, near, weighted)
        bring(begin + length - inserts, inserts, to + length - inserts, far, near, weighted)
    else:
        bring(begin, length, to, far, near, weighted)


@inline
def bring(begin: Any, length: Any, to: Any, far: Any, near: Any, weighted: Any) -> None:
    """Copy targets and weights."""
    for k in range(length):
        near[0][to + k] = far[0][begin + k]
        if weighted:
            near[1][to + k] = far[1][begin + k]
