"""WebGraph's compressed graphs in BV format: bits in NAME.graph, and how to read them in NAME.properties.

Any of their names opens the graph, and so does NAME. Lists are decoded from the first to the last, so no index
(.offsets, .obl, .ef) is needed. Graphs are directed and have no weights; no list has a neighbour twice. The files of
WebGraph in Java are read, and those of WebGraph in Rust, which may be little-endian and have further codes. Labels of
arcs are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.bv_lists import ENTRY, BvLists
from isthmus.graph.reading.bv_properties import read_properties
from isthmus.graph.reading.bv_writer import BvWriter
from isthmus.graph.reading.format import Format
from isthmus.messages import option
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

MOST_VERTICES = 1 << 32


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected the name of a WebGraph graph in it")
    if options.ids == "string":
        raise OptionError(f"{path}: vertices are numbered from 0; {option('ids', 'string')} does not apply")
    return WebGraphSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """Write NAME.graph, NAME.offsets and NAME.properties with the usual parameters; undirected edges both ways."""
    if edges.weighted:
        raise OptionError(f"{edges.name}: has weights, the format has none; {option('weights', False)} leaves them out")
    edges.need_no_parallel()
    edges.need_vertices(MOST_VERTICES)
    BvWriter(edges, file, edges.parts[".offsets"], edges.parts[".properties"]).write()
    edges.say_numbers(0)


WEBGRAPH = Format(
    "webgraph",
    open_path,
    endings=(".graph", ".properties", ".offsets"),
    words="a WebGraph graph",
    uses=("ids", "max_expansion"),
    place=15,
    parts=(".graph", ".offsets", ".properties"),
    described=(".properties", b"graphclass"),
    save=save,
    written="bytes",
)


class WebGraphSource(EdgeSource):
    """The arcs of a graph."""

    directed = True
    vertices: int

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = WEBGRAPH.part(path, ".graph")
        self.name, self._options = str(self._path), options
        self._properties = read_properties(WEBGRAPH.part(path, ".properties"))
        if not self._path.is_file():
            raise GraphFormatError(f"{self._path}: no such file; {WEBGRAPH.part(path, '.properties')} needs it")
        self._check_counts()
        self.vertices, self.total = self._properties.vertices, self._properties.arcs

    def _check_counts(self) -> None:
        """Raise an error if the file is too small: a list has a bit or more, and arcs are limited as in text."""
        size, vertices, arcs = self._path.stat().st_size, self._properties.vertices, self._properties.arcs
        if vertices > 8 * size:
            raise GraphFormatError(
                f"{self._path}: its properties promise {vertices} vertices, of a bit or more each; it has {size} bytes"
            )
        if vertices > MOST_VERTICES:
            raise GraphFormatError(f"{self._path}: {vertices} vertices; expected at most {MOST_VERTICES}")
        most = max(sizes.now.free_expansion, int(size * self._options.max_expansion)) // ENTRY
        if arcs > most:
            raise GraphFormatError(
                f"{self._path}: {size} bytes claim {arcs} arcs, expected at most {most}; "
                f"if that is right, give {option('max_expansion')} a larger factor"
            )

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        try:
            with BvLists(self._path, self._properties, self.block_memory) as lists:
                for first, lengths, targets in lists.blocks():
                    sources = np.repeat(np.arange(first, first + lengths.size, dtype=np.uint32), lengths)
                    yield EdgeBlock(sources, targets, None, None, targets.size)
        except OSError as error:
            raise GraphFormatError(f"{self._path}: cannot read: {error.strerror}") from error

    def report(self) -> dict[str, Any]:
        return {"format": "webgraph"}
