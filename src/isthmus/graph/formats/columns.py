"""Parquet and Arrow files, alone or as a folder of parts; Graph columns are found by name or position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from isthmus.errors import GraphFormatError
from isthmus.graph.edges import BLOCK_EDGES, EdgeSource
from isthmus.graph.formats import FORMATS, ReadOptions
from isthmus.graph.formats.tables import TableSource

PARQUET = FORMATS["parquet"][1]


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    parts = [path]
    if path.is_dir():
        known = PARQUET + FORMATS["arrow"][1]
        parts = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in known and p.name[0] not in "._")
        if not parts:
            raise GraphFormatError(f"{path}: no Parquet or Arrow files in this folder")
    schema = None
    rows = 0
    for part in parts:
        found, count = inspect(part)
        rows += count
        if schema is None:
            schema = found
        elif [f.name for f in found] != [f.name for f in schema]:
            raise GraphFormatError(f"{part}: columns {', '.join(found.names)} differ from {', '.join(schema.names)} of {parts[0]}")
    source = TableSource(str(path), schema, lambda: batches(parts, wanted), options)
    wanted = [column for column in (source._source, source._target, source._weight) if column is not None]
    source.replayable = True
    source.total = rows
    return source


def inspect(part: Path) -> tuple[Any, int]:
    """Schema and number of rows."""
    try:
        if part.suffix.lower() in PARQUET:
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
            if part.suffix.lower() in PARQUET:
                # No pre-buffering: it would hold whole row groups beside the budget.
                with pq.ParquetFile(part, pre_buffer=False, buffer_size=1 << 20) as file:
                    yield from file.iter_batches(BLOCK_EDGES // 4, columns=wanted, use_threads=False)
            else:
                with pa.OSFile(str(part)) as raw:
                    reader = open_arrow(raw)
                    many = getattr(reader, "num_record_batches", None)
                    for batch in reader if many is None else (reader.get_batch(i) for i in range(many)):
                        yield batch.select(wanted)
        except (pa.ArrowException, OSError) as error:
            raise GraphFormatError(f"{part}: damaged: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
