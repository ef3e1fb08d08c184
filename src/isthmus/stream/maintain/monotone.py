"""Monotone programs kept current: correction along parents, then only the affected vertices (Grapin, section 4).

1. On the old edges, vertices that depend on a deleted edge look for another neighbour that gives them the same value
   and cannot depend on them: one with a better value or, for components, on a higher level. Those that find none lose
   their value, and all that depend on them look in turn.
2. On the new edges, these hear again from all their in-neighbours, and inserted edges send once.
3. What improved by that is propagated (`stream/maintain/propagation.py`).

Changed weights are a deletion and an insertion. A batch that only inserts has nothing to correct.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, REWEIGH
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.stream import correction
from isthmus.programs.dependencies import STATE_BYTES, with_room
from isthmus.programs.program import Facts, Program
from isthmus.stream.maintain.maintained import DIFFERENCE, Array, Differences, Effort, with_spare
from isthmus.stream.maintain.propagation import NOBODY_ACTIVE, Propagating

TOOL_BYTES = 1 + 4 + 1 + 4 + 1 + 4 + 8  # marks, vertices without a value, orphans and their list, piles and two queues


class MaintainedMonotone(Propagating):
    """Values, corrected along parents before edges are gone."""

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        self.refuse_removal(self.program.sources, change)

    def correct(self, change: Change) -> None:
        start = clock()
        self.effort = Effort()
        self.corrector.lose(NOBODY_ACTIVE)
        self._restart = self.reads.recomputes or (self._by_place and bool(change.added.size or change.removed.size))
        if not self._restart:
            self._cut_off(change)
        self.effort.correction = clock() - start

    def _cut_off(self, change: Change) -> None:
        """Vertices that depend on an edge that will be gone look for another parent, or lose their value."""
        actions, corrector = change.out.actions, self.corrector
        gone = np.flatnonzero((actions == DELETE) | (actions == REWEIGH) if self.reads_weights() else actions == DELETE)
        tails, heads = change.out.vertices[gone], change.out.others[gone]
        for side in self.sides if gone.size else ():
            corrector.orphan_heads(*((tails, heads) if side == "out" else (heads, tails)))
        if self._by_degree:  # all messages of a vertex change with its number of edges
            changed = np.unique(change.out.vertices)
            self._orphan_children(changed[changed < self.graph.vertices])
        while (orphans := corrector.orphans()).size:
            adopts = self.reads.adopts and not self._by_degree
            adopted = corrector.adopted(orphans, change) if adopts else np.zeros(orphans.size, np.uint8)
            self._orphan_children(corrector.give_up(orphans, adopted))
        corrector.end()

    def _orphan_children(self, rows: Array) -> None:
        for side in self.sides if rows.size else ():
            self.corrector.orphan_children(side, rows)

    def compute(self, change: Change) -> None:
        start = clock()
        self._grow()
        if self._restart:
            self._start_over()
        else:
            self._hear(change)
        self.effort.affected = int(self.state.arrays[-1][0])
        self.effort.computation = clock() - start

    def _start_over(self) -> None:
        """From scratch: values name places in natural order, and these have changed."""
        self._from_scratch()  # readers still see what was published
        self._note_all()
        self.effort.edges_read += self.graph.arcs

    def renumber(self, change: Change) -> None:
        movers, holes, n = change.movers, change.holes, self.graph.vertices
        if self._by_place:
            self.begin()
            return
        if self._labels and movers.size:
            self._rename_labels(movers, holes, n + change.removed.size)
        for array in (*self.state.arrays[: self.position], self.parents):
            array[holes] = array[movers]
        self._rename_parents(movers, holes)
        self.values[n : n + change.removed.size] = 0
        self._published = self.values[:n].copy()
        self._forget_changes()

    def _rename_labels(self, movers: Array, holes: Array, count: int) -> None:
        to = np.arange(self._room, dtype=self.values.dtype)
        to[movers] = holes
        self.values[:count] = to[self.values[:count]]

    def _rename_parents(self, movers: Array, holes: Array) -> None:
        """The children of a vertex that has moved are among its neighbours."""
        moved = dict(zip(holes.tolist(), movers.tolist(), strict=True))
        for side in self.sides:
            for some, (begins, ends, targets, _) in self.pieces(side, holes):
                for hole in some.tolist():
                    near = targets[begins[hole] : ends[hole]]
                    self.parents[near[self.parents[near] == moved[hole]]] = hole

    # Results

    def near_bytes(self, vertices: int) -> int:
        """Also differences of this batch and the last, the published values, and those that a run from scratch begins
        with.
        """
        own = 8 if self.program.initial == "vertex" else 0
        arrays = 8 + (4 if self._labels else 0) + own + STATE_BYTES + TOOL_BYTES
        return arrays * with_spare(vertices) + vertices * (2 * DIFFERENCE + 8 + 8 + own)

    def running(self) -> Program:
        return self.runs()

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def unpublished(self) -> tuple[Differences, ...]:
        n, count = self.graph.vertices, int(self.state.arrays[-1][0])
        if n > self._published.size:
            fresh = with_room(self._published, self._published.size, n)
            fresh[self._published.size :] = (
                self.initials[self._published.size : n] if self.initials.size else self.initial
            )
            self._published = fresh
        vertices, old, new = (
            np.empty(count, np.uint32),
            np.empty(count, self.values.dtype),
            np.empty(count, self.values.dtype),
        )
        changed, changes = self.state.arrays[self.position + 1], self.state.arrays[self.position + 2]
        found = correction.take_changes(changes, count, changed, self.values, self._published, vertices, old, new)
        self.state.arrays[-1][0] = 0
        return (Differences(vertices[:found], old[:found], new[:found]),)

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        state = self.state.like(arrays)
        state.over = True
        columns = self.program.result(state, facts)
        return columns, self.program.summary(columns, state)
