"""Hardware atomics on array elements, which Numba does not offer on the CPU.

Each intrinsic `f(array, index, value)` lowers to one LLVM `atomicrmw` on the element's address and returns the
element's old value; `atomic_cas` is a `cmpxchg`. No bounds check: the index must be inside the array.
Other instructions that Numba does not offer are at the end.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

ORDERING = "monotonic"  # enough for single elements; everything else is published when the threads of a pass are joined


def element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def read_modify_write(unsigned: str, signed: str | None = None, real: str | None = None) -> Any:
    """An atomic for arrays of unsigned, signed and real elements; None: not for that kind."""
    signed = signed or unsigned

    def operation(dtype: Any) -> str | None:
        if isinstance(dtype, types.Integer):
            return signed if dtype.signed else unsigned  # type: ignore[attr-defined]
        return real if isinstance(dtype, types.Float) else None

    @intrinsic
    def atomic(typing: Any, array: Any, index: Any, value: Any) -> Any:
        if not isinstance(array, types.Array) or operation(array.dtype) is None:
            return None
        signature = array.dtype(array, types.intp, array.dtype)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            where = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
            return builder.atomic_rmw(operation(signature.args[0].dtype), where, arguments[2], ORDERING)

        return signature, generate

    return atomic


atomic_or = read_modify_write("or")
atomic_add = read_modify_write("add", real="fadd")
atomic_min = read_modify_write("umin", "min", "fmin")
atomic_max = read_modify_write("umax", "max", "fmax")
atomic_exchange = read_modify_write("xchg", real="xchg")


@intrinsic
def atomic_cas(typing: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Replace the element by `value` if it is `expected`; returns its old value, which is `expected` on success."""
    if not isinstance(array, types.Array) or not isinstance(array.dtype, types.Integer):
        return None
    signature = array.dtype(array, types.intp, array.dtype, array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        pair = builder.cmpxchg(where, arguments[2], arguments[3], ORDERING, ORDERING)
        return builder.extract_value(pair, 0)

    return signature, generate


@intrinsic
def atomic_load(typing: Any, array: Any, index: Any) -> Any:
    """Read an element that other threads may change; never cached in a register."""
    if not isinstance(array, types.Array) or not isinstance(array.dtype, types.Integer):
        return None
    signature = array.dtype(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load_atomic(where, "acquire", signature.return_type.bitwidth // 8)

    return signature, generate


@intrinsic
def fence(typing: Any) -> Any:
    """A full memory fence: no read or write moves across it, in either direction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch an element that will be needed soon; returns nothing and cannot fault."""
    if not isinstance(array, types.Array):
        return None
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        address = builder.bitcast(where, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        numbers = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]  # for reading, keep close, data
        builder.call(function, [address, *numbers])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def lowest_bit(typing: Any, word: Any) -> Any:
    """The index of the lowest set bit of a non-zero word."""
    if not isinstance(word, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return context.cast(builder, found, signature.args[0], types.intp)

    return types.intp(word), generate
