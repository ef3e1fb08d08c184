"""Monotone programs kept current: correction along parents, then only the affected vertices (Grapin, section 4).

1. On the old edges, vertices that depend on a deleted edge look for another neighbour that gives them the same value and cannot depend on
   them: one with a better value or, for components, on a higher level. Those that find none lose their value, and all that depend on
   them look in turn.
2. On the new edges, these hear again from all their in-neighbours, and inserted edges send once.
3. What improved by that is propagated: by one thread while it is little, else by the loop of every run.

Changed weights are a deletion and an insertion. A batch that only inserts has nothing to correct.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.change import Change
from isthmus.kernels import correction, skeleton
from isthmus.kernels.compiling import clock
from isthmus.kernels.packed import DELETE, REWEIGH
from isthmus.programs.declared import Monotone
from isthmus.programs.dependencies import NOBODY, STATE_BYTES, Remembered, first_values, with_room, worst
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintained import DIFFERENCE, Array, Differences, Effort, Maintained, with_spare
from isthmus.stream.reads import NEAR

NO_WEIGHTS = np.empty(0, np.int32)
NO_INITIALS = np.empty(0, np.int64)
NO_LEVELS = np.empty(0, np.uint32)
NOBODY_ACTIVE = np.empty(0, np.uint32)
FEW = 4096  # active vertices that one thread follows sooner than the loop of all threads does
FIRST = 1 << 16  # edges that one thread follows from the sources, to see whether few vertices are active at a time
TOOL_BYTES = 1 + 4 + 1 + 4 + 1 + 4 + 8  # marks, vertices without a value, orphans and their list, piles and two queues
OPPOSITE = {"out": "in", "in": "out"}


class MaintainedMonotone(Maintained):
    """Values, and what each depends on."""

    program: Monotone

    def __init__(self, program: Monotone, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        arguments = program.message.arguments
        self._by_degree = "degree" in arguments
        self.compares_whole = self._labels
        self._by_place = "vertex" in arguments or (program.initial == "vertex" and not self._labels)

    @property
    def _labels(self) -> bool:
        return getattr(self.program, "labels_are_vertices", False)

    @property
    def sides(self) -> tuple[str, ...]:
        return self.program.sides if self.graph.directed else self.program.sides[:1]

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    def needs_weights_from_0(self) -> bool:
        return self.program.weights_from_0

    # From scratch

    def begin(self) -> None:
        self._from_scratch()
        self._published = self.values[: self.graph.vertices].copy()

    def restore(self) -> None:
        self._from_scratch()
        if self._labels:  # a label may be another vertex of the same component now: all are published again by the next batch
            self._note_all()

    def _from_scratch(self) -> None:
        facts, n = self.facts(), self.graph.vertices
        self._room = with_spare(n)
        self.state, self._position = first_values(self.program, facts, self._room)
        self._silent = worst(self.program, facts)
        self._make_tools(facts)
        start = self.state.start
        if start is not None and start.dtype != np.bool_ and start.size <= FEW:
            self._marks[start] = 1
            self._propagate(start.astype(np.uint32), FIRST)
        else:
            self._go_on(start)
        self._forget_changes()

    def _make_tools(self, facts: Facts) -> None:
        room = self._room
        self._marks = np.zeros(-(-room // 8) * 8, np.uint8)
        self._lost, self._lost_count = np.empty(room, np.uint32), np.zeros(1, np.int64)
        self._orphaned, self._orphans, self._orphan_count = np.zeros(room, np.uint8), np.empty(room, np.uint32), np.zeros(1, np.int64)
        self._piles, self._soon, self._later = np.zeros(room, np.uint8), np.empty(room, np.uint32), np.empty(2 * room, np.uint32)
        weighted = self.reads_weights() and self.graph.weighted
        program = Remembered(self.program, self.state, self._position)
        self._module = skeleton.build(program.name, program.text(facts), weighted, False, program.prefetched_array, True)
        self._width = self._bucket_width(facts)
        initial = self.program.initial
        self._initial = 0 if initial == "vertex" else self.values.dtype.type(0) if self._silent is None else self._silent
        if initial != "vertex" and self._silent is None:
            self._initial = self.values.dtype.type(initial)
        self._initials = self._own_values(facts) if initial == "vertex" else NO_INITIALS

    def _own_values(self, facts: Facts) -> Array:
        """Initial values by vertex."""
        if self._labels:
            return np.arange(self._room, dtype=self.values.dtype)
        naturals = facts.naturals()
        own = np.arange(facts.vertices) if naturals is None else naturals
        return with_room(own.astype(self.values.dtype), facts.vertices, self._room)

    def _bucket_width(self, facts: Facts) -> float:
        """Vertices whose values are this near to the most urgent one go first."""
        if self._labels or not self.reads_weights():
            return 0.0
        lists = self.graph.sides["out"]
        begins, ends = lists.lists().arrays
        chosen = np.flatnonzero(ends > begins)[:: max(1, begins.size // 4096)]
        sample = lists.weights[begins[chosen]] if self.graph.weighted else NO_WEIGHTS
        return float(np.abs(sample).mean()) / 4 if sample.size else 0.0

    @property
    def values(self) -> Array:
        return self.state.arrays[0]

    @property
    def parents(self) -> Array:
        return self.state.arrays[self._position]

    # A batch

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
            adopted = self._adopted(self._orphans[:count], change)
            self._give_up(self._orphans[:count], adopted)
            self._orphan_count[0] = 0
            self._orphan_children(self._lost[done : int(self._lost_count[0])], listed)
        self._orphaned[self._lost[: int(self._lost_count[0])]] = 0

    def _orphan_children(self, rows: Array, listed: tuple[Array, ...]) -> None:
        for side in self.sides if rows.size else ():
            lists = self.lists_of(side, rows)[:3]
            found = self.in_parts(lambda a, b, lists=lists: correction.orphan_children(rows, a, b, *lists, *listed), rows.size)
            self.effort.edges_read += int(sum(found))

    def _adopted(self, orphans: Array, change: Change) -> Array:
        """Which of these orphans have found another parent."""
        adopted, looked = np.zeros(orphans.size, np.uint8), np.zeros(orphans.size, np.int64)
        if self._by_degree or not self.reads.adopts:
            return adopted
        weighted = self.reads_weights() and self.graph.weighted
        silent = (self._silent is not None, self.values.dtype.type(0 if self._silent is None else self._silent))
        common = (self.reads_weights(), *silent, self._orphaned, self.state.arrays, self.state.params, self.parents)
        for side in self.sides:
            begins, ends, _, _ = self.graph.sides[side].arrays()
            into, changes = self.graph.sides[OPPOSITE[side]].arrays(), change.into if side == "out" else change.out
            lists = (begins, ends, *into[:3], into[3] if weighted else NO_WEIGHTS, changes.vertices, changes.others, changes.actions)
            given = (*lists, *common)
            read = self.in_parts(lambda a, b, given=given: self._module.adopt(orphans, adopted, looked, a, b, *given), orphans.size)
            self.effort.edges_read += int(sum(read))
            if self.reads is not NEAR:
                self.reads.read(OPPOSITE[side], orphans[looked > 0], self.reads_weights(), looked[looked > 0])
                looked[:] = 0
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

    def _note_all(self) -> None:
        """Note all vertices as changed."""
        n = self.graph.vertices
        self.state.arrays[-2][:n] = np.arange(n)
        self.state.arrays[-3][:n] = 1
        self.state.arrays[-1][0] = n

    def _grow(self) -> None:
        """Make room for new vertices, with their initial values."""
        n, before = self.graph.vertices, self._published.size
        if n > self._room:
            self._room = n + n // 4 + 64
            arrays = [with_room(array, before, self._room) if array.size > 1 else array for array in self.state.arrays]
            changes, count = self.state.arrays[-2:]
            arrays[self._position + 1 :] = [np.zeros(self._room, np.uint8), with_room(changes, before, self._room), count]
            arrays[self._position + 1][changes[: int(count[0])]] = 1
            self.state = State(tuple(arrays), None, self.state.params, self.state.extra)
            lost, lost_count = self._lost, self._lost_count
            self._make_tools(self.facts())
            self._lost[: lost.size], self._lost_count = lost, lost_count
        if n > before:
            self.values[before:n] = self._initials[before:n] if self._initials.size else self._initial
            self.parents[before:n] = NOBODY
            if self._labels:
                self.state.arrays[1][before:n] = 0

    def _hear(self, change: Change) -> None:
        """Let vertices without a value hear from their in-neighbours, send along new edges, and propagate what improved."""
        if self.reads.resends:
            self._resend()
            return
        fresh = np.flatnonzero(change.out.actions != DELETE)
        tails, heads = change.out.vertices[fresh], change.out.others[fresh]
        weighted = self.reads_weights() and self.graph.weighted
        weights = change.out.weights[fresh] if weighted else NO_WEIGHTS
        silent = (self._silent is not None, self.values.dtype.type(0 if self._silent is None else self._silent))
        found: list[Array] = []
        lost = self._lost[: int(self._lost_count[0])]
        common = (*silent, self.state.arrays, self.state.params, self._marks)
        for side in self.sides:
            begins, ends, _, _ = self.graph.sides[side].arrays()
            ways = (tails, heads) if side == "out" else (heads, tails)
            if lost.size:
                into = self.lists_of(OPPOSITE[side], lost)
                self.effort.edges_read += int((into[1][lost] - into[0][lost]).sum())
                found += self._queued(
                    lambda a, b, q, into=into, lists=(begins, ends): self._module.pull_rows(
                        lost, a, b, *lists, *into[:3], into[3] if weighted else NO_WEIGHTS, *common, q, 0
                    ), lost.size,
                )  # fmt: skip
            if fresh.size:
                self.effort.edges_read += int(fresh.size)
                found += self._queued(
                    lambda a, b, q, ways=ways, lists=(begins, ends): self._module.relax_arcs(*ways, weights, a, b, *lists, *common, q, 0),
                    fresh.size,
                )
        if self._by_degree:
            changed = np.unique(change.out.vertices)
            chosen = changed[self._marks[changed] == 0].astype(np.uint32)
            if self._silent is not None:
                chosen = chosen[self.values[chosen] != self._silent]
            self._marks[chosen] = 1
            found.append(chosen)
        starts = np.concatenate(found) if found else np.empty(0, np.uint32)
        self._propagate(starts)

    def _resend(self) -> None:
        """Let every vertex that has a value send again, and propagate what improved, as Grapin's release does."""
        values = self.values[: self.graph.vertices]
        self._go_on(None if self._silent is None else np.flatnonzero(values != self._silent).astype(np.uint32))

    def _queued(self, work: Any, count: int) -> list[Array]:
        """Run work(first, last, queue) on parts of 0:count; returns the queues as far as they were used."""

        def part(first: int, last: int) -> Array:
            queue = np.empty(last - first, np.uint32)
            return queue[: work(first, last, queue)]

        return self.in_parts(part, count)

    def _propagate(self, starts: Array, most: int | None = None) -> None:
        """Follow the marked vertices in `starts`, and all that improve by that.

        One thread follows about `most` edges, and goes on while few vertices are active: the loop's steps would take longer.
        """
        n, weighted = self.graph.vertices, self.reads_weights() and self.graph.weighted
        most = sizes.now.settled_alone if most is None else most
        if len(self.sides) == 1 and self.reads is NEAR:
            begins, ends, targets, weights = self.graph.sides[self.sides[0]].arrays()
            while starts.size > 0:
                _, _, edges = self._module.settle(
                    0, n, starts, 0, 0, most, self.program.settles, self._width, begins, ends, targets,
                    weights if weighted else NO_WEIGHTS, self.state.arrays, self.state.params, self._marks,
                    self._piles, self._soon, self._later, np.empty(0, np.uint32), 0,
                )  # fmt: skip
                self.effort.edges_read += int(edges)
                starts = np.flatnonzero(self._marks[:n]).astype(np.uint32) if edges >= most else NOBODY_ACTIVE
                if starts.size > FEW:
                    break
                most = sizes.now.settled_alone
        if starts.size:
            self._marks[:n] = 0
            self._go_on(starts)

    def _go_on(self, starts: Array | None) -> None:
        """Let the loop of every run go on from these vertices (None: all)."""
        n = self.graph.vertices
        if not n or (starts is not None and not np.asarray(starts).size):
            return
        program = self._remembered(replace(self.state, start=starts))
        self.session.holdings.follow(self.graph.snapshot)
        run = execute(program, self.session, quiet, None, None)
        self.reads.ran(run)
        self.effort.edges_read += int(run.trace.total("active_edges"))

    def _remembered(self, state: State) -> Remembered:
        program = Remembered(self.program, state, self._position)
        program.sides = self.sides
        return program

    def runs(self) -> Program:
        self._position = 0
        return self._remembered(State((), None))

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
        for side in self.sides:
            begins, ends, targets, _ = self.lists_of(side, holes)
            for mover, hole in zip(movers.tolist(), holes.tolist(), strict=True):
                near = targets[begins[hole] : ends[hole]]
                self.parents[near[self.parents[near] == mover]] = hole

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

    def publish(self) -> tuple[Differences, ...]:
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

    def _forget_changes(self) -> None:
        _, changed, changes, count = self.state.arrays[self._position :]
        changed[changes[: int(count[0])]] = 0
        count[0] = 0

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        state = State(arrays, None, self.state.params, self.state.extra, over=True)
        columns = self.program.result(state, facts)
        return columns, self.program.summary(columns, state)
