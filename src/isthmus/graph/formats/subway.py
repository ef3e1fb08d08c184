"""Binary graphs of Subway: .bcsr, and .bwcsr with 32-bit weights.

Two uint32 (vertices, arcs), where each vertex's list begins (uint32), then targets (uint32, each with a uint32 weight
in .bwcsr).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from isthmus.errors import OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.reading.arrow_columns import check_weights
from isthmus.graph.reading.binary_lists import ListFile
from isthmus.graph.reading.format import Format
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

HEADER = 8
MOST = 1 << 32  # vertices and arcs are counted in 32 bits


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    return SubwaySource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """An undirected edge is written in both directions."""
    weighted = edges.writes_weights(".bcsr", ".bwcsr")
    edges.need_vertices(MOST - 1)
    if edges.arcs >= MOST:
        raise OptionError(f"{edges.name}: {edges.arcs} arcs; the format counts fewer than {MOST}")
    if weighted:
        edges.need_whole_weights(np.uint32)
    file.write(np.array([edges.vertices, edges.arcs], "<u4").tobytes())
    left = edges.vertices  # the last offset is not in the file
    for offsets in edges.offsets():
        file.write(offsets[:left].astype("<u4").tobytes())
        left -= min(left, offsets.size)
    for _, targets, weights in edges.both():
        columns = [targets, np.ones(targets.size, np.int64) if weights is None else weights] if weighted else [targets]
        file.write(np.column_stack(columns).astype("<u4").tobytes())
    edges.say_numbers(0)


SUBWAY = Format(
    "subway",
    open_path,
    endings=(".bcsr", ".bwcsr"),
    words="a Subway graph",
    uses=("ids", "allow_negative"),
    place=11,
    save=save,
    written="bytes",
)


class SubwaySource(ListFile):
    """The out-edges of a graph."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        self.weighted = path.suffix.lower() == ".bwcsr"
        self.weight_dtype = "int32"  # larger weights need weight_dtype="int64"
        self._entry = 8 if self.weighted else 4
        vertices, arcs = (int(x) for x in self.head(2, "<u4"))
        self._targets_at = HEADER + 4 * vertices
        self.promise(vertices, arcs, self._targets_at + self._entry * arcs)

    def offsets(self, first: int, count: int) -> Array:
        inside = min(count, self.vertices - first)
        begins = self.read(HEADER + 4 * first, inside, "<u4").astype(np.int64)
        return begins if inside == count else np.append(begins, self.edges)

    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        entries = self.read(self._targets_at + self._entry * first, count * (self._entry // 4), "<u4")
        targets = self.checked(entries[::2] if self.weighted else entries, first)
        if not self.weighted:
            return targets, None
        return targets, check_weights(entries[1::2], self.name, first, self._options.allow_negative)[0]

    def report(self) -> dict[str, object]:
        return {"format": "subway"}
