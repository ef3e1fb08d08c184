"""LDBC Graphalytics graphs: a vertex file `.v`, an edge file `.e`, and a `.properties` file that describes them.

Opened by any of the three. The vertex file lists every vertex, isolated ones too; an edge that names another
is an error. A third column of the edge file is the weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.edges import EdgeBlock, EdgeSource
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.text import FIELD, INTEGER, Lines, TextSource


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.suffix == ".properties":
        return GraphalyticsSource(path, read_properties(path), options)
    beside = path.with_suffix(".properties")
    return GraphalyticsSource(path, read_properties(beside) if beside.exists() else {}, options)


def read_properties(path: Path) -> dict[str, str]:
    """The properties of the one graph described, without the `graph.NAME.` before each."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        parts = key.strip().split(".", 2)
        if not equals or len(parts) < 3 or parts[0] != "graph":
            raise GraphFormatError(f"{path}:{number}: expected 'graph.NAME.property = value', got {line!r}")
        found[parts[2]] = value.strip()
    return found


class GraphalyticsSource(TextSource):
    """A text source that knows its vertices."""

    def __init__(self, path: Path, properties: dict[str, str], options: ReadOptions) -> None:
        self._properties = properties
        folder = path.parent
        edges = folder / properties["edge-file"] if "edge-file" in properties and path.suffix == ".properties" else path.with_suffix(".e")
        self._vertex_path = (
            folder / properties["vertex-file"] if "vertex-file" in properties and path.suffix == ".properties" else path.with_suffix(".v")
        )
        for file in (edges, self._vertex_path):
            if not file.exists():
                raise GraphFormatError(f"{file}: no such file; {path} needs it")
        if options.weight is None and self._has_weights(edges, properties):
            options = dataclasses.replace(options, weight=3)
        super().__init__(edges, options)
        if options.ids == "auto" and self._fields == 0:
            self.ids = "int"
        if "directed" in properties:
            if properties["directed"].lower() not in ("true", "false"):
                raise GraphFormatError(f"{path}: expected directed = true or false, got {properties['directed']!r}")
            self.directed = properties["directed"].lower() == "true"
        self.declares_vertices = True
        self._seen_edges = 0

    @staticmethod
    def _has_weights(edges: Path, properties: dict[str, str]) -> bool:
        if properties.get("edge-properties.names"):
            return True
        for lines, _ in Lines(edges, 1):
            return len(FIELD.findall(lines[: 1 << 16].tobytes().split(b"\n", 1)[0])) > 2
        return False

    def blocks(self, pool: Any) -> Iterator[EdgeBlock]:
        self._seen_edges = 0
        for block in super().blocks(pool):
            self._seen_edges += block.sources.size
            yield block

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        line = 0
        count = 0
        for lines, _ in Lines(self._vertex_path, 1):
            fields: list[int] = []
            for text in lines.tobytes().split(b"\n"):
                line += 1
                first = FIELD.match(text.strip())
                if first is None:
                    continue
                if not INTEGER.fullmatch(first[0]) or not -(1 << 63) <= int(first[0]) < 1 << 64:
                    raise GraphFormatError(f"{self._vertex_path}:{line}: expected an integer id of 64 bits, got {text.decode('utf-8', 'replace')!r}")
                fields.append(int(first[0]))
            line -= 1  # what follows the last newline is not a line
            count += len(fields)
            self.signed |= any(value < 0 for value in fields)
            yield EdgeBlock(np.array([value % (1 << 64) for value in fields], np.uint64), np.empty(0, np.uint64))
        self._compare("vertices", count, self._vertex_path)

    def check(self) -> None:
        self._compare("edges", self._seen_edges, self.path)

    def _compare(self, what: str, count: int, path: Path) -> None:
        promised = self._properties.get(f"meta.{what}")
        if promised is not None and promised.isdigit() and int(promised) != count:
            raise GraphFormatError(f"{path}: holds {count} {what}, the properties promise {promised}")

    def report(self) -> dict[str, Any]:
        return {**super().report(), "format": "graphalytics"}
