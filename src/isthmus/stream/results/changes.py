"""What a batch changed in an answer, as a file: vertex, old and new value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.export import arrow
from isthmus.graph.store.replacement import replacing
from isthmus.stream.results.live_result import LiveResult


def changes_table(result: LiveResult) -> Any:
    """An Arrow table of `result.changes()`; no value is null."""
    import pyarrow as pa

    changes = result.changes()
    return pa.table({name: as_arrow(values) for name, values in changes.items()})


def as_arrow(values: Any) -> Any:
    import pyarrow as pa

    data, missing = np.ma.getdata(values), np.ma.getmaskarray(values)
    if data.dtype == object:
        return pa.array([None if gone else value for value, gone in zip(data.tolist(), missing.tolist(), strict=True)])
    return arrow.numbers(data, missing)


def save_changes(result: LiveResult, path: Path) -> None:
    """Write the changes of a result to .parquet or .csv. If writing fails, no partial file is left."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    table = changes_table(result)
    try:
        with replacing(path) as file:
            (csv.write_csv if path.suffix.lower() == ".csv" else pq.write_table)(table, file)
    except OSError as error:
        raise StoreError(f"{path}: cannot write the changes: {error.strerror or error}") from error
