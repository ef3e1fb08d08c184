"""Edges from Arrow batches: any table with `__arrow_c_stream__`, NumPy arrays, SciPy matrices.

Parquet and Arrow files (`columns`) are read through the same class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.files import Array
from isthmus.graph.formats import ReadOptions, naming
from isthmus.graph.names import encode
from isthmus.kernels import arcs
from isthmus.messages import option
from isthmus.threads import Pool

NUMBER_BYTES = 8  # about as much as a number takes
LAST_EXACT = 1 << 53  # above this, doubles cannot represent every integer
STRING_EDGES = 1 << 16  # per block with string ids, which take many times their bytes during encoding
STRING_BYTES = 1 << 20  # of the ids of such a block, unless a single edge has more
INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
ARRAYS_USE = ("weight", "ids", "vertices", "allow_negative")  # options that arrays use
WIDTHS = ("int32", "int64", "float64")  # types of weights, each wider than the ones before


class TableSource(EdgeSource):
    """Edges from a schema and a stream of record batches."""

    def __init__(self, name: str, schema: Any, batches: Callable[[], Iterator[Any]], options: ReadOptions) -> None:
        self.name, self.options, self._batches = name, options, batches
        self.vertices = options.vertices
        names = list(schema.names)
        self._weight = self._weight_column(names)
        ends = [name for name in names if options.weight is not None or name != self._weight]
        self._source = self._column(ends, options.source, naming.SOURCE, 0)
        self._target = self._column(ends, options.target, naming.TARGET, 1)
        self.weighted = self._weight is not None
        self.columns = [column for column in (self._source, self._target, self._weight) if column is not None]
        if len(set(self.columns)) < len(self.columns):
            raise OptionError(
                f"{self.name}: source, target and weight must be different columns, got {', '.join(self.columns)}; "
                f"name them with {option('source')}, {option('target')} and {option('weight')} out of {', '.join(names)}"
            )
        text = any(is_string(field.type) for field in schema if field.name in (self._source, self._target))
        self.ids = "string" if options.ids == "string" or (options.ids == "auto" and text) else "int"
        if options.vertices is not None:
            self.ids = "int"
        self.check_schema(schema, self.name)
        self._ignored = [field.name for field in schema if field.name not in self.columns]
        self._huge = False
        self._unsigned = self.weighted and pa.types.is_unsigned_integer(value_type(schema.field(self._weight).type))
        maybe = [field.name for field in schema if field.name in self._ignored and is_number(field.type)]
        if maybe and not self.weighted and options.weight is None:
            self.notes = (naming.ignored(name, len(self._ignored), maybe[0]),)

    def _weight_column(self, names: list[str]) -> str | None:
        """The column of the weights: the one that was requested, else one with a usual name for weights."""
        asked = self.options.weight
        if asked is None:
            taken = (self.options.source, self.options.target)
            return naming.known([name for name in names if name not in taken], naming.WEIGHT)
        return None if asked == naming.NONE and asked not in names else self._column(names, asked, (), -1)

    def _column(self, names: list[str], wanted: str | int | None, usual: tuple[str, ...], default: int) -> str:
        """The name of a column: requested by number (from 1) or name, else one of the usual names, else by position."""
        if isinstance(wanted, int | np.integer) or (isinstance(wanted, str) and wanted.isdigit() and wanted not in names):
            if not 1 <= int(wanted) <= len(names):
                raise OptionError(f"{self.name}: expected a column from 1 to {len(names)}, got {wanted}")
            return names[int(wanted) - 1]
        if wanted is not None:
            if wanted not in names:
                raise OptionError(f"{self.name}: no column {wanted!r}; there are {', '.join(names)}")
            return wanted
        named = naming.known(names, usual)
        if named is not None:
            return named
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
                if not is_number(kind):
                    hint = f" ({option('weight', naming.NONE)} reads no weights)" if self.options.weight is None else ""
                    raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected numbers as weights{hint}")
            elif not (pa.types.is_integer(kind) or is_string(kind)):
                hint = whole_hint(pa.types.is_floating(kind))
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers or strings as ids{hint}")
            elif self.ids == "int" and is_string(kind):
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers")

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self.signed = self._huge = False
        kind = WIDTHS[0]
        for block, signed, huge, width in pool.map(self._convert, self._pieces()):
            self.signed |= signed
            self._huge |= huge
            kind = max(kind, width, key=WIDTHS.index)
            if self.signed and self._huge:
                raise GraphFormatError(f"{self.name}: ids below 0 and above 2**63 - 1 in one table; no 64-bit type holds both")
            yield block
        self.weight_dtype = kind
        if self._unsigned and kind == "float64":
            self.notes = (*self.notes, naming.rounded(self.name))

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        """(first row, rows) of blocks."""
        row = 0
        for batch in self._batches():
            cuts = self._cuts(batch)
            for start, stop in pairwise(cuts):
                yield row + start, batch.slice(start, stop - start)
            row += batch.num_rows

    def _cuts(self, batch: Any) -> list[int]:
        """Where to cut a batch into blocks. Decoded ids may take many times the bytes of the batch, so they are counted."""
        rows = batch.num_rows
        if self.ids != "string":
            return [*range(0, rows, sizes.now.block_edges), rows]
        ends = np.cumsum(sum(text_lengths(batch.column(column)) for column in (self._source, self._target)))
        cuts = [0]
        while cuts[-1] < rows:
            before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            fitting = int(np.searchsorted(ends, before + STRING_BYTES, "right"))
            cuts.append(min(max(fitting, cuts[-1] + 1), cuts[-1] + min(sizes.now.block_edges, STRING_EDGES), rows))
        return cuts

    def _convert(self, item: tuple[int, Any]) -> tuple[EdgeBlock, bool, bool, str]:
        row, batch = item
        ends = [self._present(batch, column, row) for column in (self._source, self._target)]
        weights, width = self._weights(batch, row) if self._weight is not None else (None, WIDTHS[0])
        if self.ids == "string":
            first, second = self._binary(ends[0], self._source, row), self._binary(ends[1], self._target, row)
            sources, targets, names = encode(first, second, self.salt)
            return EdgeBlock(sources, targets, weights, names, batch.num_rows), False, False, width
        columns = [column.to_numpy(zero_copy_only=False) for column in ends]
        signed = any(c.dtype.kind == "i" and c.size and c.min() < 0 for c in columns)
        huge = any(c.dtype == np.uint64 and c.size and int(c.max()) >> 63 for c in columns)
        if self.vertices is not None and signed:
            raise GraphFormatError(f"{self.name}: expected ids from 0 to {self.vertices - 1}, got {min(c.min() for c in columns)}")
        sources, targets = (as_key(c) for c in columns)
        return EdgeBlock(sources, targets, weights, None, batch.num_rows), signed, huge, width

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

    def _binary(self, ids: Any, column: str, row: int) -> Any:
        """Strings (or integers requested as strings) as one large_binary array."""
        if not is_string(ids.type):
            return ids.cast(pa.large_string()).cast(pa.large_binary())
        ids = as_binary(ids)
        try:
            ids.cast(pa.large_string())  # bytes are checked on the way, strings of a file are not
        except pa.ArrowInvalid:
            at, bad = next((at, value) for at, value in enumerate(ids.to_pylist()) if not is_utf8(value))
            raise GraphFormatError(
                f"{self.name}: row {row + at}: expected an id in UTF-8 in column {column!r}, got {shortened_bytes(bad)}"
            ) from None
        return ids

    def _weights(self, batch: Any, row: int) -> tuple[Array, str]:
        assert self._weight is not None
        data = self._present(batch, self._weight, row)
        values = data.to_numpy(zero_copy_only=False)
        return check_weights(values, self.name, row, self.options.allow_negative)

    def report(self) -> dict[str, Any]:
        found = {"format": "table", "source": self._source, "target": self._target, "weight": self._weight}
        return {**found, "columns_ignored": len(self._ignored)} if self._ignored else found


def check_weights(values: Array, name: str, row: int, allow_negative: bool) -> tuple[Array, str]:
    """Weights as int64 or float64, and the narrowest type that holds all of them; an error for one that is not finite, exact or allowed."""
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
                raise GraphFormatError(f"{name}: row {row + at}: expected a weight that 64 bits hold exactly, got {values[at]}")
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
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary)
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


def open_object(what: Any, options: ReadOptions) -> EdgeSource:
    """An edge source for a Python object."""
    if hasattr(what, "tocoo"):
        refuse_unused("a matrix", options, ("weight", "allow_negative"))
        return from_matrix(what, options)
    if isinstance(what, list) and any(isinstance(item, tuple | list) for item in what):
        raise OptionError("a list of pairs could mean rows or columns; give (sources, targets[, weights]), for example tuple(zip(*edges))")
    if isinstance(what, tuple | list) and 2 <= len(what) <= 3:
        refuse_unused("arrays", options, ARRAYS_USE)
        return from_columns([as_column(column) for column in what], options)
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[1] in (2, 3):
        refuse_unused("arrays", options, ARRAYS_USE)
        return from_columns(list(what.T), options)
    if hasattr(what, "__arrow_c_stream__"):
        refuse_unused("a table", options, ("source", "target", *ARRAYS_USE))
        return from_stream(what, options)
    raise OptionError(f"cannot read edges from {type(what).__name__}; {instead(what)}")


def refuse_unused(what: str, options: ReadOptions, used: tuple[str, ...]) -> None:
    """Raise an error for options that are for other inputs, as formats do for files."""
    for each in fields(options):
        if each.name not in (*used, "own") and getattr(options, each.name) != each.default:
            raise OptionError(f"{each.name}: does not apply to {what}; leave it out")


def instead(what: Any) -> str:
    """What to give instead of an object that holds no edges, for messages."""
    if type(what).__module__.startswith("networkx"):
        return f"read it with {naming.from_networkx(what)}"
    if hasattr(what, "store") and hasattr(what, "snapshot"):
        return "it is a graph already, which algorithms take as it is"
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[0] == what.shape[1]:
        return "an adjacency matrix is read as a sparse one: isthmus.read(scipy.sparse.csr_array(matrix))"
    if hasattr(what, "collect"):
        return "collect() it first"
    return "expected a path, (sources, targets[, weights]) arrays, a SciPy sparse matrix, or a table such as a data frame"


def as_column(given: Any) -> Array:
    """A column as an array. NumPy would make text of the numbers in a list that holds both."""
    column = np.asarray(given)
    if column.dtype.kind in "US" and isinstance(given, tuple | list) and not all(isinstance(value, str | bytes) for value in given):
        other = next(value for value in given if not isinstance(value, str | bytes))
        raise GraphFormatError(f"arrays: expected integers or strings, got both: {other!r} beside text")
    return column


def from_stream(what: Any, options: ReadOptions) -> EdgeSource:
    """Edges from a table or a reader. A table gives its stream again; a reader can be read only once."""
    try:
        readers = [pa.RecordBatchReader.from_stream(what)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise GraphFormatError(
            f"table: cannot read: {', '.join(map(str, error.args))}; expected columns of one type each, integers or strings as ids"
        ) from error
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
    if options.weight not in (None, naming.NONE) and not (len(columns) == 3 and options.weight in ("weight", 3, "3")):
        raise OptionError(f"weight: expected weights as a third array, or {naming.NONE!r}, got {options.weight!r}")
    columns = columns[:2] if options.weight == naming.NONE else columns
    names = ["source", "target", "weight"][: len(columns)]
    table = pa.table({name: as_arrow(column, name) for name, column in zip(names, columns, strict=True)})
    kept = ReadOptions(
        source="source", target="target", weight="weight" if len(columns) == 3 else None, ids=options.ids,
        vertices=options.vertices, allow_negative=options.allow_negative,
    )  # fmt: skip
    source = TableSource("arrays", table.schema, lambda: iter(table.to_batches()), kept)
    source.replayable, source.edges, source.total = True, table.num_rows, table.num_rows
    if len(columns) == 3 and columns[2].dtype.kind in "iu":  # the type may be needed before the weights are read
        source.weight_dtype = weight_type(columns[2])
    source.sample = lambda count: sample_table(source, table, count)  # type: ignore[method-assign]
    return source


def as_arrow(column: Array, name: str) -> Any:
    """A NumPy array as an Arrow array; an empty list has no type and counts as no ids."""
    if name != "weight" and not column.size and column.dtype == np.float64:
        column = column.astype(np.int64)
    if name != "weight" and column.dtype.kind not in "iuUSO":
        hint = whole_hint(column.dtype.kind == "f")
        raise GraphFormatError(f"arrays: {name} holds {column.dtype}, expected integers or strings as ids{hint}")
    try:
        return pa.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        if column.dtype == object and all(isinstance(value, int) for value in column.tolist()):
            value = max(column.tolist(), key=abs)
            raise GraphFormatError(f"arrays: {name}: expected numbers that fit 64 bits, got {value}") from error
        expected = "numbers as weights" if name == "weight" else "integers or strings, not both"
        raise GraphFormatError(f"arrays: {name} holds {column.dtype} that cannot be read ({error}); expected {expected}") from error


def whole_hint(real: bool) -> str:
    """What to do with ids that are real numbers, which pandas makes of whole ones beside a gap."""
    return "; if they are whole numbers, convert them: .astype('int64')" if real else ""


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
    if options.weight not in (None, naming.NONE):
        raise OptionError(f"weight: the entries of a matrix are its weights; expected {naming.NONE!r} to read none, got {options.weight!r}")
    entries = matrix.tocoo()
    columns = [np.asarray(entries.row), np.asarray(entries.col)]
    if entries.data.dtype != np.bool_ and options.weight is None:
        columns.append(np.asarray(entries.data))
    kept = ReadOptions(vertices=matrix.shape[0], allow_negative=options.allow_negative)
    source = from_columns(columns, kept)
    source.symmetric = is_symmetric(*columns)
    return source


def is_symmetric(rows: Array, columns: Array, values: Array | None = None) -> bool:
    """Whether entries (i, j) and (j, i) are equal for all i and j, by a sum of hashes."""
    bits = None if values is None else np.ascontiguousarray(values, np.float64).view(np.int64)
    if values is not None and values.dtype.kind in "iu":
        bits = np.ascontiguousarray(values).astype(np.int64)
    return int(arcs.imbalance(as_key(rows), as_key(columns), bits)) == 0
