"""The result of a run: columns by vertex, with the user's own ids, and the trace of the run.

Arrays are in natural order: entry i belongs to the i-th smallest vertex id. Ids are read from the store only
when they are needed, and written out piece by piece.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.checks import flag, path_of, whole
from isthmus.errors import OptionError, StoreError, UnknownVertexError
from isthmus.graph.export import arrow
from isthmus.graph.ids import pieces
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import refuse_address
from isthmus.graph.store.replacement import replacing
from isthmus.memory import format_size
from isthmus.programs.algorithm import Answer, Rows
from isthmus.programs.column import Column, Holds, column_of
from isthmus.runtime.results.interchange import Interchange
from isthmus.runtime.results.mapping import ByKey
from isthmus.runtime.results.top import first_rows, group_sizes
from isthmus.runtime.trace.trace import Trace

Array = np.ndarray[Any, Any]
LONGEST_INTEGER = np.dtype("U20")  # as text
LARGEST = ("highest", "farthest", "depth", "most", "largest")  # figures that some vertex has: the largest of its column
SMALLEST = ("narrowest",)
SIZES_SHOWN = 4  # of components, one by one


class Result(ByKey, Interchange):
    """The result of an algorithm. `values` is its main column as an array; `result[v]` is the value of vertex `v`.

    It is a mapping from vertices to values: `result[v]`, `v in result`, `len(result)`, `dict(result)`. `result["name"]`
    is a column. It is also an Arrow stream of all columns, so pandas, polars, pyarrow and DuckDB read it as a table,
    and NumPy and DLPack consumers get the main column. `algorithm` is the name of what ran, `main` that of the main
    column; `trace` has the iterations, and notes for the user in `trace.notes`.

    It keeps the graph's ids, so it stays valid when the graph is closed or replaced.
    """

    gpu: Any = None  # of a run on a GPU: what is still there

    def __init__(self, algorithm: str, graph: Snapshot, answer: Answer, trace: Trace, facts: dict[str, Any]) -> None:
        self.algorithm, self.trace = algorithm, trace
        self._answer = answer
        self._facts = facts  # the rest of the summary
        self._count = graph.vertices
        self._ids = graph.ids.kept()
        self.main = answer.main
        self._in_hub_order = graph.order == "hub"

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the ids as well, so that a result needs no store in another process."""
        return {**vars(self), "_ids": self._ids.loaded(), "_ahead": None, "_ahead_end": -1, "gpu": None}

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Result: {self.algorithm} on {self._count} vertices, {len(self.trace)} iterations>"

    @property
    def rows(self) -> Rows:
        """What a row stands for: a vertex, an edge or an input."""
        return self._answer.rows

    @property
    def columns(self) -> list[str]:
        """Names of the value columns, without `vertex`."""
        return list(self._answer.columns)

    @property
    def values(self) -> Array:
        """The main column, in the order of `vertices`: a masked array if some vertices have no value (unreached
        ones).
        """
        return self._rows(self.main, 0, len(self))

    def filled(self, name: str | None = None) -> Array:
        """A column (default: the main one) as a plain array, in the order of `vertices`. Unreached: the largest int64,
        or infinity.
        """
        return np.ma.getdata(self.values if name is None else self[name])

    def on_gpu(self, name: str | None = None) -> Any:
        """A column (default: the main one) of a run on a GPU as an array there, with the values and in the order of
        `filled`.

        CuPy, cuDF, PyTorch and others read it without a copy. It is valid while this result, or an array made of it,
        exists.
        """
        if name is not None and name not in self._answer.columns:
            raise OptionError(f"on_gpu: {self._no_column(name)}")
        if self.gpu is None:
            raise OptionError(
                f"on_gpu: this run was not on a GPU; run it with device='cuda:0', or copy {self.algorithm}'s "
                f"values there"
            )
        return self.gpu.column(self, name)

    @property
    def vertices(self) -> Array:
        """The ids of all vertices, ascending."""
        return self._ids.natural(0, self._count)

    def raw(self, name: str) -> Array:
        """A column as the program computed it: indexed by vertex number, and naming vertices by number."""
        return self._answer.columns[name]

    def declared(self, name: str) -> Column:
        """What a column holds."""
        return column_of(self._answer.declared, name)

    def whose(self, at: int) -> str:
        """The name of a row of a raw column: 'vertex 7'."""
        return f"vertex {self._ids.users(np.array([at]))[0]}"

    def __getitem__(self, name: Any) -> Any:
        """A column as an array, by its name: a masked one if some rows have no value. By a vertex, its value in the
        main column.

        Columns that name vertices hold user ids, in an object array if some are None.
        """
        if isinstance(name, str) and name in self._answer.columns:
            return self._rows(name, 0, len(self))
        try:
            return self.value(name)
        except UnknownVertexError as error:
            if not isinstance(name, str):
                raise
            raise UnknownVertexError(f"{self._no_column(name)}, and {error}") from None

    def _no_column(self, name: Any) -> str:
        return f"{self.algorithm} has no column {name!r}; it has {', '.join(self._answer.columns)}"

    def _keys(self, begin: int, end: int) -> list[Any]:
        users: list[Any] = self._ids.natural(begin, end).tolist()
        return users

    def _row(self, key: Any) -> int:
        return self._ids.place(key)

    def _main_values(self, begin: int, end: int) -> list[Any]:
        values: list[Any] = self._rows(self.main, begin, end).tolist()
        return values

    def top(self, count: int = 10, column: str | None = None, ascending: bool = False) -> list[tuple[Any, Any]]:
        """(vertex, value) of the vertices with the `count` largest values of a column (default: the main one), largest
        first.

        `ascending`: the smallest, smallest first. Vertices without a value are left out; among equals the smaller ids
        come first.
        """
        name = self.main if column is None else column
        if name not in self._answer.columns:
            raise OptionError(f"top: {self._no_column(name)}")
        declared = self.declared(name)
        if declared.holds is not Holds.NUMBERS:
            instead = "; largest() has the largest groups" if name == self.main else ""
            raise OptionError(f"top: expected a column of numbers, got {name}, which names vertices{instead}")
        whole("count", count, 0)
        rows = first_rows(
            lambda a, b: self._part(name, a, b), len(self), declared, count, flag("ascending", ascending)
        ).tolist()
        return [(self._keys(row, row + 1)[0], self._rows(name, row, row + 1).tolist()[0]) for row in rows]

    def sizes(self) -> dict[int, int]:
        """Of components or communities: how many there are of each size, largest first."""
        counts = self._group_sizes("sizes")
        found, often = np.unique(counts[counts > 0], return_counts=True)
        return dict(zip(found[::-1].tolist(), often[::-1].tolist(), strict=True))

    def largest(self, count: int = 10) -> list[tuple[Any, int]]:
        """Of components or communities: (label, vertices) of the largest ones. Among equals the smaller labels come
        first.
        """
        counts = self._group_sizes("largest")
        rows = first_rows(
            lambda a, b: counts[a:b], counts.size, Column("size", none=()), whole("count", count, 0), False
        )
        rows = rows[counts[rows] > 0]
        return list(zip(self._ids.users_of_natural(rows).tolist(), counts[rows].tolist(), strict=True))

    @property
    def has_groups(self) -> bool:
        """Whether the main column puts every vertex into a group: a component or a community."""
        return self._answer.rows is Rows.VERTICES and self.declared(self.main).holds is Holds.PLACES

    @property
    def group_words(self) -> tuple[str, str]:
        """What one of the groups and several of them are called."""
        return (
            ("community", "communities")
            if "communities" in self._facts.get("result", {})
            else ("component", "components")
        )

    def _group_sizes(self, name: str) -> Array:
        if not self.has_groups:
            raise OptionError(
                f"{name}: expected components or communities, got {self.algorithm}; top() has its largest values"
            )
        return group_sizes(self.raw(self.main))

    def _rows(self, name: str, begin: int, end: int) -> Array:
        """Rows begin:end of a column, as `__getitem__` returns them."""
        column, values = self.declared(name), self._part(name, begin, end)
        if column.holds is Holds.NUMBERS:
            return column.masked(values)
        missing = column.missing(values)
        users = (
            self._ids.users_of_natural(self._places(column, np.where(missing, 0, values))) if values.size else values
        )
        if not missing.any():
            return users
        out = users.astype(object)
        out[missing] = None
        return out

    def _part(self, name: str, begin: int, end: int) -> Array:
        column = self._answer.columns[name]
        return column[self._ids.numbers(begin, end)] if self._in_hub_order else column[begin:end]

    def _places(self, column: Column, values: Array) -> Array:
        """Places in natural order of the vertices that a column names."""
        return values if column.holds is Holds.PLACES else self._ids.places(values)

    def to_numpy(self) -> dict[str, Array]:
        """All columns as arrays, by name; `vertex` comes first."""
        return {"vertex": self.vertices, **{name: self[name] for name in self.columns}}

    def to_arrow(self) -> Any:
        """An Arrow table; unreached and missing are null."""
        import pyarrow as pa

        batches = list(self._batches())
        return pa.Table.from_batches(batches) if batches else self._batch(0, 0).schema.empty_table()

    def to_pandas(self) -> Any:
        """A pandas data frame; unreached and missing are null. Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A polars data frame; unreached and missing are null. Needs polars."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def _batches(self) -> Iterator[Any]:
        for begin, end in self._bounds():
            yield self._batch(begin, end)

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows that are written at once: of a bounded number of rows and, unless one row has more, of
        bytes.
        """
        for begin in range(0, len(self), sizes.now.result_rows):
            end = min(begin + sizes.now.result_rows, len(self))
            total = np.cumsum(self._row_bytes(begin, end))
            for rows in pieces(np.arange(begin, end), total // sizes.now.result_bytes):
                yield int(rows[0]), int(rows[-1]) + 1

    def _row_bytes(self, begin: int, end: int) -> Array:
        """Bytes of each of the rows begin:end: 8 for every number or id, and the text of string ids."""
        total = np.full(end - begin, 8 * (1 + len(self.columns)))
        for places in self._named_places(begin, end):
            total += self._ids.text_bytes(places)
        return total

    def _named_places(self, begin: int, end: int) -> Iterator[Array]:
        """The places of the vertices that the rows begin:end name, column by column."""
        yield np.arange(begin, end)
        yield from self._places_in_columns(begin, end)

    def _places_in_columns(self, begin: int, end: int) -> Iterator[Array]:
        for name in self.columns:
            column = self.declared(name)
            if column.holds is not Holds.NUMBERS:
                values = self._part(name, begin, end)
                yield self._places(column, np.where(column.missing(values), 0, values))

    def _batch(self, begin: int, end: int) -> Any:
        return self._record({"vertex": self._ids.to_arrow(np.arange(begin, end)), **self._arrows(begin, end)})

    def _record(self, columns: dict[str, Any]) -> Any:
        import pyarrow as pa

        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _arrows(self, begin: int, end: int) -> dict[str, Any]:
        return {name: self._arrow(name, begin, end) for name in self.columns}

    def _arrow(self, name: str, begin: int, end: int) -> Any:
        """A part of a column as Arrow; missing values are null."""
        column, values = self.declared(name), self._part(name, begin, end)
        missing = column.missing(values)
        if column.holds is Holds.NUMBERS:
            return as_arrow(column.shown(values), missing)
        users = self._ids.to_arrow(self._places(column, values[~missing]))
        return users.take(arrow.numbers(np.cumsum(~missing) - 1, missing)) if missing.any() else users

    def save(self, path: str | Path) -> None:
        """Write to .parquet, .csv (both without a value where a vertex is unreached) or .npy (the main column alone,
        `filled`).

        If writing fails, no partial file is left.
        """
        path = path_of("save", path)
        writers = {".parquet": self._save_parquet, ".csv": self.write_csv, ".npy": self._save_npy}
        if path.suffix.lower() not in writers:
            raise OptionError(f"{path}: expected a name that ends in {', '.join(writers)}")
        refuse_address(path, "a result")
        try:
            with replacing(path) as file:
                writers[path.suffix.lower()](file)
        except OSError as error:
            raise StoreError(f"{path}: cannot write the result: {error.strerror or error}") from error

    def _save_parquet(self, file: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Arrow's own pool keeps what was freed.
        with pq.ParquetWriter(file, self._batch(0, 0).schema, memory_pool=pa.system_memory_pool()) as writer:
            for batch in self._batches():
                writer.write_batch(batch)

    def _save_npy(self, file: BinaryIO) -> None:
        """Write the main column. Strings, also integer ids of which some are missing, all get the width of the
        longest.
        """
        dtype = self._stored_dtype()
        header = {"descr": dtype.str, "fortran_order": False, "shape": (len(self), *self._main_rows(0, 0).shape[1:])}
        np.lib.format.write_array_header_1_0(file, header)
        for begin, end in self._bounds():
            values = self._main_rows(begin, end)
            for rows in np.array_split(values, -(-values.size * dtype.itemsize // sizes.now.result_bytes)):
                file.write(rows.astype(dtype).tobytes())

    def _stored_dtype(self) -> Any:
        """The type of the main column in an .npy file."""
        if self.declared(self.main).holds is Holds.NUMBERS or not len(self):
            return np.dtype(self._main_rows(0, 0).dtype)
        kinds = []
        for begin, end in self._bounds():
            values = self._main_rows(begin, end)
            kinds.append(
                np.dtype(f"U{max(len(str(user)) for user in values.tolist())}")
                if values.dtype == object
                else values.dtype
            )
        if any(kind.kind == "U" for kind in kinds):
            kinds = [kind if kind.kind == "U" else LONGEST_INTEGER for kind in kinds]
        return max(kinds, key=lambda kind: kind.itemsize)

    def _main_rows(self, begin: int, end: int) -> Array:
        """Rows begin:end of the main column, as `filled` returns them."""
        return np.ma.getdata(self._rows(self.main, begin, end))

    def report(self, path: str | Path) -> None:
        """Write an HTML report of the run: one file without scripts."""
        report_page().write(path_of("report", path), {self._facts["policy"]: self})

    def summary(self) -> dict[str, Any]:
        """What `isthmus run --json` prints: figures of the answer, seconds, bytes moved, memory, and what repeats the
        run.
        """
        return self._facts

    def describe(self) -> list[tuple[str, str]]:
        """The summary as rows for people."""
        facts = self._facts
        transfer, seconds, memory = facts["transfer"], facts["seconds"], facts["memory"]
        used = f"{format_size(memory['near_peak'])} of a budget of {format_size(memory['budget'])}"
        rows = [
            (name.replace("_", " "), shown(value) + self._holder(name, value))
            for name, value in facts["result"].items()
        ]
        rows += [("sizes", listed_sizes(self.sizes()))] if self.has_groups else []
        rows += [
            ("iterations", f"{facts['iterations']:,}"),
            *(
                [("modelled", f"{seconds['modelled'] * 1e3:.3f} ms on {facts['device']}")]
                if "modelled" in seconds
                else []
            ),
            ("time", f"{seconds['total']:.3f} s (I/O wait {seconds['wait']:.3f}, compute {seconds['kernel']:.3f})"),
            *([("compiling", f"{seconds['compile']:.3f} s of it")] if seconds["compile"] else []),
            (
                "moved",
                f"{format_size(transfer['bytes'])} in {transfer['requests']:,} requests, {transfer['ratio']:.2f} x "
                f"the edges",
            ),
            ("near memory", f"{used}; process peak {format_size(memory['rss_peak'])}"),
        ]
        return rows

    def _holder(self, name: str, value: Any) -> str:
        """The vertex that has a figure of the summary, such as the highest score: ' (vertex 7)'; empty if it is
        nobody's.
        """
        if self._answer.rows is not Rows.VERTICES or name not in LARGEST + SMALLEST:
            return ""
        if self.has_groups:
            return "".join(f" (that of vertex {label})" for label, size in self.largest(1) if size == value)
        return "".join(f" (vertex {user})" for user, held in self.top(1, ascending=name in SMALLEST) if held == value)


def listed_sizes(sizes: dict[int, int]) -> str:
    """The largest groups and the rest: '1 of 12,542, 2 of 3, 3,834 of 1'."""
    first = [f"{count:,} of {size:,}" for size, count in list(sizes.items())[:SIZES_SHOWN]]
    rest = list(sizes.items())[SIZES_SHOWN:]
    return ", ".join(
        [*first, f"{sum(count for _, count in rest):,} of {rest[-1][0]:,} to {rest[0][0]:,}"] if rest else first
    )


def report_page() -> Any:
    """The module that writes reports. The runtime may not import it at the top, and it is slow to load."""
    return importlib.import_module("isthmus.report.page")


def shown(value: Any) -> str:
    """A figure of the summary for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def as_arrow(values: Array, missing: Array | None) -> Any:
    import pyarrow as pa

    if values.dtype == object:
        return pa.array(
            [None if missing is not None and missing[i] else v for i, v in enumerate(values)], pa.large_string()
        )
    return arrow.numbers(values, missing)
