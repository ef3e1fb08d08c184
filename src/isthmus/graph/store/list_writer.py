"""Writing sorted arcs as adjacency lists, appended to their sections in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.ingest.buckets import Buckets
from isthmus.graph.store.files import Array
from isthmus.graph.store.writer import Writer
from isthmus.kernels.store import arc_keys
from isthmus.progress import Progress
from isthmus.threads import Pool

Weigh = Callable[["SortedLists"], Array]


@dataclass
class SortedLists:
    """Adjacency lists of ascending `rows`, `counts` arcs each; vertices between them have none."""

    rows: Array
    counts: Array
    targets: Array
    weights: Array | None
    self_loops: int
    merged: int


def combined(bits: int, target_dtype: Any, parallel: int) -> Callable[[Array, Array | None], SortedLists]:
    """A `finish` for Buckets that turns sorted keys into SortedLists."""

    def finish(keys: Array, weights: Array | None) -> SortedLists:
        targets = np.empty(keys.size, target_dtype)
        out_weights = None if weights is None else np.empty(keys.size, weights.dtype)
        rows, counts = np.empty(keys.size, np.uint64), np.empty(keys.size, np.int64)
        size, used, loops = arc_keys.combine(keys, weights, bits, parallel, targets, out_weights, rows, counts)
        return SortedLists(
            rows[:used].copy(),
            counts[:used].copy(),
            targets[:size],
            None if out_weights is None else out_weights[:size],
            loops,
            keys.size - size,
        )

    return finish


class ListWriter:
    """Appends SortedLists to the sections `side.offsets`, `side.targets` and `side.weights`."""

    def __init__(
        self, writer: Writer, side: str, vertices: int, most: int, target_dtype: Any, weight_dtype: Any
    ) -> None:
        self._writer, self._side, self._vertices = writer, side, vertices
        self._weighted = weight_dtype is not None
        writer.section(f"{side}.offsets", np.int64, vertices + 1)
        writer.section(f"{side}.targets", target_dtype, most)
        if self._weighted:
            writer.section(f"{side}.weights", weight_dtype, most)
        self._next = 0  # first vertex whose offset is not written yet
        self.arcs = self.self_loops = self.merged = 0

    def append(self, lists: SortedLists) -> None:
        if not lists.rows.size:
            return
        starts = self.arcs + np.concatenate([np.zeros(1, np.int64), np.cumsum(lists.counts)])
        self._offsets(lists.rows, starts, int(lists.rows[-1]) + 1)
        self._writer.append(f"{self._side}.targets", lists.targets)
        if self._weighted:
            assert lists.weights is not None
            self._writer.append(f"{self._side}.weights", lists.weights)
        self.arcs = int(starts[-1])
        self.self_loops += lists.self_loops
        self.merged += lists.merged

    def _offsets(self, rows: Array, starts: Array, stop: int) -> None:
        """Write offsets up to `stop`. A vertex whose list continues from the previous call has its offset already."""
        while self._next < stop:
            out = np.empty(min(stop - self._next, sizes.now.written_offsets), np.int64)
            arc_keys.fill_offsets(rows, starts, starts[-1], self._next, out)
            self._writer.append(f"{self._side}.offsets", out)
            self._next += out.size

    def finish(self) -> None:
        self._offsets(np.empty(0, np.uint64), np.array([self.arcs]), self._vertices + 1)


def write_lists(
    writer: ListWriter, buckets: Buckets, pool: Pool, finish: Callable[..., SortedLists], progress: Progress
) -> None:
    """Sort the keys of the buckets and write them as lists."""
    results: Iterator[SortedLists] = buckets.sorted(pool, finish)
    for lists in results:
        writer.append(lists)
        progress.advance(lists.targets.size + lists.merged)
    writer.merged += buckets.merged
    progress.advance(buckets.merged)
    writer.finish()
