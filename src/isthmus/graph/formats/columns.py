"""Parquet and Arrow files, alone or as a folder of parts; columns are found by name or position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from isthmus import sizes
from isthmus.errors import GraphFormatError
from isthmus.graph.edges import EdgeSource
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.format import Format
from isthmus.graph.formats.tables import TableSource
from isthmus.messages import option

USED = ("source", "target", "weight", "ids", "vertices", "allow_negative", "max_expansion")


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    parts = [path]
    if path.is_dir():
        known = PARQUET.endings + ARROW.endings
        parts = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in known and p.name[0] not in "._")
        if not parts:
            raise GraphFormatError(f"{path}: no Parquet or Arrow files in this folder")
    schema, rows = inspect(parts[0])
    source = TableSource(str(path), schema, lambda: capped(parts, source, options.max_expansion), options)
    for part in parts[1:]:
        more, count = inspect(part)
        source.check_schema(more, str(part))
        rows += count
    source.replayable = True
    source.total = rows or None
    return source


PARQUET = Format("parquet", open_path, endings=(".parquet", ".pq"), words="a Parquet table", uses=USED, place=2)
ARROW = Format("arrow", open_path, endings=(".arrow", ".feather", ".ipc", ".arrows"), words="an Arrow table", uses=USED, place=3)


def capped(parts: list[Path], source: TableSource, max_expansion: float) -> Iterator[Any]:
    """The batches of all parts; an error if they grow beyond `max_expansion` times the size of the files."""
    size = sum(part.stat().st_size for part in parts)
    limit = max(sizes.now.free_expansion, int(size * max_expansion))
    expanded = 0
    for batch in batches(parts, source.columns):
        expanded += batch.nbytes
        if expanded > limit:
            raise GraphFormatError(
                f"{source.name}: {size} bytes decompress to more than {limit}; "
                f"if that is right, give {option('max_expansion')} a larger factor"
            )
        yield batch


def inspect(part: Path) -> tuple[Any, int]:
    """Schema and number of rows."""
    try:
        if part.suffix.lower() in PARQUET.endings:
            with pq.ParquetFile(part) as file:
                return file.schema_arrow, file.metadata.num_rows
        with pa.OSFile(str(part)) as raw:
            reader = open_arrow(raw)
            return reader.schema, 0
    except (pa.ArrowException, OSError) as error:
        raise GraphFormatError(f"{part}: not a readable {part.suffix[1:]} file: {first_line(error)}") from error


def open_arrow(raw: Any) -> Any:
    """An Arrow file, or an Arrow stream."""
    try:
        return pa.ipc.open_file(raw)
    except pa.ArrowInvalid:
        raw.seek(0)
        return pa.ipc.open_stream(raw)


def batches(parts: list[Path], wanted: list[str]) -> Iterator[Any]:
    for part in parts:
        try:
            if part.suffix.lower() in PARQUET.endings:
                # No pre-buffering: it would hold whole row groups beside the budget.
                with pq.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True) as file:
                    rows = 0
                    for batch in file.iter_batches(sizes.now.block_edges // 4, columns=wanted, use_threads=False):
                        rows += batch.num_rows
                        yield batch
                    if rows != file.metadata.num_rows:
                        raise GraphFormatError(f"{part}: holds {rows} rows, its footer promises {file.metadata.num_rows}")
            else:
                with pa.OSFile(str(part)) as raw:
                    reader = open_arrow(raw)
                    many = getattr(reader, "num_record_batches", None)
                    for batch in reader if many is None else (reader.get_batch(i) for i in range(many)):
                        batch = batch.select(wanted)
                        batch.validate(full=True)  # string offsets that point outside would crash the process
                        yield batch
        except (pa.ArrowException, OSError) as error:
            raise GraphFormatError(f"{part}: damaged: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
