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
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.host_copies import is_gpu_frame, lies_on_gpu, to_host
from isthmus.graph.ingest.names import encode
from isthmus.graph.reading import column_names
from isthmus.graph.store.files import Array
from isthmus.kernels.store import arc_keys
from isthmus.messages import option
from isthmus.threads import Pool

NUMBER_BYTES = 8  # about as much as a number takes
LAST_EXACT = 1 << 53  # above this, doubles cannot represent every integer
STRING_EDGES = 1 << 16  # per block with string ids, which take many times their bytes during encoding
STRING_BYTES = 1 << 20  # of the ids of such a block, unless a single edge has more
INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
ARRAYS_USE = ("weight", "ids", "vertices", "allow_negative", "missing")  # options that arrays use
WIDTHS = ("int32", "int64", "float64")  # types of weights, each wider than the ones before


class TableSource(EdgeSource):
    """Edges from a schema and a stream of record batches."""

    def __init__(self, name: str, schema: Any, batches: Callable[[], Iterator[Any]], options: ReadOptions) -> None:
        self.name, self.options, self._batches = name, options, batches
        self.vertices = options.vertices
        self._skips, self._skipped = options.missing == "skip", 0
        names = list(schema.names)
        self._weight = self._weight_column(names)
        ends = [name for name in names if options.weight is not None or name != self._weight]
        self._source = self._column(ends, options.source, column_names.SOURCE, 0)
        self._target = self._column(ends, options.target, column_names.TARGET, 1)
        self.weighted = self._weight is not None
        self.columns = [column for column in (self._source, self._target, self._weight) if column is not None]
        if len(set(self.columns)) < len(self.columns):
            raise OptionError(
                f"{self.name}: source, target and weight must be different columns, got {', '.join(self.columns)}; "
                f"name them with {option('source')}, {option('target')} and {option('weight')} out of "
                f"{', '.join(names)}"
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
            self.notes = (column_names.ignored(name, len(self._ignored), maybe[0]),)

    def _weight_column(self, names: list[str]) -> str | None:
        """The column of the weights: the one that was requested, else one with a usual name for weights."""
        asked = self.options.weight
        if asked is None:
            taken = (self.options.source, self.options.target)
            return column_names.known([name for name in names if name not in taken], column_names.WEIGHT)
        return None if asked == column_names.NONE and asked not in names else self._column(names, asked, (), -1)

    def _column(self, names: list[str], wanted: str | int | None, usual: tuple[str, ...], default: int) -> str:
        """The name of a column: requested by number (from 1) or name, else one of the usual names, else by position."""
        if isinstance(wanted, int | np.integer) or (
            isinstance(wanted, str) and wanted.isdigit() and wanted not in names
        ):
            if not 1 <= int(wanted) <= len(names):
                raise OptionError(f"{self.name}: expected a column from 1 to {len(names)}, got {wanted}")
            return names[int(wanted) - 1]
        if wanted is not None:
            if wanted not in names:
                raise OptionError(f"{self.name}: no column {wanted!r}; there are {', '.join(names)}")
            return wanted
        named = column_names.known(names, usual)
        if named is not None:
            return named
        if len(names) < 2:
            raise GraphFormatError(
                f"{self.name}: expected columns for source and target, found {', '.join(names) or 'none'}"
            )
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
                    hint = (
                        f" ({option('weight', column_names.NONE)} reads no weights)"
                        if self.options.weight is None
                        else ""
                    )
                    raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected numbers as weights{hint}")
            elif not (pa.types.is_integer(kind) or is_string(kind) or (pa.types.is_floating(kind) and self._skips)):
                hint = whole_hint(pa.types.is_floating(kind))
                raise GraphFormatError(
                    f"{name}: column {column!r} holds {kind}, expected integers or strings as ids{hint}"
                )
            elif self.ids == "int" and is_string(kind):
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers")

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self.signed = self._huge = False
        self._skipped, kind = 0, WIDTHS[0]
        for block, signed, huge, width in pool.map(self._convert, self._pieces()):
            self._skipped += block.done - block.sources.size
            self.signed |= signed
            self._huge |= huge
            kind = max(kind, width, key=WIDTHS.index)
            if self.signed and self._huge:
                raise GraphFormatError(
                    f"{self.name}: ids below 0 and above 2**63 - 1 in one table; no 64-bit type holds both"
                )
            yield block
        self.weight_dtype = kind
        if self._unsigned and kind == "float64":
            self.notes = (*self.notes, column_names.rounded(self.name))
        if self._skipped:
            self.notes = (*self.notes, column_names.skipped(self.name, self._skipped, "row"))

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        """(first row, rows) of blocks."""
        row = 0
        for batch in self._batches():
            cuts = self._cuts(batch)
            for start, stop in pairwise(cuts):
                yield row + start, batch.slice(start, stop - start)
            row += batch.num_rows

    def _cuts(self, batch: Any) -> list[int]:
        """Where to cut a batch into blocks. Decoded ids may take many times the bytes of the batch, so they are
        counted.
        """
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
        names = (self._source, self._target)
        ends = [self._decoded(batch, column) for column in names]
        kept = None
        if self._skips and any(missing(column) is not None for column in ends):
            there = pc.invert(pc.or_(*(pc.is_null(column, nan_is_null=True) for column in ends)))
            kept = there.to_numpy(zero_copy_only=False)
            ends = [column.fill_null(0 if not is_string(column.type) else "") for column in ends]
        ends = [self._present(column, name, row) for column, name in zip(ends, names, strict=True)]
        weights, width = self._weights(batch, row, kept) if self._weight is not None else (None, WIDTHS[0])
        if self.ids == "string":
            first, second = (self._binary(column, name, row) for column, name in zip(ends, names, strict=True))
            if kept is not None:
                first, second = first.filter(there), second.filter(there)
            sources, targets, texts = encode(first, second, self.salt)
            return EdgeBlock(sources, targets, weights, texts, batch.num_rows), False, False, width
        columns = [self._whole(column, name, row, kept) for column, name in zip(ends, names, strict=True)]
        signed = any(c.dtype.kind == "i" and c.size and c.min() < 0 for c in columns)
        huge = any(c.dtype == np.uint64 and c.size and int(c.max()) >> 63 for c in columns)
        if self.vertices is not None and signed:
            raise GraphFormatError(
                f"{self.name}: expected ids from 0 to {self.vertices - 1}, got {min(c.min() for c in columns)}"
            )
        sources, targets = (as_key(c) for c in columns)
        return EdgeBlock(sources, targets, weights, None, batch.num_rows), signed, huge, width

    def _decoded(self, batch: Any, column: str) -> Any:
        """A column, decoded if it is a dictionary."""
        data = batch.column(column)
        if pa.types.is_dictionary(data.type):
            values = data.dictionary
            if pa.types.is_string_view(values.type):  # from Polars; Arrow's `take` does not support it
                values = values.cast(pa.large_string())
            data = values.take(data.indices)
        return data

    def _present(self, data: Any, column: str, row: int) -> Any:
        """A column; an error if it has nulls."""
        if data.null_count:
            at = pc.index(data.is_null(), True).as_py()
            skips = f" ({option('missing', 'skip')} leaves such rows out)" if column != self._weight else ""
            raise GraphFormatError(
                f"{self.name}: row {row + at}: expected a value in column {column!r}, got null{skips}"
            )
        return data

    def _whole(self, data: Any, column: str, row: int, kept: Array | None) -> Array:
        """Integer ids of the rows that are kept. Whole numbers among floats count: pandas makes floats of integers
        beside a gap.
        """
        values = np.asarray(data.to_numpy(zero_copy_only=False))
        if values.dtype.kind == "f":
            there = np.ones(values.size, np.bool_) if kept is None else kept
            bad = there & ~((values == np.rint(values)) & (np.abs(values) < LAST_EXACT))
            if bad.any():
                at = int(bad.argmax())
                raise GraphFormatError(
                    f"{self.name}: row {row + at}: expected a whole number in column {column!r}, got {values[at]}"
                )
            values = np.where(there, values, 0).astype(np.int64)
        return values if kept is None else values[kept]

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

    def _weights(self, batch: Any, row: int, kept: Array | None = None) -> tuple[Array, str]:
        assert self._weight is not None
        data = self._decoded(batch, self._weight)
        if kept is not None:  # a row that is left out needs no weight
            data = pc.if_else(pa.array(kept), data, pa.scalar(0, data.type))
        values = self._present(data, self._weight, row).to_numpy(zero_copy_only=False)
        weights, width = check_weights(values, self.name, row, self.options.allow_negative)
        return weights if kept is None else weights[kept], width

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "format": "table",
            "source": self._source,
            "target": self._target,
            "weight": self._weight,
        }
        found = {**found, "rows_skipped": self._skipped} if self._skipped else found
        return {**found, "columns_ignored": len(self._ignored)} if self._ignored else found


