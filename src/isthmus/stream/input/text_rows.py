"""Updates as text: CSV with a header, or JSON lines.

A block of lines is parsed by Arrow. If Arrow refuses it, every line is parsed on its own, which is slow and finds the
line and the column that are wrong.
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from isthmus.errors import BatchError
from isthmus.graph.reading import column_names
from isthmus.stream.input import batch_columns
from isthmus.stream.input.batch_columns import ADD_VERTEX, OPERATIONS, Kinds, Where
from isthmus.stream.input.update_tables import USUAL, found_columns

FORMATS = {"csv": (".csv", ".tsv"), "jsonl": (".jsonl", ".ndjson", ".json")}  # file endings of each format
DELIMITERS = ",\t;"
INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
EXAMPLE = '{"op": "insert", "source": 1, "target": 2}'
REAL = (int, float)


def format_of(path: Path) -> str | None:
    """The format of a file by its ending, before .gz or .zst; None: its first line decides."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in (".gz", ".zst")][-1:]
    return next((name for name, known in FORMATS.items() if set(endings) & set(known)), None)


class TextParser(ABC):
    """Makes tables of blocks of lines. `names`: the input's names of columns, by what they hold."""

    names: dict[str, str]

    def __init__(self, name: str, kinds: Kinds, needed: tuple[str, ...]) -> None:
        self.name, self.kinds, self.needed = name, kinds, needed

    @abstractmethod
    def begin(self, line: bytes) -> bool:
        """Look at the first line that is not blank; returns whether it is a header."""

    @abstractmethod
    def fast(self, block: bytes) -> Any:
        """A table of the lines of a block, with the input's names."""

    @abstractmethod
    def fields(self, line: str, where: str) -> dict[str, Any]:
        """The values of one line, by what they are; None: no value."""

    def id_type(self) -> Any:
        return {"string": pa.string(), "uint64": pa.uint64()}.get(self.kinds.ids, pa.int64())

    def types(self) -> dict[str, Any]:
        """The types of the columns that have a known one, by their names."""
        real = self.kinds.weights is None or self.kinds.weights.kind == "f"
        kinds = {
            "op": pa.string(),
            "source": self.id_type(),
            "target": self.id_type(),
            "weight": pa.float64() if real else pa.int64(),
        }
        return {self.names[column]: kind for column, kind in kinds.items() if column in self.names}

    def table(self, block: bytes, where: Where) -> Any:
        """A table of the lines of a block, with the usual names."""
        try:
            found = self.fast(block)
            if found.num_rows != lines_of(block):
                raise pa.ArrowInvalid("rows are not lines")
        except (pa.ArrowException, UnicodeDecodeError):
            found = self.slow(block, where)
        there = [column for column in USUAL if self.names.get(column) in found.column_names]
        found = found.select([self.names[column] for column in there]).rename_columns(there)
        return self.completed(found)

    def completed(self, table: Any) -> Any:
        return table

    def slow(self, block: bytes, where: Where) -> Any:
        """The same, line by line; BatchError for the first value that is wrong."""
        columns: dict[str, list[Any]] = {column: [] for column in self.names}
        for row, line in enumerate(line for line in block.split(b"\n") if line.strip()):
            try:
                values = self.fields(line.decode(), where(row))
            except UnicodeDecodeError:
                raise BatchError(f"{where(row)}: expected text in UTF-8, got {line[:40]!r}") from None
            wish = (
                batch_columns.operation(values.get("op"), row, where) if "op" in self.needed else OPERATIONS["insert"]
            )
            for column in columns:
                columns[column].append(self.checked(column, values.get(column), wish, where(row)))
        known = self.types()
        arrays = [array_of(values, known.get(self.names[column])) for column, values in columns.items()]
        return pa.table(arrays, names=[self.names[column] for column in columns])

    def checked(self, column: str, value: Any, wish: int, where: str) -> Any:
        if column in ("source", "target"):
            if column == "target" and wish >= ADD_VERTEX:
                return None
            if value is not None:
                batch_columns.ids(as_objects(value), self.kinds, lambda _: where, column)
        if column == "weight" and self.kinds.weights is not None and value is not None:
            if wish in (OPERATIONS["delete"], ADD_VERTEX, OPERATIONS["remove_vertex"]):
                return None
            batch_columns.weights(as_objects(value), np.ones(1, np.bool_), self.kinds, lambda _: where)
            return int(value) if self.kinds.weights.kind != "f" else float(value)
        if column == "weight" and not isinstance(value, REAL):
            return None
        return value


def as_objects(value: Any) -> Any:
    """An array of one value, of whatever type."""
    found = np.empty(1, object)
    found[0] = value
    return found


