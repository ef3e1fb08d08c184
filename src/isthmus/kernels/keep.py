"""Lists that a cache keeps: moved together, and copied in as they come by."""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.atomics import atomic_exchange
from isthmus.kernels.compile import kernel


@kernel
def move_together(array: Any, old: Any, lengths: Any, begins: Any) -> None:
    """List i goes from old[i] to begins[i], which is never behind it, nor before the end of the one before."""
    for i in range(lengths.size):
        if old[i] != begins[i]:
            for k in range(lengths[i]):
                array[begins[i] + k] = array[old[i] + k]


@kernel
def keep_rows(
    vertices: Any, begins: Any, weight_begins: Any, lengths: Any, offsets: Any, targets: Any, weights: Any,
    wanted: Any, filled: Any, places: Any, list_begins: Any, kept_targets: Any, kept_weights: Any, weighted: Any,
) -> Any:  # fmt: skip
    """Copy the rows that are wanted, whole and not there yet; returns how many. `filled` turns 2 while a list is copied."""
    count = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        size = offsets[u + 1] - offsets[u]
        if not wanted[u] or filled[u] or lengths[i] != size or size == 0:
            continue
        if atomic_exchange(filled, u, uint8(2)) != 0:
            continue  # another thread has it too
        to = list_begins[places[u]]
        for k in range(size):
            kept_targets[to + k] = targets[begins[i] + k]
        if weighted:
            for k in range(size):
                kept_weights[to + k] = weights[weight_begins[i] + k]
        filled[u] = uint8(1)
        count += 1
    return count
