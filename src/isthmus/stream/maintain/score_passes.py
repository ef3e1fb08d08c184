"""Scores brought up to date by passes over all in-edges, from where they are: for batches after which residuals are
everywhere.

Scores x solve x = b + A'x, and the residuals of values are r = b + A'values - values. A pass that *sends* adds all
residuals to the values and sends them on: the new residuals are A'r, so sum |A'r| <= factor * sum |r|. It also corrects
all messages that were sent with old divisors, and ends with the new residuals, exact but for rounding: nothing has to be
measured. Residuals are small, so single precision loses little of them, and halves the memory that is read. After a
batch one such pass is mostly enough, since what one vertex gains another loses.

Where that is slow, as in graphs with long paths, a *sweep* sets one value after the other to b + A'values; then a last
pass *measures* the residuals, which bound the error however the values were found (`programs/scores/deltas.py`).

Each pass either *renews* values or *collects* what arrives in the residuals (`kernels/scores/passes.py`). Near edges are
one delivery, which the team works on in pieces. Far edges are read ahead by the loop of every run: a pass is a program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import deltas, passes
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.scores.deltas import NOTHING, Spreading
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.stream.maintain.residuals import EPSILON, NO_WEIGHTS, ShiftedScores

SINGLE = float(np.finfo(np.float32).eps) / 2  # of a share, lost by rounding it to single precision
ROUNDED_SHARES = 0.01  # part of what the bound allows, that rounding shares to single precision may change
NO_MARKS, NO_QUEUE = np.empty(0, np.uint8), np.empty(0, np.uint32)


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
        return self._factor * sent * self._rounding

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
        return False

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
        passes.even_cuts(self._lists[0], side.slots, self._cuts)

    def _pass(self, renews: bool, own: Array) -> None:
        arrays, sums = (self._values, self._residual, self._shares, self._divisors), np.zeros(3)
        state, params = for_kernels(arrays, self._factor, self._absorber, own, renews, sums)
        edges, cuts = (0, self._lists[2].size, 0, 0, NO_MARKS, True), self._cuts

        def piece(k: int) -> None:
            given = (*edges, *self._lists, state, state, params, None, NO_QUEUE, 0)
            passes.sweep_range(cuts[k], cuts[k + 1], *given)

        self._team.each(piece, cuts.size - 1)
        self._sums = sums


class FarPasses(Passes):
    """Passes over edges that are far, by the loop of every run."""

    def _single_suffices(self) -> bool:
        """If rounding is far below the bound. A bound for each vertex does not know how large one share is."""
        program, total = self._scores.program, float(np.sum(self._values[: self._n]))
        return not program.bounds_each and self._factor * SINGLE * total <= ROUNDED_SHARES * program.allowed(total)

    def _pass(self, renews: bool, own: Array) -> None:
        scores = self._scores
        if renews:  # residuals add up lists that come in parts
            self._team.split(lambda a, b: self._residual[a:b].fill(0.0), self._n)
        arrays = (self._values, self._residual, self._shares, self._divisors)
        program = (Renewing if renews else Collecting)(scores.program, arrays, scores.state.params, own)
        scores.session.near_memory.follow(scores.graph.snapshot)
        execute(program, scores.session, quiet, None, None)
        self._sums = program.sums


def for_kernels(
    arrays: tuple[Array, ...], factor: float, absorber: int, own: Array, renews: bool, sums: Array
) -> tuple[tuple[Array, Array], Any]:
    """State and parameters of the passes in `kernels/scores/passes.py`. Residuals are sums in double precision."""
    values, residual, shares, divisors = arrays
    scored = (divisors, own, values, factor, absorber, renews)
    return (residual, shares), (None, scored, sums, shares if renews else residual, residual)


def nothing(params: Any) -> Any:
    return 0.0


def sent(total: Any, u: Any, w: Any, state: Any, params: Any) -> Any:
    return total + state[1][u] * w


def received(v: Any, total: Any, state: Any, params: Any) -> Any:
    if v != params[1][4]:
        atomic_add(state[0], v, params[1][3] * total)


class Renewing(Program):
    """Renews the values of a `Spreading` in place; `sums` then has the sums of values, of those at vertices that send
    nothing, and of changes. Residuals are zeros, and are left so.
    """

    order_free = False  # each edge counts once
    all_active = True
    pulls = True
    max_iter = 1
    runs_again = True  # a batch takes several passes
    sides = ("in",)
    state_bytes = Spreading.state_bytes
    renews = True

    def __init__(
        self, program: Spreading, arrays: tuple[Array, ...], params: tuple[float, float, int], own: Array
    ) -> None:
        """`arrays`: values, residuals, shares and divisors. `own`: what a vertex has without any edge, by vertex or
        once for all.
        """
        factor, _, absorber = params
        self.name, self._weights, self.sums = program.name, program.reads_weights(), np.zeros(3)
        state, params = for_kernels(arrays, factor, absorber, own, self.renews, self.sums)
        self._state = State(state, None, params)

    def reads_weights(self) -> bool:
        return self._weights

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing=nothing, sent=sent, received=received)

    def begin(self, facts: Facts) -> State:
        return self._state

    def loops(self, state: State) -> tuple[Any, Any]:
        return passes.sweep_rows, passes.sweep_range

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Renew the vertices that are left."""
        given, rest = (*facts.lists.arrays, True, state.arrays, state.params, frontier.next_marks), passes.sweep_rest
        facts.team.split(lambda a, b: rest(a, b, *given), facts.vertices)
        return False

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {}


class Collecting(Renewing):
    """Adds to the residuals of a `Spreading` what its shares bring along all edges."""

    renews = False

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        return False
