"""Columns of Arrow tables and arrays: their types, ids as keys, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus.errors import GraphFormatError
from isthmus.graph.store.files import Array
from isthmus.messages import option

NUMBER_BYTES = 8  # about as much as a number takes
LAST_EXACT = 1 << 53  # above this, doubles cannot represent every integer
INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
WIDTHS = ("int32", "int64", "float64")  # types of weights, each wider than the ones before


def has_missing(column: Any) -> bool:
    """Whether a value is null, or not a number."""
    if pa.types.is_floating(column.type):
        return bool(pc.any(pc.is_null(column, nan_is_null=True)).as_py())
    return bool(column.null_count)


def check_weights(values: Array, name: str, row: int, allow_negative: bool) -> tuple[Array, str]:
    """Weights as int64 or float64, and the narrowest type that holds all; each must be finite, exact and allowed."""
    kind = weight_type(values)
    weights = values.astype(np.int64 if kind != "float64" else np.float64)
    bad = ~np.isfinite(weights)
    if not allow_negative:
        bad |= weights < 0
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        admits = f"({option('allow_negative', True)} admits others)"
        expected = f"a weight of at least 0 {admits}" if np.isfinite(weights[at]) else "a finite weight"
        raise GraphFormatError(f"{name}: row {row + at}: expected {expected}, got {weights[at]}")
    if values.dtype.kind == "u" and kind == "float64":
        for at in np.flatnonzero(weights >= LAST_EXACT).tolist():  # few, if any
            if int(weights[at]) != int(values[at]):
                raise GraphFormatError(
                    f"{name}: row {row + at}: expected a weight that 64 bits hold exactly, got {values[at]}"
                )
    return weights, kind


def weight_type(values: Array) -> str:
    """The narrowest type that holds all weights exactly, where there is one."""
    if values.dtype.kind not in "iu":
        return "float64"
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if INT32.min <= low and high <= INT32.max:
        return "int32"
    return "int64" if high <= INT64.max else "float64"


def value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_number(kind: Any) -> bool:
    kind = value_type(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_string(kind: Any) -> bool:
    """Whether a type is text, or bytes: some Parquet writers store text as bytes."""
    kind = value_type(kind)
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(test(kind) for test in tests)


def as_binary(strings: Any) -> Any:
    """Strings of any Arrow type as large_binary."""
    if pa.types.is_string_view(strings.type):
        strings = strings.cast(pa.large_string())
    return strings.cast(pa.large_binary())


def text_lengths(column: Any) -> Array:
    """The bytes of each value of a column once it is decoded; a few for a number or a null."""
    if pa.types.is_dictionary(column.type):
        lengths = text_lengths(column.dictionary)
        places = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return lengths[places] if lengths.size else np.zeros(len(column), np.int64)
    if pa.types.is_string_view(column.type):  # a view begins with its length
        views = np.frombuffer(column.buffers()[1], np.int32)[::4]
        return views[column.offset : column.offset + len(column)].astype(np.int64)
    if is_string(column.type):
        return np.asarray(pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
    return np.full(len(column), NUMBER_BYTES)


def is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def shortened_bytes(value: bytes) -> str:
    """Bytes for messages, shortened."""
    return repr(value) if len(value) <= 40 else repr(value[:37]) + "..."


def as_key(values: Array) -> Array:
    """Integers as unsigned keys: 32 bits where the type guarantees it, else two's complement in 64."""
    if values.dtype.kind == "u" and values.itemsize <= 4:
        return np.ascontiguousarray(values, np.uint32)
    if values.dtype.kind == "u":
        return np.ascontiguousarray(values, np.uint64)
    if values.size and values.min() >= 0 and values.max() < 1 << 32:
        return values.astype(np.uint32)
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def whole_hint(real: bool) -> str:
    """A hint about ids that are real numbers; pandas makes them of whole numbers beside a gap."""
    return "; if they are whole numbers, convert them: .astype('int64')" if real else ""
