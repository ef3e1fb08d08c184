"""Coordinates of the vertices of a DIMACS graph: a .co file has lines `v vertex x y` below `p aux sp co vertices`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isthmus.checks import path_of
from isthmus.errors import GraphFormatError
from isthmus.graph.export import arrow
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock
from isthmus.graph.reading.counted_text import CountedText, whole_numbers
from isthmus.graph.reading.text_lines import BadLine
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels
from isthmus.threads import Pool


def coordinates(path: str | Path) -> Any:
    """The coordinates of a DIMACS .co file (also .gz, .zst) as an Arrow table: vertex, x, y. All of it is in memory."""
    import pyarrow as pa

    path = path_of("coordinates", path)
    if not path.is_file():
        raise GraphFormatError(f"{path}: no such file")
    lines = CoordinateLines(path, ReadOptions(allow_negative=True))
    with Pool(1) as pool:
        blocks = list(lines.blocks(pool))
    lines.check()
    names = {"vertex": "sources", "x": "targets", "y": "weights"}
    columns = [[getattr(block, attribute) for block in blocks] or [np.empty(0)] for attribute in names.values()]
    return pa.table(
        {
            name: arrow.numbers(np.concatenate(parts).astype(np.int64))
            for name, parts in zip(names, columns, strict=True)
        }
    )


class CoordinateLines(CountedText):
    """Lines of coordinates, read as edges are: x in the place of a target, y in that of a weight."""

    shape = "'v vertex x y' with whole numbers"
    comment = "c"
    weighted = True

    def read_head(self, lines: list[bytes]) -> int:
        for number, line in enumerate(lines, 1):
            if self._holds_data(line):
                words = line.split()
                counts = whole_numbers(words[4:], 1) if words[:4] == [b"p", b"aux", b"sp", b"co"] else None
                if counts is None:
                    raise self.bad_line(number, "'p aux sp co vertices'", line)
                self._count = self._promised = counts[0]
                self._columns = np.array([1, 2, 3])
                return number
        raise GraphFormatError(f"{self.path}: expected a line 'p aux sp co vertices', found none")

    def _parse(self, item: tuple[Array, int, int]) -> tuple[EdgeBlock, int, int]:
        block, lines, flags = super()._parse(item)
        if flags & kernels.SAW_FRACTION:
            assert block.weights is not None
            text, _, skipped = item
            fraction = int((block.weights != np.rint(block.weights)).argmax())
            raise BadLine(kernels.BAD_WEIGHT, *self._line_of(text, skipped, fraction))
        block.targets = block.targets.astype(np.uint64).view(np.int64)
        return block, lines, flags

    def wrong(self, block: EdgeBlock) -> Array:
        return np.asarray((block.sources == 0) | (block.sources > np.uint64(self._count)))
