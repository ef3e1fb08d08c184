"""One pass over all in-edges of scores that spread, by the loop of every run: edges are read ahead.

A pass *renews* values, one after the other, or *collects* in the residuals what comes along the edges
(`kernels/scores/score_passes.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import score_passes
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.scores.spreading import Spreading


def nothing(params: Any) -> Any:
    return 0.0


def sent(total: Any, u: Any, w: Any, state: Any, params: Any) -> Any:
    return total + state[2][u] * w


def received(v: Any, total: Any, state: Any, params: Any) -> Any:
    if v != params[1]:
        atomic_add(state[1], v, params[0] * total)


class Renewing(Program):
    """Renews the values of a `Spreading` in place; `change` is then the sum of all changes. Residuals are zeros, and
    are left so.
    """

    order_free = False  # each edge counts once
    all_active = True
    pulls = True
    max_iter = 1
    runs_again = True  # a batch takes several passes
    sides = ("in",)
    state_bytes = Spreading.state_bytes
    kernels: tuple[Any, Any] = (score_passes.renew_rows, score_passes.renew_range)

    def __init__(
        self, program: Spreading, arrays: tuple[Array, ...], params: tuple[float, float, int], own: Array
    ) -> None:
        """`arrays`: values, residuals, shares and divisors. `own`: what a vertex has without any edge, by vertex or
        once for all.
        """
        factor, _, absorber = params
        self.name, self._weights, self._sums = program.name, program.reads_weights(), np.zeros(1)
        self._state = State(arrays, None, (factor, absorber, own, self._sums))

    def reads_weights(self) -> bool:
        return self._weights

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing=nothing, sent=sent, received=received)

    def begin(self, facts: Facts) -> State:
        return self._state

    def loops(self, state: State) -> tuple[Any, Any]:
        return self.kernels

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Renew the vertices that are left."""
        given, rest = (*facts.lists.arrays, state.arrays, state.params, frontier.next_marks), score_passes.renew_rest
        facts.team.split(lambda a, b: rest(a, b, *given), facts.vertices)
        return False

    @property
    def change(self) -> float:
        return float(self._sums[0])

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {}


class Collecting(Renewing):
    """Adds to the residuals of a `Spreading` what its shares bring along all edges."""

    kernels = (score_passes.collect_rows, score_passes.collect_range)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        return False
