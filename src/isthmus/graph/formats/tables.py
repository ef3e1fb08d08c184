"""Edges from Arrow batches: any table with `__arrow_c_stream__`, NumPy arrays, SciPy matrices.

Parquet and Arrow files (`columns`) are read through the same class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.files import Array
from isthmus.graph.formats import ReadOptions
from isthmus.graph.names import encode
from isthmus.threads import Pool

LAST_EXACT = 1 << 53  # above this, doubles cannot represent every integer
STRING_EDGES = 1 << 16  # per block with string ids, which take many times their bytes during encoding
INT32 = np.iinfo(np.int32)
SOURCE_NAMES = ("source", "src", "from", "u")
TARGET_NAMES = ("target", "destination", "dst", "dest", "to", "v")


class TableSource(EdgeSource):
    """Edges from a schema and a stream of record batches."""

    def __init__(self, name: str, schema: Any, batches: Callable[[], Iterator[Any]], options: ReadOptions) -> None:
        self.name, self.options, self._batches = name, options, batches
        self.vertices = options.vertices
        names = list(schema.names)
        self._columns = len(names)
        self._source = self._column(names, options.source, SOURCE_NAMES, 0)
        self._target = self._column(names, options.target, TARGET_NAMES, 1)
        self._weight = self._column(names, options.weight, (), -1) if options.weight is not None else None
        self.weighted = self._weight is not None
        self.columns = [column for column in (self._source, self._target, self._weight) if column is not None]
        if len(set(self.columns)) < len(self.columns):
            raise OptionError(
                f"{self.name}: source, target and weight must be different columns, got {', '.join(self.columns)}; "
                f"name them with --source, --target and --weight out of {', '.join(names)}"
            )
        text = any(is_string(field.type) for field in schema if field.name in (self._source, self._target))
        self.ids = "string" if options.ids == "string" or (options.ids == "auto" and text) else "int"
        if options.vertices is not None:
            self.ids = "int"
        self.check_schema(schema, self.name)
        self._exact = True
        self._huge = False

    def _column(self, names: list[str], wanted: str | int | None, usual: tuple[str, ...], default: int) -> str:
        """The name of a column: requested by number (from 1) or name, else one of the usual names, else by position."""
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

    def check_schema(self, schema: Any, name: str) -> None:
        """Check that each column exists once and has a type for ids or weights."""
        for column in self.columns:
            count = schema.names.count(column)
            if count != 1:
                raise GraphFormatError(f"{name}: expected one column {column!r}, found {count}")
            kind = value_type(schema.field(column).type)
            if column == self._weight:
                if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                    raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected numbers as weights")
            elif not (pa.types.is_integer(kind) or is_string(kind)):
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers or strings as ids")
            elif self.ids == "int" and is_string(kind):
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers")

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
        size = min(sizes.now.block_edges, STRING_EDGES) if self.ids == "string" else sizes.now.block_edges
        for batch in self._batches():
            for start in range(0, batch.num_rows, size):
                piece = batch.slice(start, size)
                yield row, piece
                row += piece.num_rows

    def _convert(self, item: tuple[int, Any]) -> tuple[EdgeBlock, bool, bool, bool]:
        row, batch = item
        ends = [self._present(batch, column, row) for column in (self._source, self._target)]
        weights, exact = self._weights(batch, row) if self._weight is not None else (None, True)
        if self.ids == "string":
            sources, targets, names = encode(self._binary(ends[0], row), self._binary(ends[1], row), self.salt)
            return EdgeBlock(sources, targets, weights, names, batch.num_rows), False, False, exact
        columns = [column.to_numpy(zero_copy_only=False) for column in ends]
        signed = any(c.dtype.kind == "i" and c.size and c.min() < 0 for c in columns)
        huge = any(c.dtype == np.uint64 and c.size and int(c.max()) >> 63 for c in columns)
        if self.vertices is not None and signed:
            raise GraphFormatError(f"{self.name}: expected ids from 0 to {self.vertices - 1}, got {min(c.min() for c in columns)}")
        sources, targets = (as_key(c) for c in columns)
        return EdgeBlock(sources, targets, weights, None, batch.num_rows), signed, huge, exact

    def _present(self, batch: Any, column: str, row: int) -> Any:
        """A column, decoded if it is a dictionary; an error if it has nulls."""
        data = batch.column(column)
        if pa.types.is_dictionary(data.type):
            values = data.dictionary
            if pa.types.is_string_view(values.type):  # from Polars; Arrow's `take` does not support it
                values = values.cast(pa.large_string())
            data = values.take(data.indices)
        if data.null_count:
            at = pc.index(data.is_null(), True).as_py()
            raise GraphFormatError(f"{self.name}: row {row + at}: expected a value in column {column!r}, got null")
        return data

    def _binary(self, column: Any, row: int) -> Any:
        """Strings (or integers requested as strings) as one large_binary array."""
        try:
            return column.cast(pa.large_string()).cast(pa.large_binary())
        except pa.ArrowInvalid as error:
            raise GraphFormatError(f"{self.name}: rows from {row} on: expected ids in UTF-8: {error}") from error

    def _weights(self, batch: Any, row: int) -> tuple[Array, bool]:
        assert self._weight is not None
        data = self._present(batch, self._weight, row)
        values = data.to_numpy(zero_copy_only=False)
        return check_weights(values, self.name, row, self.options.allow_negative)

    def report(self) -> dict[str, Any]:
        found = {"format": "table", "source": self._source, "target": self._target, "weight": self._weight}
        ignored = self._columns - (3 if self.weighted else 2)
        return {**found, "columns_ignored": ignored} if ignored > 0 else found


def check_weights(values: Array, name: str, row: int, allow_negative: bool) -> tuple[Array, bool]:
    """Weights as float64, and whether int32 holds all of them; an error for a weight that is not finite, exact or allowed."""
    weights = values.astype(np.float64)
    bad = ~np.isfinite(weights)
    if not allow_negative:
        bad |= weights < 0
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        expected = "a weight of at least 0 (--allow-negative admits others)" if np.isfinite(weights[at]) else "a finite weight"
        raise GraphFormatError(f"{name}: row {row + at}: expected {expected}, got {weights[at]}")
    if values.dtype.kind in "iu":
        for at in np.flatnonzero(np.abs(weights) >= LAST_EXACT).tolist():  # few, if any
            if int(weights[at]) != int(values[at]):
                raise GraphFormatError(f"{name}: row {row + at}: expected a weight that a 64-bit float holds exactly, got {values[at]}")
    return weights, values.dtype.kind in "iu" and fits_int32(values)


def fits_int32(values: Array) -> bool:
    return not values.size or bool(values.min() >= INT32.min and values.max() <= INT32.max)


def value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_string(kind: Any) -> bool:
    """Whether a type is text, or bytes: some Parquet writers store text as bytes."""
    kind = value_type(kind)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


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
    if isinstance(what, list) and any(isinstance(item, tuple | list) for item in what):
        raise OptionError("a list of pairs could mean rows or columns; give (sources, targets[, weights]), for example tuple(zip(*edges))")
    if isinstance(what, tuple | list) and 2 <= len(what) <= 3:
        return from_columns([np.asarray(column) for column in what], options)
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[1] in (2, 3):
        return from_columns(list(what.T), options)
    if hasattr(what, "__arrow_c_stream__"):
        return from_stream(what, options)
    raise OptionError(
        f"cannot read edges from {type(what).__name__}; expected a path, (sources, targets[, weights]) arrays, "
        "a SciPy sparse matrix, or a table with __arrow_c_stream__"
    )


def from_stream(what: Any, options: ReadOptions) -> EdgeSource:
    """Edges from a table or a reader. A table gives its stream again; a reader can be read only once."""
    readers = [pa.RecordBatchReader.from_stream(what)]
    once = isinstance(what, pa.RecordBatchReader)

    def batches() -> Iterator[Any]:
        try:
            yield from readers.pop() if readers or once else pa.RecordBatchReader.from_stream(what)
        except (pa.ArrowException, OSError) as error:
            raise GraphFormatError(f"table: cannot read: {error}") from error

    source = TableSource("table", readers[0].schema, batches, options)
    source.replayable = not once
    return source


def from_columns(columns: list[Array], options: ReadOptions) -> EdgeSource:
    """Edges from arrays (sources, targets) or (sources, targets, weights)."""
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise OptionError(f"expected arrays of one length, got shapes {', '.join(str(c.shape) for c in columns)}")
    names = ["source", "target", "weight"][: len(columns)]
    table = pa.table({name: as_arrow(column, name) for name, column in zip(names, columns, strict=True)})
    kept = ReadOptions(
        source="source", target="target", weight="weight" if len(columns) == 3 else None, ids=options.ids,
        vertices=options.vertices, allow_negative=options.allow_negative,
    )  # fmt: skip
    source = TableSource("arrays", table.schema, lambda: iter(table.to_batches()), kept)
    source.replayable, source.edges, source.total = True, table.num_rows, table.num_rows
    if len(columns) == 3 and columns[2].dtype.kind in "iu":  # the type may be needed before the weights are read
        source.weight_dtype = "int32" if fits_int32(columns[2]) else "float64"
    source.sample = lambda count: sample_table(source, table, count)  # type: ignore[method-assign]
    return source


def as_arrow(column: Array, name: str) -> Any:
    """A NumPy array as an Arrow array; an empty list has no type and counts as no ids."""
    if name != "weight" and not column.size and column.dtype == np.float64:
        column = column.astype(np.int64)
    if name != "weight" and column.dtype.kind not in "iuUSO":
        raise GraphFormatError(f"arrays: {name} holds {column.dtype}, expected integers or strings as ids")
    try:
        return pa.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise GraphFormatError(f"arrays: {name} holds {column.dtype} that cannot be read: {error}") from error


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
