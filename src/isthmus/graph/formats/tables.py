"""Edges from Arrow batches: any table that speaks `__arrow_c_stream__`, NumPy arrays, SciPy matrices.

Parquet and Arrow files (`columns`) are read through the same class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.edges import BLOCK_EDGES, EdgeBlock, EdgeSource
from isthmus.graph.files import Array
from isthmus.graph.formats import ReadOptions
from isthmus.graph.names import encode
from isthmus.threads import Pool

INT32 = np.iinfo(np.int32)
SOURCE_NAMES = ("source", "src", "from", "u")
TARGET_NAMES = ("target", "destination", "dst", "dest", "to", "v")


class TableSource(EdgeSource):
    """Edges from a schema and a stream of record batches."""

    def __init__(self, name: str, schema: Any, batches: Callable[[], Iterator[Any]], options: ReadOptions) -> None:
        self.name, self.options, self._batches = name, options, batches
        self.vertices = options.vertices
        names = list(schema.names)
        self._source = self._column(names, options.source, SOURCE_NAMES, 0)
        self._target = self._column(names, options.target, TARGET_NAMES, 1)
        self._weight = self._column(names, options.weight, (), -1) if options.weight is not None else None
        self.weighted = self._weight is not None
        kinds = [is_string(schema.field(c).type) for c in (self._source, self._target)]
        self.ids = "string" if options.ids == "string" or (options.ids == "auto" and any(kinds)) else "int"
        for column in (self._source, self._target):
            self._check_type(column, schema.field(column).type)
        self._exact = True
        self._huge = False

    def _column(self, names: list[str], wanted: str | int | None, usual: tuple[str, ...], default: int) -> str:
        """The column meant: by number from 1, by name, by a usual name, else by position."""
        if isinstance(wanted, int) or (isinstance(wanted, str) and wanted.isdigit() and wanted not in names):
            if not 1 <= int(wanted) <= len(names):
                raise OptionError(f"{self.name}: expected a column from 1 to {len(names)}, got {wanted}")
            return names[int(wanted) - 1]
        if wanted is not None:
            if wanted not in names:
                raise OptionError(f"{self.name}: no column {wanted!r}; there are {', '.join(names)}")
            return wanted
        lower = {name.lower(): name for name in reversed(names)}
        for name in usual:
            if name in lower:
                return lower[name]
        if len(names) < 2:
            raise GraphFormatError(f"{self.name}: expected columns for source and target, found {', '.join(names) or 'none'}")
        return names[default]

    def _check_type(self, column: str, kind: Any) -> None:
        if is_string(kind) or (self.ids == "int" and pa.types.is_integer(value_type(kind))):
            if self.ids == "int" and is_string(kind):
                raise GraphFormatError(f"{self.name}: column {column!r} holds {kind}, expected integers")
            return
        if self.ids == "string" and pa.types.is_integer(value_type(kind)):
            return
        raise GraphFormatError(f"{self.name}: column {column!r} holds {kind}, expected integers or strings as ids")

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self._row = 0
        self.signed = self._huge = False
        self._exact = True
        for block, signed, huge, exact in pool.map(self._convert, self._pieces()):
            self.signed |= signed
            self._huge |= huge
            self._exact &= exact
            if self.signed and self._huge:
                raise GraphFormatError(f"{self.name}: ids below 0 and above 2**63 - 1 in one table; no 64-bit type holds both")
            yield block
        self.weight_dtype = "int32" if self._exact else "float64"

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        row = 0
        for batch in self._batches():
            for start in range(0, batch.num_rows, BLOCK_EDGES):
                piece = batch.slice(start, BLOCK_EDGES)
                yield row, piece
                row += piece.num_rows

    def _convert(self, item: tuple[int, Any]) -> tuple[EdgeBlock, bool, bool, bool]:
        row, batch = item
        ends = [self._present(batch, column, row) for column in (self._source, self._target)]
        weights, exact = self._weights(batch, row) if self._weight is not None else (None, True)
        if self.ids == "string":
            text = [binary(column) for column in ends]
            sources, targets, names = encode(*text, self.salt)
            return EdgeBlock(sources, targets, weights, names, batch.num_rows), False, False, exact
        columns = [column.to_numpy(zero_copy_only=False) for column in ends]
        signed = any(c.dtype.kind == "i" and c.size and c.min() < 0 for c in columns)
        huge = any(c.dtype == np.uint64 and c.size and int(c.max()) >> 63 for c in columns)
        if self.vertices is not None and signed:
            raise GraphFormatError(f"{self.name}: expected ids from 0 to {self.vertices - 1}, got {min(c.min() for c in columns)}")
        return EdgeBlock(*(as_key(c) for c in columns), weights, None, batch.num_rows), signed, huge, exact

    def _present(self, batch: Any, column: str, row: int) -> Any:
        """A column without nulls, decoded if it was a dictionary."""
        data = batch.column(column)
        if data.null_count:
            at = pc.index(data.is_null(), True).as_py()
            raise GraphFormatError(f"{self.name}: row {row + at}: expected a value in column {column!r}, got null")
        if pa.types.is_dictionary(data.type):
            data = data.dictionary_decode()
        return data

    def _weights(self, batch: Any, row: int) -> tuple[Array, bool]:
        assert self._weight is not None
        data = self._present(batch, self._weight, row)
        if not (pa.types.is_integer(data.type) or pa.types.is_floating(data.type)):
            raise GraphFormatError(f"{self.name}: column {self._weight!r} holds {data.type}, expected numbers as weights")
        values = data.to_numpy(zero_copy_only=False)
        return check_weights(values, self.name, row, self.options.allow_negative)

    def report(self) -> dict[str, Any]:
        return {"format": "table", "source": self._source, "target": self._target, "weight": self._weight}


def check_weights(values: Array, name: str, row: int, allow_negative: bool) -> tuple[Array, bool]:
    """Weights as float64, and whether int32 holds all of them; refuses what no algorithm can use."""
    weights = values.astype(np.float64)
    bad = ~np.isfinite(weights)
    if not allow_negative:
        bad |= weights < 0
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        if np.isfinite(weights[at]):
            raise GraphFormatError(f"{name}: row {row + at}: expected a weight of at least 0 (--allow-negative admits others), got {weights[at]}")
        raise GraphFormatError(f"{name}: row {row + at}: expected a finite weight, got {weights[at]}")
    if values.dtype.kind in "iu" and values.size and (values.astype(np.float64).astype(values.dtype) != values).any():
        raise GraphFormatError(f"{name}: a weight above 2**53 does not fit a 64-bit float exactly")
    exact = bool(values.dtype.kind in "iub" and (weights.size == 0 or (weights.min() >= INT32.min and weights.max() <= INT32.max)))
    return weights, exact


def value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_string(kind: Any) -> bool:
    kind = value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def binary(column: Any) -> Any:
    """Strings (or integers asked for as strings) as one large_binary array."""
    return column.cast(pa.large_string()).cast(pa.large_binary())


def as_key(values: Array) -> Array:
    """Integers as unsigned keys: 32 bits where the type guarantees it, else two's complement in 64."""
    if values.dtype.kind == "u" and values.itemsize <= 4:
        return np.ascontiguousarray(values, np.uint32)
    if values.dtype.kind == "u":
        return np.ascontiguousarray(values, np.uint64)
    if values.size and values.min() >= 0 and values.max() < 1 << 32:
        return values.astype(np.uint32)
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def open_object(what: Any, options: ReadOptions) -> EdgeSource:
    """An edge source for a Python object."""
    if hasattr(what, "tocoo"):
        return from_matrix(what, options)
    if isinstance(what, tuple | list) and 2 <= len(what) <= 3:
        return from_columns([np.asarray(column) for column in what], options)
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[1] in (2, 3):
        return from_columns(list(what.T), options)
    if hasattr(what, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(what)
        return from_reader(reader, options)
    if hasattr(what, "__dataframe__") or type(what).__module__.startswith("pandas"):
        return from_reader(pa.Table.from_pandas(what, preserve_index=False).to_reader(), options)
    raise OptionError(
        f"cannot read edges from {type(what).__name__}; expected a path, (sources, targets[, weights]) arrays, "
        "a SciPy sparse matrix, or a table with __arrow_c_stream__"
    )


def from_reader(reader: Any, options: ReadOptions) -> EdgeSource:
    used = False

    def batches() -> Iterator[Any]:
        nonlocal used
        if used:
            raise GraphFormatError("an Arrow stream can be read only once")
        used = True
        yield from reader

    return TableSource("table", reader.schema, batches, options)


def from_columns(columns: list[Array], options: ReadOptions) -> EdgeSource:
    """(sources, targets) or (sources, targets, weights)."""
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise OptionError(f"expected arrays of one length, got shapes {', '.join(str(c.shape) for c in columns)}")
    names = ["source", "target", "weight"][: len(columns)]
    arrays = []
    for name, column in zip(names, columns, strict=True):
        if name != "weight" and column.dtype.kind not in "iuUSO":
            raise GraphFormatError(f"arrays: {name} holds {column.dtype}, expected integers or strings as ids")
        arrays.append(pa.array(np.ascontiguousarray(column)))
    table = pa.table(dict(zip(names, arrays, strict=True)))
    kept = ReadOptions(
        source="source", target="target", weight="weight" if len(columns) == 3 else None, ids=options.ids,
        vertices=options.vertices, allow_negative=options.allow_negative,
    )  # fmt: skip
    source = TableSource("arrays", table.schema, lambda: iter(table.to_batches()), kept)
    source.replayable, source.edges, source.total = True, table.num_rows, table.num_rows
    source.sample = lambda count: sample_table(source, table, count)  # type: ignore[method-assign]
    return source


def sample_table(source: TableSource, table: Any, count: int) -> EdgeBlock:
    step = max(1, table.num_rows // max(count, 1))
    picked = table.take(pa.array(np.arange(0, table.num_rows, step))).combine_chunks()
    batches = picked.to_batches()
    if not batches:
        return EdgeBlock(np.empty(0, np.uint32), np.empty(0, np.uint32))
    return source._convert((0, batches[0]))[0]


def from_matrix(matrix: Any, options: ReadOptions) -> EdgeSource:
    """A SciPy sparse matrix: entry (i, j) is the edge from i to j; its value the weight, unless boolean."""
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphFormatError(f"matrix: expected as many rows as columns, got {matrix.shape[0]} x {matrix.shape[1]}")
    entries = matrix.tocoo()
    columns = [np.asarray(entries.row), np.asarray(entries.col)]
    if entries.data.dtype != np.bool_ and options.weight != "none":
        columns.append(np.asarray(entries.data))
    kept = ReadOptions(vertices=matrix.shape[0], allow_negative=options.allow_negative)
    return from_columns(columns, kept)