def missing(column: Any) -> int | None:
    """How many values are null, or not a number; None if there are none."""
    if pa.types.is_floating(column.type):
        return int(pc.sum(pc.is_null(column, nan_is_null=True)).as_py() or 0) or None
    return column.null_count or None


def check_weights(values: Array, name: str, row: int, allow_negative: bool) -> tuple[Array, str]:
    """Weights as int64 or float64, and the narrowest type that holds all of them; an error for one that is not finite,
    exact or allowed.
    """
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


def open_object(what: Any, options: ReadOptions) -> EdgeSource:
    """An edge source for a Python object."""
    from isthmus.graph.reading.networkx_edges import is_networkx, open_networkx  # late: it reads tables

    # The edges of a forest are edges.
    if is_ours(what) and not {"source", "target"} <= set(getattr(what, "columns", ())):
        raise OptionError(f"cannot read edges from {type(what).__name__}; {instead(what)}")
    if not is_ours(what) and lies_on_gpu(what):
        what = to_host(what)
    if is_networkx(what):
        refuse_unused("a NetworkX graph", options, ("weight", "ids", "allow_negative"))
        return open_networkx(what, options)
    if hasattr(what, "tocoo"):
        refuse_unused("a matrix", options, ("weight", "allow_negative"))
        return from_matrix(what, options)
    if isinstance(what, list) and what and all(isinstance(item, tuple) for item in what):
        refuse_unused("a list of edges", options, ARRAYS_USE)
        return from_columns(columns_of(what), options)
    if isinstance(what, list) and any(isinstance(item, tuple | list) for item in what):
        raise OptionError(
            "a list of lists could mean rows or columns; give a list of tuples (source, target[, weight]), one for "
            "each edge"
        )
    if isinstance(what, tuple | list) and 2 <= len(what) <= 3:
        refuse_unused("arrays", options, ARRAYS_USE)
        return from_columns([as_column(column) for column in what], options)
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[1] in (2, 3):
        refuse_unused("arrays", options, ARRAYS_USE)
        return from_columns(list(what.T), options)
    if hasattr(what, "__arrow_c_stream__") or is_lazy(what):
        refuse_unused("a table", options, ("source", "target", *ARRAYS_USE))
        return from_lazy(what, options) if is_lazy(what) else from_stream(what, options)
    if is_gpu_frame(what):
        refuse_unused("a table", options, ("source", "target", *ARRAYS_USE))
        return from_stream(host_table(what), options)
    raise OptionError(f"cannot read edges from {type(what).__name__}; {instead(what)}")


