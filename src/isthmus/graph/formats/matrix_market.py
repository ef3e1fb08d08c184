"""Matrix Market coordinate files (.mtx): entry (i, j) of a square matrix is the edge from i to j, its value the weight.

A symmetric matrix is an undirected graph, of which the file has the lower triangle. Rows are numbered from 1, and these
numbers are the ids. Dense (array), complex, skew-symmetric and Hermitian matrices have no meaning as graphs here and
are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.counted_text import OUTSIDE, CountedText, whole_numbers
from isthmus.graph.reading.format import Format
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

BANNER = "%%MatrixMarket matrix coordinate FIELD SYMMETRY"
FIELDS = (b"pattern", b"integer", b"real", b"double")
SYMMETRIES = (b"general", b"symmetric")


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a Matrix Market file")
    return MatrixMarketSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Entries in the order of rows; of a symmetric matrix, the lower triangle."""
    kind = "pattern" if not edges.weighted else "real" if edges.weight_dtype.kind == "f" else "integer"
    symmetry = "general" if edges.directed else "symmetric"
    file.write(
        (
            f"%%MatrixMarket matrix coordinate {kind} {symmetry}\n{edges.vertices} {edges.vertices} {edges.edges}\n"
        ).encode()
    )
    for sources, targets, weights in edges.once():
        rows, columns = (sources, targets) if edges.directed else (targets, sources)  # targets are not smaller
        edges.write_rows(file, [rows + 1, columns + 1, weights])
    edges.say_numbers(1)


MATRIX_MARKET = Format(
    "matrix-market",
    open_path,
    endings=(".mtx",),
    words="a Matrix Market file",
    uses=("weight", "allow_negative", "max_expansion"),
    place=8,
    begins=(b"%%MatrixMarket",),
    save=save,
    written="text",
)


class MatrixMarketSource(CountedText):
    """The entries of a sparse square matrix."""

    def read_head(self, lines: list[bytes]) -> int:
        banner = lines[0].lower().split()
        if len(banner) != 5 or banner[0] != b"%%matrixmarket":
            raise self.bad_line(1, f"'{BANNER}'", lines[0])
        _, what, shape, field, symmetry = banner
        if (what, shape) != (b"matrix", b"coordinate"):
            raise self.bad_line(1, "a matrix of coordinates: only a sparse matrix is a graph", lines[0])
        if field not in FIELDS or symmetry not in SYMMETRIES:
            kinds = f"{', '.join(map(bytes.decode, FIELDS))} and {' or '.join(map(bytes.decode, SYMMETRIES))}"
            raise self.bad_line(1, f"a matrix that is {kinds}", lines[0])
        number, counts = self._size(lines)
        rows, columns, self._promised = counts
        if rows != columns:
            raise GraphFormatError(f"{self.path}:{number}: expected as many rows as columns, got {rows} x {columns}")
        self._count, self.directed = rows, False if symmetry == b"symmetric" else None
        self.weighted = field != b"pattern" and not self._no_weights
        self._columns = np.array([0, 1, 2 if self.weighted else -1])
        self.shape = "'row column value'" if field != b"pattern" else "'row column'"
        return number

    def _size(self, lines: list[bytes]) -> tuple[int, list[int]]:
        """(Its number, the three counts) of the first line that is no comment."""
        for number, line in enumerate(lines[1:], 2):
            if self._holds_data(line):
                counts = whole_numbers(line.split(), 3)
                if counts is None:
                    raise self.bad_line(number, "'rows columns entries'", line)
                return number, counts
        raise GraphFormatError(f"{self.path}: expected a line 'rows columns entries' below the comments, found none")

    def wrong(self, block: EdgeBlock) -> Array:
        outside = super().wrong(block)
        return outside | (block.sources < block.targets) if self.directed is False else outside

    def _expected(self, status: int, number: int) -> str:
        if status == OUTSIDE and self.directed is False:
            return f"expected the lower triangle of a symmetric matrix, column <= row <= {self._count}"
        return super()._expected(status, number)

    def report(self) -> dict[str, Any]:
        return {**super().report(), "format": "matrix-market"}
