"""Adjacency lists as text: lines `source target target ...`; a line with a source alone is an isolated vertex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.files import Array
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.text import Lines
from isthmus.kernels import text as kernels
from isthmus.threads import Pool


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if options.weight is not None:
        raise OptionError(f"{path}: adjacency lists carry no weights")
    return AdjacencySource(path, options)


class AdjacencySource(EdgeSource):
    """Integer ids; every id that begins a line is a vertex, and so is every target."""

    unit = "B"
    replayable = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        self.vertices = options.vertices
        self.total = path.stat().st_size
        self._comments = np.frombuffer(options.comments.encode(), np.uint8)
        self._alone: list[Array] = []

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        before = 0
        self._alone = []
        for text, done in Lines(self._path, self._options.max_expansion):
            most = int(kernels.count_fields(text))
            sources, targets, alone = (np.empty(most, np.uint64) for _ in range(3))
            status, edges, single, where, flags = kernels.parse_adjacency(text, self._comments, sources, targets, alone)
            if status != kernels.OK:
                number = int(np.count_nonzero(text[:where] == kernels.NEWLINE)) + 1 + before
                line = text[where : where + 80].tobytes().split(b"\n", 1)[0].decode("utf-8", "replace")
                raise GraphFormatError(f"{self._path}:{number}: expected 'source target target ...' with integer ids, got {line!r}")
            before += int(kernels.count_lines(text))
            self.signed |= bool(flags & kernels.SAW_NEGATIVE_ID)
            self._alone.append(alone[:single].copy())
            yield EdgeBlock(sources[:edges], targets[:edges], None, None, done)

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        for alone in self._alone:
            yield EdgeBlock(alone, np.empty(0, np.uint64))

    def report(self) -> dict[str, Any]:
        return {"format": "adjacency"}
