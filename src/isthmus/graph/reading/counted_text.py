"""Text whose header says how many vertices and edges follow, with vertices 1 to n: Matrix Market and DIMACS.

The numbers in the file are the ids of the vertices; all n of them exist, with or without edges. The header is compared
with what follows, and a count of vertices that the file is too small for is refused before anything is allocated.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.formats.text import TextSource
from isthmus.graph.ingest.edges import EdgeBlock
from isthmus.graph.ingest.numbering import Dense, number_dtype
from isthmus.graph.reading import column_names
from isthmus.graph.reading.text_lines import BadLine, Lines, shortened
from isthmus.graph.store.files import Array
from isthmus.graph.store.writer import Writer
from isthmus.kernels.text import edge_text as kernels
from isthmus.memory import Budget
from isthmus.messages import option
from isthmus.threads import Pool

HEAD = 1 << 20  # bytes in which the header must end
VERTEX_BYTES = 16  # of a stored vertex: its id and where its list begins
OUTSIDE = 101  # status of a line that names a vertex the header does not promise


class From1(Dense):
    """Ids are 1 .. vertices."""

    kind = "int64"

    def write(self, writer: Writer) -> None:
        writer.section("ids.values", "int64", self.vertices)
        for first in range(0, self.vertices, sizes.now.copied_entries):
            writer.append("ids.values", np.arange(first + 1, min(first + sizes.now.copied_entries, self.vertices) + 1))

    def check(self, extent: tuple[int, int]) -> None:
        low, high = extent
        if low <= high and (low < 1 or high > self.vertices):
            raise GraphFormatError(
                f"{self._name}: expected vertices from 1 to {self.vertices}, got {low if low < 1 else high}"
            )

    def number(self, block: EdgeBlock) -> EdgeBlock:
        dtype = number_dtype(self.vertices)
        sources, targets = (
            (column - column.dtype.type(1)).astype(dtype, copy=False) for column in (block.sources, block.targets)
        )
        return EdgeBlock(sources, targets, block.weights, None, block.done)


def check_claim(path: Path, vertices: int, max_expansion: float) -> None:
    """Raise an error if a small file claims very many vertices, which would all be stored."""
    most = max(sizes.now.free_expansion, int(path.stat().st_size * max_expansion)) // VERTEX_BYTES
    if vertices > most:
        raise GraphFormatError(
            f"{path}: {path.stat().st_size} bytes claim {vertices} vertices, expected at most {most}; "
            f"if that is right, give {option('max_expansion')} a larger factor"
        )


class CountedText(TextSource):
    """Edges between vertices 1 to n, below a header. Subclasses read the header and name a line's form."""

    shape = "'source target'"  # of a line, for messages
    comment = "%"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        if options.weight not in (None, column_names.NONE):
            raise OptionError(
                f"{path}: the format says which are the weights; expected {column_names.NONE!r} or None, got "
                f"{options.weight!r}"
            )
        self._no_weights = options.weight == column_names.NONE
        super().__init__(path, replace(options, comments=self.comment, ids="int", weight=None))

    def _look(self) -> None:
        opening = next((lines[:HEAD].tobytes() for lines, _ in Lines(self.path, self.options.max_expansion)), b"")
        self.ids = "int"
        self._separator, self._first_line, self._fields, self._lines = kernels.SPACE, 0, 0, []
        self._count, self._promised = 0, 0
        self._skip_to = self.read_head(opening.split(b"\n"))
        check_claim(self.path, self._count, self.options.max_expansion)
        self._read_edges = 0

    @abstractmethod
    def read_head(self, lines: list[bytes]) -> int:
        """Read the header; set `_count`, `_promised`, `_columns` and `weighted`; return its number of lines."""

    def bad_line(self, number: int, expected: str, line: bytes) -> GraphFormatError:
        return GraphFormatError(f"{self.path}:{number}: expected {expected}, got {shortened(line)!r}")

    def numbering(self, budget: Budget) -> Any:
        return From1(self._count, self.name)

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self._read_edges = 0
        for block in super().blocks(pool):
            self._read_edges += block.sources.size
            yield block

    def _parse(self, item: tuple[Array, int, int]) -> tuple[EdgeBlock, int, int]:
        block, lines, flags = super()._parse(item)
        wrong = self.wrong(block)
        if wrong.any():
            text, _, skipped = item
            raise BadLine(OUTSIDE, *self._line_of(text, skipped, int(wrong.argmax())))
        return block, lines, flags

    def wrong(self, block: EdgeBlock) -> Array:
        """Which edges name a vertex that the header does not promise."""
        ends = (block.sources, block.targets)
        wrong: Array = np.logical_or.reduce([(column == 0) | (column > np.uint64(self._count)) for column in ends])
        return wrong

    def _line_of(self, text: Array, skipped: int, edge: int) -> tuple[int, bytes]:
        """(Number within the block, text) of the line of an edge."""
        held = [
            (number, line)
            for number, line in enumerate(text.tobytes().split(b"\n"), 1 + skipped)
            if self._holds_data(line)
        ]
        return held[edge]

    def _expected(self, status: int, number: int) -> str:
        if status == OUTSIDE:
            return f"expected vertices from 1 to {self._count}"
        if status in (kernels.NEGATIVE, kernels.NOT_FINITE, kernels.LONE_RETURN):
            return super()._expected(status, number)
        return f"expected {self.shape}"

    def check(self) -> None:
        if self._read_edges != self._promised:
            raise GraphFormatError(
                f"{self.path}: holds {self._read_edges} lines of edges, its header promises {self._promised}"
            )

    def report(self) -> dict[str, Any]:
        return {**super().report(), "format": "text"}


def whole_numbers(words: list[bytes], count: int) -> list[int] | None:
    """The words as whole numbers of at most 18 digits; None unless there are `count` of them."""
    if len(words) != count or not all(word.isdigit() and len(word) <= 18 for word in words):
        return None
    return [int(word) for word in words]
