"""Scores brought up to date by passes over all in-edges, from where they are: for batches after which residuals are
everywhere.

A pass that *sends* adds all residuals to the values and sends them on. It also corrects all messages that were sent
with old divisors, and ends with the new residuals, exact but for rounding: nothing has to be measured. Residuals are
small, so single precision loses little of them, and halves the memory that is read. After a batch one such pass is
mostly enough, since what one vertex gains another loses.

Where that is slow, as in graphs with long paths, a *sweep* sets one value after the other to what it should be by its
in-neighbours; then a last pass *measures* what they lack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.packed_lists import PackedLists
from isthmus.kernels.scores import score_sweeps, sweeps
from isthmus.programs.program import Array
from isthmus.stream.maintain.residuals import NO_WEIGHTS
from isthmus.threads import Team

SINGLE = float(np.finfo(np.float32).eps) / 2  # of a share, lost by rounding it to single precision
EPSILON = float(np.finfo(np.float64).eps)


class Passes:
    """Passes over the in-edges in `side`, on the values, residuals, deltas and divisors in `state`. Deltas are
    overwritten.
    """

    def __init__(
        self, state: tuple[Array, ...], params: tuple[float, float, int], side: PackedLists, weighted: bool, team: Team
    ) -> None:
        self._begin(state, params, side.vertices, side.arcs, weighted, team)
        begins, ends, sources, weights = side.arrays()
        self._lists = (begins[: self._n], ends[: self._n], sources, weights if weighted else NO_WEIGHTS)
        self._cuts = np.empty(2 + (side.slots + self._n) // sizes.now.ranked_piece, np.int64)
        sweeps.even_cuts(self._lists[0], side.slots, self._cuts)

    def _begin(
        self,
        state: tuple[Array, ...],
        params: tuple[float, float, int],
        vertices: int,
        arcs: int,
        weighted: bool,
        team: Team,
    ) -> None:
        self._n, self._arcs, self._weighted, self._team = vertices, arcs, weighted, team
        self._values, self._residual, self._shares, self._divisors = state
        self._factor, _, self._absorber = params
        # Edges read; what residuals may be off by as shares were rounded when they were measured.
        self.edges, self.lost = 0, 0.0

    def send(self, strengths: Array, stretch: tuple[float, Array], loss: float) -> float:
        """Send all residuals on, with new divisors; returns what rounding may have changed.

        `stretch`: as `Spreading.stretch` gives it. `loss`: of what is sent, that rounding may lose.
        """
        shares = self._shares.view(np.float32)[: self._n] if loss >= SINGLE and not self._weighted else self._shares
        given = (self._values, self._residual, self._divisors, strengths, *stretch, shares)
        sent = self._take(*given)
        to = (self._residual, shares, self._factor, self._absorber)
        self._over_all(lambda first, last, lists: score_sweeps.send_shares(first, last, *lists, *to))
        return self._factor * sent * (SINGLE if shares is not self._shares else EPSILON)

    def _take(self, *given: Any) -> float:
        return float(sum(self._team.split(lambda a, b: score_sweeps.take_residuals(a, b, *given), self._n)))

    def sweep(self, own: Array) -> float:
        """Set one value after the other; returns the sum of all changes. `own`: what a vertex has without any edge."""
        given = (own, self._values, self._divisors, self._shares, self._factor, self._absorber)
        return float(
            sum(self._over_all(lambda first, last, lists: score_sweeps.sweep_values(first, last, *lists, *given)))
        )

    def balanced(self, balance: Callable[[float, float], float]) -> None:
        """Multiply values and shares by balance(the sum of values, the part of it at vertices that send nothing)."""
        parts = self._team.split(lambda a, b: score_sweeps.stuck_sums(a, b, self._values, self._divisors), self._n)
        by = balance(*(float(sum(column)) for column in zip(*parts, strict=True)))
        if by != 1:
            self._team.split(lambda a, b: np.multiply(self._values[a:b], by, out=self._values[a:b]), self._n)
            self._team.split(lambda a, b: np.multiply(self._shares[a:b], by, out=self._shares[a:b]), self._n)

    def measure(self, own: Array) -> None:
        """Set the residuals to what the values lack."""
        given = (own, self._values, self._shares, self._residual, self._factor, self._absorber)
        self._over_all(lambda first, last, lists: score_sweeps.measure_residuals(first, last, *lists, *given))

    def share_out(self) -> None:
        """Make the shares of all values, for sweeps and for measuring."""
        self._team.split(
            lambda a, b: score_sweeps.share_values(a, b, self._values, self._divisors, self._shares), self._n
        )

    def _over_all(self, work: Callable[[int, int, Any], Any]) -> list[Any]:
        """work(first, last, in-lists) for ranges that cover all vertices, in order but for what members do at a time;
        what they return.
        """
        self.edges += self._arcs
        return self._over(self._lists, self._cuts, work)

    def _over(self, lists: tuple[Array, ...], cuts: Array, work: Callable[[int, int, Any], Any]) -> list[Any]:
        found: list[Any] = [None] * (cuts.size - 1)

        def piece(k: int) -> None:
            found[k] = work(cuts[k], cuts[k + 1], lists)

        self._team.each(piece, len(found))
        return found
