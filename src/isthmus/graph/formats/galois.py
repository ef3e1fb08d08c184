"""Binary graphs of Galois (.gr), versions 1 and 2.

Four uint64 (version, bytes of an edge's data, vertices, arcs), then where each vertex's list ends (uint64), then
targets: uint32 in version 1, padded to 8 bytes, uint64 in version 2; then the data of the edges. The file does not say
what type these have: whole numbers, unless the option `edge_type` says otherwise. DIMACS uses the same ending for text;
the first bytes say which it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import check_weights
from isthmus.graph.reading.binary_lists import ListFile
from isthmus.graph.reading.format import Format, Option
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

HEADER = 32
TYPES = {"int32": "int32", "uint32": "int32", "float32": "float64", "int64": "int64", "float64": "float64"}  # stored as


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    return GaloisSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Version 1, or 2 if vertices need 64 bits. The weights have the type that they have in the graph."""
    version = 1 if edges.vertices <= 1 << 32 else 2
    width = edges.weight_dtype.itemsize if edges.weighted else 0
    file.write(np.array([version, width, edges.vertices, edges.arcs], "<u8").tobytes())
    ends = edges.offsets()
    next(ends)  # where the first list begins is not in the file
    for offsets in ends:
        file.write(offsets.astype("<u8").tobytes())
    for _, targets, _ in edges.both():
        file.write(targets.astype("<u4" if version == 1 else "<u8").tobytes())
    file.write(bytes(4 * (edges.arcs % 2)) if version == 1 else b"")
    for _, _, weights in edges.both() if edges.weighted else ():
        file.write(np.asarray(weights, edges.weight_dtype.newbyteorder("<")).tobytes())
    edges.say_numbers(0)
    if edges.weighted:
        edges.say(f"the file does not say that its weights are {edges.weight_dtype}; a reader must know them")


GALOIS = Format(
    "galois",
    open_path,
    endings=(".gr", ".sgr"),
    words="a Galois graph, binary",
    uses=("ids", "weight", "allow_negative"),
    options=(Option("edge_type", "type of the edges' data: int32, uint32, float32, int64 or float64"),),
    place=10,
    begins=(b"\x01\x00\x00\x00\x00\x00\x00\x00", b"\x02\x00\x00\x00\x00\x00\x00\x00"),
    save=save,
    written="bytes",
)


class GaloisSource(ListFile):
    """The out-edges of a graph; a symmetric one has every edge in both directions."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        version, width, vertices, arcs = (int(x) for x in self.head(4, "<u8"))
        if version not in (1, 2):
            raise GraphFormatError(f"{path}: expected version 1 or 2 in the first 8 bytes, got {version}")
        self._entry = 4 * version
        self._targets_at = HEADER + 8 * vertices
        self._data_at = self._targets_at + -(-self._entry * arcs // 8) * 8
        self.promise(vertices, arcs, self._data_at + width * arcs)
        self._kind = self._type(width, options)
        self.weighted = self._kind is not None
        if self._kind is not None:
            self.weight_dtype = TYPES[self._kind]

    def _type(self, width: int, options: ReadOptions) -> str | None:
        """The type of the weights; None to read none."""
        if options.weight not in (None, column_names.NONE):
            raise OptionError(
                f"{self.name}: the edges' data are the weights; expected {column_names.NONE!r} or None, got "
                f"{options.weight!r}"
            )
        given: str | None = options.own.get("edge_type") or None
        if given is not None and given not in TYPES:
            raise OptionError(f"{self.name}: edge_type: expected one of {', '.join(TYPES)}, got {given!r}")
        if width == 0 or options.weight == column_names.NONE:
            return None
        if given is None and width in (4, 8):
            given = f"int{8 * width}"
            self.notes = (
                f"{self.name}: {width} bytes of data for each edge are read as {given}; edge_type=float{8 * width} "
                f"reads floats",
            )
        if given is None or np.dtype(given).itemsize != width:
            raise GraphFormatError(
                f"{self.name}: {width} bytes of data for each edge, expected "
                f"{np.dtype(given).itemsize if given else '4 or 8'}"
            )
        return given

    def offsets(self, first: int, count: int) -> Array:
        if first == 0:
            return np.append(np.zeros(1, np.int64), self.read(HEADER, count - 1, "<i8"))
        return self.read(HEADER + 8 * (first - 1), count, "<i8")

    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        targets = self.checked(self.read(self._targets_at + self._entry * first, count, f"<u{self._entry}"), first)
        if self._kind is None:
            return targets, None
        values = self.read(
            self._data_at + np.dtype(self._kind).itemsize * first, count, np.dtype(self._kind).newbyteorder("<")
        )
        return targets, check_weights(values, self.name, first, self._options.allow_negative)[0]

    def report(self) -> dict[str, object]:
        return {"format": "galois", "edge_type": self._kind}
