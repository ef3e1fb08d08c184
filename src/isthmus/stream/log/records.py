"""Batches as bytes: what the log keeps of each.

A record is the length of a JSON text, the text, and raw little-endian arrays behind it. The text names the arrays, the
id that the client gave the batch, and how far an input file had been read. Integers take the least width that holds
them; texts are their lengths and their UTF-8 bytes. Nothing is pickled, and what is read back is checked as if a user
had given it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Edits
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.stream.input import batch_columns
from isthmus.stream.input.batch_columns import Array, Kinds

LENGTH = struct.Struct("<I")
COLUMNS = ("wishes", "sources", "targets", "weights", "added", "removed")
LENGTHS = ".lengths"  # of the texts of a column; their bytes have the column's own name
WIDTHS = tuple(map(np.dtype, ("u1", "<u2", "<u4", "<i8", "<u8")))
TYPES = {"uint8", "uint16", "uint32", "uint64", "int32", "int64", "float32", "float64"}
WRONG = (KeyError, ValueError, TypeError, AttributeError, struct.error, RecursionError, OverflowError)


@dataclass(frozen=True)
class Place:
    """How far an input was read: its name, its rows until now, and a checksum of them."""

    name: str
    rows: int
    checksum: str


@dataclass(frozen=True)
class Record:
    """A batch with what its sender said about it. `checksum` is that of the batch alone: a retry has the same."""

    edits: Edits
    checksum: str
    id: str | None = None
    place: Place | None = None


def encode(edits: Edits, id: str | None = None, place: Place | None = None) -> tuple[bytes, str]:
    """The bytes of a record, and the checksum of its batch."""
    arrays = [part for name in COLUMNS for part in parts_of(name, getattr(edits, name))]
    kinds = [[name, array.dtype.name, array.size] for name, array in arrays]
    body = b"".join(array.tobytes() for _, array in arrays)
    checksum = xxhash.xxh3_64_hexdigest(json.dumps(kinds).encode() + body)
    text: dict[str, Any] = {"arrays": kinds, "checksum": checksum}
    if id is not None:
        text["id"] = id
    if place is not None:
        text["place"] = [place.name, place.rows, place.checksum]
    head = json.dumps(text).encode()
    return LENGTH.pack(len(head)) + head + body, checksum


def parts_of(name: str, values: Array | None) -> list[tuple[str, Array]]:
    """The arrays that hold a column."""
    if values is None:
        return []
    if values.dtype == object:
        texts = [text.encode() for text in values.tolist()]
        lengths = np.array([len(text) for text in texts], np.int64)
        return [(name + LENGTHS, narrowed(lengths)), (name, np.array(bytearray(b"".join(texts)), np.uint8))]
    return [
        (name, narrowed(values) if name not in ("wishes", "weights") else values.astype(values.dtype.newbyteorder("<")))
    ]


def narrowed(values: Array) -> Array:
    """Integers in the least width that holds them."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for kind in WIDTHS:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    raise AssertionError(f"no integers from {low} to {high}")


def decode(data: bytes, kinds: Kinds) -> Record:
    """The record in these bytes; BatchError unless it is a batch for such a graph."""
    try:
        (length,) = LENGTH.unpack_from(data)
        text = json.loads(data[LENGTH.size : LENGTH.size + length])
        place = Place(*text["place"]) if "place" in text else None
        arrays = arrays_of(text["arrays"], data, LENGTH.size + length)
        id, checksum = text.get("id"), str(text["checksum"])
        if not isinstance(id, str | None) or (place is not None and not is_place(place)):
            raise ValueError("expected a text for an id, and a place in an input")
        return Record(edits_from(arrays, kinds), checksum, id, place)
    except WRONG as error:
        raise BatchError(f"{type(error).__name__}: {error}") from error


def is_place(place: Place) -> bool:
    return (
        isinstance(place.name, str) and type(place.rows) is int and place.rows >= 0 and isinstance(place.checksum, str)
    )


def arrays_of(listed: list[Any], data: bytes, at: int) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, kind, count in listed:
        if kind not in TYPES or type(count) is not int or count < 0 or name.removesuffix(LENGTHS) not in COLUMNS:
            raise ValueError(f"an array {name!r} of {count} {kind}")
        dtype = np.dtype(kind).newbyteorder("<")
        found[name] = np.frombuffer(data, dtype, count, at)
        at += count * dtype.itemsize
    if at != len(data):
        raise ValueError(f"expected {at} bytes, got {len(data)}")
    return found


def edits_from(arrays: dict[str, Array], kinds: Kinds) -> Edits:
    def ids(name: str) -> Array:
        return batch_columns.ids(column_of(arrays, name), kinds, lambda row: f"row {row}", name)

    wishes, sources, targets = arrays["wishes"].astype(np.uint8), ids("sources"), ids("targets")
    weights = arrays.get("weights")
    if weights is not None and kinds.weights is None:
        raise ValueError("weights for a graph without weights")
    if not sources.size == targets.size == wishes.size or (weights is not None and weights.size != wishes.size):
        raise ValueError("columns of different lengths")
    if not np.isin(wishes, (INSERT, DELETE, REWEIGH)).all():
        raise ValueError("an unknown operation")
    if weights is not None and kinds.weights is not None:
        weights = batch_columns.weights(weights, np.ones(wishes.size, np.bool_), kinds, lambda row: f"row {row}")
    added, removed = (ids(name) if name in arrays else None for name in ("added", "removed"))
    return Edits(wishes, sources, targets, weights, added, removed)


def column_of(arrays: dict[str, Array], name: str) -> Array:
    if name + LENGTHS not in arrays:
        return arrays[name]
    ends = np.cumsum(arrays[name + LENGTHS].astype(np.int64))
    data, begins = arrays[name].tobytes(), ends - arrays[name + LENGTHS].astype(np.int64)
    if (ends.size and int(ends[-1]) != len(data)) or (not ends.size and data):
        raise ValueError(f"{name}: texts of another length")
    found = np.empty(ends.size, object)
    found[:] = [data[begin:end].decode() for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return found
