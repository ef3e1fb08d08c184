"""The values of a monotone program, what each depends on, and how improvements spread: from scratch, and after a batch.

What improves is followed by one thread while it is little and edges are near, else by the loop of every run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.change import Change
from isthmus.kernels import skeleton
from isthmus.kernels.packed import DELETE
from isthmus.programs.declared import Monotone
from isthmus.programs.dependencies import NOBODY, Remembered, first_values, with_room, worst
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintained import OPPOSITE, Array, Maintained, with_spare
from isthmus.stream.reads import NEAR

NO_WEIGHTS = np.empty(0, np.int32)
NO_INITIALS = np.empty(0, np.int64)
NOBODY_ACTIVE = np.empty(0, np.uint32)
FEW = 4096  # active vertices that one thread follows sooner than the loop of all threads does
FIRST = 1 << 16  # edges that one thread follows from the sources, to see whether few vertices are active at a time


class Propagating(Maintained):
    """Values, and what each depends on, with room for new vertices."""

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
        if self._labels or not self.reads_weights() or not self._follows_alone:
            return 0.0
        lists = self.graph.sides["out"]
        begins, ends = lists.lists().arrays
        chosen = np.flatnonzero(ends > begins)[:: max(1, begins.size // 4096)]
        sample = lists.weights[begins[chosen]] if self.graph.weighted else NO_WEIGHTS
        return float(np.abs(sample).mean()) / 4 if sample.size else 0.0

    @property
    def _follows_alone(self) -> bool:
        """Whether one thread may follow what improves, without the loop of every run."""
        return len(self.sides) == 1 and self.reads is NEAR and self.graph.lists_are_near

    @property
    def values(self) -> Array:
        return self.state.arrays[0]

    @property
    def parents(self) -> Array:
        return self.state.arrays[self._position]

    # After a batch

    def _note_all(self) -> None:
        """Note all vertices as changed."""
        n = self.graph.vertices
        self.state.arrays[-2][:n] = np.arange(n)
        self.state.arrays[-3][:n] = 1
        self.state.arrays[-1][0] = n

    def _forget_changes(self) -> None:
        _, changed, changes, count = self.state.arrays[self._position :]
        changed[changes[: int(count[0])]] = 0
        count[0] = 0

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
            lists, ways = self.ends_of(side), (tails, heads) if side == "out" else (heads, tails)
            for some, into in self.pieces(OPPOSITE[side], lost) if lost.size else ():
                self.effort.edges_read += int((into[1][some] - into[0][some]).sum())
                given = (*lists, *into[:3], into[3] if weighted else NO_WEIGHTS, *common)
                found += self._queued(
                    lambda a, b, q, some=some, given=given: self._module.pull_rows(some, a, b, *given, q, 0), some.size
                )
            if fresh.size:
                self.effort.edges_read += int(fresh.size)
                found += self._queued(
                    lambda a, b, q, ways=ways, lists=lists: self._module.relax_arcs(*ways, weights, a, b, *lists, *common, q, 0), fresh.size
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
        if self._follows_alone:
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
