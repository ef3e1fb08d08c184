"""Triangle counts kept current: triangles of deleted edges are subtracted on the old edges, those of inserted ones
added on the new.

Directions do not matter: two vertices are joined while there is an edge in either direction. A triangle with several
changed edges counts at one of them (`kernels/stream/triangle_joins.py`). Of the two ends of an edge, the neighbours of
the one with more edges are marked, once for all its changed edges. Lists on disk come for some changed edges at a time
(`neighbours.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.stream import triangle_joins
from isthmus.programs.algorithms.triangle_count import TriangleCount
from isthmus.programs.program import Program
from isthmus.stream.maintain.counts import MaintainedCounts
from isthmus.stream.maintain.maintained import Array, Effort
from isthmus.stream.maintain.neighbours import BothSides
from isthmus.stream.maintain.registry import maintains

LOW = 0xFFFFFFFF  # the half of a pair's key that holds its larger vertex
PIECES = 16  # pieces of work per thread


@maintains(TriangleCount)
class MaintainedTriangles(MaintainedCounts):
    """How many triangles each vertex is in."""

    @property
    def more_bytes(self) -> int:
        """A mark, and one for each member of the team."""
        return 1 + self.team.size

    def _from_scratch(self) -> Program:
        return TriangleCount(self.graph.directed)

    def _resize(self, used: int, capacity: int) -> None:
        super()._resize(used, capacity)
        self._touched = np.zeros(capacity, np.uint8)
        self._marks = [np.empty(0, np.uint8)] * self.team.size  # by member

    def correct(self, change: Change) -> None:
        start = time.perf_counter()
        self.effort = Effort()
        parted, self._joined = self._pairs(change)
        self._count_triangles(parted, -1)
        self.effort.correction = time.perf_counter() - start

    def compute(self, change: Change) -> None:
        start = time.perf_counter()
        self._grow()
        self._count_triangles(self._joined, 1)
        self.effort.affected = int(self._count[0])
        self.effort.computation = time.perf_counter() - start

    def _pairs(self, change: Change) -> tuple[Array, Array]:
        """The pairs of vertices that are joined only before the change, and those joined only after it: their keys,
        sorted.
        """
        out = change.out
        real = (out.vertices != out.others) & ((out.actions == INSERT) | (out.actions == DELETE))
        tails, heads, inserted = (
            out.vertices[real].astype(np.int64),
            out.others[real].astype(np.int64),
            out.actions[real] == INSERT,
        )
        keys = np.minimum(tails, heads) << 32 | np.maximum(tails, heads)
        if not self.graph.directed:
            return np.unique(keys[~inserted]), np.unique(keys[inserted])
        back = self.graph.joined(heads, tails)  # whether there is an edge in the other direction, before and after
        there = ~inserted | back
        arcs, opposite = tails << 32 | heads, heads << 32 | tails  # the first in ascending order
        at = np.minimum(np.searchsorted(arcs, opposite), max(arcs.size - 1, 0))
        changes = arcs[at] == opposite if arcs.size else np.empty(0, np.bool_)
        stays = inserted | np.where(changes, inserted[at] if arcs.size else back, back)
        return np.unique(keys[there & ~stays]), np.unique(keys[stays & ~there])

    def _count_triangles(self, keys: Array, sign: int) -> None:
        """Add `sign` for every triangle of these pairs, on the edges as they are now."""
        if not keys.size:
            return
        ends = np.stack([keys >> 32, keys & LOW])
        degrees = self._neighbours.degrees(ends)
        swap = degrees[0] < degrees[1]
        firsts, seconds = np.where(swap, ends[1], ends[0]), np.where(swap, ends[0], ends[1])
        order = np.argsort(firsts, kind="stable")
        firsts, seconds = firsts[order], seconds[order]
        self._touched[ends] = 1
        for some, lists in self._neighbours.pair_batches(firsts, seconds):
            self._neighbours.count_read(self._count_in(firsts[some], seconds[some], keys, sign, lists))
        self._touched[ends] = 0

    def _count_in(self, firsts: Array, seconds: Array, keys: Array, sign: int, lists: BothSides) -> int:
        """Add `sign` for every triangle of these pairs, sorted by their first ends; returns the edges read."""
        cuts = np.concatenate([[0], np.flatnonzero(firsts[1:] != firsts[:-1]) + 1, [firsts.size]])
        given, noted = (firsts, seconds, cuts), (self._values, *self._noted)

        def part(member: int, begin: int, end: int) -> int:
            if self._marks[member].size < self._values.size:
                self._marks[member] = np.zeros(self._values.size, np.uint8)
            return int(
                triangle_joins.count_joined(
                    *given, begin, end, keys, self._touched, sign, *lists, self._marks[member], *noted
                )
            )

        return self._shared(part, cuts.size - 1, firsts.size)

    def _shared(self, part: Callable[[int, int, int], int], groups: int, pairs: int) -> int:
        """The sum of part(member, begin, end) over pieces of all groups."""
        if pairs <= sizes.now.few_changes or self.team.size == 1:
            return part(0, 0, groups)
        cuts = np.linspace(0, groups, PIECES * self.team.size + 1).astype(np.int64).tolist()
        sums = [0] * self.team.size

        def work(member: int, k: int) -> None:
            sums[member] += part(member, cuts[k], cuts[k + 1])

        self.team.share(work, len(cuts) - 1)
        return sum(sums)
