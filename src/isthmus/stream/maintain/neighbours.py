"""The neighbours of some vertices at a time, for programs that count both directions or read a list more than once.

Lists in memory come as they are, all in one batch. Lists on disk are copied into a table, for as many vertices as fit:
a directed graph has two lists for each vertex, which are read one after the other, and the table holds both side by
side. It has space for the neighbours of any two vertices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels.loops import gather
from isthmus.stream.maintain.maintained import Array, Maintained

SHARE = 2  # vertices per entry of the table, at most
INDEX = 8 + 8  # bytes per vertex: where its neighbours begin and end
# Number of sides, then (begins, ends, targets) by vertex of each: as kernels take them. With one side, the second is
# not read. In a table the first has the neighbours of both sides, and the second has none.
BothSides = tuple[int, Any, Any]


class Neighbours:
    """The neighbours of vertices for a program whose `sides` are the lists that count."""

    def __init__(self, program: Maintained) -> None:
        self._program = program
        self._begins, self._ends = np.empty(0, np.int64), np.empty(0, np.int64)
        self._table = np.empty(0, program.graph.target_dtype)
        self._weighted = program.reads_weights() and program.graph.weighted
        # of the edges in the table.
        self.weights = np.empty(0, program.graph.weight_dtype if self._weighted else np.int32)
        self._held = np.empty(0, np.int64)

    @property
    def _near(self) -> bool:
        return self._program.graph.lists_are_near

    @property
    def capacity(self) -> int:
        """Entries of a table, unless the lists of two vertices need more."""
        return max(self._program.graph.vertices // SHARE, sizes.now.least_table)

    def degrees(self, rows: Array) -> Array:
        """How many edges each of these vertices has."""
        total = np.zeros(rows.shape, np.int64)
        for side in self._program.sides:
            begins, ends = self._program.ends_of(side)
            total += ends[rows] - begins[rows]
        return total

    def batches(self, rows: Array) -> Iterator[tuple[Array, BothSides]]:
        """Some of these ascending vertices at a time, with lists in which theirs are valid until the next batch."""
        if self._near:
            yield rows, self._in_memory(rows)
            return
        offsets = np.concatenate([[0], np.cumsum(self.degrees(rows))])
        first = 0
        while first < rows.size:
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + self.capacity, side="right")) - 1)
            yield rows[first:last], self._copied(rows[first:last])
            first = last

    def pair_batches(self, firsts: Array, seconds: Array) -> Iterator[tuple[slice, BothSides]]:
        """Some of these pairs of vertices at a time, at least one, with the lists of both; equal firsts adjoin."""
        if self._near:
            yield slice(0, firsts.size), self._in_memory(firsts)
            return
        degrees, fresh = self.degrees(firsts), np.append(True, firsts[1:] != firsts[:-1])
        needed = np.cumsum(self.degrees(seconds) + np.where(fresh, degrees, 0))
        begin = 0
        while begin < firsts.size:
            before = int(needed[begin - 1]) if begin else 0
            more = 0 if fresh[begin] else int(degrees[begin])
            end = max(begin + 1, int(np.searchsorted(needed, before + self.capacity - more, side="right")))
            yield slice(begin, end), self._copied(np.unique([firsts[begin:end], seconds[begin:end]]))
            begin = end

    def count_read(self, edges: int) -> None:
        """Count edges that a kernel has read. Lists on disk were counted when they were copied."""
        if self._near:
            self._program.effort.edges_read += edges

    def _in_memory(self, rows: Array) -> BothSides:
        out, into = (next(self._program.pieces(side, rows))[1][:3] for side in ("out", "in"))
        return len(self._program.sides), out, into

    def _copied(self, rows: Array) -> BothSides:
        begins, ends, table = self.of(rows)
        return len(self._program.sides), (begins, ends, table), (begins, begins, table)

    def of(self, rows: Array) -> tuple[Array, Array, Array]:
        """Copy the neighbours of these ascending vertices: (begins, ends, neighbours) by vertex, valid until the next
        are copied. Other vertices have none.
        """
        degrees, program = self.degrees(rows), self._program
        self._reserve(int(degrees.sum()))
        self._begins[self._held] = self._ends[self._held] = 0
        self._held = rows
        self._ends[rows] = np.cumsum(degrees)
        self._begins[rows] = cursors = self._ends[rows] - degrees
        program.effort.edges_read += int(degrees.sum())
        for side in program.sides:
            done = 0
            for some, (begins, ends, targets, weights) in program.pieces(side, rows):
                places, lengths = cursors[done : done + some.size], ends[some] - begins[some]
                gather.pack(targets, begins[some], lengths, places, self._table, 0, some.size)
                if self._weighted:
                    gather.pack(weights, begins[some], lengths, places, self.weights, 0, some.size)
                places += lengths
                done += some.size
        return self._begins, self._ends, self._table

    def _reserve(self, entries: int) -> None:
        n = self._program.graph.vertices
        if self._begins.size < n:
            self._begins, self._ends = np.zeros(n + n // 8, np.int64), np.zeros(n + n // 8, np.int64)
            self._held = self._held[:0]
        if self._table.size < max(entries, self.capacity):
            self._table = np.empty(max(entries, self.capacity), self._table.dtype)
            self.weights = np.empty(self._table.size if self._weighted else 0, self.weights.dtype)

    def near_bytes(self, vertices: int) -> int:
        """Memory of the table, with the lists that there are now; none if they are in memory."""
        if self._near:
            return 0
        sides = [self._program.ends_of(side) for side in self._program.sides]
        longest = 2 * sum(int((ends - begins).max(initial=0)) for begins, ends in sides)
        entry = self._table.itemsize + (self.weights.itemsize if self._weighted else 0)
        return INDEX * (vertices + vertices // 8) + entry * max(vertices // SHARE, sizes.now.least_table, longest)
