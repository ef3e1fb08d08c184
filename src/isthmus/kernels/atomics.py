"""Hardware atomics on array elements, which Numba does not offer on the CPU.

Each intrinsic lowers to one LLVM `atomicrmw` on the element's address. No bounds check: the caller's index
must be inside the array.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

ORDERING = "monotonic"  # each element stands alone; the join at the end of a round publishes the rest


def element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def read_modify_write(operation: str) -> Any:
    """An intrinsic `f(array, index, value)` for an integer array; returns the element's old value."""

    @intrinsic
    def atomic(typing: Any, array: Any, index: Any, value: Any) -> Any:
        if not isinstance(array, types.Array) or not isinstance(array.dtype, types.Integer):
            return None
        signature = array.dtype(array, types.intp, array.dtype)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            where = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
            return builder.atomic_rmw(operation, where, arguments[2], ORDERING)

        return signature, generate

    return atomic


atomic_or = read_modify_write("or")
