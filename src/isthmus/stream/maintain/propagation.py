"""The values of a monotone program, what each depends on, and how improvements spread: from scratch, and after a batch.

What improves is followed by one thread while it is little and edges are near, else by the loop of every run.
"""

from __future__ import annotations

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE
from isthmus.kernels.loops import skeleton
from isthmus.programs.declaration import Monotone
from isthmus.programs.dependencies import NOBODY, Memoised, first_values, with_room, worst
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.devices.cuda_corrector import CudaCorrector
from isthmus.stream.devices.cuda_reads import CudaReads
from isthmus.stream.devices.reads import NEAR
from isthmus.stream.maintain.corrector import NO_WEIGHTS, Corrector
from isthmus.stream.maintain.maintained import Array, Maintained, with_spare

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
        # a label may be another vertex of the same component now: all are published again by the next batch.
        if self._labels:
            self._note_all()

    def _from_scratch(self) -> None:
        facts, n = self.facts(), self.graph.vertices
        self._room = with_spare(n)
        self.state, self.position = first_values(self.program, facts, self._room)
        self._lodge()
        self.silent = worst(self.program, facts)
        self._make_tools(facts)
        start = self.state.start
        if start is not None and start.dtype != np.bool_ and start.size <= FEW:
            self.marks[start] = 1
            self._propagate(start.astype(np.uint32), FIRST)
        else:
            self._go_on(start)
        self._forget_changes()

    def _make_tools(self, facts: Facts) -> None:
        room = self._room
        self.marks = np.zeros(-(-room // 8) * 8, np.uint8)
        self._piles, self._soon, self._later = (
            np.zeros(room, np.uint8),
            np.empty(room, np.uint32),
            np.empty(2 * room, np.uint32),
        )
        weighted = self.reads_weights() and self.graph.weighted
        program = Memoised(self.program, self.state, self.position)
        self.module = skeleton.build(program.name, program.text(facts), weighted, False, program.prefetched_array, True)
        self._width = self._bucket_width(facts)
        initial = self.program.initial
        self.initial = 0 if initial == "vertex" else self.values.dtype.type(0) if self.silent is None else self.silent
        if initial != "vertex" and self.silent is None:
            self.initial = self.values.dtype.type(initial)
        self.initials = self._own_values(facts) if initial == "vertex" else NO_INITIALS
        self.corrector = CudaCorrector(self, facts) if isinstance(self.reads, CudaReads) else Corrector(self, room)

    def _lodge(self) -> None:
        """Let the state's arrays lie where they can stay from batch to batch."""
        self.state.arrays = self.reads.place_state(self, self.state.arrays)

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
        return self.state.arrays[self.position]

    @property
    def levels(self) -> Array | None:
        """Of programs whose values name vertices: how far each vertex is from the one it names, along parents."""
        return self.state.arrays[1] if self._labels else None

    @property
    def changes(self) -> tuple[Array, Array, Array]:
        """A byte for each vertex that has changed, the list of these, and its length."""
        changed, changes, count = self.state.arrays[self.position + 1 :]
        return changed, changes, count

    # After a batch

    def _note_all(self) -> None:
        """Note all vertices as changed."""
        n = self.graph.vertices
        self.state.arrays[-2][:n] = np.arange(n)
        self.state.arrays[-3][:n] = 1
        self.state.arrays[-1][0] = n

    def _forget_changes(self) -> None:
        _, changed, changes, count = self.state.arrays[self.position :]
        changed[changes[: int(count[0])]] = 0
        count[0] = 0

    def _grow(self) -> None:
        """Make room for new vertices, with their initial values."""
        n, before = self.graph.vertices, self._published.size
        if n > self._room:
            self._room = n + n // 4 + 64
            arrays = [with_room(array, before, self._room) if array.size > 1 else array for array in self.state.arrays]
            changes, count = self.state.arrays[-2:]
            arrays[self.position + 1 :] = [
                np.zeros(self._room, np.uint8),
                with_room(changes, before, self._room),
                count,
            ]
            arrays[self.position + 1][changes[: int(count[0])]] = 1
            self.state = self.state.like(tuple(arrays))
            self._lodge()
            lost = self.corrector.lost
            self._make_tools(self.facts())
            self.corrector.lose(lost)
        if n > before:
            self.values[before:n] = self.initials[before:n] if self.initials.size else self.initial
            self.parents[before:n] = NOBODY
            if self._labels:
                self.state.arrays[1][before:n] = 0

    def _hear(self, change: Change) -> None:
        """Let vertices without a value hear from their in-neighbours, send along new edges, and propagate what
        improved.
        """
        if self.reads.resends:
            self._resend()
            return
        fresh = np.flatnonzero(change.out.actions != DELETE)
        tails, heads = change.out.vertices[fresh], change.out.others[fresh]
        weighted = self.reads_weights() and self.graph.weighted
        weights = change.out.weights[fresh] if weighted else NO_WEIGHTS
        for side in self.sides:
            if self.corrector.lost.size:
                self.corrector.hear(side, self.corrector.lost)
            if fresh.size:
                self.effort.edges_read += int(fresh.size)
                self.corrector.send(side, *((tails, heads) if side == "out" else (heads, tails)), weights)
        starts = self.corrector.improved()
        if self._by_degree:
            changed = np.unique(change.out.vertices)
            chosen = changed[self.marks[changed] == 0].astype(np.uint32)
            if self.silent is not None:
                chosen = chosen[self.values[chosen] != self.silent]
            self.marks[chosen] = 1
            starts = np.concatenate([starts, chosen])
        self._propagate(starts)

    def _resend(self) -> None:
        """Let every vertex that has a value send again, and propagate what improved, as Grapin's release does."""
        values = self.values[: self.graph.vertices]
        self._go_on(None if self.silent is None else np.flatnonzero(values != self.silent).astype(np.uint32))

    def _propagate(self, starts: Array, most: int | None = None) -> None:
        """Follow the marked vertices in `starts`, and all that improve by that.

        One thread follows about `most` edges, and goes on while few vertices are active: the loop's steps would take
        longer.
        """
        n, weighted = self.graph.vertices, self.reads_weights() and self.graph.weighted
        most = sizes.now.settled_alone if most is None else most
        if self._follows_alone:
            begins, ends, targets, weights = self.graph.sides[self.sides[0]].arrays()
            while starts.size > 0:
                _, _, edges = self.module.settle(
                    0,
                    n,
                    starts,
                    0,
                    0,
                    most,
                    self.program.settles,
                    self._width,
                    begins,
                    ends,
                    targets,
                    weights if weighted else NO_WEIGHTS,
                    self.state.arrays,
                    self.state.params,
                    self.marks,
                    self._piles,
                    self._soon,
                    self._later,
                    np.empty(0, np.uint32),
                    0,
                )
                self.effort.edges_read += int(edges)
                starts = np.flatnonzero(self.marks[:n]).astype(np.uint32) if edges >= most else NOBODY_ACTIVE
                if starts.size > FEW:
                    break
                most = sizes.now.settled_alone
        if starts.size:
            self.marks[:n] = 0
            self._go_on(starts)

    def _go_on(self, starts: Array | None) -> None:
        """Let the loop of every run go on from these vertices (None: all)."""
        n = self.graph.vertices
        if not n or (starts is not None and not np.asarray(starts).size):
            return
        program = self._remembered(self.state.like(self.state.arrays, starts))
        self.session.near_memory.follow(self.graph.snapshot)
        run = execute(program, self.session, quiet, None, None)
        self.reads.ran(run)
        self.effort.edges_read += int(run.trace.total("active_edges"))

    def _remembered(self, state: State) -> Memoised:
        program = Memoised(self.program, state, self.position)
        program.sides = self.sides
        return program

    def runs(self) -> Program:
        self.position = 0
        return self._remembered(State((), None))
