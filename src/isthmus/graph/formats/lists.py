"""Edges from binary adjacency lists: offsets and targets on disk, read range by range."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.files import Array
from isthmus.threads import Pool


class ListSource(EdgeSource):
    """Edges of stored adjacency lists. Subclasses set `vertices` and `edges` (the number of arcs) and read ranges of the arrays."""

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
                    f"{self.name}: the offsets of vertices {first} to {first + offsets.size - 2} do not ascend within 0 to {self.edges}"
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
