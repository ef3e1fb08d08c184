"""An answer: columns by vertex, with the user's own ids, and the trace of how it was found.

Arrays are in natural order: entry i belongs to the i-th smallest vertex id. Ids are read from the store only
when they are asked for, and written out piece by piece.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import OptionError, StoreError
from isthmus.graph.graph import Graph
from isthmus.memory import format_size
from isthmus.runtime.trace import Trace

Array = np.ndarray[Any, Any]
INT_MAX, INT_MIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min
VERTEX_COLUMNS = ("predecessor", "labels")  # values that are vertices
NO_VERTEX = -1
NARROW = "distance_"  # how columns are named that are kept in 32 bits, where the largest number means unreached


class Result:
    """What an algorithm found. `values` is its main column as an array."""

    def __init__(self, algorithm: str, graph: Graph, columns: dict[str, Array], trace: Trace, facts: dict[str, Any]) -> None:
        self.algorithm, self.graph, self.trace = algorithm, graph, trace
        self._columns = columns
        self._facts = facts  # the rest of the summary
        self.main = next(iter(columns))
        self._order: Array | None = graph.store.read("order.from_natural") if graph.order == "hub" else None

    def __len__(self) -> int:
        return self.graph.vertices

    def __repr__(self) -> str:
        return f"<Result: {self.algorithm} on {self.graph.vertices} vertices, {len(self.trace)} iterations>"

    @property
    def columns(self) -> list[str]:
        """Names of the value columns, without `vertex`."""
        return list(self._columns)

    @property
    def values(self) -> Array:
        """The main column, in the order of `vertices`. Unreached: the largest int64, or infinity."""
        return self[self.main]

    @property
    def vertices(self) -> Array:
        """User ids, ascending."""
        return self.graph.ids.natural(0, self.graph.vertices)

    def __getitem__(self, name: str) -> Array:
        """A column as an array; columns that name vertices hold user ids, in an object array where some are none."""
        if name not in self._columns:
            raise KeyError(f"{self.algorithm} has no column {name!r}; it has {', '.join(self._columns)}")
        values = self._part(name, 0, len(self))
        if name not in VERTEX_COLUMNS:
            return values
        missing = values == NO_VERTEX if values.dtype.kind == "i" else np.zeros(values.size, np.bool_)
        users = self._users(name, np.where(missing, 0, values)) if values.size else values
        if not missing.any():
            return users
        out = users.astype(object)
        out[missing] = None
        return out

    def _part(self, name: str, begin: int, end: int) -> Array:
        column = self._columns[name]
        part = column[begin:end] if self._order is None else column[self._order[begin:end]]
        return widened(part) if name.startswith(NARROW) and part.dtype.itemsize == 4 else part

    def _users(self, name: str, numbers: Array) -> Array:
        """User ids of vertex numbers; labels count in natural order, predecessors in the store's."""
        if name == "labels":
            return self.graph.ids.users_of_natural(numbers)
        return self.graph.ids.users(numbers)

    def to_numpy(self) -> dict[str, Array]:
        """All columns, `vertex` first."""
        return {"vertex": self.vertices, **{name: self[name] for name in self._columns}}

    def to_arrow(self) -> Any:
        """An Arrow table; unreached and missing are null."""
        import pyarrow as pa

        batches = list(self._batches())
        return pa.Table.from_batches(batches) if batches else self._batch(0, 0).schema.empty_table()

    def to_pandas(self) -> Any:
        """A pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A polars data frame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def _batches(self) -> Iterator[Any]:
        for begin in range(0, len(self), sizes.now.result_rows):
            yield self._batch(begin, min(begin + sizes.now.result_rows, len(self)))

    def _batch(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        columns = {"vertex": as_arrow(self.graph.ids.natural(begin, end), None)}
        for name in self._columns:
            values = self._part(name, begin, end)
            if name in VERTEX_COLUMNS:
                missing = values == NO_VERTEX if values.dtype.kind == "i" else np.zeros(values.size, np.bool_)
                users = self._users(name, np.where(missing, 0, values)) if values.size else self.graph.ids.natural(0, 0)
                columns[name] = as_arrow(users, missing)
            else:
                columns[name] = as_arrow(values, unreached(name, values))
        return pa.RecordBatch.from_pydict(columns)

    def save(self, path: str | Path) -> None:
        """Write to .parquet, .csv or .npy (the main column alone). A failure leaves no half file."""
        path = Path(path)
        writers = {".parquet": self._save_parquet, ".csv": self._save_csv, ".npy": self._save_npy}
        if path.suffix.lower() not in writers:
            raise OptionError(f"{path}: expected a name that ends in {', '.join(writers)}")
        fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            writers[path.suffix.lower()](fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot write the result: {error.strerror or error}") from error
        finally:
            with contextlib.suppress(OSError):  # a read-only folder refuses this too
                fresh.unlink(missing_ok=True)

    def _save_parquet(self, path: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, self._batch(0, 0).schema) as writer:
            for batch in self._batches():
                writer.write_batch(batch)

    def _save_csv(self, path: Path) -> None:
        import pyarrow.csv as pc

        with pc.CSVWriter(path, self._batch(0, 0).schema) as writer:
            for batch in self._batches():
                writer.write_batch(batch)

    def _save_npy(self, path: Path) -> None:
        with path.open("wb") as file:
            values = self.values
            plain: Any = SimpleNamespace(write=file.write)  # a real file NumPy writes to itself, and does not say what went wrong
            np.save(plain, values.astype(np.str_) if values.dtype == object else values, allow_pickle=False)

    def report(self, path: str | Path) -> None:
        """Write a page about the run: one HTML file without scripts. Needs `pip install isthmus[report]`."""
        report_page().write(path, {self._facts["policy"]: self})

    def summary(self) -> dict[str, Any]:
        """What `isthmus run --json` prints."""
        return self._facts

    def describe(self) -> list[tuple[str, str]]:
        """The summary as rows for people."""
        facts = self._facts
        transfer, seconds, memory = facts["transfer"], facts["seconds"], facts["memory"]
        used = f"{format_size(memory['near_peak'])} of a budget of {format_size(memory['budget'])}"
        rows = [(name.replace("_", " "), shown(value)) for name, value in facts["result"].items()]
        rows += [
            ("iterations", f"{facts['iterations']:,}"),
            *([("modelled", f"{seconds['modelled'] * 1e3:.3f} ms on {facts['device']}")] if "modelled" in seconds else []),
            ("time", f"{seconds['total']:.3f} s (waiting for the link {seconds['wait']:.3f}, edge loops {seconds['kernel']:.3f})"),
            ("moved", f"{format_size(transfer['bytes'])} in {transfer['requests']:,} requests, {transfer['ratio']:.2f} x the edges"),
            ("near memory", f"{used}; process peak {format_size(memory['rss_peak'])}"),
        ]
        return rows


def report_page() -> Any:
    """What draws pages: it stands above the runtime, and is loaded only when a page is asked for."""
    return importlib.import_module("isthmus.report.page")


def widened(values: Array) -> Array:
    """Distances of 32 bits as int64."""
    wide = values.astype(np.int64)
    wide[values == np.iinfo(values.dtype).max] = INT_MAX
    return wide


def unreached(name: str, values: Array) -> Array:
    """Values that are null in Arrow. The source of widest paths is infinitely wide, and that is an answer."""
    high, low = (INT_MAX, INT_MIN) if values.dtype.kind == "i" else (np.inf, -np.inf)
    missing: Array = values == low if name == "width" else (values == high) | (values == low)
    return missing | np.isnan(values) if values.dtype.kind == "f" else missing


def shown(value: Any) -> str:
    """A figure of the summary for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def as_arrow(values: Array, missing: Array | None) -> Any:
    import pyarrow as pa

    if values.dtype == object:
        return pa.array([None if missing is not None and missing[i] else v for i, v in enumerate(values)], pa.large_string())
    return pa.array(values, mask=missing if missing is not None and missing.any() else None)
