"""METIS graphs (.graph): a header `vertices edges [format [constraints]]`, then a line of neighbours per vertex.

Graphs are undirected, and every edge stands in the lines of both ends. Vertices are numbered from 1, and these numbers
are the ids. Sizes and weights of vertices are skipped; weights of edges are read if the format code says that there are
any.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions, opening
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.arrow_columns import weight_type
from isthmus.graph.reading.counted_text import From1, check_claim, whole_numbers
from isthmus.graph.reading.format import Format
from isthmus.graph.reading.text_lines import Lines, line_at, shortened
from isthmus.graph.reading.text_words import Words
from isthmus.graph.store.files import Array
from isthmus.kernels.store import arc_keys
from isthmus.kernels.text import edge_text, number_text
from isthmus.memory import Budget
from isthmus.threads import Pool

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

HEAD = 1 << 20  # bytes in which the header must end
WIDTHS = ("int32", "int64")


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    if path.is_dir():
        raise GraphFormatError(f"{path}: is a folder; expected a METIS graph")
    return MetisSource(path, options)


def save(edges: Outgoing, file: BinaryIO) -> None:
    """One line for every vertex. METIS has no directed graphs, self loops, parallel edges, or weights below 1."""
    if edges.directed:
        raise OptionError(f"{edges.name}: is directed; a METIS graph is undirected")
    edges.need_simple()
    edges.need_whole_weights(least=1)
    file.write(f"{edges.vertices} {edges.edges}{' 001' if edges.weighted else ''}\n".encode())
    line, begun = 0, False  # the vertex at whose line the file ends, and whether the line has words
    for sources, targets, weights in edges.both():
        for vertex, neighbours in lines_of(sources, targets + 1, weights):
            file.write(b"\n" * (vertex - line) + (b" " if begun and vertex == line else b"") + neighbours)
            line, begun = vertex, True
    file.write(b"\n" * (edges.vertices - line))
    edges.say_numbers(1)


def lines_of(sources: Array, targets: Array, weights: Array | None) -> Iterator[tuple[int, bytes]]:
    """(A vertex, the words of its line) for every vertex of a block."""
    columns = [targets] if weights is None else [targets, weights]
    table = np.column_stack(columns).astype(np.int64)
    vertices, starts = np.unique(sources, return_index=True)
    for vertex, rows in zip(vertices.tolist(), np.split(table, starts[1:]), strict=True):
        yield vertex, " ".join(map(str, rows.ravel().tolist())).encode()


METIS = Format(
    "metis",
    open_path,
    endings=(".graph", ".metis"),
    words="a METIS graph",
    uses=("max_expansion",),
    place=13,
    save=save,
    written="text",
)


class MetisSource(EdgeSource):
    """The edges of a graph, each from both ends."""

    unit = "B"
    directed = False
    both_ways = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name, self._path, self._options = str(path), path, options
        self.total = path.stat().st_size
        opening = next((lines[:HEAD].tobytes() for lines, _ in Lines(path, options.max_expansion)), b"")
        self._read_head(opening.split(b"\n"))
        check_claim(path, self._count, options.max_expansion)
        self._imbalance, self._arcs = 0, 0

    def _read_head(self, lines: list[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith(b"%"):
                continue
            counts = line.split()
            numbers = whole_numbers(counts, len(counts)) if 2 <= len(counts) <= 4 else None
            code = counts[2].rjust(3, b"0") if len(counts) > 2 else b"000"
            if numbers is None or len(code) != 3 or set(code) - set(b"01"):
                hint = (
                    f"; a WebGraph graph has {self._path.stem}.properties beside it"
                    if b"\0" in opening(self._path)
                    else ""
                )
                raise GraphFormatError(
                    f"{self._path}:{number}: expected 'vertices edges [format [constraints]]', got "
                    f"{shortened(line)!r}{hint}"
                )
            self._count, self._promised = numbers[:2]
            constraints = (numbers[3] if len(numbers) > 3 else 1) if code[1:2] == b"1" else 0
            self._skip = constraints + (code[:1] == b"1")
            self.weighted = code[2:] == b"1"
            self._head_lines = number
            return
        raise GraphFormatError(f"{self._path}: expected a line 'vertices edges', found none")

    def numbering(self, budget: Budget) -> Any:
        return From1(self._count, self.name)

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        place, skip = np.zeros(5, np.int64), self._head_lines
        place[number_text.LINES] = skip
        self._imbalance = self._arcs = 0
        self.weight_dtype = WIDTHS[0]
        for part, done in Words(self._path, self._options.max_expansion, sizes.now.adjacency_chunk):
            ends = np.flatnonzero(part == edge_text.NEWLINE)[:skip] if skip else np.empty(0, np.int64)
            skip -= ends.size
            block = self._parse(part[int(ends[-1]) + 1 :] if ends.size else part, place) if not skip else None
            if block is not None:
                block.done = done
                yield block
        if place[number_text.VERTEX] < self._count:
            raise GraphFormatError(
                f"{self._path}: has {place[number_text.VERTEX]} lines of vertices, its header promises {self._count}"
            )

    def _parse(self, part: Array, place: Array) -> EdgeBlock:
        most = int(number_text.count_words(part)) + 1
        sources, targets = np.empty(most, np.uint64), np.empty(most, np.uint64)
        weights = np.empty(most if self.weighted else 0, np.int64)
        before = int(place[number_text.LINES])
        status, edges, where = number_text.parse_lists(
            part, place, self._count, self._skip, self.weighted, sources, targets, weights
        )
        if status != edge_text.OK:
            number, line = line_at(part, where, before)
            raise GraphFormatError(f"{self._path}:{number}: expected {self._expected(status)}, got {shortened(line)!r}")
        block = EdgeBlock(sources[:edges], targets[:edges], weights[:edges] if self.weighted else None)
        self._tally(block)
        return block

    def _expected(self, status: int) -> str:
        if status == number_text.OUTSIDE:
            return f"neighbours from 1 to {self._count}"
        if status == number_text.TOO_MANY:
            return f"no more than {self._count} lines of vertices"
        if status == number_text.UNFINISHED:
            own = f"{self._skip} numbers of the vertex, then " if self._skip else ""
            return f"{own}{'pairs of a neighbour and a weight' if self.weighted else 'neighbours'}"
        return "whole numbers that are not negative"

    def _tally(self, block: EdgeBlock) -> None:
        """Count what `check` compares, and refuse self loops, of which METIS has none."""
        loops = block.sources == block.targets
        if loops.any():
            raise GraphFormatError(
                f"{self._path}: expected no vertex among its own neighbours, got {block.sources[loops.argmax()]}"
            )
        self._imbalance += int(arc_keys.imbalance(block.sources, block.targets, block.weights))
        self._arcs += block.sources.size
        if block.weights is not None:
            self.weight_dtype = max(self.weight_dtype, weight_type(block.weights), key=WIDTHS.index)

    def check(self) -> None:
        if self._imbalance % (1 << 64):
            raise GraphFormatError(f"{self._path}: some edges are listed at one of their ends only")
        if self._arcs != 2 * self._promised:
            raise GraphFormatError(f"{self._path}: holds {self._arcs // 2} edges, its header promises {self._promised}")

    def report(self) -> dict[str, Any]:
        return {"format": "metis"}
