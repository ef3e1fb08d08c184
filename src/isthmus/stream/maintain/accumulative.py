"""A user's accumulative programs kept current: residuals are corrected at the changed sources only.

A message is linear in its delta. So what a vertex has sent along an edge so far is the message of its value, and
sending the message of minus its value takes that back. A message that asks for `degree` changes along all edges of a
vertex that gains or loses one: they are taken back on the old edges, and sent on the new ones. Otherwise only changed
edges are concerned.

A message that asks for `vertex`, its place in natural order, changes everywhere when vertices come or go; then the
program starts over.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np

from isthmus.graph.changing.advancing import Gathered
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.programs.declaration import Accumulative
from isthmus.programs.program import Facts
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import Array, Effort
from isthmus.stream.maintain.registry import maintains
from isthmus.stream.maintain.residuals import NO_WEIGHTS, ROUNDING, MaintainedResiduals

NO_QUEUE = np.empty(0, np.uint32)
LEAVES = 0.5  # of the threshold: residuals that rounding may have changed by more are computed anew


@maintains(Accumulative)
class MaintainedAccumulative(MaintainedResiduals):
    """Values and residuals; a vertex is active while its |residual| exceeds the program's threshold."""

    program: Accumulative
    may_fail = True  # values may grow without end
    has_one_answer = False

    def __init__(self, program: Accumulative, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = copy.copy(program), name or program.name, program.columns
        self.program.live = True  # so that its runs share the loops that bring answers up to date
        self._by_degree, self._by_place = (
            ("degree" in program.message.arguments),
            ("vertex" in program.message.arguments),
        )

    @property
    def main(self) -> str:
        return self.program.column

    def _start(self) -> None:
        facts = self.facts()
        state = self.program.begin(facts)
        self._make_room(state)
        self._build(facts)
        if self.graph.vertices and (state.start is None or state.start.any()):
            self._execute(state.start)

    def correct(self, change: Change) -> None:
        start = time.perf_counter()
        self.effort = Effort()
        self._restart = self._by_place and bool(change.added.size or change.removed.size)
        if not self._restart:
            self._send(change, -1.0, change.old_weights, INSERT)
        self.effort.correction = time.perf_counter() - start

    def compute(self, change: Change) -> None:
        start = time.perf_counter()
        if self._restart:
            self._start_over()
        else:
            residual = 0.0 if self.program.sources else float(self.program.initial)
            self._grow(self._published.size, residual, self.program.threshold)
            self._send(change, 1.0, change.out.weights, DELETE)
            if self._lost > LEAVES * self.program.threshold:
                self._derive()
            starts = self._take_marked()
            if starts.size and not self._follow(starts):
                self._execute(self._take_marked())
        self.effort.computation = time.perf_counter() - start

    def _start_over(self) -> None:
        self._start()
        self.effort.edges_read += self.graph.arcs

    def _send(self, change: Change, sign: float, weights: Array, without: int) -> None:
        """Send what the tails of changed arcs have sent so far, times `sign`; of a change only those arcs that are
        there now.
        """
        out, n = change.out, self.graph.vertices
        tails = out.vertices[out.cuts[:-1]].astype(np.int64)
        tails = tails[tails < n]
        values, deltas = self.state["values"], self.state["deltas"]
        deltas[tails] = sign * values[tails]
        if self._by_degree:
            for some, lists in self.pieces("out", tails[values[tails] != 0]):
                self._along_lists(some, lists)
        else:
            there = out.actions != without
            if not self._weighted:
                there &= out.actions != REWEIGH
            chosen = np.flatnonzero(there)
            given = weights[chosen] if self._weighted else NO_WEIGHTS
            self._along_arcs(out.vertices[chosen], out.others[chosen], given)
        deltas[tails] = 0.0
        self._lost += ROUNDING * float(np.abs(values[tails]).max(initial=0.0))

    def _along_arcs(self, tails: Array, heads: Array, weights: Array) -> None:
        if not tails.size:
            return
        given = (*self.ends_of("out"), False, 0.0, self.state.arrays, self.state.params, self._marks, NO_QUEUE, 0)
        self.in_parts(lambda a, b: self._module.relax_arcs(tails, heads, weights, a, b, *given), tails.size)
        self.effort.edges_read += int(tails.size)

    def _along_lists(self, rows: Array, lists: Gathered) -> None:
        begins, ends, targets, weights = lists
        weights = weights if self._weighted else NO_WEIGHTS
        at = begins[rows]
        lengths = ends[rows] - at
        given = (
            begins,
            ends,
            targets,
            weights,
            self.state.arrays,
            self.state.arrays,
            self.state.params,
            self._marks,
            NO_QUEUE,
            0,
        )

        def part(first: int, last: int) -> None:
            self._module.push_rows(rows, at, at, lengths, first, 0, int(lengths[first:last].sum()), *given)

        if rows.size:
            self.in_parts(part, rows.size)
            self.effort.edges_read += int(lengths.sum())

    def _derive(self) -> None:
        """Compute all residuals from the values."""
        n = self.graph.vertices
        values, residual, deltas = (array[:n] for array in self.state.arrays[:3])
        residual[:] = self.program.residual(self.facts())
        residual -= values
        deltas[:] = values
        for first, last, lists in self.all_pieces("out"):
            self._along_lists(np.arange(first, last), lists)
        deltas[:] = 0.0
        self._marks[:n] = np.abs(residual) > self.program.threshold
        self._lost = 0.0

    def fault(self) -> str | None:
        """A vertex whose residual, computed from the values anew, exceeds the threshold: a run from scratch would have
        gone on there.
        """
        n, state, marks, effort, lost = self.graph.vertices, self.state, self._marks, self.effort, self._lost
        self.state, self._marks, self.effort = (state.like(tuple(map(np.copy, state.arrays))), marks.copy(), Effort())
        self._derive()
        anew, known = self.state["residual"][:n], state["residual"][:n]
        self.state, self._marks, self.effort, self._lost = state, marks, effort, lost
        allowed = self.program.threshold * (1 + LEAVES) + ROUNDING * self._largest()
        off = np.flatnonzero(~(np.maximum(np.abs(anew), np.abs(anew - known)) <= allowed))
        if not off.size:
            return None
        user = self.graph.ids.users(off[:1])[0]
        return (
            f"the residual of vertex {user} is {anew[off[0]]:.9g} ({known[off[0]]:.9g} in the stream), beyond "
            f"{self.program.threshold:g}"
        )

    def renumber(self, change: Change) -> None:
        if self._by_place:
            self.begin()
            return
        for array in self.state.arrays:
            array[change.holes] = array[change.movers]
        self._published = self._scores()

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        columns = {self.program.column: arrays[0]}
        return columns, self.program.summary(columns, self.state.like(arrays))
