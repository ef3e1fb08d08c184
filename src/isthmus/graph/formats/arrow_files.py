"""Parquet and Arrow files, alone or as a folder of parts; columns are found by name or position."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from isthmus import sizes
from isthmus.errors import BudgetError, GraphFormatError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.reading import ipc_messages
from isthmus.graph.reading.arrow_columns import text_lengths
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.parquet_pages import BadPage, Chunk, pages_of, row_groups
from isthmus.graph.reading.table_source import STRING_BYTES, TableSource
from isthmus.memory import format_size
from isthmus.messages import option

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

LEAST_ROW = 16  # bytes of an edge in memory: two ids
USED = ("source", "target", "weight", "ids", "vertices", "allow_negative", "max_expansion", "missing")


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    parts = [path]
    if path.is_dir():
        known = PARQUET.endings + ARROW.endings
        parts = sorted(
            p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in known and p.name[0] not in "._"
        )
        if not parts:
            raise GraphFormatError(f"{path}: no Parquet or Arrow files in this folder")
    return open_parts(str(path), parts, options)


def open_parts(name: str, parts: list[Path], options: ReadOptions) -> EdgeSource:
    """The rows of several files, one after the other."""
    schema, rows = inspect(parts[0])
    source = TableSource(name, schema, lambda: capped(parts, source, options.max_expansion), options)
    for part in parts[1:]:
        more, count = inspect(part)
        source.check_schema(more, str(part))
        rows += count
    source.replayable = True
    source.total = rows or None
    return source


def save_parquet(edges: Outgoing, file: BinaryIO) -> None:
    # Arrow's own pool keeps what was freed.
    with pq.ParquetWriter(file, edges.schema, memory_pool=pa.system_memory_pool()) as writer:
        for batch in edges.tables():
            writer.write_batch(batch)


def save_arrow(edges: Outgoing, file: BinaryIO) -> None:
    """A file or, for the ending .arrows, a stream."""
    with (pa.ipc.new_stream if edges.ending == ".arrows" else pa.ipc.new_file)(file, edges.schema) as writer:
        for batch in edges.tables():
            writer.write_batch(batch)


PARQUET = Format(
    "parquet",
    open_path,
    endings=(".parquet", ".pq"),
    words="a Parquet table",
    uses=USED,
    place=2,
    save=save_parquet,
    written="bytes",
)
ARROW = Format(
    "arrow",
    open_path,
    endings=(".arrow", ".feather", ".ipc", ".arrows"),
    words="an Arrow table",
    uses=USED,
    place=3,
    save=save_arrow,
    written="bytes",
)


class Expansion:
    """How much larger than their files the tables may become, and how much of them may be in memory at once."""

    def __init__(self, parts: list[Path], source: TableSource, factor: float) -> None:
        self._name, self._size = source.name, sum(part.stat().st_size for part in parts)
        self._limit = max(sizes.now.free_expansion, int(self._size * factor))
        self.memory = source.block_memory if source.block_memory is not None else sys.maxsize

    def check(self, size: int) -> None:
        """Raise an error if the tables together have, or claim, more bytes than allowed."""
        if size > self._limit:
            raise GraphFormatError(
                f"{self._name}: {self._size} bytes decompress to more than {self._limit}; "
                f"if that is right, give {option('max_expansion')} a larger factor"
            )

    def check_memory(self, part: Path, what: str, size: int) -> None:
        """Raise an error if `size` bytes, which are decompressed at once, do not fit in memory."""
        if size > self.memory:
            raise BudgetError(
                f"{part}: {what} decompresses to {format_size(size)}, and the budget leaves {format_size(self.memory)} "
                f"for it; raise {option('memory')}, or write the file in smaller pieces"
            )


def capped(parts: list[Path], source: TableSource, max_expansion: float) -> Iterator[Any]:
    """The batches of all parts, few rows each. Claims of a file are checked before decoding, contents after."""
    allowed = Expansion(parts, source, max_expansion)
    rows_at_once = claimed(parts, source.columns, allowed)
    expanded = 0
    for batch in batches(parts, source.columns, rows_at_once):
        expanded += sum(int(text_lengths(column).sum()) for column in batch.columns)
        allowed.check(expanded)
        yield batch


def claimed(parts: list[Path], columns: list[str], allowed: Expansion) -> dict[Path, list[int]]:
    """How many rows of each row group of the Parquet parts to decode at once; an error if a file claims too much."""
    total = 0
    rows_at_once: dict[Path, list[int]] = {}
    for part in parts:
        with reading(part), part.open("rb", buffering=0) as raw:
            if part.suffix.lower() not in PARQUET.endings:
                for claim in ipc_messages.claims(raw.fileno()):
                    allowed.check_memory(part, "a batch", claim)
                    total += claim
                    allowed.check(total)
                continue
            groups = row_groups(raw.fileno())
            allowed.check(sum(rows for rows, _ in groups) * LEAST_ROW)
            rows_at_once[part] = []
            names = leaves(part)
            for rows, chunks in groups:
                if len(chunks) != len(names):
                    raise BadPage(f"a row group has {len(chunks)} columns, the schema {len(names)}")
                mine = [chunk for chunk, name in zip(chunks, names, strict=True) if name in columns]
                # Without rows there need not be pages.
                at_once, size = rows_of(part, raw.fileno(), mine if rows else [], allowed)
                rows_at_once[part].append(at_once)
                total += size
                allowed.check(total)
    return rows_at_once


def leaves(part: Path) -> list[str]:
    """The columns of a Parquet file in the order of its row groups. Arrow goes by order, not by name."""
    with pq.ParquetFile(part) as file:
        return [file.schema.column(index).path for index in range(len(file.schema))]


def rows_of(part: Path, file: int, chunks: list[Chunk], allowed: Expansion) -> tuple[int, int]:
    """(Rows of a row group to decode at once, bytes that the pages of these columns claim)."""
    total, row = 0, 1
    for chunk in chunks:
        widest = 1
        for page in pages_of(file, chunk, allowed.memory):
            allowed.check_memory(part, f"a page of column {chunk.name!r}", page.size)
            total += page.size
            widest = max(widest, page.bytes_per_row)
        row += widest
    return max(1, min(sizes.now.block_edges // 4, allowed.memory // row)), total


def inspect(part: Path) -> tuple[Any, int]:
    """Schema and number of rows."""
    try:
        if part.suffix.lower() in PARQUET.endings:
            with pq.ParquetFile(part) as file:
                return readable(file.schema_arrow), file.metadata.num_rows
        with pa.OSFile(str(part)) as raw:
            reader = open_arrow(raw)
            return readable(reader.schema), 0
    except (pa.ArrowException, OSError, UnicodeError) as error:  # names of columns may be anything
        raise GraphFormatError(f"{part}: not a readable {part.suffix[1:]} file: {first_line(error)}") from error


def readable(schema: Any) -> Any:
    """A schema whose names are text; pyarrow decodes them each time they are read."""
    list(schema.names)
    return schema


def open_arrow(raw: Any) -> Any:
    """An Arrow file, or an Arrow stream."""
    try:
        return pa.ipc.open_file(raw)
    except pa.ArrowInvalid:
        raw.seek(0)
        return pa.ipc.open_stream(raw)


def batches(parts: list[Path], columns: list[str], rows_at_once: dict[Path, list[int]]) -> Iterator[Any]:
    for part in parts:
        with reading(part):
            if part in rows_at_once:
                yield from parquet_batches(part, columns, rows_at_once[part])
            else:
                with pa.OSFile(str(part)) as raw:
                    reader = open_arrow(raw)
                    many = getattr(reader, "num_record_batches", None)
                    for batch in reader if many is None else (reader.get_batch(i) for i in range(many)):
                        batch = batch.select(columns)
                        batch.validate(full=True)  # string offsets that point outside would crash the process
                        yield batch


def parquet_batches(part: Path, columns: list[str], rows_at_once: list[int]) -> Iterator[Any]:
    # No pre-buffering: it would hold whole row groups beside the budget.
    with pq.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True) as file:
        rows = 0
        for group, at_once in enumerate(rows_at_once):
            for batch in gathered(file.iter_batches(at_once, row_groups=[group], columns=columns, use_threads=False)):
                rows += batch.num_rows
                yield batch
        if rows != file.metadata.num_rows:
            raise GraphFormatError(f"{part}: holds {rows} rows, its footer promises {file.metadata.num_rows}")


def gathered(small: Iterator[Any]) -> Iterator[Any]:
    """The batches, the small ones joined: few rows cost as much to hand over as many."""
    held: list[Any] = []
    size = 0
    for batch in small:
        held.append(batch)
        size += batch.nbytes
        if size >= STRING_BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, size = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


@contextmanager
def reading(part: Path) -> Iterator[None]:
    """Turn errors of Arrow, and of headers that do not follow the format, into ours."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, BadPage, ipc_messages.BadMessage) as error:
        raise GraphFormatError(f"{part}: damaged: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
