"""Batches as users give them: arrays, pairs, tables or files, checked and put into one form.

| given | meaning |
|---|---|
| a tuple of two or three columns | sources, targets and perhaps weights |
| a list of pairs or triples, or an array with two or three columns | one edge each |
| a table: anything with `__arrow_c_stream__` (Arrow, pandas, polars, DuckDB), or a dict of columns | columns by name |
| a path | such a table in a file: Parquet, Arrow, CSV or JSON lines |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Edits
from isthmus.graph.ingest.host_copies import lies_on_gpu, to_host
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.stream.input import batch_columns
from isthmus.stream.input.batch_columns import Array, Kinds, Where
from isthmus.stream.input.sources import open_updates
from isthmus.stream.input.update_tables import edits_of_table, refuse_updates, separated, table_of

WISHES = {"deletes": DELETE, "inserts": INSERT, "updates": REWEIGH}  # in the order in which they are applied
NAMES = ("source", "target", "weight")


def edits_of(kinds: Kinds, added: Any = None, removed: Any = None, **edges: Any) -> Edits:
    """The edits of deletes, inserts and updates, in this order; BatchError for one that such a graph cannot have."""
    parts = [part_of(edges[name], kinds, name, wish) for name, wish in WISHES.items() if edges.get(name) is not None]
    vertices = [
        vertices_of(users, kinds, name) for users, name in ((added, "add_vertices"), (removed, "remove_vertices"))
    ]
    joined = together(parts, kinds)
    joined.added, joined.removed = vertices
    joined.where_added, joined.where_removed = row_of("add_vertices"), row_of("remove_vertices")
    if joined.removed is not None:
        refuse_removed(joined)
    return joined


def row_of(name: str) -> Where:
    return lambda row: f"{name}: row {row}"


def together(parts: list[Edits], kinds: Kinds) -> Edits:
    if not parts:
        none = np.empty(0, kinds.id_dtype)
        return Edits(np.empty(0, np.uint8), none, none, None if kinds.weights is None else np.empty(0, kinds.weights))
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *map(len, parts)])

    def where(row: int) -> str:
        part = int(np.searchsorted(begins, row, "right")) - 1
        return parts[part].where(row - int(begins[part]))

    weights = (
        None if kinds.weights is None else np.concatenate([part.weights for part in parts if part.weights is not None])
    )
    wishes, sources, targets = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("wishes", "sources", "targets")
    )
    return Edits(wishes, sources, targets, weights, where=where)


def refuse_removed(edits: Edits) -> None:
    """Raise BatchError if a removed vertex is used as well."""
    assert edits.removed is not None
    gone = set(edits.removed.tolist())
    for column, ends, where in (
        ("source", edits.sources, edits.where),
        ("target", edits.targets, edits.where),
        ("vertex", edits.added, edits.where_added),
    ):
        if ends is None or not ends.size:
            continue
        wrong = np.fromiter((user in gone for user in ends.tolist()), np.bool_, ends.size)
        if wrong.any():
            row = int(np.argmax(wrong))
            user = ends[row : row + 1].tolist()[0]
            instead = "is removed and used in the same batch; use two batches"
            raise BatchError(f"{where(row)}: column {column!r}: vertex {user!r} {instead}")


def part_of(edges: Any, kinds: Kinds, name: str, wish: int) -> Edits:
    """Edges that are all inserted, deleted or updated."""
    if is_table(edges):
        return edits_of_table(table_of(edges, name), kinds, name, row_of(name), wish)
    if isinstance(edges, str | Path):
        rows = open_updates(edges, kinds, needed=("source", "target")).everything()
        return edits_of_table(rows.table(), kinds, rows.name, rows.where, wish)
    given, where = columns_of(edges, name), row_of(name)
    wishes = np.full(given[0].size, wish, np.uint8)
    sources, targets = (batch_columns.ids(column, kinds, where, NAMES[k]) for k, column in enumerate(given[:2]))
    if kinds.weights is None:
        if wish == REWEIGH and wishes.size:
            raise BatchError(f"{where(0)}: updates change the weights of edges, and the graph has no weights")
        return Edits(wishes, sources, targets, where=where)
    if len(given) == 2 and wish == REWEIGH and wishes.size:
        raise BatchError(f"{where(0)}: expected a source, a target and a weight, got no weight")
    if len(given) == 2 or wish == DELETE:
        return Edits(wishes, sources, targets, np.ones(wishes.size, kinds.weights), where=where)
    weights = batch_columns.weights(given[2], np.ones(wishes.size, np.bool_), kinds, where)
    return Edits(wishes, sources, targets, weights, where=where)


def edits_in_order(batch: Any, kinds: Kinds) -> Edits:
    """The edits of a whole table with a column op: its rows are applied in order of arrival."""
    if isinstance(batch, str | Path):
        rows = open_updates(batch, kinds).everything()
        return edits_of_table(rows.table(), kinds, rows.name, rows.where)
    if is_table(batch):
        return edits_of_table(table_of(batch, "batch"), kinds, "batch", row_of("batch"))
    return edits_of_rows(rows_of(batch, "batch"), kinds)


def edits_of_rows(rows: list[Any], kinds: Kinds) -> Edits:
    """Edits from (op, source[, target[, weight]])."""
    where = row_of("batch")
    for row, each in enumerate(rows):
        if not isinstance(each, tuple | list) or not 2 <= len(each) <= 4:
            raise BatchError(f"{where(row)}: expected (op, source, target[, weight]), got {each!r}")
    wishes = np.array([batch_columns.operation(each[0], row, where) for row, each in enumerate(rows)], np.uint8)
    of_edges = wishes < batch_columns.ADD_VERTEX
    short = np.flatnonzero(of_edges & np.array([len(each) < 3 for each in rows], np.bool_))
    if short.size:
        raise BatchError(f"{where(int(short[0]))}: column 'target': expected an id, got no value")
    sources = batch_columns.ids(objects([each[1] for each in rows]), kinds, where, "source")
    ends = [each[2] if edge else each[1] for each, edge in zip(rows, of_edges, strict=True)]
    targets = batch_columns.ids(objects(ends), kinds, where, "target")
    weights = None
    if kinds.weights is None:
        refuse_updates(wishes, where)
    else:
        usual = [1 if wish == INSERT else None for wish in wishes.tolist()]
        given = [each[3] if len(each) == 4 else weight for each, weight in zip(rows, usual, strict=True)]
        weights = batch_columns.weights(objects(given), of_edges & (wishes != DELETE), kinds, where)
    return separated(wishes, sources, targets, weights, where)


def objects(values: list[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def is_table(what: Any) -> bool:
    return hasattr(what, "__arrow_c_stream__") or isinstance(what, dict)


def rows_of(what: Any, name: str) -> list[Any]:
    if isinstance(what, bytes) or not isinstance(what, Iterable):
        raise BatchError(
            f"{name}: cannot read changes from {type(what).__name__}; expected a table, a path, or a list of tuples"
        )
    return list(what)


def columns_of(edges: Any, name: str) -> list[Array]:
    """Sources, targets and perhaps weights of edges that are not in a table."""
    if isinstance(edges, tuple) and edges and not isinstance(edges[0], tuple):
        return equal_columns([column_of(column) for column in edges], name)
    edges = to_host(edges) if lies_on_gpu(edges) else edges
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] not in (2, 3):
            raise BatchError(f"{name}: expected an array with two or three columns, got shape {edges.shape}")
        return list(edges.T)
    rows = rows_of(edges, name)
    width = width_of(rows, name)
    return [column_of([row[k] for row in rows]) for k in range(width)]


def equal_columns(columns: list[Array], name: str) -> list[Array]:
    """Two or three columns of one length; BatchError for others."""
    if len(columns) not in (2, 3) or len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        shapes = ", ".join(str(column.size) if column.ndim == 1 else f"shape {column.shape}" for column in columns)
        raise BatchError(
            f"{name}: expected (sources, targets[, weights]) of equal length, got {len(columns)} columns of {shapes}"
        )
    return columns


def width_of(rows: list[Any], name: str) -> int:
    """The values in each row, 2 or 3 in all of them; BatchError for the first row that has another number."""
    widths = [len(row) if isinstance(row, tuple | list | np.ndarray) else 0 for row in rows]
    width = widths[0] if widths else 2
    wrong = next((at for at, each in enumerate(widths) if each != width or each not in (2, 3)), None)
    if wrong is not None:
        raise BatchError(
            f"{name}: row {wrong}: expected (source, target) or, in all rows, (source, target, weight), "
            f"got {rows[wrong]!r}"
        )
    return width


def column_of(values: Any) -> Array:
    """A column as an array; values of several types, which NumPy would make texts of, as objects."""
    if isinstance(values, np.ndarray):
        return values
    if lies_on_gpu(values):
        return to_host(values)
    if isinstance(values, list | tuple):
        return np.array(values) if alike(values) else objects(list(values))
    return np.asarray(values)


def alike(values: Any) -> bool:
    """Whether all values have one type that NumPy knows. Truth values beside numbers would become numbers."""
    kinds = {type(value) for value in values}
    return (
        len(kinds) <= 1
        and not kinds & {type(None), str}
        and all(issubclass(kind, int | float | np.generic) for kind in kinds)
    )


def vertices_of(users: Any, kinds: Kinds, name: str) -> Array | None:
    if users is None:
        return None
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise BatchError(f"{name}: expected a list of vertices, got {users!r}")
    found = users if isinstance(users, np.ndarray) else column_of(list(users))
    return batch_columns.ids(found, kinds, row_of(name), "vertex")
