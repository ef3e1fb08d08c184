"""A format: every line is a path, `a > b > c`, and says that a has an edge to b and b one to c."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.formats import Format, Option, ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    return PathSource(path, options.own["arrow"], options.own["closed"])


class PathSource(EdgeSource):
    """Edges along the paths of a text file; `closed` paths lead back to where they began."""

    def __init__(self, path: Path, arrow: str, closed: bool) -> None:
        self.name, self._path, self._arrow, self._closed = str(path), path, arrow, closed

    def blocks(self, pool: Any) -> Iterator[EdgeBlock]:
        for number, line in enumerate(self._path.read_text().splitlines(), 1):
            try:
                stops = np.array([int(word) for word in line.split(self._arrow)], np.uint64)
            except ValueError:
                raise GraphFormatError(
                    f"{self._path}:{number}: expected numbers with {self._arrow!r} between, got {line!r}"
                ) from None
            ends = np.roll(stops, -1)
            yield EdgeBlock(stops, ends) if self._closed else EdgeBlock(stops[:-1], ends[:-1])


TINY = Format(
    "tiny",
    open_path,
    endings=(".paths",),
    words="paths as text",
    uses=(),
    options=(
        Option("arrow", "what stands between two vertices", ">"),
        Option("closed", "paths lead back to where they began", False),
    ),
)
