"""Scores that a stream keeps current: after a batch, residuals are sent on until the bound on the error holds.

`residuals.py` has corrected the residuals r at the changed edges. The error is at most factor / (1 - factor) * (sum |r|
+ off) + off (`programs/scores/deltas.py`). A vertex that sends its residual shrinks sum |r| by at least (1 - factor) *
|residual|, at the cost of its edges. So vertices with most residual per edge go first. If that takes too long, passes
over all edges shrink the sum by the factor or better, each (`score_passes.py`).

Near lists: one thread follows the densest vertices, in order of arrival.

Far lists: a vertex whose list is read sends its residual and, along the same edges, corrects the messages that it sent
with an old divisor. So if few vertices have the whole sum of both, except for half of what the bound allows, their lists
are read, and stay while these vertices send repeatedly. Otherwise there are sweeps. A sweep leaves about a tenth of the
residuals, so few are needed, unless small parts of the graph, such as two vertices by themselves, converge slowly; these
parts are then finished by their lists.
"""

from __future__ import annotations

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.change import Change
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.scores import deltas
from isthmus.programs.dependencies import with_room
from isthmus.programs.scores.deltas import LOWER, Spreading, Sums
from isthmus.programs.scores.sweeps import LEFT
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import Array
from isthmus.stream.maintain.neighbours import Neighbours
from isthmus.stream.maintain.registry import maintains
from isthmus.stream.maintain.residuals import EPSILON, NO_WEIGHTS, ROUNDING, ShiftedScores
from isthmus.stream.maintain.score_passes import FarPasses, NearPasses, Passes

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
STUCK = 0.999  # of the change of the sweep before: rounding lets no sweep come nearer


@maintains(Spreading, in_memory=True)
class MaintainedSpreading(ShiftedScores):
    """Scores within a bound on their error, in sum or at every vertex."""

    _halting = STUCK  # of the change of the sweep before: then sweeps end
    # of the change of a sweep, left as residuals: what is expected, and what was measured last.
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
        """Spread the residuals that all scores begin with; these vertices are active (None: all)."""
        self._run(start)
        self._go_on()
        if not self.bounds_each:
            self._lower(sizes.now.settled_alone)  # so that the next batches find room in the bound
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

    def _own(self) -> Array:
        """What each vertex has without any edge, as passes need it."""
        return self.program.first_residuals(self.facts())

    def _derive(self) -> None:
        """Compute all residuals from the values, in one pass over the edges."""
        n, passes = self.graph.vertices, self._passes()
        passes.share_out()
        passes.measure(self._own())
        self._marks[:n] = np.abs(self.state["residual"][:n]) > self.state.params[1]
        self._measured(passes)

    def _measured(self, passes: Passes) -> None:
        """Note that the residuals were computed from the values."""
        scores = self._largest() if self.bounds_each else self._sums().total  # no score of the others is negative
        self._lost = EPSILON * scores * float(np.log2(self.graph.vertices + 2)) + passes.lost  # by sums
        self.effort.edges_read += passes.edges

    def _catch_up(self) -> None:
        """Correct the divisors that matter most, until what the others are off by leaves room in the bound."""
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
        own, fraction, change = self._own(), self._expected, np.inf
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
        given = (
            begins,
            ends,
            targets,
            weights if self._weighted else NO_WEIGHTS,
            values,
            residual,
            divisors,
            factor,
            absorber,
        )
        density = None
        while left > enough and followed < most and followed * (left - enough) <= most * (first - left):
            densities = np.abs(residual[:n]) / (ends[:n] - begins[:n] + 1)
            density = (float(densities.max()) if density is None else density) / STEP
            starts = np.flatnonzero(densities > density)
            goal = (density, left, enough, most - followed)
            vertices, edges, total, left = deltas.spread_densest(starts, *goal, *given, self._marks, self._queue)
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
        allowed, remaining = (
            self.program.allowed(float(values.sum()) + float(residual.sum())),
            self.program.remaining(left),
        )
        if remaining <= allowed or not left:
            self.program.error_bound, self.program.converged = self.program.bound(remaining, allowed), True
            return chosen
        threshold = min(threshold, LOWER * max(allowed - remaining + left, 0.1 * allowed) / max(n, 1))
        self.state.params = (factor, threshold, absorber)
        return np.flatnonzero(np.abs(residual) > threshold)


