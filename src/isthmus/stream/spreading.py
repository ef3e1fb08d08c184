"""Scores that spread along edges, kept current by correcting residuals at the changed edges (after Grapin's PageRank).

What a vertex has sent so far along a deleted edge is taken back, and sent along an inserted one. By its changed number of edges all its
other messages are off too. Correcting these takes a pass over all its edges, for hubs a long one, and most are off by very little. So
they wait, as long as the bound on the error has room for what they are off by, all together (`programs/spreading.py`).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BatchError
from isthmus.graph.change import Change
from isthmus.kernels import deltas, packed
from isthmus.kernels.packed import DELETE, INSERT, REWEIGH
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts, State
from isthmus.programs.spreading import Spreading
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintained import Array, Differences, Effort, Maintained

NO_WEIGHTS = np.empty(0, np.int32)
WAITING = 0.25  # of the allowed error, for messages that are off; when it is used up, half of that is corrected


class MaintainedSpreading(Maintained):
    """Values and residuals, and the divisors that vertices sent with."""

    def __init__(self, program: Spreading, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        self._fixed = program.name == "katz"  # divisors do not depend on edges

    @property
    def sides(self) -> tuple[str, ...]:
        return ("out",)

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    def begin(self) -> None:
        facts, n = self.facts(), self.graph.vertices
        state = self.program.begin(facts)
        self._room = n + n // 8 + 64
        arrays = list(state.arrays)
        if self.reads_weights() and not self._fixed:
            arrays[3] = self._strengths()
        self.state = State(tuple(with_room(array, n, self._room) for array in arrays), state.start, state.params)
        self._strength = with_room(arrays[3], n, self._room)
        self._behind = np.empty(0, np.int64)  # vertices whose divisor is not their strength
        self._marks = np.zeros(self._room, np.uint8)
        self.program.off = 0.0
        self._go_on(state.start)
        self._published = self._scores()
        self._sum = float(self._published.sum())

    def _strengths(self) -> Array:
        """Each vertex's sum of weights."""
        begins, ends, _, weights = self.graph.sides["out"].arrays()
        sums = np.empty(self.graph.vertices)
        self.team.split(lambda a, b: packed.list_sums(a, b, begins, ends, weights, sums), self.graph.vertices)
        return sums

    def _scores(self) -> Array:
        n = self.graph.vertices
        scores: Array = self.state.arrays[0][:n] + self.state.arrays[1][:n]
        return scores

    def refuse(self, change: Change) -> None:
        gone = set(change.removed.tolist())
        for source in getattr(self.program, "sources", ()):
            if int(self.graph.ids.number(source)) in gone:
                raise BatchError(f"vertex {source!r} is a source of {self.name} and cannot be removed")

    def correct(self, change: Change) -> None:
        """Nothing: what was sent along deleted edges is known without them."""
        self.effort = Effort()

    def compute(self, change: Change) -> None:
        start = time.perf_counter()
        before = self._published.size
        self._grow(before)
        self._shift(change)
        self._catch_up()
        self.effort.correction = time.perf_counter() - start
        self._go_on(None)
        self.effort.computation = time.perf_counter() - start - self.effort.correction

    def _grow(self, before: int) -> None:
        n = self.graph.vertices
        if n > self._room:
            self._room = n + n // 4 + 64
            self.state.arrays = tuple(with_room(array, before, self._room) for array in self.state.arrays)
            self._strength = with_room(self._strength, before, self._room)
            self._marks = np.zeros(self._room, np.uint8)
        if n > before:
            values, residual, taken, divisors = self.state.arrays
            values[before:n], taken[before:n] = 0.0, 0.0
            residual[before:n] = self.program.arriving(n)
            divisors[before:n] = self._strength[before:n] = 1.0 if self._fixed else 0.0
            self._marks[before:n] = np.abs(residual[before:n]) > self.state.params[1]

    def _shift(self, change: Change) -> None:
        """Send along changed edges what their tails have sent so far."""
        out = change.out
        if not out.vertices.size:
            return
        weighted = self.reads_weights() and self.graph.weighted
        weights = out.weights.astype(np.float64) if weighted else np.ones(out.vertices.size)
        old = change.old_weights.astype(np.float64) if weighted else weights
        amounts = np.where(out.actions == INSERT, weights, np.where(out.actions == DELETE, -old, weights - old))
        if not weighted:
            amounts[out.actions == REWEIGH] = 0.0
        values, residual, _, divisors = self.state.arrays
        if not self._fixed:
            tails = out.vertices[out.cuts[:-1]].astype(np.int64)
            self._strength[tails] += np.add.reduceat(amounts, out.cuts[:-1])
            if not weighted:
                self._strength[tails] = (self.graph.sides["out"].lists().degrees())[tails]
            fresh = tails[(divisors[tails] == 0) & (self._strength[tails] > 0)]
            divisors[fresh] = self._strength[fresh]
            self._behind = np.union1d(self._behind, tails)
        factor, threshold, absorber = self.state.params
        given = (values, residual, divisors, factor, threshold, absorber, self._marks)
        self._parts(lambda a, b: deltas.shift_arcs(out.vertices, out.others, amounts, a, b, *given), out.vertices.size)
        self.effort.edges_read += int(out.vertices.size)

    def _catch_up(self) -> None:
        """Correct the divisors that matter most, until what the others are off by leaves room in the bound."""
        if self._fixed or not self._behind.size:
            return
        values, residual, _, divisors = self.state.arrays
        factor, threshold, absorber = self.state.params
        behind = self._behind
        strength = self._strength[behind]
        off = np.where(strength > 0, factor * np.abs(values[behind]) * np.abs(strength / np.maximum(divisors[behind], 1e-300) - 1), 0.0)
        allowed = WAITING * self.program.allowed(self._sum)
        chosen = np.empty(0, np.int64)
        if off.sum() > allowed:
            lists = self.graph.sides["out"].lists()
            order = np.argsort(-off / (lists.ends[behind] - lists.begins[behind] + 1))
            rest = off.sum() - np.cumsum(off[order])
            chosen = order[: int(np.argmax(rest <= allowed / 2)) + 1] if (rest <= allowed / 2).any() else order
            chosen = chosen[off[chosen] > 0]
            rows = behind[chosen]
            begins, ends, targets, weights = self.graph.sides["out"].arrays()
            weights = weights if self.reads_weights() and self.graph.weighted else NO_WEIGHTS
            given = (begins, ends, targets, weights, self._strength, values, residual, divisors, factor, threshold, absorber, self._marks)
            self.effort.edges_read += int(sum(self._parts(lambda a, b: deltas.shift_lists(rows, a, b, *given), rows.size)))
            off[chosen] = 0.0
        self.program.off = float(off.sum())
        self._behind = behind[off > 0]

    def _parts(self, work: Any, count: int) -> list[Any]:
        if count <= sizes.now.few_changes:
            return [work(0, count)]
        return self.team.split(work, count)

    def _go_on(self, start: Array | None) -> None:
        """Run until the bound holds: from `start` in the beginning, later from the marked vertices."""
        n = self.graph.vertices
        if not n:
            return
        chosen = start
        if hasattr(self, "_published"):
            chosen = np.flatnonzero(self._marks[:n])
            self._marks[chosen] = 0
        state = State(self.state.arrays, chosen, self.state.params)
        self.session.holdings.follow(self.graph.snapshot)
        program = self.program.resumed(state)
        if chosen is None or chosen.size:
            run = execute(program, self.session, quiet, None, None)
            self.effort.edges_read += int(run.trace.total("active_edges"))
            self.effort.affected = int(sum(iteration.active_vertices for iteration in run.trace))
            self.program.error_bound, self.program.converged = program.error_bound, program.converged
            self.state.params = state.params

    def renumber(self, change: Change) -> None:
        movers, holes, n = change.movers, change.holes, self.graph.vertices
        for array in (*self.state.arrays, self._strength):
            array[holes] = array[movers]
        to = np.arange(n + change.removed.size)
        to[movers] = holes
        self._behind = np.setdiff1d(self._behind, change.removed)
        self._behind = np.unique(to[self._behind])
        if self.state.params[2] >= 0:
            self.state.params = (*self.state.params[:2], int(to[self.state.params[2]]))
        self._published = self._scores()
        self._sum = float(self._published.sum())

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def publish(self) -> Differences:
        before, now = self._published, self._scores()
        old = np.zeros(now.size)
        old[: before.size] = before
        changed = np.flatnonzero(now != old)
        self._published, self._sum = now, float(now.sum())
        return Differences(changed.astype(np.uint32), old[changed], now[changed])

    def answer(self, arrays: tuple[Array, ...], facts: Facts) -> tuple[dict[str, Array], dict[str, Any]]:
        columns = {self.columns[0].name: self.program.finished(arrays[0])}
        return columns, self.program.summary(columns, self.state)
