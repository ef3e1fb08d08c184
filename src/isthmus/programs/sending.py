"""One iteration of scores that spread: active vertices send once, and no vertex becomes active by it.

What a vertex sends along an edge of weight 1 is in the state before the iteration: its residual, and a correction of its earlier messages.
"""

from __future__ import annotations

from typing import Any

from isthmus.kernels.atomics import atomic_add
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.spreading import Spreading


def share(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return params[0] * state[2][u]


def receive(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    if v != params[1]:
        atomic_add(state[1], v, x * w)
    return False


class Sending(Program):
    """Adds to residuals what arrives. The arrays are those of a `Spreading`, with shares in place of deltas; `start` sends."""

    order_free = False  # each edge counts once
    max_iter = 1
    prefetched_array = 1  # residuals
    state_bytes = Spreading.state_bytes

    def __init__(self, program: Spreading, state: State) -> None:
        factor, _, absorber = state.params
        self.name, self._weights = program.name, program.reads_weights()
        self._state = State(state.arrays, state.start, (factor, absorber))

    def reads_weights(self) -> bool:
        return self._weights

    def functions(self, facts: Facts) -> Functions:
        return Functions(share, receive)

    def begin(self, facts: Facts) -> State:
        return self._state

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {}
