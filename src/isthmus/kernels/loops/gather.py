"""Packing: active lists copied side by side, for compaction."""

from __future__ import annotations

from typing import Any

from numba import uint64

from isthmus.kernels.compile.kernel import kernel


@kernel
def pack(source: Any, begins: Any, lengths: Any, places: Any, out: Any, first: Any, last: Any) -> None:
    """Copy lists first:last: lengths[i] entries from source[begins[i]] on, to out[places[i]] on.

    Team members may take parts of first:last at once, as long as no two lists overlap in `out`.
    """
    for i in range(first, last):
        begin, place = uint64(begins[i]), uint64(places[i])  # unsigned: no check for negative indices, so it vectorises
        for k in range(uint64(lengths[i])):
            out[place + k] = source[begin + k]


@kernel
def copy_blocks(source: Any, slots: Any, out: Any, places: Any, block: Any) -> None:
    """Copy block slots[i] of `source` to out[places[i]], both arrays of bytes."""
    for i in range(slots.size):
        begin, place = uint64(slots[i] * block), uint64(places[i])
        for k in range(uint64(block)):
            out[place + k] = source[begin + k]
