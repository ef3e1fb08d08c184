"""Workloads as files: Parquet, Arrow, CSV or JSON lines, written batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from isthmus.checks import finite_above_0, path_of
from isthmus.errors import OptionError, StoreError
from isthmus.graph.export import arrow
from isthmus.graph.graph import Graph
from isthmus.graph.store.files import refuse_address
from isthmus.graph.store.replacement import replacing
from isthmus.stream.input.batch_columns import OPERATIONS, Array
from isthmus.stream.input.sources import BATCH
from isthmus.stream.workload.workload import Changes

WORDS = {code: word for word, code in OPERATIONS.items()}


def tables(
    changes: Changes, users: Callable[[Array], Any], size: int, rate: float | None = None, times: Array | None = None
) -> Iterator[Any]:
    """A table per batch. `rate`: rows that arrive per second, from time 0; `times`: when each arrived."""
    if rate is not None:
        finite_above_0("rate", rate)
    words = pa.array([WORDS.get(code, "") for code in range(max(WORDS) + 1)])
    for begin in range(0, changes.wishes.size, size):
        part = slice(begin, min(begin + size, changes.wishes.size))
        columns = {"op": pa.DictionaryArray.from_arrays(pa.array(changes.wishes[part].astype(np.int8)), words)}
        for name, ends in (("source", changes.sources), ("target", changes.targets)):
            columns[name] = ids_of(users(ends[part]))
        if changes.weights is not None:
            columns["weight"] = arrow.numbers(changes.weights[part])
        if times is not None:
            columns["time"] = arrow.numbers(times[part])
        elif rate is not None:
            columns["time"] = arrow.numbers(np.arange(part.start, part.stop) / rate)
        yield pa.table(columns)


def ids_of(users: Any) -> Any:
    found = np.asarray(users)
    return pa.array(found.tolist(), pa.string()) if found.dtype == object else arrow.numbers(found)


def users_of(graph: Graph) -> Callable[[Array], Any]:
    return lambda numbers: graph.ids.users(numbers)


def check_path(path: str | Path, overwrite: bool) -> Path:
    """The path of a workload; an error if it cannot be written."""
    path = path_of("output", path)
    refuse_address(path, "a workload")
    if path.suffix.lower() not in WRITERS:
        raise OptionError(f"{path}: expected a name that ends in {', '.join(WRITERS)}")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{path.parent}: no such folder")
    if path.exists() and not overwrite:
        raise StoreError(f"{path}: exists already; overwrite replaces it")
    return path


def write(path: Path, batches: Iterator[Any], size: int) -> None:
    """Write a workload. If writing fails, no partial file is left."""
    try:
        with replacing(path) as file:
            WRITERS[path.suffix.lower()](file, batches, size)
    except OSError as error:
        raise StoreError(f"{path}: cannot write the workload: {error.strerror or error}") from error


def as_parquet(file: BinaryIO, batches: Iterator[Any], size: int) -> None:
    first = next(batches)
    schema = first.schema.with_metadata({BATCH: str(size).encode()})
    with pq.ParquetWriter(file, schema) as writer:
        writer.write_table(first.cast(schema))
        for table in batches:
            writer.write_table(table.cast(schema))


def as_arrow(file: BinaryIO, batches: Iterator[Any], size: int) -> None:
    first = plain(next(batches))
    with pa.ipc.new_file(file, first.schema) as writer:
        writer.write_table(first)
        for table in batches:
            writer.write_table(plain(table))


def as_csv(file: BinaryIO, batches: Iterator[Any], size: int) -> None:
    first = plain(next(batches))
    with pa.csv.CSVWriter(file, first.schema, write_options=pa.csv.WriteOptions(quoting_style="needed")) as writer:
        writer.write_table(first)
        for table in batches:
            writer.write_table(plain(table))


def as_json_lines(file: BinaryIO, batches: Iterator[Any], size: int) -> None:
    for table in batches:
        names = table.column_names
        rows = zip(*(plain(table).column(name).to_pylist() for name in names), strict=True)
        file.write("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode())


def plain(table: Any) -> Any:
    """With operations as texts."""
    return table.set_column(0, "op", table.column("op").cast(pa.string()))


WRITERS: dict[str, Callable[[BinaryIO, Iterator[Any], int], None]] = {
    ".parquet": as_parquet,
    ".arrow": as_arrow,
    ".csv": as_csv,
    ".jsonl": as_json_lines,
}
