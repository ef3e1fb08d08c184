"""Scores that spread along edges, on a graph that changes: what has become wrong is taken back and sent anew (after
Grapin's PageRank).

What a vertex has sent so far along a deleted edge is taken back, and sent along an inserted one. By its changed number
of edges all its other messages are off too. Correcting these takes a pass over all its edges, for hubs a long one, and
most are off by very little. So they wait, as long as the bound on the error has room for what they are off by, all
together (`programs/scores/spreading.py`).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing import packed_array
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.kernels.scores import deltas, score_sweeps
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts
from isthmus.programs.scores.spreading import Spreading, Sums
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import Array, Effort
from isthmus.stream.maintain.residuals import NO_WEIGHTS, ROUNDING, MaintainedResiduals
from isthmus.stream.maintain.whole_passes import EPSILON

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
        parts = self.team.split(lambda a, b: score_sweeps.score_sums(a, b, values, residual), self.graph.vertices)
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
