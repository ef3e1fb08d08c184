"""Columns of a batch, checked against the graph: ids of its kind, and weights that its type holds.

Every check names the first row that fails it. Nothing is converted silently: ids that are real numbers, and weights
that the graph's type would round to another whole number, are errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.reading.arrow_columns import whole_hint
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH

Array = np.ndarray[Any, Any]
Where = Callable[[int], str]  # names a row for messages: "w.parquet: row 7", "changes.csv:8"

ADD_VERTEX, REMOVE_VERTEX = 8, 9  # beside INSERT, DELETE and REWEIGH, which are about edges
OPERATIONS = {
    "insert": INSERT,
    "delete": DELETE,
    "update": REWEIGH,
    "add_vertex": ADD_VERTEX,
    "remove_vertex": REMOVE_VERTEX,
}
LONGEST = 60  # characters of a value in a message


@dataclass(frozen=True)
class Kinds:
    """The types that a graph's batches must have. `careful`: a program that needs weights of at least 0."""

    ids: str  # of the id map: dense, int64, uint64 or string
    weights: np.dtype[Any] | None  # None: the graph has no weights
    careful: str | None = None

    @classmethod
    def of(cls, graph: AdvancingGraph, careful: str | None = None) -> Kinds:
        return cls(graph.changing_ids.kind, graph.snapshot.weight_dtype, careful)

    @property
    def id_dtype(self) -> Any:
        return np.dtype(object if self.ids == "string" else np.uint64 if self.ids == "uint64" else np.int64)


def bad(where: str, column: str, expected: str, got: Any) -> NoReturn:
    text = "null" if got is None else got if isinstance(got, float) else repr(got)
    text = str(text)
    raise BatchError(
        f"{where}: column {column!r}: expected {expected}, got "
        f"{text if len(text) <= LONGEST else text[: LONGEST - 3] + '...'}"
    )


def operation(word: Any, row: int, where: Where) -> int:
    """The number of an operation, which row `row` asks for."""
    code = OPERATIONS.get(word) if isinstance(word, str) else None
    if code is None:
        near = difflib.get_close_matches(word.lower(), OPERATIONS, 1) if isinstance(word, str) else []
        *names, last = OPERATIONS
        bad(where(row), "op", f"{', '.join(names)} or {last}{f' (did you mean {near[0]}?)' if near else ''}", word)
    return code


def ids(values: Array, kinds: Kinds, where: Where, column: str) -> Array:
    """User ids as the graph has them."""
    if not values.size:
        return np.empty(0, kinds.id_dtype)
    return texts(values, where, column) if kinds.ids == "string" else integers(values, kinds, where, column)


def integers(values: Array, kinds: Kinds, where: Where, column: str) -> Array:
    expected = "an integer, as the graph's ids are"
    if values.dtype == object:
        for row, value in enumerate(values.tolist()):
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                bad(where(row), column, expected + whole_hint(isinstance(value, float)), value)
    elif values.dtype.kind not in "iu":
        bad(where(0), column, expected + whole_hint(values.dtype.kind == "f"), values[0].item())
    limits = np.iinfo(kinds.id_dtype)
    low, high = int(values.min()), int(values.max())
    if low < limits.min or high > limits.max:
        row = next(row for row, value in enumerate(values.tolist()) if not limits.min <= value <= limits.max)
        bad(where(row), column, f"an id from {limits.min} to {limits.max}", int(values[row]))
    return values.astype(kinds.id_dtype)


def texts(values: Array, where: Where, column: str) -> Array:
    found = values.tolist()
    for row, value in enumerate(found):
        if not isinstance(value, str):
            bad(where(row), column, "a string, as the graph's ids are", value)
    try:
        "".join(found).encode()
    except UnicodeEncodeError:
        row = next(
            row
            for row, value in enumerate(found)
            if not value.isprintable() and value != value.encode(errors="replace").decode()
        )
        bad(where(row), column, "text that UTF-8 can hold", values[row])
    out = np.empty(len(found), object)
    out[:] = found
    return out


def weights(values: Array, used: Array, kinds: Kinds, where: Where, column: str = "weight") -> Array:
    """Weights in the graph's type. Only rows that are `used` are looked at; the others get 0."""
    assert kinds.weights is not None
    if values.dtype == object:
        for row in np.flatnonzero(used).tolist():
            value = values[row]
            if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
                bad(where(row), column, "a number", value)
        values = np.array([value if keep else 0 for value, keep in zip(values.tolist(), used.tolist(), strict=True)])
    if values.dtype.kind not in "iuf":
        if not used.any():
            return np.zeros(values.size, kinds.weights)
        row = int(np.argmax(used))
        bad(where(row), column, "a number", values[row].item() if values.dtype != object else values[row])
    check_weights(values, used, kinds, where, column)
    return np.where(used, values, 0).astype(kinds.weights)


def check_weights(values: Array, used: Array, kinds: Kinds, where: Where, column: str) -> None:
    kind = kinds.weights
    assert kind is not None
    refuse(used & ~np.isfinite(values), values, where, column, "a finite number")
    if kinds.careful is not None:
        refuse(used & (values < 0), values, where, column, f"a weight of at least 0, which {kinds.careful} needs")
    if kind.kind == "f":
        refuse(
            used & (np.abs(values.astype(np.float64)) > np.finfo(kind).max),
            values,
            where,
            column,
            f"a number that {kind} holds",
        )
        return
    limits = np.iinfo(kind)
    if values.dtype.kind == "f":
        refuse(
            used & (values != np.floor(values)),
            values,
            where,
            column,
            f"a whole number, as the graph's weights are {kind}",
        )
        outside = (values < float(limits.min)) | (values >= float(limits.max) + 1)
    else:
        outside = (values > limits.max) | (
            (values < limits.min) if values.dtype.kind == "i" else np.zeros(values.size, np.bool_)
        )
    refuse(used & outside, values, where, column, f"a number that {kind} holds, the type of the graph's weights")


def refuse(wrong: Array, values: Array, where: Where, column: str, expected: str) -> None:
    """Raise BatchError for the first of the rows that are wrong."""
    if wrong.any():
        row = int(np.argmax(wrong))
        bad(where(row), column, expected, values[row].item())