def host_table(frame: Any) -> Any:
    """A copy in host memory of a table on a GPU."""
    try:
        return (
            frame.to_arrow()
            if hasattr(frame, "to_arrow")
            else pa.table({str(name): to_host(frame[name]) for name in frame.columns})
        )
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise GraphFormatError(f"table on a GPU: cannot copy it to the host: {error}") from error


def refuse_unused(what: str, options: ReadOptions, used: tuple[str, ...]) -> None:
    """Raise an error for options that are for other inputs, as formats do for files."""
    for each in fields(options):
        if each.name not in (*used, "own") and getattr(options, each.name) != each.default:
            raise OptionError(f"{each.name}: does not apply to {what}; leave it out")


def instead(what: Any) -> str:
    """What to give instead of an object that holds no edges, for messages."""
    if is_ours(what) and hasattr(what, "algorithm"):
        return f"it holds values of vertices: {', '.join(what.columns)}"
    if hasattr(what, "store") and hasattr(what, "snapshot"):
        return "it is a graph already, which algorithms take as it is"
    if isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[0] == what.shape[1]:
        return "an adjacency matrix is read as a sparse one: isthmus.read(scipy.sparse.csr_array(matrix))"
    return (
        "expected a path, (sources, targets[, weights]) arrays, a list of tuples (source, target[, weight]), "
        "a SciPy sparse matrix, a NetworkX graph, or a table such as a data frame"
    )


def is_ours(what: Any) -> bool:
    """Whether it is a graph or a result, which offer Arrow streams as tables do."""
    return type(what).__module__.startswith("isthmus.")


def is_lazy(what: Any) -> bool:
    """Whether it is a polars LazyFrame."""
    return all(hasattr(what, name) for name in ("collect_schema", "collect", "lazy")) and not hasattr(
        what, "__arrow_c_stream__"
    )