# of what the bound allows: a pass that sends mostly leaves less than two thirds, a sweep less than a fifth, unmeasured.
SENT = 1.5
NEARLY = 1.25  # of what the bound allows: residuals that are measured, and then sent if they are more than is allowed
# a sweep that changes more than this part of the change of the sweep before: the rest is probably in few places.
SLOW_FAR = 0.5
PART_FAR = 2  # lists of few vertices may take at most half of the time of a pass
UNSENT = 0.5  # part of what the bound allows that is not sent when lists of few vertices are read
HALF = 0.5  # lists of few vertices are read only if they send at least this part of all that is to be sent
LEAST = 0.1  # part of what the bound allows: no step aims for less


@maintains(Spreading, in_memory=False)
class MaintainedFarSpreading(MaintainedSpreading):
    """Values, residuals and divisors, and the lists of few vertices for a moment."""

    def __init__(self, program: Spreading, session: Session, name: str | None = None) -> None:
        super().__init__(program, session, name)
        self._neighbours = Neighbours(self)

    def near_bytes(self, vertices: int) -> int:
        return super().near_bytes(vertices) + self._neighbours.near_bytes(vertices)

    def _first_scores(self, start: Array | None) -> None:
        if self.bounds_each:
            super()._first_scores(start)
            return
        if start is None:  # if nothing were lost at vertices without edges, this would be the sum of all scores
            n, factor = self.graph.vertices, self.state.params[0]
            self.state["values"][:n] = self.state["residual"][:n] / (1 - factor)
            self._sweep_values(self._passes())
        self._go_on()

    def _passes(self) -> Passes:
        return FarPasses(self)

    def _own(self) -> Array:
        return self.program.own(self.facts())

    def _catch_up(self) -> None:
        """Note what messages are off by. They are corrected when their lists are read."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self._behind.size and not self.program.fixed_divisors:
            self.program.off += float(self._off()[0].sum())
            self._behind = self._behind[self.state["divisors"][self._behind] != self._strength[self._behind]]

    def _go_on(self) -> None:
        if self.bounds_each:
            super()._go_on()
            return
        self._take_marked()
        self._halting, spent = SLOW_FAR, 0
        for _ in range(ATTEMPTS):
            self._catch_up()
            if self._holds() and not self._pressing().size:
                return
            density, cost = self._choose(self.graph.arcs // PART_FAR - spent)
            if cost:
                self._spread(density)
                self._halting, spent = SLOW_FAR, spent + cost
            else:
                self._sweep()
                self._halting, spent = STUCK, 0

    def _sweep(self) -> None:
        """Bring all values up to date by few passes: by sending, if that is probably done at once, else by sweeps."""
        sums, n, off = self._sums(), self.graph.vertices, self.program.off
        self.program.off = self._lost  # a pass corrects the others
        if sums.left + off <= SENT * self.program.enough(Sums(sums.total, 0.0, 0.0), 1.0):
            self.program.off = off
            super()._sweep()
            return
        values, residual, _, divisors = (array[:n] for array in self.state.arrays)
        self.team.split(lambda a, b: np.add(values[a:b], residual[a:b], out=values[a:b]), n)
        self.team.split(lambda a, b: np.copyto(divisors[a:b], self._strength[a:b]), n)
        self._behind, self.program.off = self._behind[:0], 0.0
        self._sweep_values(self._passes())
        self.effort.affected += n

    def _sweep_values(self, passes: Passes) -> None:
        super()._sweep_values(passes)
        self._expected = self._found

    def _swept_enough(self) -> tuple[float, float]:
        """Sweeps end with residuals that cancel, so the better bound holds. To send what is left takes one pass,
        another sweep two.
        """
        allowed = self.program.enough(Sums(self._sums().total, 0.0, 0.0), 1.0)
        return NEARLY * allowed, SENT * allowed

    def _pressing(self) -> Array:
        """Vertices whose messages must be corrected at once."""
        return self._behind[self._off()[1]] if self._behind.size else self._behind

    def _choose(self, most: int) -> tuple[float, int]:
        """The density from which on vertices should send, and the cost of reading their lists: the edges that a pass
        reads in that time.

        The cost is at most `most`, and the lists fit in the table. Density 0: such vertices have less than half of what
        is to be sent.
        """
        n, factor, amounts = self.graph.vertices, self.state.params[0], self.state["deltas"]
        residual = self.state["residual"]
        self.team.split(lambda a, b: np.abs(residual[a:b], out=amounts[a:b]), n)
        lists, pressing, sums = self.ends_of("out"), self._pressing(), self._sums()
        if self._behind.size:
            amounts[self._behind] += self._off()[0] / factor
        totals, edges, vertices = self._by_density(amounts, lists)
        enough = self.program.enough(sums, ROOM) + self.program.off / factor
        enough = max(enough, LEAST * self.program.allowed(sums.total + sums.surplus))
        read = from_the_top(edges) + float((lists[1][pressing] - lists[0][pressing]).sum())
        costs = read + sizes.now.lone_list * (from_the_top(vertices) + pressing.size)
        at = needed = int(np.searchsorted(np.cumsum(totals), UNSENT * enough, side="right"))
        while at < deltas.BINS and (read[at] > self._neighbours.capacity or costs[at] > most):
            at += 1
        if (
            costs[at] > most
            or read[at] > self._neighbours.capacity
            or (at > needed and totals[at:].sum() < HALF * totals.sum())
        ):
            return 0.0, 0
        if at == deltas.BINS:
            return np.inf, int(costs[at])
        # Vertices without edges cost nothing.
        return float(np.ldexp(1.0, deltas.LOWEST + at - 1)), 1 + int(costs[at])

    def _by_density(self, amounts: Array, lists: tuple[Array, Array]) -> Array:
        """Sums of amounts, edges and lists in bins of their density (`kernels/scores/deltas.py`)."""

        def part(first: int, last: int) -> Array:
            sums = np.zeros((3, deltas.BINS))
            deltas.sort_by_density(first, last, amounts, *lists, *sums)
            return sums

        total = np.zeros((3, deltas.BINS))
        for sums in self.team.split(part, self.graph.vertices):
            total += sums
        return total

    def _spread(self, density: float) -> None:
        """Let vertices with at least this density send, and send again whenever they reach it."""
        n, (values, residual, amounts, divisors) = self.graph.vertices, self.state.arrays
        whole, (factor, _, absorber) = self.ends_of("out"), self.state.params
        self.team.split(lambda a, b: deltas.mark_dense(a, b, amounts, *whole, density, self._marks), n)
        self._marks[self._pressing()] = 1
        rows = self._take_marked()
        if self._queue.size < n:
            self._queue = np.empty(self._room, np.uint32)
        held = (*self._neighbours.of(rows), self._neighbours.weights)
        scores = (values, residual, divisors, self._strength, factor, absorber)
        vertices, _, total = deltas.spread_held(
            rows, density, sizes.now.settled_alone, *whole, *held, *scores, self._marks, self._queue
        )
        self.effort.affected += int(vertices)
        self._lost += ROUNDING * float(total)


def from_the_top(amounts: Array) -> Array:
    """The sums of all that follow each entry, with itself; 0 at the end."""
    return np.append(amounts[::-1].cumsum()[::-1], 0.0)
