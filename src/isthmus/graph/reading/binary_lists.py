"""Edges from binary adjacency lists: offsets and targets on disk, read range by range.

A header's counts are compared with the file's size before anything is allocated.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError, StoreError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.store.files import Array, read_into
from isthmus.messages import option
from isthmus.threads import Pool


class ListSource(EdgeSource):
    """Edges of stored adjacency lists. Subclasses set `vertices` and `edges` (arcs), and read ranges."""

    replayable = True
    vertices: int
    edges: int

    @abstractmethod
    def offsets(self, first: int, count: int) -> Array:
        """Offsets of `count` vertices from `first` on."""

    @abstractmethod
    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        """Targets and weights of `count` arcs from `first` on, checked."""

    def _stretches(self) -> Iterator[tuple[int, Array]]:
        """(first vertex, its offset and those of the vertices after it), checked to ascend."""
        expected = 0
        for first in range(0, self.vertices, sizes.now.list_vertices):
            offsets = self.offsets(first, min(sizes.now.list_vertices, self.vertices - first) + 1)
            if offsets[0] != expected or (offsets[1:] < offsets[:-1]).any() or offsets[-1] > self.edges:
                raise GraphFormatError(
                    f"{self.name}: the offsets of vertices {first} to {first + offsets.size - 2} do not ascend within "
                    f"0 to {self.edges}"
                )
            expected = int(offsets[-1])
            yield first, offsets
        if expected != self.edges:
            raise GraphFormatError(f"{self.name}: the offsets end at {expected}, the header promises {self.edges} arcs")

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        cuts = (
            (first, offsets, arc, min(sizes.now.block_edges, int(offsets[-1]) - arc))
            for first, offsets in self._stretches()
            for arc in range(int(offsets[0]), int(offsets[-1]), sizes.now.block_edges)
        )
        return pool.map(self._load, cuts)

    def _load(self, cut: tuple[int, Array, int, int]) -> EdgeBlock:
        first, offsets, arc, count = cut
        targets, weights = self.arcs(arc, count)
        lengths = np.diff(np.clip(offsets, arc, arc + count))
        sources = np.repeat(np.arange(first, first + lengths.size, dtype=np.uint32), lengths)
        return EdgeBlock(sources, targets, weights, None, count)

    def sample(self, count: int) -> EdgeBlock:
        """Single arcs at regular distances."""
        step = max(1, self.edges // max(count, 1))
        sources, targets = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
        for first, offsets in self._stretches():
            begin = -(-int(offsets[0]) // step) * step
            picks = np.arange(begin, int(offsets[-1]), step)
            sources.append((first + np.searchsorted(offsets, picks, "right") - 1).astype(np.uint32))
            targets.extend(self.arcs(int(pick), 1)[0] for pick in picks)
        return EdgeBlock(np.concatenate(sources), np.concatenate(targets).astype(np.uint32))


class ListFile(ListSource):
    """Lists in one binary file. Its vertices are numbered from 0."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        if options.ids == "string":
            raise OptionError(f"{path}: vertices are numbered from 0; {option('ids', 'string')} does not apply")
        self.name, self._options = str(path), options
        try:
            self._file = os.open(path, os.O_RDONLY)
            self.size = os.fstat(self._file).st_size
        except OSError as error:
            raise GraphFormatError(f"{path}: cannot read: {error.strerror}") from error

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def read(self, at: int, count: int, dtype: Any) -> Array:
        """`count` entries from byte `at` on."""
        array = np.empty(count, dtype)
        try:
            read_into(self._file, array.view(np.uint8).data, at, self.name)
        except StoreError as error:
            raise GraphFormatError(str(error)) from error
        return array

    def head(self, count: int, dtype: Any) -> Array:
        """The first entries of the file."""
        needed = count * np.dtype(dtype).itemsize
        if self.size < needed:
            raise GraphFormatError(f"{self.name}: {self.size} bytes, expected a header of {needed}")
        return self.read(0, count, dtype)

    def promise(self, vertices: int, arcs: int, needed: int, most: int = 1 << 32) -> None:
        """Note the header's counts, or raise an error if the file does not have the size that they need."""
        if arcs < 0 or vertices < 0 or needed != self.size:
            raise GraphFormatError(
                f"{self.name}: the header promises {vertices} vertices and {arcs} arcs, {needed} bytes; the file has "
                f"{self.size}"
            )
        if vertices > most:
            raise GraphFormatError(f"{self.name}: {vertices} vertices do not fit the format's 32-bit targets")
        self.vertices, self.edges, self.total = vertices, arcs, arcs

    def checked(self, targets: Array, first: int) -> Array:
        """Targets of the arcs from `first` on, as uint32; an error if one is not a vertex."""
        if targets.size and (targets.min() < 0 or targets.max() >= self.vertices):
            raise GraphFormatError(
                f"{self.name}: a target of the arcs from {first} on is outside 0 to {self.vertices - 1}"
            )
        return np.ascontiguousarray(targets, np.uint32)