def from_lazy(frame: Any, options: ReadOptions) -> EdgeSource:
    """Edges from a polars LazyFrame, collected in batches. Each reading runs its query again."""
    empty = pa.RecordBatchReader.from_stream(frame.head(0).collect())

    def batches() -> Iterator[Any]:
        try:
            whole = frame.select(source.columns)
            parts = whole.collect_batches() if hasattr(whole, "collect_batches") else [whole.collect()]
            for part in parts:
                yield from pa.RecordBatchReader.from_stream(part)
        except (pa.ArrowException, OSError) as error:
            raise GraphFormatError(f"lazy table: cannot read: {error}") from error

    source = TableSource("lazy table", empty.schema, batches, options)
    return source


def columns_of(pairs: list[tuple[Any, ...]]) -> list[Array]:
    """The columns of a list of tuples; an error unless all have the same length, 2 or 3."""
    length = len(pairs[0])
    for at, pair in enumerate(pairs):
        if len(pair) != length or length not in (2, 3):
            expected = (
                f"{length} values, as in the first"
                if length in (2, 3)
                else "(source, target) or (source, target, weight)"
            )
            raise OptionError(f"a list of edges: item {at}: expected {expected}, got {pair!r}")
    return [as_column(list(column)) for column in zip(*pairs, strict=True)]


def as_column(given: Any) -> Array:
    """A column as an array. NumPy would make text of the numbers in a list that holds both."""
    column = to_host(given) if lies_on_gpu(given) else np.asarray(given)
    if (
        column.dtype.kind in "US"
        and isinstance(given, tuple | list)
        and not all(isinstance(value, str | bytes) for value in given)
    ):
        other = next(value for value in given if not isinstance(value, str | bytes))
        raise GraphFormatError(f"arrays: expected integers or strings, got both: {other!r} beside text")
    return column


def from_stream(what: Any, options: ReadOptions) -> EdgeSource:
    """Edges from a table or a reader. A table gives its stream again; a reader can be read only once."""
    try:
        readers = [pa.RecordBatchReader.from_stream(what)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise GraphFormatError(
            f"table: cannot read: {', '.join(map(str, error.args))}; expected columns of one type each, integers or "
            f"strings as ids"
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
    if options.weight not in (None, column_names.NONE) and not (
        len(columns) == 3 and options.weight in ("weight", 3, "3")
    ):
        raise OptionError(
            f"weight: expected weights as a third array, or {column_names.NONE!r}, got {options.weight!r}"
        )
    columns = columns[:2] if options.weight == column_names.NONE else columns
    names = ["source", "target", "weight"][: len(columns)]
    skips = options.missing == "skip"
    table = pa.table({name: as_arrow(column, name, skips) for name, column in zip(names, columns, strict=True)})
    kept = ReadOptions(
        source="source",
        target="target",
        weight="weight" if len(columns) == 3 else None,
        ids=options.ids,
        vertices=options.vertices,
        allow_negative=options.allow_negative,
        missing=options.missing,
    )
    source = TableSource("arrays", table.schema, lambda: iter(table.to_batches()), kept)
    source.replayable, source.edges, source.total = True, table.num_rows, table.num_rows
    if len(columns) == 3 and columns[2].dtype.kind in "iu":  # the type may be needed before the weights are read
        source.weight_dtype = weight_type(columns[2])
    source.sample = lambda count: sample_table(source, table, count)  # type: ignore[method-assign]
    return source


def as_arrow(column: Array, name: str, skips: bool = False) -> Any:
    """A NumPy array as an Arrow array; an empty list has no type and counts as no ids."""
    if name != "weight" and not column.size and column.dtype == np.float64:
        column = column.astype(np.int64)
    if name != "weight" and column.dtype.kind not in ("iuUSOf" if skips else "iuUSO"):
        hint = whole_hint(column.dtype.kind == "f")
        raise GraphFormatError(f"arrays: {name} holds {column.dtype}, expected integers or strings as ids{hint}")
    try:
        return pa.array(np.ascontiguousarray(column, column.dtype.newbyteorder("=")))
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        if column.dtype == object and all(isinstance(value, int) for value in column.tolist()):
            value = max(column.tolist(), key=abs)
            raise GraphFormatError(f"arrays: {name}: expected numbers that fit 64 bits, got {value}") from error
        expected = "numbers as weights" if name == "weight" else "integers or strings, not both"
        raise GraphFormatError(
            f"arrays: {name} holds {column.dtype} that cannot be read ({error}); expected {expected}"
        ) from error


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
    if options.weight not in (None, column_names.NONE):
        raise OptionError(
            f"weight: the entries of a matrix are its weights; expected {column_names.NONE!r} to read none, got "
            f"{options.weight!r}"
        )
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
    return int(arc_keys.imbalance(as_key(rows), as_key(columns), bits)) == 0