def array_of(values: list[Any], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def lines_of(block: bytes) -> int:
    """How many lines of a block are not blank."""
    if b"\n\n" in block or b"\r\n\r" in block or block[:1] in b"\r\n" or b"\n " in block:
        return sum(1 for line in block.split(b"\n") if line.strip())
    return block.count(b"\n")


class CsvParser(TextParser):
    """Comma, tab or semicolon separated values; the first line names the columns."""

    def begin(self, line: bytes) -> bool:
        text = line.decode(errors="replace").rstrip("\r\n")
        self._delimiter = max(DELIMITERS, key=lambda mark: (text.count(mark), -DELIMITERS.index(mark)))
        self._header = [name.strip() for name in next(csv.reader([text], delimiter=self._delimiter))]
        try:
            self.names = found_columns(self._header, f"{self.name}:1", self.needed)
        except BatchError as error:
            raise BatchError(
                f"{error}; the first line of a CSV names its columns, such as op,source,target,weight"
            ) from None
        if self.kinds.weights is None:
            self.names.pop("weight", None)
        return True

    def fast(self, block: bytes) -> Any:
        return pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(column_names=self._header),
            parse_options=pa.csv.ParseOptions(delimiter=self._delimiter),
            convert_options=pa.csv.ConvertOptions(
                column_types=self.types(),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=list(self.names.values()),
            ),
        )

    def fields(self, line: str, where: str) -> dict[str, Any]:
        try:
            words = next(csv.reader([line.rstrip("\r")], delimiter=self._delimiter, strict=True))
        except (csv.Error, StopIteration) as error:
            raise BatchError(
                f"{where}: expected {self._delimiter.join(self._header)}, got {shortened(line)} ({error})"
            ) from None
        if len(words) != len(self._header):
            raise BatchError(
                f"{where}: expected {len(self._header)} values ({self._delimiter.join(self._header)}), got "
                f"{len(words)}: {shortened(line)}"
            )
        by_name = dict(zip(self._header, words, strict=True))
        return {column: self._value(column, by_name[name]) for column, name in self.names.items()}

    def _value(self, column: str, word: str) -> Any:
        if word == "":
            return None
        if column in ("source", "target") and self.kinds.ids != "string" and INTEGER.fullmatch(word):
            return int(word)
        if column in ("weight", "time"):
            try:
                return int(word) if INTEGER.fullmatch(word) else float(word)
            except ValueError:
                return word
        return word


class JsonParser(TextParser):
    """One JSON object per line."""

    def begin(self, line: bytes) -> bool:
        if line.lstrip()[:1] == b"[":
            raise BatchError(f"{self.name}: is a JSON array; expected one object per line, such as {EXAMPLE}")
        try:
            first = json.loads(line)
        except ValueError:
            first = {}
        keys = list(first) if isinstance(first, dict) else []
        self.names = {column: column_names.known(keys, usual) or column for column, usual in USUAL.items()}
        if self.kinds.weights is None:
            self.names.pop("weight")
        return False

    def fast(self, block: bytes) -> Any:
        schema = pa.schema(list(self.types().items()))
        return pa.json.read_json(
            pa.BufferReader(block),
            parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
            read_options=pa.json.ReadOptions(block_size=max(len(block), 1)),
        )

    def fields(self, line: str, where: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise BatchError(
                f"{where}: expected a JSON object such as {EXAMPLE}, got {shortened(line)} ({error})"
            ) from None
        if not isinstance(found, dict):
            raise BatchError(f"{where}: expected a JSON object such as {EXAMPLE}, got {shortened(line)}")
        return {column: found.get(name) for column, name in self.names.items()}

    def completed(self, table: Any) -> Any:
        """With a weight of 1 for inserted edges without one: a line need not have all keys."""
        if (
            "weight" not in table.column_names
            or not table.column("weight").null_count
            or "op" not in table.column_names
        ):
            return table
        at = table.column_names.index("weight")
        weights = table.column("weight")
        if pa.types.is_null(weights.type):
            weights = weights.cast(pa.float64())
        lacking = pc.and_(weights.is_null(), pc.equal(table.column("op"), "insert")).fill_null(False)
        return table.set_column(at, "weight", pc.if_else(lacking, pa.scalar(1, pa.int64()).cast(weights.type), weights))


PARSERS: dict[str, type[TextParser]] = {"csv": CsvParser, "jsonl": JsonParser}


def shortened(line: str) -> str:
    text = line.strip()
    return repr(text) if len(text) <= 80 else repr(text[:77]) + "..."
