"""Values and residuals on a graph that changes: a batch changes residuals only where its edges are (after Grapin).

The scores of a program by deltas are x = values + the effect of the residuals r = b + A'values - values. A batch
changes A, not the values, so it changes r by (A_new' - A_old') values, which is zero except at heads of the edges of
vertices whose edges changed. All bounds are those of `programs/scores/deltas.py`; this file keeps r true, in three
parts.

*Changed edges.* What a vertex has sent so far along a deleted edge is taken back, and is sent along an inserted one.

*Old divisors.* The changed number of its edges makes all other messages of a vertex wrong, too, together by factor *
|value| * |strength / divisor - 1|. Correcting them takes a pass over all its edges, for hubs a long one, and most of
these errors are small. So they wait while the bound on the error allows their sum.

*Rounding.* Every addition to a value loses up to half a unit in its last place, so residuals slowly drift from the true
ones. `_lost` bounds the sum of these losses since residuals were last computed from the values. When it could matter,
they are computed anew, in one pass over all edges, so that answers do not drift however many batches come.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BatchError, ProgramError
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing import packed_array
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.kernels.loops import skeleton
from isthmus.kernels.scores import deltas
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts, Program, State
from isthmus.programs.scores.deltas import Spreading, Sums
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import DIFFERENCE, Array, Differences, Effort, Maintained, with_spare

EPSILON = float(np.finfo(np.float64).eps)
NO_WEIGHTS = np.empty(0, np.int32)
VERTEX_BYTES = 1 + 4  # a mark, an entry in a queue
# of a value, lost in an iteration: the value, its message and its residual are rounded.
ROUNDING = 4 * np.finfo(np.float64).eps


class MaintainedResiduals(Maintained):
    """Values, residuals and deltas, in the first three arrays of a state with room for new vertices."""

    program: ByDeltas
    state: State
    more_bytes = 0  # per vertex, beside the program's state
    bounds_each = True  # whether the error is bounded at every vertex, and not in sum

    @property
    def sides(self) -> tuple[str, ...]:
        return ("out",)

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    @abstractmethod
    def _start(self) -> None:
        """Compute values and residuals from scratch."""

    def begin(self) -> None:
        self._start()
        self._published: Array = self._scores()

    def restore(self) -> None:
        self._start()

    def _make_room(self, state: State) -> None:
        n = self.graph.vertices
        self._room = with_spare(n)
        self.state = state
        state.place(lambda array: with_room(array, n, self._room))
        self._marks = np.zeros(self._room, np.uint8)
        self._queue = np.empty(0, np.uint32)
        self._lost = 0.0

    def _grow(self, before: int, residual: float, threshold: float) -> None:
        """Make room for the vertices that are new since there were `before`, each with this residual."""
        n = self.graph.vertices
        if n > self._room:
            self._room = n + n // 4 + 64
            self.state.place(lambda array: with_room(array, before, self._room))
            self._marks = np.append(self._marks, np.zeros(self._room - self._marks.size, np.uint8))
        if n > before:
            self.state["values"][before:n] = self.state["deltas"][before:n] = 0.0
            self.state["residual"][before:n] = residual
            self._marks[before:n] = abs(residual) > threshold

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        self.refuse_removal(getattr(self.program, "sources", ()), change)

    def _build(self, facts: Facts) -> None:
        """Compile the loops that bring answers up to date."""
        self._weighted = self.reads_weights() and self.graph.weighted
        text = self.program.text(facts)
        self._module = skeleton.build(
            self.program.name, text, self._weighted, False, self.program.prefetched_array, True
        )

    def _follow(self, starts: Array) -> bool:
        """Let one thread follow these vertices and all that become active; False: there were too many, and the others
        are marked.
        """
        if not self.graph.lists_are_near:
            self._marks[starts] = 1
            return False
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        given = (begins, ends, targets, weights if self._weighted else NO_WEIGHTS, self.state.arrays, self.state.params)
        if self._queue.size < self.graph.vertices:
            self._queue = np.empty(self._room, np.uint32)
        most = sizes.now.settled_alone
        vertices, edges, rounds, total = self._module.drain(starts, most, *given, self._marks, self._queue)
        self.effort.edges_read += int(edges)
        self.effort.affected += int(vertices)
        self._lost += ROUNDING * (int(rounds) * self._largest() if self.bounds_each else float(total))
        self._check_growth()
        return int(edges) < most

    def _execute(self, start: Array | None) -> tuple[ByDeltas, State]:
        """Let the loop of every run go on from these vertices (None: all); returns the program and the state as it left
        them.
        """
        state = self.state.like(self.state.arrays, start)
        program = self.program.resumed(state)
        self.session.near_memory.follow(self.graph.snapshot)
        run = execute(program, self.session, quiet, None, None)
        self.effort.edges_read += int(run.trace.total("active_edges"))
        active = [iteration.active_vertices for iteration in run.trace]
        self.effort.affected += int(sum(active))
        largest, total = self._largest(), float(np.abs(self.state["values"][: self.graph.vertices]).sum())
        self._lost += ROUNDING * sum(largest if self.bounds_each else min(count * largest, total) for count in active)
        self._check_growth()
        return program, state

    def _check_growth(self) -> None:
        """Raise ProgramError if values have grown without end."""
        if not np.isfinite(self._lost):
            raise ProgramError(f"{self.name} does not converge on this graph: {self.program.explain_growth()}")

    def _largest(self) -> float:
        return float(np.abs(self.state["values"][: self.graph.vertices]).max(initial=0.0))

    def _take_marked(self) -> Array:
        chosen = np.flatnonzero(self._marks[: self.graph.vertices])
        self._marks[chosen] = 0
        return chosen

    def _scores(self) -> Array:
        n = self.graph.vertices
        scores: Array = self.state["values"][:n] + self.state["residual"][:n]
        return scores

    def near_bytes(self, vertices: int) -> int:
        """When it is published: differences of this batch and the last, scores before and after, three temporary
        arrays.
        """
        arrays = self.program.state_bytes + VERTEX_BYTES + self.more_bytes
        return arrays * with_spare(vertices) + vertices * (2 * DIFFERENCE + 5 * 8 + 1)

    def publishing_bytes(self, vertices: int) -> int:
        """Differences of this batch, scores after it, and temporary arrays; of these, passes may need two as well."""
        return vertices * (DIFFERENCE + 8 + 8 + 1)

    def running(self) -> Program:
        return self.program

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def unpublished(self) -> tuple[Differences, ...]:
        n, values, residuals = self.graph.vertices, self.state["values"], self.state["residual"]
        if n > self._published.size:
            self._published = np.append(self._published, np.zeros(n - self._published.size))

        def part(first: int, last: int) -> tuple[Array, Array, Array]:
            before, now = self._published[first:last], values[first:last] + residuals[first:last]
            changed = np.flatnonzero(now != before)
            return (changed + first).astype(np.uint32), before[changed], now[changed]

        parts = self.team.split(part, n) or [part(0, 0)]
        return (
            Differences(
                *(np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*parts, strict=True))
            ),
        )


# of strength ÷ divisor: with more, vertices would send more than they have, and scores might grow without end.
LARGEST = 1.05
STRENGTH_ERROR = 1e-12  # relative error of a sum of weights at which it is summed anew


class ShiftedScores(MaintainedResiduals):
    """Values and residuals, and the divisors that vertices sent with."""

    program: Spreading
    compares_whole = True  # many are scaled
    more_bytes = 8 + 8  # the strength and how inexact it is
    _strength: Array  # the number of edges of each vertex, or the sum of their weights
    _inexact: Array
    _behind: Array  # vertices whose divisor is not their strength

    def __init__(self, program: Spreading, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        self.bounds_each, self.tolerance = program.bounds_each, program.tol
        self.may_fail = program.bounds_each  # the others keep less than they are sent, so they converge

    def needs_weights_from_0(self) -> bool:
        return self.reads_weights()

    def _strengths(self) -> Array:
        """Each vertex's sum of weights."""
        sums = np.empty(self.graph.vertices)
        for first, last, (begins, ends, _, weights) in self.all_pieces("out"):
            self._sum_lists(begins[first:last], ends[first:last], weights, sums[first:last])
        return sums

    def _sum_lists(self, begins: Array, ends: Array, weights: Array, sums: Array) -> None:
        self.team.split(lambda a, b: packed_array.list_sums(a, b, begins, ends, weights, sums), sums.size)

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        out = change.out
        if not out.weights.size or not self.reads_weights() or self.program.fixed_divisors:
            return
        tails, before = out.vertices[out.cuts[:-1]].astype(np.int64), self._published.size
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(np.where(out.actions == DELETE, 0.0, out.weights), out.cuts[:-1])
            sums[tails < before] += self._strength[tails[tails < before]]
        if not np.isfinite(sums).all():
            raise BatchError(
                f"the weights of a vertex would sum up to more than float64 holds, and {self.name} divides by their sum"
            )

    def correct(self, change: Change) -> None:
        """Nothing: what was sent along deleted edges is known without them."""
        self.effort = Effort()

    def _arrive(self, before: int) -> None:
        """Make room for new vertices."""
        n = self.graph.vertices
        self._grow(before, self.program.arriving(n), self.state.params[1])
        if self._room > self._strength.size:
            self._strength, self._inexact = (
                with_room(self._strength, before, self._room),
                with_room(self._inexact, before, self._room),
            )
        self._inexact[before:n] = 0.0
        self.state["divisors"][before:n] = self._strength[before:n] = 1.0 if self.program.fixed_divisors else 0.0

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
        if not self.program.fixed_divisors:
            tails = out.vertices[out.cuts[:-1]].astype(np.int64)
            self._change_strengths(tails, amounts if weighted else None, out.cuts)
            fresh = tails[(divisors[tails] == 0) & (self._strength[tails] > 0)]
            divisors[fresh] = self._strength[fresh]
            self._behind = np.union1d(self._behind, tails)
        factor, threshold, absorber = self.state.params
        given = (values, residual, divisors, factor, threshold, absorber, self._marks)
        sent = np.abs(values[out.vertices] * amounts) / np.where(
            divisors[out.vertices] > 0, divisors[out.vertices], np.inf
        )
        self._lost += ROUNDING * factor * float(sent.max(initial=0.0) if self.bounds_each else sent.sum())
        self.in_parts(
            lambda a, b: deltas.shift_arcs(out.vertices, out.others, amounts, a, b, *given), out.vertices.size
        )
        self.effort.edges_read += int(out.vertices.size)

    def _change_strengths(self, tails: Array, amounts: Array | None, cuts: Array) -> None:
        """Bring the sums of weights of these vertices up to date; those that differences may have made inexact are
        summed anew.
        """
        if amounts is None:
            begins, ends = self.ends_of("out")
            self._strength[tails] = ends[tails] - begins[tails]
            return
        self._strength[tails] += np.add.reduceat(amounts, cuts[:-1])
        self._inexact[tails] += EPSILON * np.abs(self._strength[tails]) + np.add.reduceat(
            EPSILON * np.abs(amounts), cuts[:-1]
        )
        for some, (begins, ends, _, weights) in self.pieces(
            "out", tails[self._inexact[tails] >= STRENGTH_ERROR * self._strength[tails]]
        ):
            for u in some.tolist():
                self._strength[u] = weights[begins[u] : ends[u]].sum(dtype=np.float64)
                self._inexact[u] = EPSILON * self._strength[u]
                self.effort.edges_read += int(ends[u] - begins[u])

    def _sums(self) -> Sums:
        values, residual = self.state["values"], self.state["residual"]
        parts = self.team.split(lambda a, b: deltas.score_sums(a, b, values, residual), self.graph.vertices)
        return Sums(*(float(sum(column)) for column in zip(*parts, strict=True))) if parts else Sums(0.0, 0.0, 0.0)

    def _off(self) -> tuple[Array, Array]:
        """What the messages of vertices with old divisors are off by, and which of these cannot wait."""
        values, _, _, divisors = self.state.arrays
        factor, behind = self.state.params[0], self._behind
        silent = behind[values[behind] == 0]
        divisors[silent] = self._strength[silent]  # nothing was sent yet
        strength = self._strength[behind]
        off = np.where(
            strength > 0,
            factor * np.abs(values[behind]) * np.abs(strength / np.maximum(divisors[behind], 1e-300) - 1),
            0.0,
        )
        largest = min(LARGEST, (1 + 1 / factor) / 2)
        return off, (strength > largest * divisors[behind]) & (off > 0)

    def _correct_lists(self, rows: Array) -> None:
        """Set the divisors of these vertices to their strengths, and correct what they have sent."""
        if not rows.size:
            return
        values, residual, _, divisors = self.state.arrays
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        weights = weights if self._weighted else NO_WEIGHTS
        given = (
            begins,
            ends,
            targets,
            weights,
            self._strength,
            values,
            residual,
            divisors,
            *self.state.params,
            self._marks,
        )
        self.effort.edges_read += int(
            sum(self.in_parts(lambda a, b: deltas.shift_lists(rows, a, b, *given), rows.size))
        )

    def renumber(self, change: Change) -> None:
        movers, holes, n = change.movers, change.holes, self.graph.vertices
        for array in (*self.state.arrays, self._strength, self._inexact):
            array[holes] = array[movers]
        to = np.arange(n + change.removed.size)
        to[movers] = holes
        self._behind = np.setdiff1d(self._behind, change.removed)
        self._behind = np.unique(to[self._behind])
        if self.state.params[2] >= 0:
            self.state.params = (*self.state.params[:2], int(to[self.state.params[2]]))
        self._published = self._scores()

    def reached(self) -> tuple[float, bool]:
        return self.program.error_bound, self.program.converged

    def program_with(self, reached: Any) -> Spreading:
        """The program as it was when that was reached."""
        program = copy.copy(self.program)
        program.error_bound, program.converged = reached
        return program

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        columns = {self.columns[0].name: self.program.finished(arrays[0])}
        return columns, self.program_with(reached).summary(columns, self.state)
