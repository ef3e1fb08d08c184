"""Lists of a WebGraph graph, decoded in order from pieces of the file; a list that a piece cuts is decoded again.

In memory are one piece of the file, the lists of one block, and before them those that the next lists may refer to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, GraphFormatError, StoreError
from isthmus.graph.reading.bv_properties import BvProperties
from isthmus.graph.store.files import Array, read_into
from isthmus.kernels.text import bit_codes, bv_successors
from isthmus.memory import format_size
from isthmus.messages import option

WORD = 8  # bytes
ENTRY, SPAN = 4, 16  # bytes of a neighbour, and of an interval
PADDING = 16  # bytes behind the last list, at most: WebGraph pads its files to whole words, none of them larger
WRONG = {
    bv_successors.BAD_DEGREE: "{degree} neighbours, but the graph has {vertices} vertices",
    bv_successors.TOO_MANY: "{degree} neighbours, with which there are more arcs than the {arcs} that the "
    "properties promise",
    bv_successors.BAD_REFERENCE: "a reference to a list that is not among the {window} before it",
    bv_successors.BAD_BLOCKS: "blocks of another list that are longer than that list, or than its own",
    bv_successors.BAD_INTERVALS: "intervals that are longer than the list",
    bv_successors.BAD_NEIGHBOUR: "a neighbour outside 0 to {last}",
    bv_successors.TWICE: "a neighbour twice",
}


class BvLists:
    """The lists of NAME.graph, in at most `limit` bytes (None: no limit)."""

    def __init__(self, path: Path, properties: BvProperties, limit: int | None) -> None:
        self._path, self._properties, self._limit = path, properties, limit
        self._file = os.open(path, os.O_RDONLY)
        self._size = os.fstat(self._file).st_size
        self._base, self._piece = 0, 0  # where the piece in memory begins, and how long it is, in bytes
        self._at, self._end = 0, 0  # bits of the piece: decoded, and in all
        self._words = np.zeros(bit_codes.PADDING, np.uint64)
        self._shape = np.array([properties.vertices, properties.arcs, properties.window, properties.shortest], np.int64)
        self._tables = tables_of(properties)
        self._lists, self._spans = np.empty(0, np.uint32), np.empty((0, 2), np.int64)
        self._bounds = np.zeros(1, np.int64)  # of the lists that the next ones may refer to
        self._vertex = self._arcs = 0  # decoded so far

    def __enter__(self) -> BvLists:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def blocks(self) -> Iterator[tuple[int, Array, Array]]:
        """(A vertex, lengths of the lists from it on, the lists). At the end, the counts are checked."""
        needed = 0
        while self._vertex < self._properties.vertices:
            first = self._vertex
            self._reserve(max(sizes.now.block_edges, needed))
            lengths, targets, needed = self._block()
            if lengths.size:
                yield first, lengths, targets
        self._check_end()

    def _block(self) -> tuple[Array, Array, int]:
        """(Lengths, lists, the length of the next one if it did not fit)."""
        earlier = self._bounds.size - 1
        count = min(sizes.now.list_vertices, self._properties.vertices - self._vertex)
        bounds = np.empty(earlier + count + 1, np.int64)
        bounds[: earlier + 1] = self._bounds
        done = needed = 0
        while done < count:
            arcs = self._arcs + int(bounds[earlier + done] - bounds[earlier])
            status, self._at, more, degree = bv_successors.decode(
                self._words,
                self._at,
                self._end,
                self._tables,
                self._properties.codes,
                self._properties.little,
                self._shape,
                self._vertex,
                earlier + done,
                count - done,
                arcs,
                self._lists,
                bounds,
                self._spans,
            )
            done += more
            self._vertex += more
            if status == bv_successors.FULL:
                needed = degree
                break
            if status == bv_successors.SHORT:
                self._read_on()
            elif status != bv_successors.DONE:
                raise self._wrong(status, degree)
        bounds = bounds[: earlier + done + 1]
        begin, end = int(bounds[earlier]), int(bounds[-1])
        targets = self._lists[begin:end].copy()
        self._arcs += end - begin
        self._keep(bounds)
        return np.diff(bounds[earlier:]), targets, needed

    def _keep(self, bounds: Array) -> None:
        """Move the lists that the next ones may refer to, the last ones of the window, to the beginning."""
        bounds = bounds[-min(self._properties.window + 1, bounds.size) :]
        begin, end = int(bounds[0]), int(bounds[-1])
        self._lists[: end - begin] = self._lists[begin:end].copy() if begin < end - begin else self._lists[begin:end]
        self._bounds = bounds - begin

    def _reserve(self, entries: int) -> None:
        """Reserve memory for `entries` neighbours behind the lists that the next ones may refer to."""
        size = int(self._bounds[-1]) + entries
        if size <= self._lists.size:
            return
        # Of a list that takes all of the array.
        spans = size // self._properties.shortest + 1 if self._properties.shortest else 0
        self._check_memory(
            size * ENTRY + spans * SPAN, f"its list and those of the {self._bounds.size - 1} vertices before it"
        )
        lists = np.empty(size, np.uint32)
        lists[: self._bounds[-1]] = self._lists[: self._bounds[-1]]
        self._lists, self._spans = lists, np.empty((spans, 2), np.int64)

    def _read_on(self) -> None:
        """Read the next piece, from the word on where the list begins that the last piece has cut."""
        if self._base + self._piece >= self._size:
            raise GraphFormatError(
                f"{self._path}: ends inside the list of vertex {self._vertex}; the file was truncated"
            )
        begun = self._at // 64 * WORD
        least = -(-sizes.now.adjacency_chunk // WORD) * WORD
        # Twice as much if a piece was too small for a list.
        size = 2 * self._piece if begun == 0 and self._piece else least
        self._check_memory(size, "the part of its list in the file")
        self._base += begun
        self._at %= 64
        self._piece = min(size, self._size - self._base)
        self._words = np.zeros(-(-self._piece // WORD) + bit_codes.PADDING, np.uint64)
        try:
            read_into(self._file, self._words.view(np.uint8)[: self._piece].data, self._base, str(self._path))
        except StoreError as error:
            raise GraphFormatError(str(error)) from error
        order = "<" if self._properties.little else ">"
        self._words = self._words.view(f"{order}u8").astype(np.uint64, copy=False)
        self._end = 8 * self._piece

    def _check_memory(self, needed: int, what: str) -> None:
        if self._limit is not None and needed > self._limit and needed > sizes.now.least_block_memory:
            raise BudgetError(
                f"{self._path}: vertex {self._vertex}: {what} take {format_size(needed)}, a quarter of the budget is "
                f"{format_size(self._limit)}; raise {option('memory')}"
            )

    def _wrong(self, status: int, degree: int) -> GraphFormatError:
        graph = self._properties
        what = WRONG[status].format(
            degree=degree, vertices=graph.vertices, arcs=graph.arcs, window=graph.window, last=graph.vertices - 1
        )
        return GraphFormatError(
            f"{self._path}: the list of vertex {self._vertex} has {what}; the file is damaged, or its .properties "
            f"describe another"
        )

    def _check_end(self) -> None:
        used = self._base + -(-self._at // 8)
        if self._arcs != self._properties.arcs:
            raise GraphFormatError(
                f"{self._path}: holds {self._arcs} arcs, its properties promise {self._properties.arcs}"
            )
        if self._size - used > PADDING:
            raise GraphFormatError(
                f"{self._path}: the lists of its {self._properties.vertices} vertices end at byte {used}, the file at "
                f"byte {self._size}; its .properties describe another"
            )


def tables_of(properties: BvProperties) -> Array:
    """A table of short codes for every part."""
    tables = np.zeros((len(properties.codes), 1 << bit_codes.TABLE_BITS), np.uint32)
    for table, (code, k) in zip(tables, properties.codes.tolist(), strict=True):
        bit_codes.fill_table(table, code, k, properties.little)
    return tables
