"""Scores that spread along edges, kept current by correcting residuals at the changed edges (after Grapin's PageRank).

What a vertex has sent so far along a deleted edge is taken back, and sent along an inserted one. By its changed number of edges all its
other messages are off too. Correcting these takes a pass over all its edges, for hubs a long one, and most are off by very little. So
they wait, as long as the bound on the error has room for what they are off by, all together (`programs/spreading.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.change import Change
from isthmus.kernels import deltas, packed
from isthmus.kernels.compiling import clock
from isthmus.kernels.packed import DELETE, INSERT, REWEIGH
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts
from isthmus.programs.spreading import LOWER, Spreading
from isthmus.runtime.session import Session
from isthmus.stream.maintained import Array, Effort
from isthmus.stream.residuals import NO_WEIGHTS, ROUNDING, MaintainedResiduals
from isthmus.stream.sweeping import sweep

EPSILON = float(np.finfo(np.float64).eps)
LARGEST = 1.05  # of strength ÷ divisor: with more, vertices would send more than they have, and scores might grow without end
ROUNDED = 0.05  # of the allowed error, for rounding; then residuals are computed anew
STRENGTH_ERROR = 1e-12  # relative error of a sum of weights at which it is summed anew
ATTEMPTS = 64  # to restore the bound; a `tol` that float64 cannot reach is given up then, and the result says that it has not converged
ROOM = 0.75  # of the allowed error, for residuals when the bound had to be restored
WIDE = 16  # sweep if the vertices whose messages must be corrected have more than this part of all edges
PART = 4  # of all edges, that one thread follows at most: then a few sweeps take less time
STEP = 4.0  # by which the density of residuals that are followed falls
WAITING = 0.25  # of the allowed error, for messages that are off; when it is used up, half of that is corrected


class MaintainedSpreading(MaintainedResiduals):
    """Values and residuals, and the divisors that vertices sent with."""

    program: Spreading
    compares_whole = True  # many are scaled

    def __init__(self, program: Spreading, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        self.bounds_each, self.tolerance = program.bounds_each, program.tol

    def needs_weights_from_0(self) -> bool:
        return self.reads_weights()

    def begin(self) -> None:
        facts, n = self.facts(), self.graph.vertices
        state = self.program.begin(facts)
        arrays = list(state.arrays)
        if self.reads_weights() and not self.program.fixed_divisors:
            arrays[3] = self._strengths()
        self._make_room(tuple(arrays), state.start, state.params)
        self._strength, self._inexact = with_room(arrays[3], n, self._room), np.zeros(self._room)
        self._behind = np.empty(0, np.int64)  # vertices whose divisor is not their strength
        self.program.off = 0.0
        self._build(facts)
        if self.graph.vertices:
            self._run(state.start)
            self._go_on()
            if not self.bounds_each:
                self._lower()  # so that the next batches find room in the bound
                self._holds()
        self._published = self._scores()

    def _strengths(self) -> Array:
        """Each vertex's sum of weights."""
        begins, ends, _, weights = self.graph.sides["out"].arrays()
        sums = np.empty(self.graph.vertices)
        self.team.split(lambda a, b: packed.list_sums(a, b, begins, ends, weights, sums), self.graph.vertices)
        return sums

    def _rounding_allowed(self) -> float:
        """What rounding may come to before residuals are computed anew."""
        n = self.graph.vertices
        if self.bounds_each:
            return ROUNDED * self.program.threshold(n)
        return ROUNDED * self.program.allowed(float(np.abs(self._scores()).sum()))

    def correct(self, change: Change) -> None:
        """Nothing: what was sent along deleted edges is known without them."""
        self.effort = Effort()

    def compute(self, change: Change) -> None:
        start = clock()
        before = self._published.size
        self._arrive(before)
        self._shift(change)
        self._catch_up()
        if self._lost > self._rounding_allowed():
            self._derive()
            self._catch_up()
        self.effort.correction = clock() - start
        self._go_on()
        self.effort.computation = clock() - start - self.effort.correction

    def _arrive(self, before: int) -> None:
        """Make room for new vertices."""
        n = self.graph.vertices
        self._grow(before, self.program.arriving(n), self.state.params[1])
        if self._room > self._strength.size:
            self._strength, self._inexact = with_room(self._strength, before, self._room), with_room(self._inexact, before, self._room)
        self._inexact[before:n] = 0.0
        self.state.arrays[3][before:n] = self._strength[before:n] = 1.0 if self.program.fixed_divisors else 0.0

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
        sent = np.abs(values[out.vertices] * amounts) / np.where(divisors[out.vertices] > 0, divisors[out.vertices], np.inf)
        self._lost += ROUNDING * factor * float(sent.max(initial=0.0) if self.bounds_each else sent.sum())
        self.in_parts(lambda a, b: deltas.shift_arcs(out.vertices, out.others, amounts, a, b, *given), out.vertices.size)
        self.effort.edges_read += int(out.vertices.size)

    def _change_strengths(self, tails: Array, amounts: Array | None, cuts: Array) -> None:
        """Bring the sums of weights of these vertices up to date; those that differences may have made inexact are summed anew."""
        begins, ends, _, weights = self.graph.sides["out"].arrays()
        if amounts is None:
            self._strength[tails] = ends[tails] - begins[tails]
            return
        self._strength[tails] += np.add.reduceat(amounts, cuts[:-1])
        self._inexact[tails] += EPSILON * (np.abs(self._strength[tails]) + np.add.reduceat(np.abs(amounts), cuts[:-1]))
        for u in tails[self._inexact[tails] >= STRENGTH_ERROR * self._strength[tails]].tolist():
            self._strength[u] = weights[begins[u] : ends[u]].sum(dtype=np.float64)
            self._inexact[u] = EPSILON * self._strength[u]
            self.effort.edges_read += int(ends[u] - begins[u])

    def _derive(self) -> None:
        """Compute all residuals from the values, in one pass over the edges."""
        n = self.graph.vertices
        values, residual, _, divisors = self.state.arrays
        residual[:n] = self.program.first_residuals(self.facts())
        residual[:n] -= values[:n]
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        weights = weights if self._weighted else NO_WEIGHTS
        factor, threshold, absorber = self.state.params
        given = (begins, ends, targets, weights, values, residual, divisors, factor, absorber)
        self.team.split(lambda a, b: deltas.send_values(a, b, *given), n)
        self._marks[:n] = np.abs(residual[:n]) > threshold
        self._lost = 0.0
        self.effort.edges_read += self.graph.arcs

    def _catch_up(self) -> None:
        """Correct the divisors that matter most, until what the others are off by leaves room in the bound."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self.program.fixed_divisors or not self._behind.size:
            return
        values, residual, _, divisors = self.state.arrays
        factor, behind = self.state.params[0], self._behind
        silent = behind[values[behind] == 0]
        divisors[silent] = self._strength[silent]  # nothing was sent yet
        strength = self._strength[behind]
        off = np.where(strength > 0, factor * np.abs(values[behind]) * np.abs(strength / np.maximum(divisors[behind], 1e-300) - 1), 0.0)
        n = self.graph.vertices
        allowed = WAITING * self.program.allowed(float(np.abs(values[:n]).sum() + np.abs(residual[:n]).sum()))
        largest = min(LARGEST, (1 + 1 / factor) / 2)
        chosen = np.flatnonzero((strength > largest * divisors[behind]) & (off > 0))
        off[chosen] = 0.0
        if off.sum() > allowed:
            lists = self.graph.sides["out"].lists()
            order = np.argsort(-off / (lists.ends[behind] - lists.begins[behind] + 1))
            enough = off.sum() - np.cumsum(off[order]) <= allowed / 2
            more = order[: int(np.argmax(enough)) + 1]
            chosen = np.concatenate([chosen, more[off[more] > 0]])
            off[chosen] = 0.0
        begins, ends, *_ = self.graph.sides["out"].arrays()
        if not self.bounds_each and WIDE * int((ends[behind[chosen]] - begins[behind[chosen]]).sum()) > self.graph.arcs:
            self._sweep()
            return
        self._correct_lists(behind[chosen])
        self.program.off += float(off.sum())
        self._behind = behind[divisors[behind] != self._strength[behind]]

    def _correct_lists(self, rows: Array) -> None:
        """Set the divisors of these vertices to their strengths, and correct what they have sent."""
        if not rows.size:
            return
        values, residual, _, divisors = self.state.arrays
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        weights = weights if self._weighted else NO_WEIGHTS
        given = (begins, ends, targets, weights, self._strength, values, residual, divisors, *self.state.params, self._marks)
        self.effort.edges_read += int(sum(self.in_parts(lambda a, b: deltas.shift_lists(rows, a, b, *given), rows.size)))

    def _go_on(self) -> None:
        """Propagate until the bound holds."""
        if self.bounds_each:
            while (start := self._active()).size:
                if not self._follow(start):
                    self._run(self._take_marked())
            return
        self._take_marked()
        for _ in range(ATTEMPTS):
            if self._holds():
                return
            if not self._lower():
                self._sweep()
            self._catch_up()

    def _sweep(self) -> None:
        """Bring all values up to date by sweeps over all edges; no message is off then."""
        n = self.graph.vertices
        self.state.arrays[3][:n] = self._strength[:n]
        self._behind, self.program.off = self._behind[:0], 0.0
        own = self.program.first_residuals(self.facts())
        side = self.graph.sides["in"]
        edges = sweep(self.program, own, self.state.arrays, self.state.params, side, self.team)
        self._take_marked()
        self._lost = EPSILON * float(np.abs(self._scores()).sum()) * np.log2(n + 2)  # by the sums of the last pass
        self.effort.edges_read += edges
        self.effort.affected += n

    def _remaining(self) -> tuple[float, float]:
        """The sum of |residual|, and what it may be together with what messages are off by."""
        n = self.graph.vertices
        left = float(np.abs(self.state.arrays[1][:n]).sum())
        return left, self.program.allowed(float(self.state.arrays[0][:n].sum()) + left)

    def _holds(self) -> bool:
        left, allowed = self._remaining()
        self.program.error_bound = self.program.bound(left + self.program.off, allowed)
        self.program.converged = left + self.program.off <= allowed or not left
        return self.program.converged

    def _lower(self) -> bool:
        """Let one thread lower the sum of residuals to what the bound needs and a little more; False: this takes too many edges.

        When a vertex sends its residual, a fixed share of it is gone, at the cost of its edges. So those with much of it per edge go first.
        """
        n, (factor, _, absorber) = self.graph.vertices, self.state.params
        left, allowed = self._remaining()
        enough = max(ROOM * allowed - self.program.off, 0.1 * allowed)
        most = max(sizes.now.settled_alone, self.graph.arcs // PART)
        values, residual, _, divisors = self.state.arrays
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        if self._queue.size < n:
            self._queue = np.empty(self._room, np.uint32)
        given = (begins, ends, targets, weights if self._weighted else NO_WEIGHTS, values, residual, divisors, factor, absorber)
        density = None
        while left > enough and most > 0:
            densities = np.abs(residual[:n]) / (ends[:n] - begins[:n] + 1)
            density = (float(densities.max()) if density is None else density) / STEP
            starts = np.flatnonzero(densities > density)
            vertices, edges, total, left = deltas.spread_densest(starts, density, left, enough, most, *given, self._marks, self._queue)
            self.effort.edges_read += int(edges)
            self.effort.affected += int(vertices)
            self._lost += ROUNDING * float(total)
            most -= int(edges)
        return bool(left <= enough)

    def _run(self, start: Array | None) -> None:
        program, state = self._execute(start)
        assert isinstance(program, Spreading)
        self.state.params = state.params
        self.program.error_bound, self.program.converged = program.error_bound, program.converged

    def _active(self) -> Array:
        """The vertices to go on from: those that were marked; if there are none and the bound does not hold, the largest residuals."""
        n = self.graph.vertices
        chosen = self._take_marked()
        if chosen.size:
            return chosen
        values, residual = (array[:n] for array in self.state.arrays[:2])
        factor, threshold, absorber = self.state.params
        left, off = float(np.abs(residual).sum()), self.program.off
        allowed = self.program.allowed(float(values.sum()) + left)
        if left + off <= allowed or not left:
            self.program.error_bound, self.program.converged = self.program.bound(left + off, allowed), True
            return chosen
        threshold = min(threshold, LOWER * max(allowed - off, 0.1 * allowed) / max(n, 1))
        self.state.params = (factor, threshold, absorber)
        return np.flatnonzero(np.abs(residual) > threshold)

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

    def answer(self, arrays: tuple[Array, ...], facts: Facts) -> tuple[dict[str, Array], dict[str, Any]]:
        columns = {self.columns[0].name: self.program.finished(arrays[0])}
        return columns, self.program.summary(columns, self.state)
