"""Monotone programs kept current: correction along parents, then only the affected vertices (Grapin, section 4).

1. On the old edges, vertices that depend on a deleted edge look for another neighbour that gives them the same value
   and cannot depend on them: one with a better value or, for components, on a higher level. Those that find none lose
   their value, and all that depend on them look in turn.
2. On the new edges, all in-neighbours send to these vertices again, and inserted edges send once.
3. Improvements are followed: by one thread while they are few and edges are near, else by the loop of every run.

Changed weights are a deletion and an insertion. A batch that only inserts has nothing to correct. The loops that read
lists are in `correction_loops.py`, the arrays in `monotone_state.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.devices.correction_loops import NO_VERTICES, NO_WEIGHTS
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, REWEIGH
from isthmus.kernels.compile.compile_clock import clock
from isthmus.programs.declaration import Monotone
from isthmus.programs.dependencies import STATE_BYTES, has_levels, with_room
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import DIFFERENCE, Array, Differences, Effort, Maintained, with_spare
from isthmus.stream.maintain.monotone_state import MonotoneState, memoised
from isthmus.stream.maintain.registry import maintains

LOOP_BYTES = 1 + 4 + 1 + 4 + 1 + 4 + 8  # marks, vertices without a value, orphans and their list, piles and two queues
FEW = 4096  # active vertices that one thread follows sooner than the loop of all threads does
FIRST = 1 << 16  # edges that one thread follows from the sources, to see whether few vertices are active at a time


@maintains(Monotone)
class MaintainedMonotone(Maintained):
    """Values, and what each depends on."""

    program: Monotone

    def __init__(self, program: Monotone, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        arguments = program.message.arguments
        self._has_labels = self.compares_whole = has_levels(program)
        self._by_degree = "degree" in arguments
        self._by_place = "vertex" in arguments or (program.initial == "vertex" and not self._has_labels)

    @property
    def sides(self) -> tuple[str, ...]:
        return self.program.sides if self.graph.directed else self.program.sides[:1]

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    def needs_weights_from_0(self) -> bool:
        return self.program.weights_from_0

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        self.refuse_removal(self.program.sources, change)

    # From scratch

    def begin(self) -> None:
        self._from_scratch()
        self._published = self.state.values[: self.graph.vertices].copy()

    def restore(self) -> None:
        self._from_scratch()
        # a label may be another vertex of the same component now: all are published again by the next batch.
        if self._has_labels:
            self.state.note_all(self.graph.vertices)

    def _from_scratch(self) -> None:
        facts = self.facts()
        self.state = MonotoneState(self.program, facts)
        self._place(facts)
        start = self.state.start
        if start is not None and start.dtype != np.bool_ and start.size <= FEW:
            self.loops.mark(start)
            self._propagate(start.astype(np.uint32), FIRST)
        else:
            self._run(start)
        self.state.forget_changes()

    def _place(self, facts: Facts) -> None:
        """Let the state lie where it can stay from batch to batch, with the loops that work on it there."""
        self.state.place(lambda arrays: self.residency.place_state(self, arrays))
        self.loops = self.residency.correction_loops(self, self.state, facts)

    # On the old edges

    def correct(self, change: Change) -> None:
        start = clock()
        self.effort, self._lost = Effort(), NO_VERTICES
        renamed = self._by_place and bool(change.added.size or change.removed.size)
        self._restart = self.residency.recomputes or renamed
        if not self._restart:
            self._cut_off(change)
        self.effort.correction = clock() - start

    def _cut_off(self, change: Change) -> None:
        """Vertices that depend on an edge that will be gone look for another parent, or lose their value."""
        actions = change.out.actions
        gone = np.flatnonzero((actions == DELETE) | (actions == REWEIGH) if self.reads_weights() else actions == DELETE)
        tails, heads = change.out.vertices[gone], change.out.others[gone]
        for side in self.sides if gone.size else ():
            self.loops.orphan_heads(*((tails, heads) if side == "out" else (heads, tails)))
        if self._by_degree:  # all messages of a vertex change with its number of edges
            changed = np.unique(change.out.vertices)
            self._orphan_children(changed[changed < self.graph.vertices])
        lost: list[Array] = []
        while (orphans := self.loops.take_orphans()).size:
            lost.append(self.loops.reset(orphans, self._adopted(orphans, change)))
            self._orphan_children(lost[-1])
        self._lost = np.concatenate(lost) if lost else NO_VERTICES  # vertices without a value
        self.loops.end_correction(self._lost)

    def _adopted(self, orphans: Array, change: Change) -> Array:
        """Which of these orphans have found another parent."""
        if self._by_degree or not self.residency.adopts:
            return np.zeros(orphans.size, np.uint8)
        adopted, edges = self.loops.adopted(orphans, change)
        self.effort.edges_read += edges
        return adopted

    def _orphan_children(self, rows: Array) -> None:
        for side in self.sides if rows.size else ():
            self.effort.edges_read += self.loops.orphan_children(side, rows)

    # On the new edges

    def compute(self, change: Change) -> None:
        start = clock()
        self._grow()
        if self._restart:
            self._start_over()
        elif self.residency.resends:
            self._resend()
        else:
            self._propagate(self._improve(change))
        self.effort.affected = self.state.changed_count
        self.effort.computation = clock() - start

    def _grow(self) -> None:
        """Have entries for new vertices, with their initial values."""
        n, before = self.graph.vertices, self._published.size
        if n > self.state.capacity:
            facts = self.facts()
            self.state.enlarge(facts, before)
            self._place(facts)
        if n > before:
            self.state.initialise(before, n)

    def _start_over(self) -> None:
        """From scratch: values name places in natural order, and these have changed."""
        self._from_scratch()  # readers still see what was published
        self.state.note_all(self.graph.vertices)
        self.effort.edges_read += self.graph.arcs

    def _resend(self) -> None:
        """Let every vertex that has a value send again, as Grapin's release does."""
        values, silent = self.state.values[: self.graph.vertices], self.state.silent
        self._run(None if silent is None else np.flatnonzero(values != silent).astype(np.uint32))

    def _improve(self, change: Change) -> Array:
        """Send to vertices without a value, and along new edges; returns the vertices that improved."""
        fresh = np.flatnonzero(change.out.actions != DELETE)
        tails, heads = change.out.vertices[fresh], change.out.others[fresh]
        weights = change.out.weights[fresh] if self.reads_weights() and self.graph.weighted else NO_WEIGHTS
        for side in self.sides:
            if self._lost.size:
                self.effort.edges_read += self.loops.pull(side, self._lost)
            if fresh.size:
                self.effort.edges_read += int(fresh.size)
                self.loops.relax(side, *((tails, heads) if side == "out" else (heads, tails)), weights)
        improved = self.loops.improved()
        if self._by_degree:
            changed = np.unique(change.out.vertices).astype(np.uint32)
            improved = np.concatenate([improved, self.loops.mark(self.state.sending(changed))])
        return improved

    @property
    def _settles(self) -> bool:
        """Whether one thread may follow improvements, without the loop of every run."""
        return self.residency.settles and self.graph.lists_are_near and len(self.sides) == 1

    def _propagate(self, starts: Array, most: int | None = None) -> None:
        """Follow the marked vertices in `starts`, and all that improve by that.

        One thread follows about `most` edges, and goes on while few vertices are active: the loop's steps would take
        longer.
        """
        most = sizes.now.settled_alone if most is None else most
        while starts.size and self._settles:
            edges, starts = self.loops.settle(starts, most)
            self.effort.edges_read += edges
            if starts.size > FEW:
                break
            most = sizes.now.settled_alone
        if starts.size:
            self.loops.unmark_all()
            self._run(starts)

    def _run(self, starts: Array | None) -> None:
        """Let the loop of every run go on from these vertices (None: all)."""
        if not self.graph.vertices or (starts is not None and not np.asarray(starts).size):
            return
        self.session.near_memory.follow(self.graph.snapshot)
        run = execute(self.state.memoised(self.sides, starts), self.session, quiet, None, None)
        self.residency.ran(run)
        self.effort.edges_read += int(run.trace.total("active_edges"))

    def runs(self) -> Program:
        return memoised(self.program, self.sides, State((), None), 0)

    def running(self) -> Program:
        return self.runs()

    def near_bytes(self, vertices: int) -> int:
        """Also differences of this batch and the last, the published values, and those that a run from scratch begins
        with.
        """
        own = 8 if self.program.initial == "vertex" else 0
        arrays = 8 + (4 if self._has_labels else 0) + own + STATE_BYTES + LOOP_BYTES
        return arrays * with_spare(vertices) + vertices * (2 * DIFFERENCE + 8 + 8 + own)

    # Results

    def renumber(self, change: Change) -> None:
        if self._by_place:
            self.begin()
            return
        n = self.graph.vertices
        self.state.renumber(change, n)
        self._rename_parents(change.movers, change.holes)
        self._published = self.state.values[:n].copy()
        self.state.forget_changes()

    def _rename_parents(self, movers: Array, holes: Array) -> None:
        """The children of a vertex that has moved are among its neighbours."""
        moved, parents = dict(zip(holes.tolist(), movers.tolist(), strict=True)), self.state.parents
        for side in self.sides:
            for some, (begins, ends, targets, _) in self.pieces(side, holes):
                for hole in some.tolist():
                    near = targets[begins[hole] : ends[hole]]
                    parents[near[parents[near] == moved[hole]]] = hole

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def unpublished(self) -> tuple[Differences, ...]:
        n, before = self.graph.vertices, self._published.size
        if n > before:
            self._published = with_room(self._published, before, n)
            self._published[before:] = self.state.initial_values(before, n)
        return (self.state.take_changes(self._published),)

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        return self.state.answer(arrays, facts)
