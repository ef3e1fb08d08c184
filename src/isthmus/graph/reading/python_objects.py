"""Edges from Python objects: arrays, lists of tuples, SciPy matrices, NetworkX graphs, tables and lazy tables.

A kind of object is one row of `READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.ingest.host_copies import is_gpu_frame, lies_on_gpu, to_host
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import as_key, weight_type, whole_hint
from isthmus.graph.reading.networkx_edges import is_networkx, open_networkx
from isthmus.graph.reading.table_source import TableSource
from isthmus.graph.store.files import Array
from isthmus.kernels.store import arc_keys


@dataclass(frozen=True)
class Reader:
    """How to recognise and open one kind of object, and the options that it reads."""

    words: str
    recognises: Callable[[Any], bool]
    open: Callable[[Any, ReadOptions], EdgeSource]
    uses: tuple[str, ...]


def open_object(what: Any, options: ReadOptions) -> EdgeSource:
    """An edge source for a Python object."""
    # A forest is a result of ours whose columns are edges.
    if is_ours(what) and not {"source", "target"} <= set(getattr(what, "columns", ())):
        raise OptionError(f"cannot read edges from {type(what).__name__}; {instead(what)}")
    if not is_ours(what) and lies_on_gpu(what):
        what = to_host(what)
    for reader in READERS:
        if reader.recognises(what):
            refuse_unused(reader.words, options, reader.uses)
            return reader.open(what, options)
    raise OptionError(f"cannot read edges from {type(what).__name__}; {instead(what)}")


def is_tuples(what: Any) -> bool:
    """Whether it is a list of tuples, and of nothing else."""
    return isinstance(what, list) and bool(what) and all(isinstance(item, tuple) for item in what)


def is_columns(what: Any) -> bool:
    """Whether it is two or three columns. Raises OptionError for a list of lists."""
    if isinstance(what, list) and any(isinstance(item, tuple | list) for item in what):
        raise OptionError(
            "a list of lists could mean rows or columns; give a list of tuples (source, target[, weight]), one for "
            "each edge"
        )
    return isinstance(what, tuple | list) and 2 <= len(what) <= 3


def is_array(what: Any) -> bool:
    """Whether it is an array with two or three columns."""
    return isinstance(what, np.ndarray) and what.ndim == 2 and what.shape[1] in (2, 3)


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
    """A hint for messages about an object that holds no edges."""
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
    chosen = ReadOptions(
        source="source",
        target="target",
        weight="weight" if len(columns) == 3 else None,
        ids=options.ids,
        vertices=options.vertices,
        allow_negative=options.allow_negative,
        missing=options.missing,
    )
    source = TableSource("arrays", table.schema, lambda: iter(table.to_batches()), chosen)
    source.replayable, source.edges, source.total = True, table.num_rows, table.num_rows
    if len(columns) == 3 and columns[2].dtype.kind in "iu":  # the type may be needed before the weights are read
        source.weight_dtype = weight_type(columns[2])
    source.sample = lambda count: source.sampled(table, count)  # type: ignore[method-assign]
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
    source = from_columns(columns, ReadOptions(vertices=matrix.shape[0], allow_negative=options.allow_negative))
    source.symmetric = is_symmetric(*columns)
    return source


def is_symmetric(rows: Array, columns: Array, values: Array | None = None) -> bool:
    """Whether entries (i, j) and (j, i) are equal for all i and j, by a sum of hashes."""
    bits = None if values is None else np.ascontiguousarray(values, np.float64).view(np.int64)
    if values is not None and values.dtype.kind in "iu":
        bits = np.ascontiguousarray(values).astype(np.int64)
    return int(arc_keys.imbalance(as_key(rows), as_key(columns), bits)) == 0


ARRAYS_USE = ("weight", "ids", "vertices", "allow_negative", "missing")
TABLES_USE = ("source", "target", *ARRAYS_USE)
READERS = (  # the first that recognises an object opens it
    Reader("a NetworkX graph", is_networkx, open_networkx, ("weight", "ids", "allow_negative")),
    Reader("a matrix", lambda what: hasattr(what, "tocoo"), from_matrix, ("weight", "allow_negative")),
    Reader("a list of edges", is_tuples, lambda what, options: from_columns(columns_of(what), options), ARRAYS_USE),
    Reader("arrays", is_columns, lambda what, options: from_columns(list(map(as_column, what)), options), ARRAYS_USE),
    Reader("arrays", is_array, lambda what, options: from_columns(list(what.T), options), ARRAYS_USE),
    Reader("a table", is_lazy, from_lazy, TABLES_USE),
    Reader("a table", lambda what: hasattr(what, "__arrow_c_stream__"), from_stream, TABLES_USE),
    Reader("a table", is_gpu_frame, lambda what, options: from_stream(host_table(what), options), TABLES_USE),
)
