"""The loops of a monotone program that is kept current: which values have become wrong, and what sets them right.

`monotone.py` says when they run. Here they run on this machine, over lists where they lie;
`stream/devices/cuda_corrector.py` has them on a GPU. What is found is listed, each vertex once: orphans before the
edges change, and afterwards vertices that have improved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.stream import correction
from isthmus.stream.maintain.maintained import OPPOSITE, Array

if TYPE_CHECKING:
    from isthmus.stream.maintain.propagation import Propagating

NO_LEVELS = np.empty(0, np.uint32)
NO_WEIGHTS = np.empty(0, np.int32)


class Corrector:
    """Loops over the lists of a program, `of`, by all members of its team where there is much to do."""

    def __init__(self, of: Propagating, room: int) -> None:
        """`room`: vertices that the program's arrays have room for."""
        self._of = of
        self._orphaned, self._orphans, self._count = (
            np.zeros(room, np.uint8),
            np.empty(room, np.uint32),
            np.zeros(1, np.int64),
        )
        self._lost, self._lost_count = np.empty(room, np.uint32), np.zeros(1, np.int64)
        self._found: list[Array] = []  # vertices that have improved

    @property
    def lost(self) -> Array:
        """Vertices that have lost their value in this batch."""
        return self._lost[: int(self._lost_count[0])]

    def lose(self, vertices: Array) -> None:
        """Let these be the vertices that have lost their value."""
        self._lost[: vertices.size], self._lost_count[0] = vertices, vertices.size

    @property
    def _silent(self) -> tuple[bool, Any]:
        """Whether there is a value that is not sent, and which."""
        of = self._of
        return of.silent is not None, of.values.dtype.type(0 if of.silent is None else of.silent)

    # On the old edges

    def orphan_heads(self, tails: Array, heads: Array) -> None:
        """The heads of these arcs that depend on them become orphans."""
        listed = (self._of.parents, self._orphaned, self._orphans, self._count)
        self._of.in_parts(lambda a, b: correction.orphan_heads(tails, heads, a, b, *listed), tails.size)

    def orphan_children(self, side: str, rows: Array) -> None:
        """All vertices that depend on these become orphans."""
        of, listed = self._of, (self._of.parents, self._orphaned, self._orphans, self._count)
        for some, lists in of.pieces(side, rows):
            given = (*lists[:3], *listed)
            found = of.in_parts(
                lambda a, b, some=some, given=given: correction.orphan_children(some, a, b, *given), some.size
            )
            of.effort.edges_read += int(sum(found))

    def orphans(self) -> Array:
        """The orphans found since the last call. Where lists come from disk, in ascending order, as these will."""
        found = self._orphans[: int(self._count[0])]
        self._count[0] = 0
        if not self._of.graph.lists_are_near:
            found.sort()
        return found

    def adopted(self, orphans: Array, change: Change) -> Array:
        """Which of these orphans have found another parent."""
        of, adopted = self._of, np.zeros(orphans.size, np.uint8)
        weighted, near = of.reads_weights() and of.graph.weighted, of.graph.lists_are_near
        common = (of.reads_weights(), *self._silent, self._orphaned, of.state.arrays, of.state.params, of.parents)
        for side in of.sides:
            changes, done = change.into if side == "out" else change.out, 0
            left = slice(None) if near else np.flatnonzero(adopted == 0)
            found = adopted[left]
            for some, into in of.pieces(OPPOSITE[side], orphans[left]):
                lists = (*of.ends_of(side), *into[:3], into[3] if weighted else NO_WEIGHTS)
                given = (
                    found[done : done + some.size],
                    *lists,
                    changes.vertices,
                    changes.others,
                    changes.actions,
                    *common,
                )
                read = of.in_parts(lambda a, b, some=some, given=given: of.module.adopt(some, a, b, *given), some.size)
                # They come whole.
                of.effort.edges_read += int(sum(read)) if near else int((into[1][some] - into[0][some]).sum())
                done += some.size
            adopted[left] = found
        return adopted

    def give_up(self, orphans: Array, adopted: Array) -> Array:
        """Adopted orphans keep their value, the others lose it; returns the latter."""
        of, done = self._of, int(self._lost_count[0])
        state = (
            of.values,
            NO_LEVELS if of.levels is None else of.levels,
            of.parents,
            *of.changes,
            of.initial,
            of.initials,
        )
        lost = (self._lost, self._lost_count)
        of.in_parts(
            lambda a, b: correction.give_up(orphans, adopted, a, b, self._orphaned, *state, *lost), orphans.size
        )
        return self._lost[done : int(self._lost_count[0])]

    def end(self) -> None:
        """No vertex is an orphan any more."""
        self._orphaned[self.lost] = 0

    # On the new edges

    def hear(self, side: str, rows: Array) -> None:
        """Let these vertices hear from all their neighbours against a side that is followed."""
        of, weighted = self._of, self._of.reads_weights() and self._of.graph.weighted
        common = (*self._silent, of.state.arrays, of.state.params, of.marks)
        for some, into in of.pieces(OPPOSITE[side], rows):
            of.effort.edges_read += int((into[1][some] - into[0][some]).sum())
            given = (*of.ends_of(side), *into[:3], into[3] if weighted else NO_WEIGHTS, *common)
            self._found += self._queued(
                lambda a, b, q, some=some, given=given: of.module.pull_rows(some, a, b, *given, q, 0), some.size
            )

    def send(self, side: str, tails: Array, heads: Array, weights: Array) -> None:
        """Send along these arcs of a side."""
        of = self._of
        given = (*of.ends_of(side), *self._silent, of.state.arrays, of.state.params, of.marks)
        self._found += self._queued(
            lambda a, b, q: of.module.relax_arcs(tails, heads, weights, a, b, *given, q, 0), tails.size
        )

    def improved(self) -> Array:
        """The vertices that have improved since the last call; they are marked."""
        found, self._found = self._found, []
        return np.concatenate(found) if found else np.empty(0, np.uint32)

    def _queued(self, work: Any, count: int) -> list[Array]:
        """Run work(first, last, queue) on parts of 0:count; returns the queues as far as they were used."""

        def part(first: int, last: int) -> Array:
            queue = np.empty(last - first, np.uint32)
            return queue[: work(first, last, queue)]

        return self._of.in_parts(part, count)
