"""A batch from an Arrow table: columns op, source, target, weight and time, in order of arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Edits
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import is_number, is_string, value_type
from isthmus.kernels.changing.packed_array import DELETE
from isthmus.stream.input import batch_columns
from isthmus.stream.input.batch_columns import ADD_VERTEX, REMOVE_VERTEX, Array, Kinds, Where, bad

OPERATION = ("op", "operation")
TIME = ("time", "timestamp")
USUAL = {
    "op": OPERATION,
    "source": column_names.SOURCE,
    "target": column_names.TARGET,
    "weight": column_names.WEIGHT,
    "time": TIME,
}
ALL_COLUMNS = ("op", "source", "target")  # of a whole batch; others may be there
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def found_columns(names: list[str], where: str, needed: tuple[str, ...]) -> dict[str, str]:
    """The names that columns have in a table, by what they hold; BatchError if one that is needed is missing."""
    found = {}
    for column, usual in USUAL.items():
        name = column_names.known(names, usual)
        if name is not None and names.count(name) > 1:
            raise BatchError(f"{where}: expected one column {name!r}, found {names.count(name)}")
        if name is not None:
            found[column] = name
        elif column in needed:
            raise BatchError(f"{where}: no column {column!r}; there are {', '.join(names) or 'none'}")
    return found


def table_of(what: Any, name: str) -> Any:
    """Anything that Arrow takes as a table."""
    try:
        return pa.table(what)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BatchError(f"{name}: cannot read the table: {text}; expected columns of one type each") from error


def edits_of_table(table: Any, kinds: Kinds, name: str, where: Where, wish: int | None = None) -> Edits:
    """The rows of a table as edits. `wish`: what all of them ask for; None: the column op says it."""
    needed = ("source", "target") if wish is not None else ALL_COLUMNS
    found = found_columns(table.column_names, name, needed)
    rows = table.num_rows
    wishes = np.full(rows, wish, np.uint8) if wish is not None else wishes_of(table.column(found["op"]), where)
    of_edges = wishes < ADD_VERTEX
    every = np.ones(rows, np.bool_)
    sources = ids_of(table.column(found["source"]), every, kinds, where, found["source"])
    targets = ids_of(table.column(found["target"]), of_edges, kinds, where, found["target"])
    weights = weights_of(table.column(found["weight"]) if "weight" in found else None, wishes, kinds, where)
    return separated(wishes, sources, targets, weights, where)


def wishes_of(column: Any, where: Where) -> Array:
    """Operations by number."""
    if column.null_count:
        bad(where(pc.index(column.is_null(), True).as_py()), "op", "an operation", None)
    if not is_string(column.type):
        if not len(column):
            return np.empty(0, np.uint8)
        bad(where(0), "op", "an operation such as insert", column[0].as_py())
    words = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
    words = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
    indices = words.indices.to_numpy()
    _, first = np.unique(indices, return_index=True)  # the first row of each word
    codes = [
        batch_columns.operation(word, int(first[code]), where) for code, word in enumerate(words.dictionary.to_pylist())
    ]
    return np.array(codes, np.uint8)[indices] if codes else np.empty(0, np.uint8)


def ids_of(column: Any, used: Array, kinds: Kinds, where: Where, name: str) -> Array:
    """Ids of the rows that are used; the others get any."""
    values = present(column, used, where, name, "an id")
    kind = values.type
    if not (pa.types.is_integer(kind) if kinds.ids != "string" else is_string(kind)):
        row = int(np.argmax(used))
        if used.any():
            first = values[row].as_py()
            batch_columns.ids(np.array([first], object), kinds, lambda _: where(row), name)
            bad(
                where(row),
                name,
                f"{'a string' if kinds.ids == 'string' else 'an integer'}, as the graph's ids are",
                first,
            )
        return np.zeros(len(values), kinds.id_dtype)
    if kinds.ids == "string":
        return strings_of(values, where, name)
    return batch_columns.ids(values.to_numpy(), kinds, where, name)


def strings_of(values: Any, where: Where, name: str) -> Array:
    try:
        return np.asarray(values.cast(pa.large_string()).to_numpy(), object)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        for row, value in enumerate(values.cast(pa.large_binary()).to_pylist()):
            try:
                value.decode()
            except UnicodeDecodeError:
                bad(where(row), name, "text in UTF-8", value)
        raise


def present(column: Any, used: Array, where: Where, name: str, what: str) -> Any:
    """A column without nulls: BatchError for one in a row that is used, anything in the others."""
    if pa.types.is_dictionary(column.type):
        if pa.types.is_string_view(column.type.value_type):
            column = column.cast(pa.dictionary(column.type.index_type, pa.large_string()))
        column = column.cast(value_type(column.type))
    if column.null_count:
        missing = used & column.is_null().to_numpy()
        if missing.any():
            bad(where(int(np.argmax(missing))), name, what, None)
        if pa.types.is_null(column.type):
            column = pa.chunked_array([pa.nulls(len(column), pa.int64())])
        kind = column.type
        column = column.fill_null(
            pa.scalar("" if is_string(kind) else 0, pa.int64() if not is_string(kind) else pa.string()).cast(kind)
        )
    return column


def weights_of(column: Any | None, wishes: Array, kinds: Kinds, where: Where) -> Array | None:
    used = (wishes != DELETE) & (wishes < ADD_VERTEX)
    if kinds.weights is None:
        refuse_updates(wishes, where)
        return None
    if column is None:
        refuse_updates(wishes, where, "the batch has no column 'weight'")
        return np.ones(wishes.size, kinds.weights)
    values = present(column, used, where, "weight", "a number")
    if not is_number(values.type):
        row = int(np.argmax(used))
        if used.any():
            bad(where(row), "weight", "a number", values[row].as_py())
        return np.ones(wishes.size, kinds.weights)
    return batch_columns.weights(values.to_numpy(), used, kinds, where)


def refuse_updates(wishes: Array, where: Where, why: str = "the graph has no weights") -> None:
    """Raise BatchError for an update that has no weight to set."""
    updates = wishes == batch_columns.OPERATIONS["update"]
    if updates.any():
        raise BatchError(
            f"{where(int(np.argmax(updates)))}: column 'op': update changes the weight of an edge, and {why}"
        )


def separated(wishes: Array, sources: Array, targets: Array, weights: Array | None, where: Where) -> Edits:
    """Edits from rows of which some are about vertices."""
    if not wishes.size or wishes.max() < ADD_VERTEX:
        return Edits(wishes, sources, targets, weights, where=where)
    rows = np.flatnonzero(wishes < ADD_VERTEX)
    added, removed = np.flatnonzero(wishes == ADD_VERTEX), np.flatnonzero(wishes == REMOVE_VERTEX)
    refuse_used(wishes, sources, targets, removed, where)
    return Edits(
        wishes[rows],
        sources[rows],
        targets[rows],
        None if weights is None else weights[rows],
        sources[added] if added.size else None,
        sources[removed] if removed.size else None,
        where=lambda row: where(int(rows[row])),
        where_added=lambda row: where(int(added[row])),
        where_removed=lambda row: where(int(removed[row])),
    )


def refuse_used(wishes: Array, sources: Array, targets: Array, removed: Array, where: Where) -> None:
    """Raise BatchError for a row that uses a vertex which another row removes: their order would matter."""
    if not removed.size:
        return
    gone = dict(zip(sources[removed].tolist(), removed.tolist(), strict=True))
    for row, (wish, source, target) in enumerate(zip(wishes.tolist(), sources.tolist(), targets.tolist(), strict=True)):
        if wish == REMOVE_VERTEX:
            continue
        for column, user in (("source", source), *((("target", target),) if wish < ADD_VERTEX else ())):
            if user in gone:
                again = f"({where(gone[user])} removes it); use two batches"
                raise BatchError(
                    f"{where(row)}: column {column!r}: vertex {user!r} is removed and used in the same batch {again}"
                )


def times_of(table: Any, where: Where) -> Array | None:
    """Arrival times in seconds; None without a column time, or if it is empty."""
    name = column_names.known(table.column_names, TIME)
    if name is None:
        return None
    column = table.column(name)
    if len(column) and column.null_count == len(column):
        return None
    every = np.ones(len(column), np.bool_)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        unit = column.type.unit
        return np.asarray(present(column.cast(pa.int64()), every, where, name, "a time").to_numpy() / PER_SECOND[unit])
    values = present(column, every, where, name, "a time")
    if not is_number(values.type):
        if not len(values):
            return np.empty(0)
        bad(where(0), name, "a time: seconds as a number, or a time stamp", values[0].as_py())
    times = np.asarray(values.to_numpy(), np.float64)
    batch_columns.refuse(~np.isfinite(times), times, where, name, "a time")
    return times
