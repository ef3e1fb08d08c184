"""String ids: collected, made distinct and sorted bytewise by DuckDB, which spills to disk if memory is short.

Edges carry a 64-bit hash of each string. Two different strings with the same hash would give a wrong graph, so the
hashes of all distinct strings are compared at the end. After a collision (about 3 in 10,000 for a hundred million
strings) the caller reads the input again with another salt.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus import sizes
from isthmus.errors import BudgetError, StoreError
from isthmus.graph.edges import EdgeBlock, Waiting
from isthmus.graph.files import Array
from isthmus.graph.numbering import Table, sorted_keys
from isthmus.graph.writer import Writer
from isthmus.kernels import ids
from isthmus.memory import Budget, format_size
from isthmus.messages import option
from isthmus.threads import Pool

HELD = 0.65  # of the remaining budget, for sorting; waiting edges use the rest
SHARE = 0.45  # of that is DuckDB's limit: its memory outside the limit and the encoding needed about as much again when measured


class HashCollision(Exception):
    """Two different strings share a hash under this salt."""


def text_of(names: Any) -> tuple[Array, Array]:
    """(Offsets of the strings, all bytes) of a pyarrow large_binary array."""
    _, offsets, data = names.buffers()
    starts = np.frombuffer(offsets, np.int64)[names.offset : names.offset + len(names) + 1]
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def hashes(names: Any, salt: int) -> Array:
    """A 64-bit key per string of a pyarrow large_binary array."""
    out = np.empty(len(names), np.uint64)
    starts, text = text_of(names)
    ids.hash_strings(text, starts, np.uint64(salt), out)
    return out


def encode(sources: Any, targets: Any, salt: int) -> tuple[Array, Array, Any]:
    """Keys for two large_binary columns, and the distinct strings among them."""
    both = pa.chunked_array([sources, targets]).combine_chunks()
    coded = (both.combine_chunks() if isinstance(both, pa.ChunkedArray) else both).dictionary_encode()
    keys = hashes(coded.dictionary, salt)[coded.indices.to_numpy(zero_copy_only=False)]
    return keys[: len(sources)], keys[len(sources) :], coded.dictionary


def give_memory_back() -> None:
    """Ask the C library to return freed memory to the system: later steps need it."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc has it
        libc.malloc_trim(0)


class Names:
    """The set of all strings seen."""

    def __init__(self, budget: Budget, folder: Path, threads: int) -> None:
        import duckdb  # here, so that only graphs with string ids load it

        self._folder, self._budget = folder, budget
        self._held = int(budget.left * HELD)
        limit = int(self._held * SHARE)
        least = sizes.now.least_name_bytes
        if limit < least or not budget.take(self._held):
            raise BudgetError(f"string ids need a budget of at least {format_size(4 * least)}, got {format_size(budget.limit)}")
        self._duckdb = duckdb
        self._base = duckdb.connect(
            ":memory:",
            config={"memory_limit": f"{limit}B", "temp_directory": str(folder / "duckdb"), "threads": threads},
        )
        self._base.execute("SET preserve_insertion_order = false")
        self._base.execute("SET enable_progress_bar = false")  # it would go to standard output
        self._base.execute("CREATE TABLE names (name BLOB)")
        self._staged: list[Any] = []
        self._rows = self._bytes = 0

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn DuckDB's errors for full memory or disk into ours."""
        try:
            yield
        except self._duckdb.OutOfMemoryException as error:
            raise BudgetError(
                f"the string ids do not sort within {format_size(self._held)}, their share of a budget of "
                f"{format_size(self._budget.limit)}; give {option('memory', f'{self._budget.limit // 500_000 + 1}MB')} or more"
            ) from error
        except self._duckdb.IOException as error:
            raise StoreError(f"{self._folder}: cannot sort the string ids: {str(error).splitlines()[0]}") from error

    def add(self, names: Any) -> None:
        self._staged.append(names)
        self._rows += len(names)
        self._bytes += names.nbytes
        if self._rows >= sizes.now.staged_names or self._bytes >= sizes.now.staged_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            staged = pa.table({"name": pa.chunked_array(self._staged)})
            with self._guarded():
                self._base.register("staged", staged)
                self._base.execute("INSERT INTO names SELECT DISTINCT name FROM staged")
                self._base.unregister("staged")
        self._staged, self._rows, self._bytes = [], 0, 0

    def _distinct(self) -> Iterator[Any]:
        with self._guarded():
            reader = self._base.sql("SELECT DISTINCT name FROM names ORDER BY name").to_arrow_reader(sizes.now.sorted_names)
            for batch in reader:
                yield batch.column(0).cast(pa.large_binary())

    def _begin(self, writer: Writer) -> None:
        with self._guarded():
            most, length = self._base.execute("SELECT count(*), coalesce(sum(octet_length(name)), 0) FROM names").fetchall()[0]
        writer.section("ids.offsets", np.int64, int(most) + 1)
        writer.section("ids.bytes", np.uint8, int(length))
        writer.append("ids.offsets", np.zeros(1, np.int64))

    def write(self, writer: Writer | None, salt: int, name: str, pool: Pool) -> Table:
        """Write the sorted ids, unless `writer` is None (already written); returns the table from hash to vertex number."""
        self._flush()
        if writer is not None:
            self._begin(writer)
        waiting = Waiting(self._budget, self._folder)
        vertices = end = 0
        for names in self._distinct():
            starts, text = text_of(names)
            if writer is not None:
                writer.append("ids.offsets", starts[1:] - starts[0] + end)
                writer.append("ids.bytes", text[starts[0] : starts[-1]])
            end += int(starts[-1] - starts[0])
            ranks = np.arange(vertices, vertices + len(names), dtype=np.uint64)
            waiting.add(EdgeBlock(hashes(names, salt), ranks))
            vertices += len(names)
        self.close()
        table = Table("string", 0, self._budget, self._folder, name)
        last = None
        for keys, ranks in sorted_keys(waiting, np.uint32, self._budget, self._folder, pool):
            if (keys[1:] == keys[:-1]).any() or (last is not None and keys.size and keys[0] == last):
                table.close()
                raise HashCollision
            last = keys[-1] if keys.size else last
            table.append(keys, ranks)
        return table

    def close(self) -> None:
        self._base.close()
        give_memory_back()
        self._budget.give_back(self._held)
        self._held = 0
