"""The sum of every vertex's edge weights, in one pass: for walks that follow edges in proportion to their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.programs.algorithm import Runner
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State


def nothing_sent(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return 0


def add_weight(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    atomic_add(state[0], u, np.float64(w))
    return False


class Strengths(Program):
    """The sum of every vertex's edge weights, in one pass."""

    name = "strengths"
    all_active = True
    max_iter = 1

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing_sent, add_weight)

    def begin(self, facts: Facts) -> State:
        return State({"strengths": np.zeros(facts.vertices)}, None)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        strengths = state["strengths"]
        with np.errstate(divide="ignore", over="ignore"):
            if not np.isfinite(strengths).all() or np.isinf(1 / strengths[strengths > 0]).any():
                raise OptionError("weight: the sum of a vertex's weights is too large or too small for float64")
        return {"strength": state.given("strengths")}


def strengths_of(run: Runner) -> Array:
    """The strengths of all vertices."""
    return run(Strengths()).columns["strength"]
