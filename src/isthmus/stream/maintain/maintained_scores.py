"""Scores that a stream keeps current: after a batch, residuals are sent on until the bound on the error holds.

`residuals.py` has corrected the residuals r at the changed edges. The error is at most factor / (1 - factor) * (sum |r|
+ off) + off (`programs/scores/deltas.py`). A vertex that sends its residual shrinks sum |r| by at least (1 - factor) *
|residual|, at the cost of its edges. So one thread first follows the vertices with most residual per edge.

If that takes too long, as after batches that leave residuals everywhere, *passes* over all in-edges go on from there. A
pass that *sends* adds all residuals to the values: the new residuals are A'r, and sum |A'r| <= factor * sum |r|. It
also corrects all messages that were sent with old divisors, and ends with the new residuals, exact except for rounding:
nothing has to be measured. Residuals are small, so single precision loses little of them, and halves the memory that is
read. One such pass is mostly enough, since one vertex gains what another loses.

Where that is slow, as in graphs with long paths, a *sweep* sets one value after the other to b + A'values; then a last
pass *measures* the residuals, which bound the error however the values were found. `far_scores.py` has far lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.change import Change
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.scores import deltas
from isthmus.kernels.scores import passes as kernels
from isthmus.programs.dependencies import with_room
from isthmus.programs.scores.deltas import LOWER, NOTHING, Spreading
from isthmus.programs.scores.sweeps import LEFT
from isthmus.stream.maintain.maintained import Array
from isthmus.stream.maintain.registry import maintains
from isthmus.stream.maintain.residuals import EPSILON, NO_WEIGHTS, ROUNDING, ShiftedScores

SINGLE = float(np.finfo(np.float32).eps) / 2  # of a share, lost by rounding it to single precision
NO_MARKS, NO_QUEUE = np.empty(0, np.uint8), np.empty(0, np.uint32)
ROUNDED = 0.05  # of the allowed error, for rounding; then residuals are computed anew
# to restore the bound; a `tol` that float64 cannot reach is given up then, and the result says that it has not
# converged.
ATTEMPTS = 64
ROOM = 0.75  # of the allowed error, for residuals when the bound had to be restored
WIDE = 16  # sweep if the vertices whose messages must be corrected have more than this part of all edges
PART = 4  # of all edges, that one thread follows at most: then a pass over all of them takes less time
STEP = 4.0  # by which the density of residuals that are followed falls
WAITING = 0.25  # of the allowed error, for messages that are off; when it is used up, half of that is corrected
LOSS = 1e-3  # of the allowed error, that rounding to single precision may come to in a pass
# of the residuals, left by a pass that sends them: then sweeps, which leave about its square, take less time.
SLOW = 0.7
SWEPT = 0.9  # of the allowed error, at most, is used by sweeps: the next batch needs some
ROUNDED_SHARES = 0.01  # part of what the bound allows, that rounding shares to single precision may change
STUCK = 0.999  # of the change of the sweep before: rounding lets no sweep come nearer


@maintains(Spreading, in_memory=True)
class MaintainedSpreading(ShiftedScores):
    """Scores within a bound on their error, in sum or at every vertex."""

    _halting = STUCK  # of the change of the sweep before: then sweeps end
    # The share of a sweep's change that it leaves as residuals: as expected, and as measured last.
    _expected, _found = LEFT, LEFT

    def _start(self) -> None:
        facts, n = self.facts(), self.graph.vertices
        state = self.program.begin(facts)
        if self.reads_weights() and not self.program.fixed_divisors:
            state["divisors"] = self._strengths()
        self._make_room(state)
        self._strength, self._inexact = with_room(state["divisors"], n, self._room), np.zeros(self._room)
        self._behind = np.empty(0, np.int64)  # vertices whose divisor is not their strength
        self.program.off = 0.0
        self._build(facts)
        if self.graph.vertices:
            self._first_scores(state.start)

    def _first_scores(self, start: Array | None) -> None:
        """Compute scores from the residuals that all begin with; these vertices are active (None: all)."""
        if self.bounds_each:
            self._run(start)
        elif start is None:
            # If nothing were lost at vertices without edges, this would be the sum of all scores.
            n, factor = self.graph.vertices, self.state.params[0]
            self.state["values"][:n] = self.state["residual"][:n] / (1 - factor)
            self._sweep_values(self._passes())
        self._go_on()
        if self.graph.lists_are_near and not self.bounds_each:
            self._lower(sizes.now.settled_alone)  # so that the next batches may leave some residuals
            self._holds()

    def _rounding_allowed(self) -> float:
        """What rounding may come to before residuals are computed anew."""
        n = self.graph.vertices
        if self.bounds_each:
            return ROUNDED * self.program.threshold(n)
        sums = self._sums()
        return ROUNDED * self.program.allowed(sums.total + sums.surplus)

    def compute(self, change: Change) -> None:
        start = clock()
        before = self._published.size
        # A vertex without edges, as removed ones are by now, has the least score of all.
        self.program.stays = change.vertices / max(change.vertices_between, 1)
        self._arrive(before)
        self._shift(change)
        self._catch_up()
        if self._lost > self._rounding_allowed():
            self._derive()
            self._catch_up()
        self.effort.correction = clock() - start
        self._go_on()
        self.effort.computation = clock() - start - self.effort.correction

    def _passes(self) -> Passes:
        return NearPasses(self)

    def _derive(self) -> None:
        """Compute all residuals from the values, in one pass over the edges."""
        n, passes = self.graph.vertices, self._passes()
        passes.share_out()
        passes.measure(self.program.own(self.facts()))
        self._marks[:n] = np.abs(self.state["residual"][:n]) > self.state.params[1]
        self._measured(passes)

    def _measured(self, passes: Passes) -> None:
        """Note that the residuals were computed from the values."""
        scores = self._largest() if self.bounds_each else self._sums().total  # no score of the others is negative
        self._lost = EPSILON * scores * float(np.log2(self.graph.vertices + 2)) + passes.lost  # by sums
        self.effort.edges_read += passes.edges

    def _catch_up(self) -> None:
        """Correct the messages with the largest errors from old divisors, until all other errors fit in the bound."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self.program.fixed_divisors or not self._behind.size:
            return
        divisors, factor, behind = self.state["divisors"], self.state.params[0], self._behind
        off, pressing = self._off()
        sums = self._sums()
        allowed = WAITING * factor * self.program.allowed(sums.total + sums.surplus)
        chosen = np.flatnonzero(pressing)
        off[chosen] = 0.0
        if off.sum() > allowed:
            begins, ends = self.ends_of("out")
            order = np.argsort(-off / (ends[behind] - begins[behind] + 1))
            enough = off.sum() - np.cumsum(off[order]) <= allowed / 2
            more = order[: int(np.argmax(enough)) + 1]
            chosen = np.concatenate([chosen, more[off[more] > 0]])
            off[chosen] = 0.0
        begins, ends = self.ends_of("out")
        if not self.bounds_each and WIDE * int((ends[behind[chosen]] - begins[behind[chosen]]).sum()) > self.graph.arcs:
            self._sweep()
            return
        self._correct_lists(behind[chosen])
        self.program.off += float(off.sum())
        self._behind = behind[divisors[behind] != self._strength[behind]]

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
            if not self._lower(self.graph.arcs // PART):
                self._sweep()
            self._catch_up()

    def _sweep(self) -> None:
        """Bring all values up to date by passes over all edges; no message is off then."""
        passes = self._passes()
        self.effort.affected += self.graph.vertices
        for _ in range(ATTEMPTS):
            before = self._send(passes)
            if self._holds():
                break
            if self._sums().left > SLOW * before:
                self._sweep_values(passes)
                return
        self._take_marked()
        self.effort.edges_read += passes.edges

    def _send(self, passes: Passes) -> float:
        """Send all residuals on, and correct all messages; returns what residuals and corrections may have been, in
        sum.
        """
        sums, n = self._sums(), self.graph.vertices
        before, stretch = sums.left + self.program.off, self.program.stretch(sums, self.facts())
        sent = before + abs(stretch[0] * sums.total)
        loss = LOSS * self.program.allowed(sums.total + sums.surplus) / max(sent, 1e-300)
        lost = passes.send(self._strength[:n], stretch, loss)
        self._lost += lost + ROUNDING * abs(sums.total)
        self._behind, self.program.off = self._behind[:0], self._lost
        return before

    def _sweep_values(self, passes: Passes) -> None:
        """Sweep until the bound holds, or rounding lets nothing improve."""
        facts = self.facts()
        own, fraction, change = self.program.own(facts), self._expected, np.inf
        passes.share_out()
        while True:
            before, change = change, passes.sweep(own)
            passes.balanced(lambda total, stuck: self.program.balance(total, stuck, facts))
            (likely, enough), stuck = self._swept_enough(), change >= self._halting * before
            if fraction * change > likely and not stuck:
                continue
            passes.measure(own)
            left = self._sums().left
            self._found = left / max(change, 1e-300)
            if left <= enough or stuck:
                break
            fraction = max(fraction, self._found)
        self._take_marked()
        self._measured(passes)
        self.program.off = self._lost

    def _swept_enough(self) -> tuple[float, float]:
        """The sum of residuals at which they are measured, if that is expected, and at which sweeps end, if that was
        measured.
        """
        enough = SWEPT * self.program.allowed(self._sums().total)
        return enough, enough

    def _holds(self) -> bool:
        program, sums = self.program, self._sums()
        bound = program.error(sums)
        if bound > program.tol:
            bound = min(bound, program.tight_error(sums, self.state["residual"], self.facts()))
        program.error_bound, program.converged = bound, bound <= program.tol
        return program.converged

    def _lower(self, most: int) -> bool:
        """Let one thread lower the sum of residuals to what the bound needs and a little more; False: this takes more
        than `most` edges.

        When a vertex sends its residual, a fixed share of it is gone, at the cost of its edges. So those with much of
        it per edge go first, and the sum falls ever more slowly: where it fell too slowly so far, `most` edges will not
        be enough.
        """
        n, (factor, _, absorber) = self.graph.vertices, self.state.params
        sums = self._sums()
        left = sums.left
        enough = max(self.program.enough(sums, ROOM), 0.1 * self.program.allowed(sums.total + sums.surplus))
        followed, first = 0, left
        values, residual, _, divisors = self.state.arrays
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        if self._queue.size < n:
            self._queue = np.empty(self._room, np.uint32)
        lists = (begins, ends, targets, weights if self._weighted else NO_WEIGHTS)
        given = (*lists, values, residual, divisors, factor, absorber, self._marks)
        density = None
        while left > enough and followed < most and followed * (left - enough) <= most * (first - left):
            densities = np.abs(residual[:n]) / (ends[:n] - begins[:n] + 1)
            density = (float(densities.max()) if density is None else density) / STEP
            starts = np.flatnonzero(densities > density)
            goal = (density, left, enough, most - followed)
            vertices, edges, total, left = deltas.spread_densest(starts, *goal, *given, self._queue)
            self.effort.edges_read += int(edges)
            self.effort.affected += int(vertices)
            self._lost += ROUNDING * float(total)
            followed += int(edges)
        return bool(left <= enough)

    def _run(self, start: Array | None) -> None:
        program, state = self._execute(start)
        assert isinstance(program, Spreading)
        self.state.params = state.params
        self.program.error_bound, self.program.converged = program.error_bound, program.converged

    def _active(self) -> Array:
        """The vertices to go on from: those that were marked; if there are none and the bound does not hold, the
        largest residuals.
        """
        n = self.graph.vertices
        chosen = self._take_marked()
        if chosen.size:
            return chosen
        values, residual = self.state["values"][:n], self.state["residual"][:n]
        factor, threshold, absorber = self.state.params
        left = float(np.abs(residual).sum())
        allowed = self.program.allowed(float(values.sum()) + float(residual.sum()))
        remaining = self.program.remaining(left)
        if remaining <= allowed or not left:
            self.program.error_bound, self.program.converged = self.program.bound(remaining, allowed), True
            return chosen
        threshold = min(threshold, LOWER * max(allowed - remaining + left, 0.1 * allowed) / max(n, 1))
        self.state.params = (factor, threshold, absorber)
        return np.flatnonzero(np.abs(residual) > threshold)


class Passes(ABC):
    """Passes over all in-edges, on the values, residuals and divisors of maintained scores. Deltas are overwritten."""

    def __init__(self, scores: ShiftedScores) -> None:
        graph = scores.graph
        self._scores, self._team, self._n, self._arcs = scores, scores.team, graph.vertices, graph.arcs
        self._weighted = scores.reads_weights() and graph.weighted
        self._values, self._residual, self._shares, self._divisors = scores.state.arrays
        self._factor, _, self._absorber = scores.state.params
        self._rounding, self._sums = EPSILON, np.zeros(3)  # of the last pass that renewed: as in `kernels/scores`
        # Edges read; the error of residuals that were measured with rounded shares.
        self.edges, self.lost = 0, 0.0

    @abstractmethod
    def _pass(self, renews: bool, own: Array) -> None:
        """Renew all values from `own` and their in-neighbours, or collect what arrives in the residuals."""

    def send(self, strengths: Array, stretch: tuple[float, Array], loss: float) -> float:
        """Send all residuals on, with new divisors; returns what rounding may have changed.

        `stretch`: as `Spreading.stretch` gives it. `loss`: of what is sent, that rounding may lose.
        """
        self._use(loss >= SINGLE)
        given = (self._values, self._residual, self._divisors, strengths, *stretch, self._shares)
        sent = float(sum(self._team.split(lambda a, b: deltas.take_residuals(a, b, *given), self._n)))
        self._pass(False, NOTHING)
        self.edges += self._arcs
        return float(self._factor * sent * self._rounding)

    def sweep(self, own: Array) -> float:
        """Set one value after the other; returns the sum of all changes. `own`: what a vertex has without any edge."""
        self._pass(True, own)
        self.edges += self._arcs
        return float(self._sums[2])

    def balanced(self, balance: Callable[[float, float], float]) -> None:
        """After a sweep, multiply values and shares by balance(the sum of values, the part of it at vertices that send
        nothing).
        """
        by = balance(float(self._sums[0]), float(self._sums[1]))
        if by != 1:
            self._team.split(lambda a, b: np.multiply(self._values[a:b], by, out=self._values[a:b]), self._n)
            self._team.split(lambda a, b: np.multiply(self._shares[a:b], by, out=self._shares[a:b]), self._n)

    def measure(self, own: Array) -> None:
        """Set the residuals to what the values lack."""
        self._share_values()  # shares that were multiplied since are rounded more than once
        self._team.split(lambda a, b: deltas.lacks(a, b, self._values, self._residual, own), self._n)
        self._pass(False, own)
        self.edges += self._arcs
        self.lost = self._factor * SINGLE * float(np.sum(self._values[: self._n])) if self._rounding == SINGLE else 0.0

    def share_out(self) -> None:
        """Make the shares of all values, for sweeps and for measuring."""
        self._use(self._single_suffices())
        self._share_values()

    def _single_suffices(self) -> bool:
        """If rounding is far below the bound. A bound for each vertex does not know how large one share is."""
        program, total = self._scores.program, float(np.sum(self._values[: self._n]))
        return not program.bounds_each and self._factor * SINGLE * total <= ROUNDED_SHARES * program.allowed(total)

    def _share_values(self) -> None:
        given = (self._values, self._divisors, self._shares)
        self._team.split(lambda a, b: deltas.share_values(a, b, *given), self._n)

    def _use(self, single: bool) -> None:
        """Hold shares in single precision, or in double. Weights may be of any size, so with them in double."""
        whole = self._scores.state["deltas"]
        single = single and not self._weighted
        self._shares, self._rounding = (whole.view(np.float32), SINGLE) if single else (whole, EPSILON)


class NearPasses(Passes):
    """Passes over edges that are all near, in pieces of about equal size."""

    def __init__(self, scores: ShiftedScores) -> None:
        super().__init__(scores)
        side = scores.graph.sides["in"]
        begins, ends, sources, weights = side.arrays()
        self._lists = (begins[: self._n], ends[: self._n], sources, weights if self._weighted else NO_WEIGHTS)
        self._cuts = np.empty(2 + (side.slots + self._n) // sizes.now.ranked_piece, np.int64)
        kernels.even_cuts(self._lists[0], side.slots, self._cuts)

    def _pass(self, renews: bool, own: Array) -> None:
        arrays, sums = (self._values, self._residual, self._shares, self._divisors), np.zeros(3)
        state, params = for_kernels(arrays, self._factor, self._absorber, own, renews, sums)
        edges, cuts = (0, self._lists[2].size, 0, 0, NO_MARKS, True), self._cuts

        def piece(k: int) -> None:
            given = (*edges, *self._lists, state, state, params, None, NO_QUEUE, 0)
            kernels.sweep_range(cuts[k], cuts[k + 1], *given)

        self._team.each(piece, cuts.size - 1)
        self._sums = sums


def for_kernels(
    arrays: tuple[Array, ...], factor: float, absorber: int, own: Array, renews: bool, sums: Array
) -> tuple[tuple[Array, Array], Any]:
    """State and parameters of the passes in `kernels/scores/passes.py`. Residuals are sums in double precision."""
    values, residual, shares, divisors = arrays
    scored = (divisors, own, values, factor, absorber, renews)
    return (residual, shares), (None, scored, sums, shares if renews else residual, residual)
