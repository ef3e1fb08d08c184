"""Scores that spread along edges, in the form that a stream keeps current: PageRank, penalised hitting probability,
Katz.

A vertex u sends factor * delta * w / divisor[u] along an edge of weight w. The scores x are the solution of x = b +
A'x; a run holds values and residuals with x = values + the effect of the residuals, and a vertex is active while its
|residual| exceeds a threshold. After a batch residuals may be negative.

The divisor of u is the number of its edges (or the sum of their weights) at the time it was last set. Where edges have
come or gone since, all messages of u are slightly off, by the same factor. This need not be corrected at once: what all
of them are off by, together, counts in the bound on the error (`off`).

With true residuals r the answer is values + r + A'r + A'A'r + ..., and a step keeps at most `factor` of what is sent.
If the residuals that are known are off by at most `off` in sum, values + residuals has an L1 error of at most factor /
(1 - factor) * (the sum of |residual| + off) + off.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import deltas
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, State
from isthmus.programs.vertex_choice import above as vertices_above

NOTHING = np.zeros(1)
LEFT = 0.25  # of the allowed error: if residuals are below that and the bound does not hold, what is off is too much
LOWER = 0.9  # of the threshold that the bound needs, so that rounding does not make it lower the threshold twice


def share(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return params[0] * state[2][u] / state[3][u] if state[3][u] > 0 else 0.0


def spread(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Nothing spreads to the vertex that absorbs, if there is one."""
    if v == params[2]:
        return False
    more = x * w
    return abs(atomic_add(state[1], v, more) + more) > params[1]


@dataclass
class Sums:
    """Sums over all vertices: of values, of residuals, of |residual|."""

    total: float
    surplus: float
    left: float


class Spreading(ByDeltas):
    """Scores by spreading. The state has four arrays: values, residuals, deltas, divisors; the parameters factor,
    threshold, absorber.
    """

    state_bytes = 33
    fixed_divisors = False  # whether divisors are 1, whatever edges a vertex has
    bounds_each = False  # whether the error is bounded at every vertex by the threshold, and not in sum

    def __init__(self, factor: float, tol: float, weight: bool) -> None:
        self.factor, self.tol, self.weight = factor, tol, weight
        self.off = 0.0  # what residuals are off by, all together: by old divisors and by rounding
        self.stays = 1.0  # at least this part of all scores is left when vertices that a batch removes have gone
        self.error_bound, self.converged = np.inf, False

    def reads_weights(self) -> bool:
        return self.weight

    def functions(self, facts: Facts) -> Functions:
        return Functions(share, spread)

    @abstractmethod
    def first_residuals(self, facts: Facts) -> Array: ...

    def own(self, facts: Facts) -> Array:
        """What a vertex has without any edge: by vertex, or once for all of them."""
        return self.first_residuals(facts)

    @abstractmethod
    def allowed(self, total: float) -> float:
        """The sum of |residual|, and of `off` / factor, at which the error is at most `tol`, if the scores sum to
        `total`.
        """

    def remaining(self, left: float) -> float:
        """What `allowed` is compared with, if `left` is the sum of |residual|."""
        return left + self.off / self.factor

    def bound(self, remaining: float, allowed: float) -> float:
        """The bound on the error, given what remains and what is allowed to."""
        return self.tol * remaining / allowed if allowed > 0 else 0.0 if remaining <= 0 else np.inf

    def error(self, sums: Sums) -> float:
        """The bound on the error of values + residuals."""
        return self.bound(self.remaining(sums.left), self.allowed(sums.total + sums.surplus))

    def tight_error(self, sums: Sums, residual: Array, facts: Facts) -> float:
        """A bound that may be smaller, and takes a pass over the residuals."""
        return np.inf

    def stretch(self, sums: Sums, facts: Facts) -> tuple[float, Array]:
        """(s, own): scores that grow by s times what exceeds `own` are nearer to the answer. 0: this is not known.

        `own` is what a vertex has without any edge, by vertex, or once for all of them.
        """
        return 0.0, NOTHING

    def balance(self, total: float, stuck: float, facts: Facts) -> float:
        """By what to multiply values that sum up to `total`, so that their residuals cancel. 1: this is not known.

        `stuck`: the part of the total at vertices without edges.
        """
        return 1.0

    def enough(self, sums: Sums, part: float) -> float:
        """The sum of |residual| at which the error is at most `part` of `tol`, if the other sums do not change."""
        return part * self.allowed(sums.total + sums.surplus) - self.off / self.factor

    @abstractmethod
    def threshold(self, vertices: int) -> float:
        """The first threshold."""

    def absorber(self, facts: Facts) -> int:
        return -1

    def arriving(self, vertices: int) -> float:
        """The residual of a vertex that is new."""
        return 0.0

    def begin(self, facts: Facts) -> State:
        residual, n = self.first_residuals(facts), facts.vertices
        active = np.abs(residual) > self.threshold(n)
        arrays = {"values": np.zeros(n), "residual": residual, "deltas": np.zeros(n), "divisors": self.divisors(facts)}
        return State(arrays, None if active.all() else active, (self.factor, self.threshold(n), self.absorber(facts)))

    def divisors(self, facts: Facts) -> Array:
        return np.ones(facts.vertices) if self.fixed_divisors else facts.degrees().astype(np.float64)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        values, residual = state["values"], state["residual"]
        factor, threshold, absorber = state.params
        sums = facts.team.split(lambda a, b: deltas.delta_sums(values, residual, threshold, a, b), facts.vertices)
        settled, left, above, surplus = (
            (sum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0, 0, 0.0)
        )
        allowed, remaining = self.allowed(settled + surplus), self.remaining(left)
        self.error_bound = self.bound(remaining, allowed)
        self.converged = remaining <= allowed
        if self.converged or left <= LEFT * allowed:  # what is off must be corrected first
            return False
        if not above:
            threshold *= LOWER * max(allowed - self.off / self.factor, 0.1 * allowed) / left
            state.params = (factor, threshold, absorber)
            for piece in vertices_above(np.abs(residual[: facts.vertices]), threshold):  # arrays may be longer
                frontier.wake_all(piece)
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        scores = np.add(state["values"], state["residual"], out=state.memory_like("values"))
        return {self.columns[0].name: self.finished(scores)}

    def finished(self, scores: Array) -> Array:
        """The column, from the scores; it may be made in place."""
        return scores

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        scores = columns[self.columns[0].name]
        return {
            "highest": float(scores.max()) if scores.size else 0.0,
            "error_bound": float(self.error_bound),
            "converged": self.converged,
        }
