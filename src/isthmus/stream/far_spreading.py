"""Scores that spread along edges which are far: a batch is answered by few rounds of reading.

A vertex whose list is read sends its residual and, by the same list, corrects what it has sent with an old divisor. So a round takes the
vertices that have most of both per edge: all but half of what the bound allows. Either part shrinks by that, the correction since it
becomes residuals elsewhere, less by the factor. Lists here and there take longer than their edges in bulk, so when a round, with those
before it, would take as long as a pass over all edges, there is a pass, which sends everything (`stream/sweeping.py`).

Rounds and passes are runs of `programs/sending.py` by the loop of every run. Sweeps and measuring read all in-edges, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels import densities
from isthmus.programs.program import State
from isthmus.programs.sending import Sending
from isthmus.programs.spreading import Sums
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.stream.maintained import Array
from isthmus.stream.residuals import NO_WEIGHTS, ROUNDING
from isthmus.stream.spreading import ATTEMPTS, ROOM, MaintainedSpreading
from isthmus.stream.sweeping import EPSILON, Passes

FURTHER = 2  # passes that send; if more of them are needed, sweeps take fewer
ROUNDS = 32  # after which a pass is made: something decays slowly
UNSENT = 0.5  # of what the bound allows, that a round leaves where it is
LEAST = 0.1  # of what the bound allows: rounds aim no lower
PIECES = 8  # of work, per thread


class MaintainedFarSpreading(MaintainedSpreading):
    """Values, residuals and divisors; no list is kept."""

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
        """Note what messages are off by. Rounds correct them."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self._behind.size and not self.program.fixed_divisors:
            self.program.off += float(self._off()[0].sum())
            self._behind = self._behind[self.state.arrays[3][self._behind] != self._strength[self._behind]]

    def _go_on(self) -> None:
        if self.bounds_each:
            super()._go_on()
            return
        self._take_marked()
        spent = rounds = passes = 0
        while passes < ATTEMPTS:
            self._catch_up()
            if self._holds() and not self._pressing().size:
                return
            spent += self._choose() if rounds < ROUNDS else self.graph.arcs
            rounds += 1
            rows = self._take_marked()
            if spent < self.graph.arcs and rows.size:
                self._send_some(rows)
            else:
                self._sweep()
                passes += 1

    def _is_slow(self, sums: Sums, before: float) -> bool:
        """Sweeps leave about the square of what passes that send do, and need one pass to measure that."""
        enough, rate = self.program.enough(sums, 1.0), sums.left / max(before, 1e-300)
        return rate >= 1 or enough <= 0 or np.log(enough / sums.left) < FURTHER * np.log(rate)

    def _pressing(self) -> Array:
        """Vertices whose messages must be corrected at once."""
        return self._behind[self._off()[1]] if self._behind.size else self._behind

    def _choose(self) -> int:
        """Mark the vertices that the next round should follow; returns what it costs, in edges that could be read in bulk."""
        n, factor, amounts = self.graph.vertices, self.state.params[0], self.state.arrays[2]
        np.abs(self.state.arrays[1][:n], out=amounts[:n])
        pressing = self._pressing()
        if self._behind.size:
            amounts[self._behind] += self._off()[0] / factor
            self._marks[pressing] = 1
        lists, sums = self.ends_of("out"), self._sums()
        bins = np.zeros((3, densities.BINS))
        densities.sort_by_density(0, n, amounts, *lists, *bins)
        enough = self.program.enough(sums, ROOM) + self.program.off / factor
        enough = max(enough, LEAST * self.program.allowed(sums.total + sums.surplus))
        at = int(np.searchsorted(np.cumsum(bins[0]), UNSENT * enough, side="right"))
        if at < densities.BINS:
            density = float(np.ldexp(1.0, densities.LOWEST + at - 1))
            self.team.split(lambda a, b: densities.mark_dense(a, b, amounts, *lists, density, self._marks), n)
        chosen = float(bins[1, at:].sum()) + sizes.now.lone_list * float(bins[2, at:].sum())
        return int(chosen) + int((lists[1][pressing] - lists[0][pressing] + sizes.now.lone_list).sum())

    def _send_some(self, rows: Array) -> None:
        """Let these vertices send their residuals, with new divisors."""
        values, residual, shares, divisors = self.state.arrays
        given = (values, residual, divisors, self._strength, shares)
        parts = self.in_parts(lambda a, b: densities.take_rows(rows, a, b, *given), rows.size)
        total, sent = (float(sum(column)) for column in zip(*parts, strict=True))
        self.effort.edges_read += self.deliver(rows)
        self.effort.affected += int(rows.size)
        self._lost += ROUNDING * total + EPSILON * self.state.params[0] * sent

    def deliver(self, start: Array | None) -> int:
        """Let the loop of every run send the shares of these vertices (None: all); returns the edges that it followed."""
        program = Sending(self.program, State(self.state.arrays, start, self.state.params))
        self.session.holdings.follow(self.graph.snapshot)
        return int(execute(program, self.session, quiet, None, None).trace.total("active_edges"))


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
