"""Core numbers kept current, exactly, for any mix of inserted and deleted edges.

1. On the new edges, vertices with too little support sink, as far as needed, and others with them. What is left are the
   largest numbers up to the old ones that the new edges allow.
2. Then vertices rise, by one in every round. Only vertices joined to the end of an inserted edge, or to one that rose
   in the last round, through vertices of equal number can rise (`kernels/stream/core_changes.py`). When none rises, the
   numbers are exact: otherwise, among the vertices whose number is too small, those with the smallest could rise
   together.
"""

from __future__ import annotations

import time

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.stream import core_changes as kernels
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Program
from isthmus.stream.maintain.counts import MaintainedCounts
from isthmus.stream.maintain.maintained import Array, Effort


class MaintainedCores(MaintainedCounts):
    """Core numbers, and how many neighbours support each."""

    @property
    def more_bytes(self) -> int:
        """Supports, stages, what is left, two queues, degrees."""
        return 8 + 1 + 8 + 4 + 4 + 8 * len(self.sides)

    def _from_scratch(self) -> Program:
        return CoreNumber(self.graph.directed, self.graph.self_loops > 0)

    def restore(self) -> None:
        self._supports = np.empty(self.graph.vertices, np.int64)
        super().restore()
        self._count_supports()

    def _count_supports(self) -> None:
        n = self.graph.vertices
        self.team.split(lambda a, b: kernels.count_supports(a, b, *self._lists, self._values, self._supports), n)

    def _make_room(self, used: int, room: int) -> None:
        super()._make_room(used, room)
        self._supports = with_room(self._supports, used, room)
        self._stages, self._left = np.zeros(room, np.uint8), np.empty(room, np.int64)
        self._seen, self._pile = np.empty(room, np.uint32), np.empty(room, np.uint32)
        # by core number, which is at most the number of edges.
        self._degrees = np.zeros(len(self.sides) * room + 1, np.int64)

    def correct(self, change: Change) -> None:
        """Nothing: deleted edges are known without their lists."""
        self.effort = Effort()

    def compute(self, change: Change) -> None:
        start = time.perf_counter()
        before, out = self._published.size, change.out
        self._grow()
        self._supports[before : self.graph.vertices] = 0
        gone, fresh = (out.actions == action for action in (DELETE, INSERT))
        amounts = fresh.astype(np.int64) - gone
        kernels.shift_supports(out.vertices, out.others, amounts, self.graph.directed, self._values, self._supports)
        self._sink(np.unique(np.concatenate([out.vertices[gone], out.others[gone]]).astype(np.int64)))
        self.effort.correction = time.perf_counter() - start
        self._rise(self._roots(out.vertices[fresh].astype(np.int64), out.others[fresh].astype(np.int64)))
        self.effort.affected = int(self._count[0])
        self.effort.computation = time.perf_counter() - start - self.effort.correction

    def _sink(self, ends: Array) -> None:
        weak = ends[self._supports[ends] < self._values[ends]]
        if not weak.size:
            return
        queue, used = self._seen[: self.graph.vertices], weak.size
        queue[:used] = weak
        self._stages[weak] = 1
        self.effort.edges_read += int(
            kernels.sink(
                queue, self._stages, used, *self._lists, self._values, self._supports, *self._noted, self._degrees
            )
        )

    def _roots(self, tails: Array, heads: Array) -> Array:
        """The ends of inserted edges that may rise by them: an edge supports the end with the smaller number."""
        first, second = self._values[tails], self._values[heads]
        return np.unique(np.concatenate([tails[first <= second], heads[second <= first]]))

    def _rise(self, roots: Array) -> None:
        while roots.size:
            risen, edges = kernels.rise(
                roots,
                *self._lists,
                self._values,
                self._supports,
                self._stages,
                self._left,
                self._seen,
                self._pile,
                *self._noted,
            )
            self.effort.edges_read += int(edges)
            roots = self._seen[:risen].astype(np.int64)

    def renumber(self, change: Change) -> None:
        super().renumber(change)
        self._supports[change.holes] = self._supports[change.movers]
