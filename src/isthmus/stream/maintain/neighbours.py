"""The neighbours of some vertices at a time, copied from lists that are far, for programs that read them more than
once.

Where both directions count, a directed graph has two lists for each vertex, which are read one after the other. The
table holds both side by side, for as many vertices as fit. It has room for the neighbours of any two vertices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isthmus import sizes
from isthmus.kernels.loops import gather
from isthmus.stream.maintain.maintained import Array, Maintained

SHARE = 2  # a table has room for an entry for so many vertices, at least
INDEX = 8 + 8  # bytes per vertex: where its neighbours begin and end


class Neighbours:
    """A table of neighbours for a program whose `sides` are the lists that count."""

    def __init__(self, keeper: Maintained) -> None:
        self._keeper = keeper
        self._begins, self._ends = np.empty(0, np.int64), np.empty(0, np.int64)
        self._table = np.empty(0, keeper.graph.target_dtype)
        self._weighted = keeper.reads_weights() and keeper.graph.weighted
        # of the edges in the table.
        self.weights = np.empty(0, keeper.graph.weight_dtype if self._weighted else np.int32)
        self._held = np.empty(0, np.int64)

    @property
    def room(self) -> int:
        """Entries of a table, unless the lists of two vertices need more."""
        return max(self._keeper.graph.vertices // SHARE, sizes.now.least_table)

    def degrees(self, rows: Array) -> Array:
        """How many edges each of these vertices has."""
        total = np.zeros(rows.shape, np.int64)
        for side in self._keeper.sides:
            begins, ends = self._keeper.ends_of(side)
            total += ends[rows] - begins[rows]
        return total

    def batches(self, rows: Array) -> Iterator[tuple[Array, tuple[Array, Array, Array]]]:
        """Some of these ascending vertices at a time, with (begins, ends, neighbours), by vertex; only theirs are
        there, until the next.
        """
        offsets = np.concatenate([[0], np.cumsum(self.degrees(rows))])
        first = 0
        while first < rows.size:
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + self.room, side="right")) - 1)
            yield rows[first:last], self.of(rows[first:last])
            first = last

    def of(self, rows: Array) -> tuple[Array, Array, Array]:
        """(begins, ends, neighbours) of these ascending vertices, by vertex, however many; they are there until the
        next are.

        Others have none.
        """
        degrees, keeper = self.degrees(rows), self._keeper
        self._make_room(int(degrees.sum()))
        self._begins[self._held] = self._ends[self._held] = 0
        self._held = rows
        self._ends[rows] = np.cumsum(degrees)
        self._begins[rows] = cursors = self._ends[rows] - degrees
        keeper.effort.edges_read += int(degrees.sum())
        for side in keeper.sides:
            done = 0
            for some, (begins, ends, targets, weights) in keeper.pieces(side, rows):
                places, lengths = cursors[done : done + some.size], ends[some] - begins[some]
                gather.pack(targets, begins[some], lengths, places, self._table, 0, some.size)
                if self._weighted:
                    gather.pack(weights, begins[some], lengths, places, self.weights, 0, some.size)
                places += lengths
                done += some.size
        return self._begins, self._ends, self._table

    def _make_room(self, entries: int) -> None:
        n = self._keeper.graph.vertices
        if self._begins.size < n:
            self._begins, self._ends = np.zeros(n + n // 8, np.int64), np.zeros(n + n // 8, np.int64)
            self._held = self._held[:0]
        if self._table.size < max(entries, self.room):
            self._table = np.empty(max(entries, self.room), self._table.dtype)
            self.weights = np.empty(self._table.size if self._weighted else 0, self.weights.dtype)

    def near_bytes(self, vertices: int) -> int:
        """Memory of its arrays, with the lists that there are now."""
        sides = [self._keeper.ends_of(side) for side in self._keeper.sides]
        longest = 2 * sum(int((ends - begins).max(initial=0)) for begins, ends in sides)
        entry = self._table.itemsize + (self.weights.itemsize if self._weighted else 0)
        return INDEX * (vertices + vertices // 8) + entry * max(vertices // SHARE, sizes.now.least_table, longest)
