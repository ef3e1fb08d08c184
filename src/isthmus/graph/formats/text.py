"""Text edge lists: SNAP, TSV, CSV, runs of spaces; plain, gzip or zstd.

The file is cut into blocks of whole lines, which are parsed in parallel. The first lines decide whether ids are
integers or strings, unless an option does. Other columns are ignored unless one is named as the weight; the report
counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.names import encode
from isthmus.graph.reading import column_names
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_fields import (
    are_integers,
    fields_of,
    first_has_names,
    separator_of,
    word_above_numbers,
    words_of,
)
from isthmus.graph.reading.text_lines import BadLine, Lines, line_at, shortened
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels
from isthmus.messages import option
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

STRING_CHUNK = 512 << 10  # for string ids, which take some twenty times their bytes during encoding
LOOK = 100  # lines that decide between integers and strings
LAST_EXACT = 1 << 53  # above this, doubles cannot represent every integer
NOT_UTF8 = 100  # a status beside those of the kernels
ROUNDED = 1 << 16  # among the flags of a block: doubles may have rounded weights
UNWRITABLE = r'["\n\r]'  # characters that no quoted field may hold
RISKY = r"^[#%]|^\s|\s$|[\t,]|^$"  # patterns that a field without quotes may not hold


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a text file")
    return TextSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Lines `source target [weight]` with the users' ids; commas in .csv, blanks in .el and .wel, else tabs."""
    import pyarrow.csv as pc

    comma, blanks = edges.ending == ".csv", edges.ending in (".el", ".wel", ".edgelist")
    ones = edges.ending in (".el", ".wel") and edges.writes_weights(".el", ".wel") and not edges.weighted
    edges.weighted &= edges.ending != ".el"
    strings = edges.graph.ids.kind == "string"
    separator = "," if comma else " " if blanks and not strings else "\t"
    if comma if edges.header is None else edges.header:
        file.write(separator.join(edges.schema.names).encode() + b"\n")
    for batch in edges.tables():
        if ones:
            batch = batch.append_column("weight", pa.repeat(pa.scalar(1), batch.num_rows))
        quoting = quoting_of(batch, edges.name, comma) if strings else "none"
        pc.write_csv(batch, file, pc.WriteOptions(include_header=False, delimiter=separator, quoting_style=quoting))


def quoting_of(batch: Any, name: str, comma: bool) -> str:
    """Whether string ids are quoted: all of a batch, if one needs it. Raises OptionError for ids that do not fit."""
    import pyarrow.compute as pc

    risky = False
    for column in (batch.column("source"), batch.column("target")):
        bad = column.filter(pc.match_substring_regex(column, UNWRITABLE))
        risky |= bool(len(bad))
        if len(bad) and not comma:
            raise OptionError(
                f"{name}: the id {bad[0].as_py()!r} has a quote or a line break; write .csv or .parquet, which "
                f"can hold it"
            )
        risky |= bool(pc.any(pc.match_substring_regex(column, RISKY)).as_py())
    return "needed" if risky else "none"


TEXT = Format(
    "text",
    open_path,
    endings=(".txt", ".tsv", ".csv", ".el", ".wel", ".edges", ".edgelist"),
    words="an edge list as text",
    place=1,
    save=save,
    written="text",
)


