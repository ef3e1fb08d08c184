"""Adjacency lists as text: `source target target ...`. A line with only a source is a vertex without out-edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import Lines, line_at, shortened
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels
from isthmus.messages import option
from isthmus.threads import Pool


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a text file")
    if options.ids == "string":
        raise OptionError(f"{path}: adjacency lists hold integer ids; {option('ids', 'string')} does not apply")
    return AdjacencySource(path, options)


SEPARATORS = (kernels.SPACE, kernels.TAB, kernels.COMMA, kernels.SEMICOLON)

ADJACENCY = Format(
    "adjacency",
    open_path,
    endings=(".adj", ".adjlist"),
    words="adjacency lists as text",
    uses=("ids", "vertices", "comments", "max_expansion"),
    place=5,
)


class LongLines(Lines):
    """Lines of any length: one that does not fit is read as several lines with the same source."""

    continued = False  # whether the last line of the last array goes on

    def __iter__(self) -> Iterator[tuple[Array, int]]:
        for lines, done in super().__iter__():
            yield lines, done
            self.continued = False

    def _broken(self, begun: Array) -> tuple[Array, Array]:
        between = np.isin(begun, SEPARATORS)
        ends = np.flatnonzero(between[1:] & ~between[:-1]) + 1  # where a field has ended
        if ends.size < 2:
            raise GraphFormatError(
                f"{self.path}: a word is longer than {self._chunk // 2} bytes; are these adjacency lists?"
            )
        source, cut = begun[: ends[0]], int(ends[-1])
        self.continued = True
        return np.append(begun[:cut], np.uint8(kernels.NEWLINE)), np.concatenate([source, begun[cut:]])


class AdjacencySource(EdgeSource):
    """Edges from adjacency lists with integer ids. Every source and every target is a vertex."""

    unit = "B"
    replayable = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        self.vertices = options.vertices
        self.total = path.stat().st_size
        self._comments = np.frombuffer(options.comments.encode(), np.uint8)
        self._alone: list[Array] = []

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        before = seen = 0
        self._alone = []
        lines = LongLines(self._path, self._options.max_expansion, sizes.now.adjacency_chunk)
        for text, done in lines:
            sources, targets = (np.empty(int(kernels.count_fields(text)), np.uint64) for _ in range(2))
            alone = np.empty(int(kernels.count_lines(text)), np.uint64)
            status, edges, single, where, flags = kernels.parse_adjacency(text, self._comments, sources, targets, alone)
            if status != kernels.OK:
                number, line = line_at(text, where, before)
                shape = (
                    "ids that fit 64 bits"
                    if status == kernels.TOO_BIG
                    else "'source target target ...' with integer ids"
                )
                raise GraphFormatError(f"{self._path}:{number}: expected {shape}, got {shortened(line)!r}")
            before += int(kernels.count_lines(text)) - lines.continued
            seen |= flags
            if seen & kernels.SAW_NEGATIVE_ID and seen & kernels.SAW_HUGE_ID:
                raise GraphFormatError(
                    f"{self._path}: ids below 0 and above 2**63 - 1 in one file; no 64-bit type holds both"
                )
            self.signed = bool(seen & kernels.SAW_NEGATIVE_ID)
            self._alone.append(alone[:single].copy())
            yield EdgeBlock(sources[:edges], targets[:edges], None, None, done)

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        for alone in self._alone:
            yield EdgeBlock(alone, np.empty(0, np.uint64))

    def report(self) -> dict[str, Any]:
        return {"format": "adjacency"}
