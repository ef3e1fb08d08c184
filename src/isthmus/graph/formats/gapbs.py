"""Serialized graphs of the GAP Benchmark Suite: `.sg`, and `.wsg` with 32-bit integer weights.

A file has one byte (directed), two int64 (arcs, vertices), int64 offsets, then int32 targets (each with an int32
weight in .wsg). A directed graph also has offsets and targets of its in-edges; they are skipped and rebuilt. The
header's counts are compared with the file's size before anything is allocated.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.arrow_columns import check_weights
from isthmus.graph.reading.binary_lists import ListFile
from isthmus.graph.reading.format import Format
from isthmus.graph.store.files import Array
from isthmus.kernels.store import arc_keys as arcs
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

HEADER = 17


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    return GapSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Offsets and targets; of a directed graph, those of its in-edges as well."""
    weighted = edges.writes_weights(".sg", ".wsg")
    edges.need_vertices(1 << 31)
    if weighted:
        edges.need_whole_weights(np.int32)
    sides = ("out", "in") if edges.directed else ("out",)
    if edges.directed:
        edges.need_in_edges()
    file.write(bytes([edges.directed]) + np.array([edges.arcs, edges.vertices], "<i8").tobytes())
    for side in sides:
        for offsets in edges.offsets(side):
            file.write(offsets.astype("<i8").tobytes())
        for _, targets, weights in edges.both(side):
            columns = (
                [targets, np.ones(targets.size, np.int64) if weights is None else weights] if weighted else [targets]
            )
            file.write(np.column_stack(columns).astype("<i4").tobytes())
    edges.say_numbers(0)


GAPBS = Format(
    "gapbs",
    open_path,
    endings=(".sg", ".wsg"),
    words="a graph of the GAP Benchmark Suite",
    uses=("ids", "allow_negative"),
    place=6,
    save=save,
    written="bytes",
)


class GapSource(ListFile):
    """The out-edges of a serialized graph."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        self.weighted = path.suffix.lower() == ".wsg"
        self.weight_dtype = "int32"
        self._entry = 8 if self.weighted else 4
        head = self.head(HEADER, np.uint8)
        if head[0] not in (0, 1):
            raise GraphFormatError(f"{path}: expected 0 or 1 in the first byte (directed), got {head[0]}")
        arcs, vertices = (int(x) for x in head[1:].copy().view("<i8"))
        self.directed = bool(head[0])
        sides = 2 if self.directed else 1
        self.promise(vertices, arcs, HEADER + sides * (8 * (vertices + 1) + self._entry * arcs), 1 << 31)
        self.both_ways = not self.directed
        self._imbalance, self._lock = 0, threading.Lock()
        self._targets_at = HEADER + 8 * (vertices + 1)

    def offsets(self, first: int, count: int) -> Array:
        return self.read(HEADER + 8 * first, count, "<i8")

    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        entries = self.read(self._targets_at + self._entry * first, count * (self._entry // 4), "<i4")
        targets = self.checked(entries[::2] if self.weighted else entries, first)
        if not self.weighted:
            return targets, None
        return targets, check_weights(entries[1::2], self.name, first, self._options.allow_negative)[0]

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self._imbalance = 0
        return super().blocks(pool)

    def _load(self, cut: tuple[int, Array, int, int]) -> EdgeBlock:
        block = super()._load(cut)
        if self.both_ways:
            found = int(arcs.imbalance(block.sources, block.targets, block.weights))
            with self._lock:
                self._imbalance += found
        return block

    def check(self) -> None:
        if self._imbalance % (1 << 64):
            raise GraphFormatError(
                f"{self.name}: the header says undirected, but some edges are stored in one direction only"
            )

    def report(self) -> dict[str, Any]:
        return {"format": "gapbs"}
