"""Monotone programs kept current: correction along parents, then only the affected vertices (Grapin, section 4).

1. On the old edges, vertices that depend on a deleted edge look for another neighbour that gives them the same value and cannot depend on
   them: one with a better value or, for components, on a higher level. Those that find none lose their value, and all that depend on
   them look in turn.
2. On the new edges, these hear again from all their in-neighbours, and inserted edges send once.
3. What improved by that is propagated (`stream/propagation.py`).

Changed weights are a deletion and an insertion. A batch that only inserts has nothing to correct.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.change import Change
from isthmus.kernels import correction
from isthmus.kernels.compiling import clock
from isthmus.kernels.packed import DELETE, REWEIGH
from isthmus.programs.dependencies import STATE_BYTES, with_room
from isthmus.programs.program import Facts, Program, State
from isthmus.stream.maintained import DIFFERENCE, OPPOSITE, Array, Differences, Effort, with_spare
from isthmus.stream.propagation import NO_WEIGHTS, Propagating

NO_LEVELS = np.empty(0, np.uint32)
TOOL_BYTES = 1 + 4 + 1 + 4 + 1 + 4 + 8  # marks, vertices without a value, orphans and their list, piles and two queues


class MaintainedMonotone(Propagating):
    """Values, corrected along parents before edges are gone."""

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        self.refuse_removal(self.program.sources, change)

    def correct(self, change: Change) -> None:
        start = clock()
        self.effort = Effort()
        self._lost_count[0] = 0
        self._restart = self.reads.recomputes or (self._by_place and bool(change.added.size or change.removed.size))
        if not self._restart:
            self._cut_off(change)
        self.effort.correction = clock() - start

    def _cut_off(self, change: Change) -> None:
        """Vertices that depend on an edge that will be gone look for another parent, or lose their value."""
        actions, parents = change.out.actions, self.parents
        gone = np.flatnonzero((actions == DELETE) | (actions == REWEIGH) if self.reads_weights() else actions == DELETE)
        tails, heads = change.out.vertices[gone], change.out.others[gone]
        listed = (parents, self._orphaned, self._orphans, self._orphan_count)
        self._orphan_count[0] = 0
        for side in self.sides if gone.size else ():
            ends = (tails, heads) if side == "out" else (heads, tails)
            self.in_parts(lambda a, b, ends=ends: correction.orphan_heads(*ends, a, b, *listed), gone.size)
        if self._by_degree:  # all messages of a vertex change with its number of edges
            changed = np.unique(change.out.vertices)
            self._orphan_children(changed[changed < self.graph.vertices], listed)
        while count := int(self._orphan_count[0]):
            done = int(self._lost_count[0])
            if not self.graph.lists_are_near:
                self._orphans[:count].sort()  # as their lists will come
            adopted = self._adopted(self._orphans[:count], change)
            self._give_up(self._orphans[:count], adopted)
            self._orphan_count[0] = 0
            self._orphan_children(self._lost[done : int(self._lost_count[0])], listed)
        self._orphaned[self._lost[: int(self._lost_count[0])]] = 0

    def _orphan_children(self, rows: Array, listed: tuple[Array, ...]) -> None:
        for side in self.sides if rows.size else ():
            for some, lists in self.pieces(side, rows):
                given = (*lists[:3], *listed)
                found = self.in_parts(lambda a, b, some=some, given=given: correction.orphan_children(some, a, b, *given), some.size)
                self.effort.edges_read += int(sum(found))

    def _adopted(self, orphans: Array, change: Change) -> Array:
        """Which of these orphans have found another parent."""
        adopted = np.zeros(orphans.size, np.uint8)
        if self._by_degree or not self.reads.adopts:
            return adopted
        weighted = self.reads_weights() and self.graph.weighted
        silent = (self._silent is not None, self.values.dtype.type(0 if self._silent is None else self._silent))
        common = (self.reads_weights(), *silent, self._orphaned, self.state.arrays, self.state.params, self.parents)
        near = self.graph.lists_are_near
        for side in self.sides:
            changes, done = change.into if side == "out" else change.out, 0
            left = slice(None) if near else np.flatnonzero(adopted == 0)
            found = adopted[left]
            for some, into in self.pieces(OPPOSITE[side], orphans[left]):
                lists = (*self.ends_of(side), *into[:3], into[3] if weighted else NO_WEIGHTS)
                given = (found[done : done + some.size], *lists, changes.vertices, changes.others, changes.actions, *common)
                read = self.in_parts(lambda a, b, some=some, given=given: self._module.adopt(some, a, b, *given), some.size)
                self.effort.edges_read += int(sum(read)) if near else int((into[1][some] - into[0][some]).sum())  # they come whole
                done += some.size
            adopted[left] = found
        return adopted

    def _give_up(self, orphans: Array, adopted: Array) -> None:
        levels = self.state.arrays[1] if self._labels else NO_LEVELS
        given = (self._initial, self._initials, self._lost, self._lost_count)
        state = (self.values, levels, self.parents, *self.state.arrays[self._position + 1 :])
        self.in_parts(lambda a, b: correction.give_up(orphans, adopted, a, b, self._orphaned, *state, *given), orphans.size)

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
        for array in (*self.state.arrays[: self._position], self.parents):
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
        """Also differences of this batch and the last, the published values, and those that a run from scratch begins with."""
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
            fresh[self._published.size :] = self._initials[self._published.size : n] if self._initials.size else self._initial
            self._published = fresh
        vertices, old, new = np.empty(count, np.uint32), np.empty(count, self.values.dtype), np.empty(count, self.values.dtype)
        changed, changes = self.state.arrays[self._position + 1], self.state.arrays[self._position + 2]
        found = correction.take_changes(changes, count, changed, self.values, self._published, vertices, old, new)
        self.state.arrays[-1][0] = 0
        return (Differences(vertices[:found], old[:found], new[:found]),)

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        state = State(arrays, None, self.state.params, self.state.extra, over=True)
        columns = self.program.result(state, facts)
        return columns, self.program.summary(columns, state)
