"""Workloads from lists of edges with times: the latest rows are the stream, the graph of all earlier ones is what it
starts from.

A row is an edge that appears, or (with a column op) one that appears or disappears. Rows are sorted by time; rows of
one time keep their order. A list is text (separated by tabs, commas or spaces, also .gz and .zst), Parquet or Arrow.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from isthmus.checks import whole
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import arrow_files as files
from isthmus.graph.reading import column_names
from isthmus.graph.reading.text_lines import CODECS, Lines
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.stream.input.batch_columns import Array
from isthmus.stream.input.update_tables import USUAL, present, times_of
from isthmus.stream.workload.workload import Changes

APPEARS, DISAPPEARS = ("insert", "a", "add", "i", "+", "1"), ("delete", "d", "del", "remove", "r", "-", "-1")
COLUMNS = ("op", "source", "target", "weight", "time")


def read_temporal(path: Path, names: tuple[str, ...] | None = None) -> Any:
    """A table with columns source, target, time and perhaps op and weight. `names`: those of the columns of a text
    without a header.
    """
    if not path.is_file():
        raise GraphFormatError(f"{path}: {'is a folder, expected a file' if path.is_dir() else 'no such file'}")
    if names is not None:
        for name in names:
            if name not in (*COLUMNS, "-"):
                raise OptionError(f"columns: expected some of {', '.join(COLUMNS)}, and - for others, got {name!r}")
    if path.suffix.lower() in files.PARQUET.endings + files.ARROW.endings:
        schema, _ = files.inspect(path)
        like: Any = SimpleNamespace(name=str(path), block_memory=None, columns=list(schema.names))
        table = pa.Table.from_batches(list(files.capped([path], like, 200)), schema)
        return renamed(table, names or tuple(schema.names), path)
    return text_table(path, names)


def text_table(path: Path, names: tuple[str, ...] | None) -> Any:
    lines = next(iter(Lines(path, 200)), (np.empty(0, np.uint8), 0))[0].tobytes().split(b"\n")
    head = 0
    while head < len(lines) and (not lines[head].strip() or lines[head][:1] in (b"#", b"%")):
        head += 1
    if head >= len(lines):
        raise GraphFormatError(f"{path}: no edges")
    first = lines[head].decode(errors="replace").strip("\r")
    delimiter = next((mark for mark in "\t,; " if mark in first), "\t")
    words = [word.strip() for word in first.split(delimiter)]
    has_header = (
        column_names.known(words, column_names.SOURCE) is not None
        and column_names.known(words, column_names.TARGET) is not None
    )
    given = names or (tuple(words) if has_header else guessed(words, path))
    if len(given) != len(words):
        raise GraphFormatError(
            f"{path}: expected {len(given)} columns ({', '.join(given)}), got {len(words)} in line {head + 1}: "
            f"{first!r}"
        )
    unique = [name if name != "-" else f"-{at}" for at, name in enumerate(given)]
    codec = CODECS.get(path.suffix.lower())
    try:
        with pa.input_stream(str(path), compression=codec) as stream:
            table = pa.csv.read_csv(
                stream,
                pa.csv.ReadOptions(skip_rows=head + has_header, column_names=unique),
                pa.csv.ParseOptions(delimiter=delimiter),
            )
    except (pa.ArrowException, OSError) as error:
        raise GraphFormatError(f"{path}: cannot read: {str(error).splitlines()[0]}") from error
    return renamed(table, tuple(unique), path)


def guessed(words: list[str], path: Path) -> tuple[str, ...]:
    """The columns of a text without a header, by its first line."""
    if len(words) == 3:
        return ("source", "target", "time")
    if len(words) == 4:
        changes = words[0].lower() in APPEARS[:-1] + DISAPPEARS[:-1]
        return ("op", "source", "target", "time") if changes else ("source", "target", "weight", "time")
    raise OptionError(
        f"{path}: has {len(words)} columns; name them, such as columns=source,target,time with - for others"
    )


def renamed(table: Any, given: tuple[str, ...], path: Path) -> Any:
    """The columns that are used, by their usual names."""
    found = {column: column_names.known(list(given), usual) for column, usual in USUAL.items()}
    for column in ("source", "target", "time"):
        if found[column] is None:
            raise GraphFormatError(f"{path}: no column {column!r}; there are {', '.join(given)}")
    table = table.rename_columns(list(given))
    there = {column: name for column, name in found.items() if name is not None}
    return table.select(list(there.values())).rename_columns(list(there))


class Temporal:
    """Rows by time, with ids as they are in the file."""

    def __init__(self, path: Path, names: tuple[str, ...] | None = None) -> None:
        self.path = path
        table = read_temporal(path, names)
        where = lambda row: f"{path}: row {row}"  # noqa: E731
        every = np.ones(table.num_rows, np.bool_)
        times = times_of(table, where)
        assert times is not None
        order = np.argsort(times, kind="stable")
        self.times = times[order]
        self.wishes = self._wishes(table, where)[order]
        self.ends = [
            present(table.column(name), every, where, name, "an id").to_numpy()[order] for name in ("source", "target")
        ]
        for name, ends in zip(("source", "target"), self.ends, strict=True):
            if ends.dtype.kind not in "iuO":
                raise GraphFormatError(
                    f"{path}: column {name!r} holds {ends.dtype}, expected integers or strings as ids"
                )
        self.weights = None
        if "weight" in table.column_names:
            self.weights = present(table.column("weight"), every, where, "weight", "a number").to_numpy()[order]

    def __len__(self) -> int:
        return int(self.wishes.size)

    def _wishes(self, table: Any, where: Any) -> Array:
        if "op" not in table.column_names:
            return np.full(table.num_rows, INSERT, np.uint8)
        words = table.column("op").cast(pa.string()).combine_chunks().dictionary_encode()
        words = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
        indices = words.indices.to_numpy()
        codes = []
        for code, word in enumerate(words.dictionary.to_pylist()):
            if (word or "").lower() not in APPEARS + DISAPPEARS:
                row = where(int(np.argmax(indices == code)))
                raise GraphFormatError(
                    f"{row}: column 'op': expected insert (or a, +) or delete (or d, -), got {word!r}"
                )
            codes.append(INSERT if word.lower() in APPEARS else DELETE)
        return np.asarray(np.array(codes, np.uint8)[indices])

    def latest(self, batches: int, size: int) -> tuple[Changes, Array, int]:
        """(The latest rows, their times, the number of rows before them)."""
        count = whole("batches", batches, 1) * whole("size", size, 1)
        if count >= len(self):
            fitting = max(1, len(self) // (2 * batches))
            raise OptionError(
                f"{self.path} has {len(self):,} rows, and {batches:,} batches of {size:,} leave none for the graph to "
                f"start from; "
                f"give a smaller size, such as {fitting:,}"
            )
        first = len(self) - count
        weights = None if self.weights is None else self.weights[first:]
        return (
            Changes(self.wishes[first:], self.ends[0][first:], self.ends[1][first:], weights),
            self.times[first:],
            first,
        )

    def earlier(self, count: int, directed: bool) -> tuple[Array, ...]:
        """The edges that are there after the first `count` rows: sources, targets and perhaps weights."""
        us, vs = self.ends[0][:count], self.ends[1][:count]
        if us.dtype == object or vs.dtype == object:
            codes = np.unique(np.concatenate([us, vs]).astype(str), return_inverse=True)[1]
        else:
            codes = np.unique(np.concatenate([us, vs]), return_inverse=True)[1]
        a, b = codes[:count].astype(np.int64), codes[count:].astype(np.int64)
        if not directed:
            a, b = np.minimum(a, b), np.maximum(a, b)
        keys = (a << 32 | b)[::-1]
        _, last = np.unique(keys, return_index=True)  # of the reversed rows: the last row of each edge
        rows = np.sort(count - 1 - last)
        rows = rows[self.wishes[rows] == INSERT]
        found = us[rows], vs[rows]
        return found if self.weights is None else (*found, self.weights[rows])
