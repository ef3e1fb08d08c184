"""LDBC Graphalytics graphs: a vertex file `.v`, an edge file `.e`, and a `.properties` file that describes them.

Any of the three opens the graph. The vertex file lists every vertex, including isolated ones; an edge with an unlisted
vertex is an error. A third column of the edge file is the weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.text import TextSource
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import Lines, line_at
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels
from isthmus.messages import option


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.suffix == ".properties":
        return GraphalyticsSource(path, read_properties(path), options)
    beside = path.with_suffix(".properties")
    return GraphalyticsSource(path, read_properties(beside) if beside.exists() else {}, options)


GRAPHALYTICS = Format(
    "graphalytics", open_path, endings=(".properties", ".e", ".v"), words="an LDBC Graphalytics graph", place=4
)


def read_properties(path: Path) -> dict[str, str]:
    """The properties of the graph, without the prefix `graph.NAME.`."""
    found: dict[str, str] = {}
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise GraphFormatError(f"{path}: cannot read: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        parts = key.strip().split(".", 2)
        if not equals or len(parts) < 3 or parts[0] != "graph":
            raise GraphFormatError(f"{path}:{number}: expected 'graph.NAME.property = value', got {line!r}")
        found[parts[2]] = value.strip()
    return found


class GraphalyticsSource(TextSource):
    """A text source with a list of all vertices."""

    def __init__(self, path: Path, properties: dict[str, str], options: ReadOptions) -> None:
        self._properties = properties
        folder = path.parent
        edges = (
            folder / properties["edge-file"]
            if "edge-file" in properties and path.suffix == ".properties"
            else path.with_suffix(".e")
        )
        self._vertex_path = (
            folder / properties["vertex-file"]
            if "vertex-file" in properties and path.suffix == ".properties"
            else path.with_suffix(".v")
        )
        for file in (edges, self._vertex_path):
            if not file.exists():
                raise GraphFormatError(f"{file}: no such file; {path} needs it")
        if options.ids == "string":
            raise OptionError(
                f"{path}: the ids of a Graphalytics graph are integers; {option('ids', 'string')} does not apply"
            )
        super().__init__(edges, dataclasses.replace(options, ids="int"))
        if options.weight is None and (self._fields > 2 or properties.get("edge-properties.names")):
            self.options = dataclasses.replace(self.options, weight=3)
            self._look()
        if "directed" in properties:
            if properties["directed"].lower() not in ("true", "false"):
                raise GraphFormatError(f"{path}: expected directed = true or false, got {properties['directed']!r}")
            self.directed = properties["directed"].lower() == "true"
        self.declares_vertices = True
        if "directed" not in properties:
            unless = f"taken as directed unless {option('directed', False)} is given"
            self.notes += (f"{path}: no .properties file says whether it is directed; {unless}",)
        self._seen_edges = 0

    def blocks(self, pool: Any) -> Iterator[EdgeBlock]:
        self._seen_edges = 0
        for block in super().blocks(pool):
            self._seen_edges += block.sources.size
            yield block

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        before = count = 0
        listed: list[Array] = []
        first_column = np.array([0, 0, -1], np.int64)
        for text, _ in Lines(self._vertex_path, self.options.max_expansion):
            lines = int(kernels.count_lines(text))
            ids = np.empty(lines, np.uint64)
            status, found, where, flags = kernels.parse_integer_edges(
                text, first_column, self._separator, self._comments, False, self._locale, ids, ids, None
            )
            if status != kernels.OK:
                number, line = line_at(text, where, 0)
                raise GraphFormatError(
                    f"{self._vertex_path}:{before + number}: expected an integer id of 64 bits, got "
                    f"{line.decode('utf-8', 'replace')!r}"
                )
            before += lines
            count += found
            self._note(flags)
            listed.append(ids[:found])
            yield EdgeBlock(ids[:found], np.empty(0, np.uint64))
        every = np.concatenate(listed) if listed else np.empty(0, np.uint64)
        if np.unique(every).size != count:
            values, often = np.unique(every, return_counts=True)
            twice = values.view(np.int64) if self.signed else values
            raise GraphFormatError(
                f"{self._vertex_path}: expected every vertex once, got {twice[often > 1][0]} more than once"
            )
        self._compare("vertices", count, self._vertex_path)

    def check(self) -> None:
        self._compare("edges", self._seen_edges, self.path)

    def _compare(self, what: str, count: int, path: Path) -> None:
        promised = self._properties.get(f"meta.{what}")
        if promised is not None and promised.isdigit() and int(promised) != count:
            raise GraphFormatError(f"{path}: holds {count} {what}, the properties promise {promised}")

    def report(self) -> dict[str, Any]:
        return {**super().report(), "format": "graphalytics"}
