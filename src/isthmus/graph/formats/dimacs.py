"""Graphs of the 9th DIMACS challenge (.gr): lines `a source target weight` below `p sp vertices arcs`.

Vertices are numbered from 1, and these numbers are the ids. Comment lines begin with `c`. The coordinates of the
vertices are in a .co file: see `graph/reading/coordinates.py`. Galois uses the same ending for a binary format; the
first bytes say which it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.formats import COMPRESSED, ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.counted_text import CountedText, whole_numbers
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import BadLine
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a DIMACS graph")
    if [ending.lower() for ending in path.suffixes if ending.lower() not in COMPRESSED][-1:] == [".co"]:
        raise GraphFormatError(
            f"{path}: holds coordinates, not edges; read the .gr file, and the coordinates by isthmus.coordinates(path)"
        )
    return DimacsSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Arcs in the order of sources, an undirected edge in both directions; 1 for the weights of an unweighted graph."""
    edges.need_whole_weights()
    file.write(f"p sp {edges.vertices} {edges.arcs}\n".encode())
    for sources, targets, weights in edges.both():
        edges.write_rows(
            file, [sources + 1, targets + 1, np.ones(sources.size, np.int32) if weights is None else weights], b"a"
        )
    edges.say_numbers(1)
    if not edges.weighted:
        edges.say("the graph has no weights, and the format needs them: every weight is 1")


DIMACS = Format(
    "dimacs",
    open_path,
    endings=(".gr", ".co"),
    words="a DIMACS graph, text",
    uses=("weight", "allow_negative", "max_expansion"),
    place=9,
    begins=(b"c", b"p", b"\n", b"\r"),
    save=save,
    written="text",
)


class DimacsSource(CountedText):
    """The arcs of a .gr file."""

    shape = "'a source target weight'"
    comment = "c"
    directed = True

    def read_head(self, lines: list[bytes]) -> int:
        for number, line in enumerate(lines, 1):
            if not self._holds_data(line):
                continue
            words = line.split()
            counts = whole_numbers(words[2:], 2) if words[:2] == [b"p", b"sp"] else None
            if counts is None:
                raise self.bad_line(number, "'p sp vertices arcs'", line)
            self._count, self._promised = counts
            self.weighted = not self._no_weights
            self._columns = np.array([1, 2, 3 if self.weighted else -1])
            return number
        raise GraphFormatError(f"{self.path}: expected a line 'p sp vertices arcs', found none")

    def _parse(self, item: tuple[Array, int, int]) -> tuple[EdgeBlock, int, int]:
        self.check_letters(*item[::2])
        return super()._parse(item)

    def check_letters(self, text: Array, skipped: int) -> None:
        """Raise an error for a line that is neither an arc nor a comment. The kernel ignores the first word."""
        if not text.size:
            return
        ends = np.flatnonzero(text == kernels.NEWLINE)
        starts = np.append(0, ends[:-1] + 1)
        first, second = text[starts], text[np.minimum(starts + 1, text.size - 1)]
        usual = (first == ord("a")) & ((second == kernels.SPACE) | (second == kernels.TAB))
        usual |= np.isin(first, (ord("c"), kernels.NEWLINE, kernels.RETURN))
        for at in np.flatnonzero(~usual).tolist():
            line = text[starts[at] : ends[at]].tobytes()
            if self._holds_data(line) and line.split()[0] != b"a":
                raise BadLine(kernels.BAD_SOURCE, at + 1 + skipped, line)

    def report(self) -> dict[str, Any]:
        return {**super().report(), "format": "dimacs"}
