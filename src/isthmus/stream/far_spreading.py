"""Scores kept current where lists are far: by the lists of few vertices, or by a few passes over all edges.

A vertex whose list is read sends its residual and, along the same edges, corrects the messages that it sent with an old divisor. Each such
step shrinks the sum of both, by the program's factor. So if few vertices hold all of this sum, but for half of what the bound allows, their
lists are read, and kept while these vertices send repeatedly.

Otherwise there are passes over all edges, as in `stream/sweeping.py`. A sweep leaves about a tenth of the residuals, so few are needed,
unless small parts of the graph, such as two vertices by themselves, converge slowly; these parts are then finished by their lists. A pass
that sends is a run of `programs/sending.py` by the loop of every run; sweeps and measuring read all in-edges piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels import densities
from isthmus.programs.program import State
from isthmus.programs.sending import Sending
from isthmus.programs.spreading import Spreading, Sums
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintained import Array
from isthmus.stream.neighbours import Neighbours
from isthmus.stream.residuals import NO_WEIGHTS, ROUNDING
from isthmus.stream.spreading import ATTEMPTS, ROOM, STUCK, SWEPT, MaintainedSpreading
from isthmus.stream.sweeping import EPSILON, Passes

SENT = 1.5  # of what the bound allows: a pass that sends mostly leaves less than two thirds, a sweep less than a fifth, unmeasured
MARGIN = 1.5  # of what the last sweep has left; a sweep that leaves more than expected is found out when it is measured
SLOW = 0.5  # a sweep that changes more than this part of the change of the sweep before: the rest is probably in few places
PART = 2  # lists of few vertices may take at most half of the time of a pass
UNSENT = 0.5  # part of what the bound allows that is not sent when lists of few vertices are read
HALF = 0.5  # lists of few vertices are read only if they send at least this part of all that is to be sent
LEAST = 0.1  # part of what the bound allows: no step aims for less
PIECES = 8  # pieces of work per thread


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
            self.state.arrays[0][:n] = self.state.arrays[1][:n] / (1 - factor)
            self._sweep_values(self._passes())
        self._go_on()

    def _passes(self) -> Passes:
        return FarPasses(self)

    def _catch_up(self) -> None:
        """Note what messages are off by. They are corrected when their lists are read."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self._behind.size and not self.program.fixed_divisors:
            self.program.off += float(self._off()[0].sum())
            self._behind = self._behind[self.state.arrays[3][self._behind] != self._strength[self._behind]]

    def _go_on(self) -> None:
        if self.bounds_each:
            super()._go_on()
            return
        self._take_marked()
        self._halting, spent = SLOW, 0
        for _ in range(ATTEMPTS):
            self._catch_up()
            if self._holds() and not self._pressing().size:
                return
            density, cost = self._choose(self.graph.arcs // PART - spent)
            if cost:
                self._spread(density)
                self._halting, spent = SLOW, spent + cost
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
        values += residual
        divisors[:] = self._strength[:n]
        self._behind, self.program.off = self._behind[:0], 0.0
        self._sweep_values(self._passes())
        self.effort.affected += n

    def _sweep_values(self, passes: Passes) -> None:
        super()._sweep_values(passes)
        self._expected = MARGIN * self._found

    def _swept_enough(self) -> float:
        """Sweeps end with residuals that cancel, so the better bound holds."""
        return self.program.enough(Sums(self._sums().total, 0.0, 0.0), SWEPT)

    def _pressing(self) -> Array:
        """Vertices whose messages must be corrected at once."""
        return self._behind[self._off()[1]] if self._behind.size else self._behind

    def _choose(self, most: int) -> tuple[float, int]:
        """The density from which on vertices should send, and the cost of reading their lists: the edges that a pass reads in that time.

        The cost is at most `most`, and the lists fit in the table. Density 0: such vertices have less than half of what is to be sent.
        """
        n, factor, amounts = self.graph.vertices, self.state.params[0], self.state.arrays[2]
        np.abs(self.state.arrays[1][:n], out=amounts[:n])
        lists, pressing, sums = self.ends_of("out"), self._pressing(), self._sums()
        if self._behind.size:
            amounts[self._behind] += self._off()[0] / factor
        totals, edges, vertices = np.zeros((3, densities.BINS))
        densities.sort_by_density(0, n, amounts, *lists, totals, edges, vertices)
        enough = self.program.enough(sums, ROOM) + self.program.off / factor
        enough = max(enough, LEAST * self.program.allowed(sums.total + sums.surplus))
        read = from_the_top(edges) + float((lists[1][pressing] - lists[0][pressing]).sum())
        costs = read + sizes.now.lone_list * (from_the_top(vertices) + pressing.size)
        at = needed = int(np.searchsorted(np.cumsum(totals), UNSENT * enough, side="right"))
        while at < densities.BINS and (read[at] > self._neighbours.room or costs[at] > most):
            at += 1
        if costs[at] > most or read[at] > self._neighbours.room or (at > needed and totals[at:].sum() < HALF * totals.sum()):
            return 0.0, 0
        if at == densities.BINS:
            return np.inf, int(costs[at])
        return float(np.ldexp(1.0, densities.LOWEST + at - 1)), 1 + int(costs[at])  # vertices without edges cost nothing

    def _spread(self, density: float) -> None:
        """Let vertices with at least this density send, and send again whenever they reach it."""
        n, (values, residual, amounts, divisors) = self.graph.vertices, self.state.arrays
        whole, (factor, _, absorber) = self.ends_of("out"), self.state.params
        self.team.split(lambda a, b: densities.mark_dense(a, b, amounts, *whole, density, self._marks), n)
        self._marks[self._pressing()] = 1
        rows = self._take_marked()
        if self._queue.size < n:
            self._queue = np.empty(self._room, np.uint32)
        held = (*self._neighbours.of(rows), self._neighbours.weights)
        scores = (values, residual, divisors, self._strength, factor, absorber)
        vertices, _, total = densities.spread_held(rows, density, sizes.now.settled_alone, *whole, *held, *scores, self._marks, self._queue)
        self.effort.affected += int(vertices)
        self._lost += ROUNDING * float(total)

    def deliver(self, start: Array | None) -> int:
        """Let the loop of every run send the shares of these vertices (None: all); returns the edges that it followed."""
        program = Sending(self.program, State(self.state.arrays, start, self.state.params))
        self.session.holdings.follow(self.graph.snapshot)
        return int(execute(program, self.session, quiet, None, None).trace.total("active_edges"))


def from_the_top(amounts: Array) -> Array:
    """The sums of all that follow each entry, with itself; 0 at the end."""
    return np.append(amounts[::-1].cumsum()[::-1], 0.0)


class FarPasses(Passes):
    """Passes over edges that are far."""

    def __init__(self, keeper: MaintainedFarSpreading) -> None:
        graph, state = keeper.graph, keeper.state
        self._begin(state.arrays, state.params, graph.vertices, graph.arcs, keeper.reads_weights() and graph.weighted, keeper.team)
        self._keeper = keeper

    def send(self, strengths: Array, stretch: tuple[float, Array], loss: float) -> float:
        """In double precision, whatever rounding may lose."""
        sent = self._take(self._values, self._residual, self._divisors, strengths, *stretch, self._shares)
        self.edges += self._keeper.deliver(None)
        return self._factor * sent * EPSILON

    def _over_all(self, work: Callable[[int, int, Any], Any]) -> list[Any]:
        found: list[Any] = []
        all_begins, all_ends = self._keeper.ends_of("in")
        for first, last, (begins, ends, sources, weights) in self._keeper.all_pieces("in"):
            even = np.linspace(all_begins[first], all_ends[last - 1], PIECES * self._team.size + 1)[1:-1]
            cuts = np.concatenate([[first], first + np.searchsorted(all_begins[first:last], even), [last]])
            lists = (begins, ends, sources, weights if self._weighted else NO_WEIGHTS)
            found += self._over(lists, cuts, work)
        self.edges += self._arcs
        return found
