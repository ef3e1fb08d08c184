"""Graphs of Ligra as text: `AdjacencyGraph` or `WeightedAdjacencyGraph`, then numbers, usually one on a line.

The numbers are vertices, arcs, where each vertex's list begins, the targets and, in a weighted graph, the weights.
Offsets, targets and weights are read by one reader each, side by side, so that memory stays small; compressed files can
be read as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError
from isthmus.graph.formats import ReadOptions, opening
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.numbering import number_dtype
from isthmus.graph.reading.arrow_columns import check_weights, weight_type
from isthmus.graph.reading.counted_text import check_claim
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import CODECS
from isthmus.graph.reading.text_words import Numbers
from isthmus.graph.store.files import Array
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

NAMES = (b"AdjacencyGraph", b"WeightedAdjacencyGraph")
WIDTHS = ("int32", "int64")


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a Ligra graph")
    return LigraSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """One number on a line. An undirected edge is written in both directions."""
    edges.need_whole_weights()
    file.write(NAMES[edges.weighted] + f"\n{edges.vertices}\n{edges.arcs}\n".encode())
    left = edges.vertices  # the last offset is not in the file
    for offsets in edges.offsets():
        edges.write_rows(file, [offsets[:left]])
        left -= min(left, offsets.size)
    for _, targets, _ in edges.both():
        edges.write_rows(file, [targets])
    for _, _, weights in edges.both() if edges.weighted else ():
        edges.write_rows(file, [weights])
    edges.say_numbers(0)


LIGRA = Format(
    "ligra",
    open_path,
    endings=(".adj", ".ligra"),
    words="a Ligra graph",
    uses=("allow_negative", "max_expansion"),
    place=12,
    begins=(b"AdjacencyGraph", b"WeightedAdjacencyGraph"),
    save=save,
    written="text",
)


class LigraSource(EdgeSource):
    """The arcs of a graph."""

    vertices: int

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        first = (opening(path).split() or [b""])[0]
        if first not in NAMES:
            raise GraphFormatError(f"{path}:1: expected {' or '.join(map(bytes.decode, NAMES))}, got {first[:40]!r}")
        self.weighted, self._name_bytes = first == NAMES[1], len(first)
        self.vertices, self._arcs = self._numbers(0).take(2).tolist()
        self._check_counts()
        self.total = self._arcs

    def _numbers(self, skipped: int) -> Numbers:
        return Numbers(self._path, self._options.max_expansion, skipped, self._name_bytes)

    def _check_counts(self) -> None:
        """Raise an error if the file is too small for its header's counts. A number takes two bytes or more."""
        if self.vertices < 0 or self._arcs < 0:
            raise GraphFormatError(f"{self._path}: the header promises {self.vertices} vertices and {self._arcs} arcs")
        needed = 2 * (self.vertices + self._arcs * (2 if self.weighted else 1))
        size = self._path.stat().st_size
        if self._path.suffix.lower() in CODECS:
            check_claim(self._path, self.vertices, self._options.max_expansion)
        elif needed > size:
            raise GraphFormatError(
                f"{self._path}: the header promises {self.vertices} vertices and {self._arcs} arcs, {needed} bytes or "
                f"more; the file has {size}"
            )

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        targets = self._numbers(2 + self.vertices)
        weights = self._numbers(2 + self.vertices + self._arcs) if self.weighted else None
        self.weight_dtype = WIDTHS[0]
        for first, offsets in self._stretches():
            for arc in range(int(offsets[0]), int(offsets[-1]), sizes.now.block_edges):
                count = min(sizes.now.block_edges, int(offsets[-1]) - arc)
                yield self._block(
                    first, offsets, arc, targets.take(count), None if weights is None else weights.take(count)
                )
        (targets if weights is None else weights).end()

    def _stretches(self) -> Iterator[tuple[int, Array]]:
        """(First vertex, its offset and those of the vertices after it), checked to ascend."""
        numbers, expected = self._numbers(2), 0
        held = numbers.take(min(1, self.vertices))
        for first in range(0, self.vertices, sizes.now.list_vertices):
            count = min(sizes.now.list_vertices, self.vertices - first)
            last = first + count == self.vertices
            offsets = np.concatenate([held, numbers.take(count - last), np.full(int(last), self._arcs)])
            if offsets[0] != expected or (offsets[1:] < offsets[:-1]).any() or offsets[-1] > self._arcs:
                raise GraphFormatError(
                    f"{self.name}: the offsets of vertices {first} to {first + count - 1} do not ascend within 0 to "
                    f"{self._arcs}"
                )
            held, expected = offsets[-1:], int(offsets[-1])
            yield first, offsets
        if expected != self._arcs:
            raise GraphFormatError(f"{self.name}: the header promises {self._arcs} arcs, but no vertex has them")

    def _block(self, first: int, offsets: Array, arc: int, targets: Array, weights: Array | None) -> EdgeBlock:
        dtype = number_dtype(self.vertices)
        if (targets < 0).any() or (targets >= self.vertices).any():
            raise GraphFormatError(
                f"{self.name}: a target of the arcs from {arc} on is outside 0 to {self.vertices - 1}"
            )
        lengths = np.diff(np.clip(offsets, arc, arc + targets.size))
        sources = np.repeat(np.arange(first, first + lengths.size).astype(dtype), lengths)
        if weights is not None:
            check_weights(weights, self.name, arc, self._options.allow_negative)
            self.weight_dtype = max(self.weight_dtype, weight_type(weights), key=WIDTHS.index)
        return EdgeBlock(sources, targets.astype(dtype), weights, None, targets.size)

    def report(self) -> dict[str, Any]:
        return {"format": "ligra"}