class TextSource(EdgeSource):
    """Edges from a text file."""

    unit = "B"
    replayable = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self.path, self.options = str(path), path, options
        self.vertices = options.vertices
        self.total = path.stat().st_size
        self._comments = np.frombuffer(options.comments.encode(), np.uint8)
        self._locale = kernels.c_locale()
        self._look()

    def _look(self) -> None:
        """Determine separator, columns and the kind of ids from the first lines."""
        opening = next((lines[: 1 << 20].tobytes() for lines, _ in Lines(self.path, self.options.max_expansion)), b"")
        rows = [(number, line) for number, line in enumerate(opening.split(b"\n")) if self._holds_data(line)]
        self._first_line = rows[0][0] + 1 if rows else 0
        below = [line for _, line in rows[self.options.header :][:LOOK]]
        self._separator = separator_of(below or [line for _, line in rows])
        names: list[str] = []
        self._skip_to = 0
        if self.options.header:
            if not rows:
                raise GraphFormatError(f"{self.path}: expected a header line, found none")
            number, line = rows.pop(0)
            self._skip_to, names = number + 1, words_of(line, self._separator)
        self._choose_columns(names)
        self._fields = len(fields_of(rows[0][1], self._separator)) if rows else 0
        self._lines = [line for _, line in rows[:LOOK]]
        self.ids = self._id_kind()
        self.notes = tuple(self._doubts())

    def _choose_columns(self, names: list[str]) -> None:
        columns = [self._column(requested, names) for requested in self._requested(names)]
        used = [column for column in columns if column >= 0]
        if len(set(used)) < len(used):
            raise OptionError(f"{self.path}: source, target and weight must be different columns")
        self._columns, self.weighted = np.array(columns, np.int64), columns[2] >= 0

    def _id_kind(self) -> Literal["int", "string"]:
        if self.options.vertices is not None or self.options.ids == "int":
            return "int"
        return "string" if self.options.ids == "string" else self._guess(self._lines)

    def _requested(self, names: list[str]) -> list[str | int | None]:
        """Columns of source, target and weight: as given, else by the usual names in the header, else by position."""
        given = (self.options.source, self.options.target, self.options.weight)
        free = [name for name in names if name not in given]
        third = 3 if ".wel" in self.path.suffixes else None  # GAPBS: weighted edge list
        usual = ((column_names.SOURCE, 1), (column_names.TARGET, 2), (column_names.WEIGHT, third))
        found = [
            column if column is not None else column_names.known(free, words) or place
            for column, (words, place) in zip(given, usual, strict=True)
        ]
        if found[2] == column_names.NONE and column_names.NONE not in names:
            found[2] = None
        return found

    def _doubts(self) -> Iterator[str]:
        """Notes about a line of names that is read as an edge, and about columns that may hold weights."""
        if self.ids == "string" and not self.options.header and self._first_is_names():
            yield (
                f"{self.path}:{self._first_line}: {shortened(self._lines[0])!r} looks like names of columns and is "
                f"read as an edge; give {option('header', True)} to read it as names"
            )
        used = int((self._columns >= 0).sum())
        if self._fields > used and not self.weighted and self.options.weight is None:
            free = next(column for column in range(self._fields) if column not in self._columns)
            yield column_names.ignored(self.name, self._fields - used, free + 1)

    def _first_is_names(self) -> bool:
        """Whether the first line holds names: of source and target, or of another column, which holds numbers."""
        ends = [self._ends(line) for line in self._lines]
        if not ends or len(ends[0]) < 2:
            return False
        if first_has_names(ends):
            return True
        rows = [fields_of(line, self._separator) for line in self._lines]
        others = [column for at, column in enumerate(zip(*rows, strict=False)) if at not in self._columns[:2]]
        return len(rows) > 1 and any(map(word_above_numbers, others))

    def _ends(self, line: bytes) -> list[bytes]:
        """The fields of source and target, as far as there are any."""
        fields = fields_of(line, self._separator)
        return [fields[column] for column in self._columns[:2] if column < len(fields)]

    def _holds_data(self, line: bytes) -> bool:
        rest = line.strip()
        return bool(rest) and rest[0] not in self.options.comments.encode()

    def _column(self, requested: str | int | None, names: list[str]) -> int:
        if requested is None:
            return -1
        if isinstance(requested, int | np.integer) or requested.isdecimal():
            if int(requested) < 1:
                raise OptionError(f"{self.path}: columns are counted from 1, got {requested}")
            return int(requested) - 1
        if not self.options.header:
            raise OptionError(
                f"{self.path}: column {requested!r} is a name; give {option('header', True)} if the first line holds "
                f"the names"
            )
        if requested not in names:
            raise OptionError(f"{self.path}: no column {requested!r}; the header has {', '.join(names)}")
        return names.index(requested)

    def _guess(self, lines: list[bytes]) -> Literal["int", "string"]:
        """Integers, if at least half of the first lines hold two. Lines that will be skipped do not count."""
        ends = [self._ends(line) for line in lines]
        if self.options.missing == "skip":
            ends = [pair for pair in ends if not set(pair) & {b"", b'""'}]
        whole = sum(len(pair) == 2 and are_integers(pair) for pair in ends)
        return "int" if 2 * whole >= len(ends) else "string"

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self._flags = self._skipped = 0
        self._before = 0  # lines in the blocks before the current one
        results = pool.map(self._parse, self._texts())
        while True:
            try:
                block, lines, flags = next(results)
            except StopIteration:
                break
            except BadLine as bad:
                self._refuse(bad)
            self._before += lines
            self._note(flags)
            yield block
        if self._flags & ROUNDED:
            self.notes = (*self.notes, column_names.rounded(self.name))
        if self._skipped:
            self.notes = (*self.notes, column_names.skipped(self.name, self._skipped, "line"))
        large = bool(self._flags & kernels.SAW_LARGE_WEIGHT)
        self.weight_dtype = "float64" if self._flags & kernels.SAW_FRACTION else "int64" if large else "int32"

    @property
    def seen(self) -> int:
        """Flags of the kernels for all blocks that were read."""
        return self._flags

    def _note(self, flags: int) -> None:
        """Record the flags of a block, for decisions after the last block."""
        self._flags |= flags
        if self._flags & kernels.SAW_NEGATIVE_ID and self._flags & kernels.SAW_HUGE_ID:
            raise GraphFormatError(
                f"{self.path}: ids below 0 and above 2**63 - 1 in one file; no 64-bit type holds both"
            )
        self.signed = bool(self._flags & kernels.SAW_NEGATIVE_ID)

    def _texts(self) -> Iterator[tuple[Array, int, int]]:
        """(lines, bytes of the file that they came from, lines skipped before them)."""
        skip = self._skip_to
        chunk = min(sizes.now.text_chunk, STRING_CHUNK) if self.ids == "string" else sizes.now.text_chunk
        for text, done in Lines(self.path, self.options.max_expansion, chunk):
            ends = np.flatnonzero(text == kernels.NEWLINE)[:skip] if skip else np.empty(0, np.int64)
            skip -= ends.size
            rest = text[int(ends[-1]) + 1 :] if ends.size else text
            if self.options.missing == "skip":
                self._skipped += int(kernels.blank_missing(rest, self._columns, self._separator, self._comments))
            yield rest, done, int(ends.size)

    def _parse(self, item: tuple[Array, int, int]) -> tuple[EdgeBlock, int, int]:
        text, done, skipped = item
        lines = int(kernels.count_lines(text))
        parse = self._parse_strings if self.ids == "string" else self._parse_integers
        block, flags = parse(text, lines, np.empty(lines) if self.weighted else None, skipped)
        if flags & kernels.SAW_LARGE_WEIGHT and not flags & kernels.SAW_FRACTION:  # doubles may have rounded them
            block, flags = parse(text, lines, np.empty(lines, np.int64), skipped)
        block.done = done
        if flags & kernels.SAW_FRACTION and block.weights is not None and (np.abs(block.weights) >= LAST_EXACT).any():
            flags |= ROUNDED
        return block, lines + skipped, flags

    def _parse_integers(self, text: Array, lines: int, weights: Array | None, skipped: int) -> tuple[EdgeBlock, int]:
        for dtype in (np.uint32, np.uint64):
            sources, targets = np.empty(lines, dtype), np.empty(lines, dtype)
            status, edges, where, flags = kernels.parse_integer_edges(
                text,
                self._columns,
                self._separator,
                self._comments,
                self.options.allow_negative,
                self._locale,
                sources,
                targets,
                weights,
            )
            if status != kernels.WIDE:
                break
        if status != kernels.OK:
            raise BadLine(status, *line_at(text, where, skipped))
        return EdgeBlock(sources[:edges], targets[:edges], None if weights is None else weights[:edges]), flags

    def _parse_strings(self, text: Array, lines: int, weights: Array | None, skipped: int) -> tuple[EdgeBlock, int]:
        spans = np.empty((lines, 4), np.int64)
        status, edges, where, flags = kernels.split_string_edges(
            text,
            self._columns,
            self._separator,
            self._comments,
            self.options.allow_negative,
            self._locale,
            spans,
            weights,
        )
        if status != kernels.OK:
            raise BadLine(status, *line_at(text, where, skipped))
        starts, ends = spans[:edges, ::2], spans[:edges, 1::2]
        first, second = (binary_array(text, starts[:, k], ends[:, k]) for k in (0, 1))
        sources, targets, names = encode(first, second, self.salt)
        if not valid_utf8(names):
            for start in spans[:edges, ::2].ravel():
                number, line = line_at(text, int(start), skipped)
                if b"\xef\xbf\xbd" in line.decode("utf-8", "replace").encode() and b"\xef\xbf\xbd" not in line:
                    raise BadLine(NOT_UTF8, number, line)
        return EdgeBlock(sources, targets, None if weights is None else weights[:edges], names), flags

    def _refuse(self, bad: BadLine) -> None:
        status, number, text = bad.args
        line = self._before + number
        expected = self._expected(status, number)
        if status in (kernels.BAD_SOURCE, kernels.BAD_TARGET, kernels.MISSING) and self._lacks_an_end(text):
            form = "an id between the quotes" if b'""' in self._ends(text) else self._shape()
            expected = f"expected {form} ({option('missing', 'skip')} leaves out lines without a source or target)"
        raise GraphFormatError(f"{self.path}:{line}: {expected}, got {shortened(text)!r}") from None

    def _lacks_an_end(self, line: bytes) -> bool:
        """Whether the field of the source or the target is there, and empty: such a line can be skipped."""
        ends = self._ends(line)
        ends_in_one = self._separator != kernels.SPACE and line.rstrip(b" \r\n").endswith(bytes([self._separator]))
        return b"" in ends or b'""' in ends or (len(ends) < 2 and ends_in_one)

    def _expected(self, status: int, number: int) -> str:
        if status == kernels.NEGATIVE:
            return f"expected a weight of at least 0 ({option('allow_negative', True)} admits others)"
        if status == kernels.NOT_FINITE:
            return "expected a finite weight"
        if status == kernels.BAD_WEIGHT:
            words = not are_integers(self._ends(self._lines[0])) if self._lines else False
            names = words and self._before + number <= self._first_line
            hint = f" ({option('header', True)} skips a line of names)" if names else ""
            return f"expected a number as weight in column {self._columns[2] + 1}{hint}"
        if status == kernels.TOO_BIG:
            return "expected ids that fit 64 bits"
        if status == kernels.LONE_RETURN:
            return "expected lines that end in a newline, not in a carriage return alone"
        if status == NOT_UTF8:
            return "expected ids in UTF-8"
        hint = ""
        if self.ids == "int" and self._before + number <= self._first_line:
            hint = f" ({option('header', True)} skips a line of names, {option('ids', 'string')} takes any text)"
        elif self.ids == "int" and status in (kernels.BAD_SOURCE, kernels.BAD_TARGET):
            hint = f" ({option('ids', 'string')} takes any text)"
        return f"expected {self._shape()}{hint}"

    def _shape(self) -> str:
        """The expected form of a line, for messages."""
        used = self._columns[self._columns >= 0]
        shape = "'source target weight'" if self.weighted else "'source target'"
        kind = "" if self.ids == "string" else " with integer ids"
        where = "" if (used == np.arange(used.size)).all() else f" in columns {', '.join(str(c + 1) for c in used)}"
        return shape + kind + where

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {"format": "text", "lines": self._before}
        used = int((self._columns >= 0).sum())
        if self._fields > used:
            found["columns_ignored"] = self._fields - used
        if self._skipped:
            found["lines_skipped"] = self._skipped
        return found


def binary_array(text: Array, starts: Array, ends: Array) -> Any:
    """Spans of a text as an Arrow large_binary array."""
    offsets = np.zeros(starts.size + 1, np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    kernels.copy_spans(text, starts, ends, offsets, data)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), starts.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def valid_utf8(names: Any) -> bool:
    try:
        names.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True
