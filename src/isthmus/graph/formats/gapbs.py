"""Serialized graphs of the GAP Benchmark Suite: `.sg`, and `.wsg` with 32-bit integer weights.

A file has one byte (directed), two int64 (arcs, vertices), int64 offsets, then int32 targets (each with an int32
weight in .wsg). A directed graph also has offsets and targets of its in-edges; they are skipped and rebuilt. The
header's counts are compared with the file's size before anything is allocated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError, OptionError, StoreError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.files import Array, read_into
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.format import Format
from isthmus.graph.formats.lists import ListSource
from isthmus.graph.formats.tables import check_weights
from isthmus.kernels import arcs
from isthmus.messages import option
from isthmus.threads import Pool

HEADER = 17


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if options.ids == "string":
        raise OptionError(f"{path}: vertices are numbered from 0; {option('ids', 'string')} does not apply")
    return GapSource(path, options)


GAPBS = Format(
    "gapbs", open_path, endings=(".sg", ".wsg"), words="a graph of the GAP Benchmark Suite", uses=("ids", "allow_negative"), place=6
)


class GapSource(ListSource):
    """The out-edges of a serialized graph."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        self.weighted = path.suffix.lower() == ".wsg"
        self.weight_dtype = "int32"
        self._entry = 8 if self.weighted else 4
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise GraphFormatError(f"{path}: cannot read: {error.strerror}") from error
        size = os.fstat(self._file).st_size
        if size < HEADER:
            raise GraphFormatError(f"{path}: {size} bytes, expected a header of {HEADER}")
        head = self._read(0, HEADER, np.uint8)
        if head[0] not in (0, 1):
            raise GraphFormatError(f"{path}: expected 0 or 1 in the first byte (directed), got {head[0]}")
        arcs, vertices = (int(x) for x in head[1:].copy().view("<i8"))
        self.directed = bool(head[0])
        sides = 2 if self.directed else 1
        needed = HEADER + sides * (8 * (vertices + 1) + self._entry * arcs)
        if arcs < 0 or vertices < 0 or needed != size:
            raise GraphFormatError(f"{path}: the header promises {vertices} vertices and {arcs} arcs, {needed} bytes; the file has {size}")
        if vertices > 1 << 31:
            raise GraphFormatError(f"{path}: {vertices} vertices do not fit the format's 32-bit targets")
        self.both_ways = not self.directed
        self._imbalance, self._lock = 0, threading.Lock()
        self.vertices, self.edges, self.total = vertices, arcs, arcs
        self._targets_at = HEADER + 8 * (vertices + 1)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def _read(self, at: int, count: int, dtype: Any) -> Array:
        array = np.empty(count, dtype)
        try:
            read_into(self._file, array.view(np.uint8).data, at, self.name)
        except StoreError as error:
            raise GraphFormatError(str(error)) from error
        return array

    def offsets(self, first: int, count: int) -> Array:
        return self._read(HEADER + 8 * first, count, "<i8")

    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        entries = self._read(self._targets_at + self._entry * first, count * (self._entry // 4), "<i4")
        targets = np.ascontiguousarray(entries[::2] if self.weighted else entries)
        if count and (targets.min() < 0 or targets.max() >= self.vertices):
            raise GraphFormatError(f"{self.name}: a target of the arcs from {first} on is outside 0 to {self.vertices - 1}")
        weights = None
        if self.weighted:
            weights, _ = check_weights(entries[1::2], self.name, first, self._options.allow_negative)
        return targets.view(np.uint32), weights

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
            raise GraphFormatError(f"{self.name}: the header says undirected, but some edges are stored in one direction only")

    def report(self) -> dict[str, Any]:
        return {"format": "gapbs"}
