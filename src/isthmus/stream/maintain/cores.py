"""Core numbers kept current, exactly, for any mix of inserted and deleted edges.

1. On the new edges, vertices with too little support sink, as far as needed, and others with them. What is left are the
   largest numbers up to the old ones that the new edges allow.
2. Then vertices rise, by one in every round. Only vertices joined to the end of an inserted edge, or to one that rose
   in the last round, through vertices of equal number can rise (`kernels/stream/core_changes.py`). When none rises, the
   numbers are exact: otherwise, among the vertices whose number is too small, those with the smallest could rise
   together.

Lists on disk come some at a time (`neighbours.py`): vertices that need others are postponed until their lists have
come. In memory all lists are there, and nothing is postponed.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.stream import core_changes as kernels
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Program
from isthmus.stream.maintain.counts import MaintainedCounts
from isthmus.stream.maintain.maintained import Array, Effort
from isthmus.stream.maintain.registry import maintains


@maintains(CoreNumber)
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
        self._supports[:] = 0
        for side in self.sides:
            for first, last, (begins, ends, targets, _) in self.all_pieces(side):
                given = (begins[first:last], ends[first:last], targets, first, self._values, self._supports)
                self.team.split(partial(kernels.add_supports, *given), last - first)

    def _resize(self, used: int, capacity: int) -> None:
        super()._resize(used, capacity)
        self._supports = with_room(self._supports, used, capacity)
        self._stages, self._left = np.zeros(capacity, np.uint8), np.empty(capacity, np.int64)
        self._seen, self._pile = np.empty(capacity, np.uint32), np.empty(capacity, np.uint32)
        # by core number, which is at most the number of edges.
        self._degrees = np.zeros(len(self.sides) * capacity + 1, np.int64)

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
        """Lower these vertices, if they have too little support, and all that lose support by that."""
        rows, queue = ends[self._supports[ends] < self._values[ends]], self._seen[: self.graph.vertices]
        self._stages[rows] = 1
        while rows.size:
            postponed = 0
            for some, lists in self._neighbours.batches(rows):
                state = (self._values, self._supports, self._stages, self._degrees)
                postponed, edges = kernels.sink(some, *lists, *state, queue, self._pile, postponed, *self._noted)
                self._neighbours.count_read(int(edges))
            rows = np.sort(self._pile[:postponed]).astype(np.int64)

    def _roots(self, tails: Array, heads: Array) -> Array:
        """The ends of inserted edges that may rise by them: an edge supports the end with the smaller number."""
        first, second = self._values[tails], self._values[heads]
        return np.unique(np.concatenate([tails[first <= second], heads[second <= first]]))

    def _rise(self, roots: Array) -> None:
        """Raise the vertices that can rise together from these roots by one, and go on from those that have."""
        while roots.size:
            found = self._candidates(roots[self._supports[roots] > self._values[roots]])
            risen = int(kernels.lift(self._seen, found, self._values, self._stages, *self._noted))
            roots = np.sort(self._seen[:risen]).astype(np.int64)
            for some, lists in self._neighbours.batches(roots):
                edges = kernels.support_risen(some, *lists, self._values, self._supports, self._stages)
                self._neighbours.count_read(int(edges))
            self._stages[roots] = kernels.UNSEEN

    def _candidates(self, roots: Array) -> int:
        """Find the vertices that can rise together: those in `_seen`, as far as this returns, that stay candidates."""
        rows, found = roots, int(roots.size)
        self._seen[:found], self._stages[roots], self._left[roots] = roots, kernels.CANDIDATE, -1
        state = (self._values, self._supports, self._stages, self._left, self._seen)
        while rows.size:
            postponed = 0
            for some, lists in self._neighbours.batches(rows):
                found, postponed, edges = kernels.climb(some, *lists, *state, found, self._pile, postponed)
                self._neighbours.count_read(int(edges))
            rows = np.sort(self._pile[self._pile.size - postponed :]).astype(np.int64)
        return int(found)

    def renumber(self, change: Change) -> None:
        super().renumber(change)
        self._supports[change.holes] = self._supports[change.movers]
