"""String ids: collected, made distinct and sorted bytewise, on disk if memory is short.

Edges carry a 64-bit hash of each string. Two different strings with the same hash would give a wrong graph, so the
hashes of all distinct strings are compared at the end. After a collision (about 3 in 10,000 for a hundred million
strings) the caller reads the input again with another salt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus import sizes
from isthmus.errors import BudgetError
from isthmus.graph.ingest.edges import EdgeBlock, Waiting
from isthmus.graph.ingest.numbering import Table, sorted_keys
from isthmus.graph.ingest.text_runs import TextRuns, text_of
from isthmus.graph.store.files import Array
from isthmus.graph.store.writer import Writer
from isthmus.kernels.store import id_search
from isthmus.memory import Budget, format_size, give_memory_back
from isthmus.messages import option
from isthmus.threads import Pool

HELD = 0.65  # of the remaining budget, for sorting; waiting edges use the rest


class HashCollision(Exception):
    """Two different strings share a hash under this salt."""


def hashes(names: Any, salt: int) -> Array:
    """A 64-bit key per string of a pyarrow large_binary array."""
    out = np.empty(len(names), np.uint64)
    starts, text = text_of(names)
    id_search.hash_strings(text, starts, np.uint64(salt), out)
    return out


def encode(sources: Any, targets: Any, salt: int) -> tuple[Array, Array, Any]:
    """Keys for two large_binary columns, and the distinct strings among them."""
    both = pa.chunked_array([sources, targets]).combine_chunks()
    coded = (both.combine_chunks() if isinstance(both, pa.ChunkedArray) else both).dictionary_encode()
    places = np.frombuffer(coded.indices.buffers()[1], np.int32)[: len(both)]  # to_numpy would load pandas
    keys = hashes(coded.dictionary, salt)[places]
    return keys[: len(sources)], keys[len(sources) :], coded.dictionary


class Names:
    """The set of all strings seen."""

    def __init__(self, budget: Budget, folder: Path) -> None:
        self._folder, self._budget = folder, budget
        self._held = int(budget.left * HELD)
        least = sizes.now.least_name_bytes
        if self._held < least or not budget.take(self._held):
            raise BudgetError(
                f"string ids need a budget of at least {format_size(2 * least)}, got {format_size(budget.limit)}; "
                f"give {option('memory', f'{2 * least // 10**6 + 1}MB')} or more"
            )
        self._sorting = TextRuns(self._held, folder)

    def add(self, names: Any) -> None:
        self._sorting.add(names)

    def _begin(self, writer: Writer) -> None:
        writer.section("ids.offsets", np.int64, self._sorting.most + 1)
        writer.section("ids.bytes", np.uint8, self._sorting.text_bytes)
        writer.append("ids.offsets", np.zeros(1, np.int64))

    def write(self, writer: Writer | None, salt: int, name: str, pool: Pool) -> Table:
        """Write the sorted ids, unless `writer` is None; returns the table from hash to vertex number."""
        if writer is not None:
            self._begin(writer)
        waiting = Waiting(self._budget, self._folder)
        vertices = end = 0
        for names in self._sorting.sorted():
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
        self._sorting.close()
        give_memory_back()
        self._budget.give_back(self._held)
        self._held = 0
