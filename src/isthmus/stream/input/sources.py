"""Sources of updates: files (Parquet, Arrow, CSV, JSON lines), tables in memory, and pipes.

Every source gives its rows in order of arrival, some at a time, so that a file larger than memory can be followed.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from isthmus.errors import BatchError, GraphFormatError, OptionError
from isthmus.graph.formats import arrow_files as files
from isthmus.graph.store.files import address, is_address
from isthmus.stream.input.batch_columns import Kinds, Where
from isthmus.stream.input.lines import FileLines, LineSource, PipeLines
from isthmus.stream.input.text_rows import FORMATS, PARSERS, TextParser, format_of
from isthmus.stream.input.update_rows import Rows
from isthmus.stream.input.update_tables import ALL_COLUMNS, found_columns, table_of

STANDARD_INPUT = "standard input"
BATCH = b"isthmus.batch"  # key of a Parquet file's metadata: how many rows its batches have
FEW = 1 << 16  # rows read at once where all are needed


class Updates(ABC):
    """Rows of updates from some input."""

    name: str
    batch: int | None = None  # rows per batch, if the input says it
    is_pipe = False

    @abstractmethod
    def read(self, count: int, seconds: float | None = None) -> Rows | None:
        """At most `count` rows; None: no more. A pipe waits `seconds` after the first (None: without limit)."""

    def everything(self) -> Rows:
        """All rows that are left."""
        found = Rows(self.name)
        while (more := self.read(FEW)) is not None:
            found = found.and_then(more)
        return found if found.parts else Rows(self.name, [(self.empty(), lambda row: self.name)])

    def empty(self) -> Any:
        return pa.table({column: pa.array([], pa.string() if column == "op" else pa.int64()) for column in ALL_COLUMNS})

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Stop reading."""


class TableUpdates(Updates):
    """Updates from record batches."""

    def __init__(self, name: str, batches: Iterator[Any]) -> None:
        self.name = name
        self._batches, self._held, self._row = batches, Rows(name), 0

    def read(self, count: int, seconds: float | None = None) -> Rows | None:
        while len(self._held) < count:
            batch = next(self._batches, None)
            if batch is None:
                break
            first = self._row
            self._row += batch.num_rows
            where = lambda row, first=first: f"{self.name}: row {row + first}"  # noqa: E731
            self._held = self._held.and_then(Rows(self.name, [(pa.Table.from_batches([batch]), where)]))
        if not len(self._held):
            return None
        found, self._held = self._held.cut(count)
        return found


class TextUpdates(Updates):
    """Updates from lines of text. Without a format, the first line tells whether they are JSON or CSV."""

    def __init__(self, name: str, lines: LineSource, kinds: Kinds, format: str | None, needed: tuple[str, ...]) -> None:
        self.name, self._lines, self._kinds, self._format, self._needed = name, lines, kinds, format, needed
        self.is_pipe = isinstance(lines, PipeLines)
        self._parser: TextParser | None = None

    def _begun(self) -> TextParser | None:
        """Look at the first line that is not blank; None: there is none."""
        first = b""
        while not first.strip():
            block = self._lines.take(1, None)
            if block is None:
                return None
            first = block
        guess = "jsonl" if first.lstrip()[:1] in (b"{", b"[") else "csv"
        parser = PARSERS[self._format or guess](self.name, self._kinds, self._needed)
        if not parser.begin(first):
            self._lines.put_back(first)
        return parser

    def read(self, count: int, seconds: float | None = None) -> Rows | None:
        self._parser = self._parser or self._begun()
        if self._parser is None:
            return None
        found = Rows(self.name)
        while len(found) < count and not (self.is_pipe and len(found)):  # blank lines are no rows
            before, block = self._lines.taken, self._lines.take(count - len(found), seconds)
            if block is None:
                break
            if block.strip():
                where = line_numbers(self.name, block, before)
                found = found.and_then(
                    Rows(self.name, [(self._parser.table(block, where), where)], self._lines.arrived)
                )
        return found if len(found) else None

    def close(self) -> None:
        self._lines.close()


def line_numbers(name: str, block: bytes, before: int) -> Where:
    """Names for the rows of a block that begins after `before` lines. Blank lines are no rows."""
    numbers: list[int] = []

    def where(row: int) -> str:
        if not numbers:
            numbers.extend(before + at + 1 for at, line in enumerate(block.split(b"\n")) if line.strip())
        return f"{name}:{numbers[min(row, len(numbers) - 1)]}"

    return where


def open_updates(what: Any, kinds: Kinds, format: str | None = None, needed: tuple[str, ...] = ALL_COLUMNS) -> Updates:
    """The updates of a path, a table, or (`-`) standard input. `needed`: columns that must be there."""
    if format is not None and format not in (*FORMATS, "parquet", "arrow"):
        raise OptionError(f"format: expected csv, jsonl, parquet or arrow, got {format!r}")
    if isinstance(what, Updates):
        return what
    if isinstance(what, str) and what == "-":
        if format in ("parquet", "arrow"):
            raise OptionError(f"format: expected csv or jsonl from a pipe, got {format}")
        if sys.stdin is None:
            raise OptionError("updates: expected a pipe, got - while standard input is closed")
        return TextUpdates(STANDARD_INPUT, PipeLines(sys.stdin.fileno(), STANDARD_INPUT), kinds, format, needed)
    if hasattr(what, "__arrow_c_stream__"):
        return from_stream(what, needed)
    if isinstance(what, dict):
        return from_stream(table_of(what, "updates"), needed)
    if not isinstance(what, str | Path):
        raise OptionError(f"updates: expected a path, a table, or - for standard input, got {type(what).__name__}")
    return from_file(Path(what), kinds, format, needed)


def from_stream(what: Any, needed: tuple[str, ...]) -> Updates:
    """Updates from a table, or from a reader that gives record batches as they come."""
    try:
        reader = pa.RecordBatchReader.from_stream(what)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BatchError(f"table: cannot read: {error}; expected columns of one type each") from error
    found_columns(list(reader.schema.names), "table", needed)
    return TableUpdates("table", iter(reader))


def from_file(path: Path, kinds: Kinds, format: str | None, needed: tuple[str, ...]) -> Updates:
    if not path.exists():
        if is_address(path):
            raise GraphFormatError(
                f"{address(path)}: is an address, expected a file on this machine; download it first"
            )
        raise GraphFormatError(f"{path}: no such file")
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a file of updates")
    if not path.is_file():  # a named pipe
        return TextUpdates(str(path), PipeLines(os.open(path, os.O_RDONLY), str(path), own=True), kinds, format, needed)
    ending = path.suffix.lower()
    if format in ("parquet", "arrow") or (format is None and ending in files.PARQUET.endings + files.ARROW.endings):
        return from_table_file(path, needed)
    return TextUpdates(str(path), FileLines(path), kinds, format or format_of(path), needed)


def from_table_file(path: Path, needed: tuple[str, ...]) -> Updates:
    schema, _ = files.inspect(path)
    found = found_columns(list(schema.names), str(path), needed)
    like: Any = SimpleNamespace(name=str(path), block_memory=None, columns=list(found.values()))
    source = TableUpdates(str(path), files.capped([path], like, 200))
    if path.suffix.lower() in files.PARQUET.endings:
        said = (pq.read_schema(path).metadata or {}).get(BATCH, b"")
        source.batch = int(said) if said.isdigit() and int(said) else None
    return source
