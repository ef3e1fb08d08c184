"""PageRank with a guaranteed bound, or by a fixed number of synchronous iterations.

x = (1 - d) p + d P^T x is solved by deltas with P left sub-stochastic at dangling vertices, and normalised at the
end; that is NetworkX's PageRank as long as dangling mass goes where teleports go. Every iteration sends the
whole residual r_k and leaves r_(k+1) = d P^T r_k. Two bounds on the L1 error follow, and the run stops when the
smaller one, relative to the normalised vector (which at most doubles it), is at most `tol`:

- x + r_(k+1) is off by at most d / (1 - d) |r_(k+1)|;
- x + r_(k+1) / (1 - d), which treats what is left as if it had settled into its final shape, has the residual
  d P^T y - y + r_(k+1) = (r_(k+1) - d r_k) / (1 - d) before its own last step, so it is off by at most
  d / (1 - d)^2 |r_(k+1) - d r_k|.

The first shrinks by d in every iteration, no faster; the second as fast as power iteration does.

Another `dangling` distribution q takes a second solve: with S(v) the solution for teleport v and m the mass on
dangling vertices, x = S(p) + d m / (1 - d) S(q), and m follows from its own definition.

By iterations, as LDBC Graphalytics defines it: exactly `iterations` rounds from 1/n, dangling mass spread
evenly in each. Its result depends on the rounds, so it runs synchronously, each edge once per round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.kernels import vertices
from isthmus.programs.program import Array, Facts, Program, State

PUSH = """
@compiled
def source(u, degree, state, params):
    return state[2][u]


@compiled
def edge(x, u, v, w, state, params):
    atomic_add(state[1], v, x{times_weight})
    return False
"""
PULL = """
@compiled
def nothing(params):
    return 0.0


@compiled
def sent(total, u, w, state, params):
    return total + state[2][u]{times_weight}


@compiled
def received(v, total, state, params):
    atomic_add(state[1], v, total)
"""


class PageRank(Program):
    """`tol` bounds the L1 error of the result. `teleport` maps vertices (user ids) to shares; None: even.

    `strengths`: the sum of each vertex's edge weights, to follow edges in proportion to their weights.
    `beside`: bytes per vertex that the caller holds meanwhile.
    """

    name = "pagerank"
    everyone = True

    def __init__(
        self, alpha: float = 0.85, tol: float = 1e-6, max_iter: int = 1000, teleport: dict[Any, float] | None = None,
        strengths: Array | None = None, pulls: bool = True, beside: int = 0,
    ) -> None:  # fmt: skip
        if not 0 < alpha < 1:
            raise OptionError(f"alpha: expected a number between 0 and 1, got {alpha}")
        if not tol > 0:
            raise OptionError(f"tol: expected a number above 0, got {tol}")
        if max_iter < 1:
            raise OptionError(f"max_iter: expected at least 1, got {max_iter}")
        self.alpha, self.tol, self.max_iter, self.teleport, self.strengths = alpha, tol, max_iter, teleport, strengths
        self.pulls = pulls
        self.sides = ("in",) if pulls else ("out",)
        self.state_bytes = (28 if strengths is None else 32) + beside
        self.error_bound = float("inf")
        self._last_step = 1.0
        self.mass = 0.0  # the sum of x before it was normalised
        self.converged = False

    def reads_weights(self) -> bool:
        return self.strengths is not None

    def functions(self, facts: Facts) -> str:
        return (PULL if self.pulls else PUSH).format(times_weight=" * w" if self.strengths is not None else "")

    def begin(self, facts: Facts) -> State:
        """Residuals are n times the equation's, so that values stay near 1."""
        residual = np.full(facts.vertices, 1 - self.alpha)
        if self.teleport is not None:
            residual = teleport_vector(self.teleport, facts) * ((1 - self.alpha) * facts.vertices)
        divisors = facts.degrees() if self.strengths is None else self.strengths
        if not facts.vertices:  # nothing to be wrong about
            self.error_bound, self.converged = 0.0, True
        return State((np.zeros(facts.vertices), residual, np.zeros(facts.vertices)), None, (), {"divisors": divisors})

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        divisors = state.extra["divisors"]
        facts.team.split(lambda a, b: vertices.send_shares(a, b, self.alpha, divisors, *state.arrays), facts.vertices)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        values, residual, shares = state.arrays
        alpha, divisors = self.alpha, state.extra["divisors"]
        sums = facts.team.split(lambda a, b: vertices.residual_sums(values, residual, shares, divisors, a, b), facts.vertices)
        values_sum, left, drift = (sum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0, 0.0)
        total = values_sum + left
        plain, settled = alpha / (1 - alpha) * left, alpha / (1 - alpha) ** 2 * drift
        self._last_step = 1.0 if plain <= settled else 1 / (1 - alpha)
        self.error_bound = 2 * min(plain, settled) / total if total > 0 else 0.0
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        values, residual = state.arrays[:2]
        residual *= self._last_step
        values += residual
        self.mass = float(sum(facts.team.split(lambda a, b: vertices.sum_abs(values, a, b), values.size)))
        if self.mass > 0:
            values /= self.mass  # in place: another array might not fit the budget
        return {"pagerank": values}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {
            "highest": float(ranks.max()) if ranks.size else 0.0,
            "error_bound": self.error_bound,
            "converged": self.converged,
        }


def teleport_vector(shares: dict[Any, float], facts: Facts) -> Array:
    """Shares by user id as a vector that sums to one."""
    vector = np.zeros(facts.vertices)
    for vertex, share in shares.items():
        if not share >= 0 or not np.isfinite(share):
            raise OptionError(f"expected shares of at least 0, got {share} for vertex {vertex!r}")
        vector[facts.number(vertex)] += share
    if vector.sum() <= 0:
        raise OptionError("expected at least one vertex with a share above 0")
    vector /= vector.sum()
    return vector


class Strengths(Program):
    """The sum of every vertex's edge weights, in one pass."""

    name = "strengths"
    everyone = True
    max_iter = 1

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> str:
        return """
@compiled
def source(u, degree, state, params):
    return 0


@compiled
def edge(x, u, v, w, state, params):
    atomic_add(state[0], u, np.float64(w))
    return False
"""

    def begin(self, facts: Facts) -> State:
        return State((np.zeros(facts.vertices),), None)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"strength": state.arrays[0]}


class FixedPageRank(Program):
    """PageRank after exactly `iterations` synchronous rounds (LDBC Graphalytics)."""

    name = "pagerank"
    everyone = True
    order_free = False
    state_bytes = 28

    def __init__(self, alpha: float, iterations: int, pulls: bool = True) -> None:
        if not 0 <= alpha <= 1:
            raise OptionError(f"alpha: expected a number from 0 to 1, got {alpha}")
        if iterations < 0:
            raise OptionError(f"iterations: expected at least 0, got {iterations}")
        self._alpha, self.max_iter, self.pulls = alpha, iterations, pulls
        self.sides = ("in",) if pulls else ("out",)

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> str:
        return (PULL if self.pulls else PUSH).format(times_weight="")

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        degrees = facts.degrees()
        return State((np.full(n, 1 / n if n else 0.0), np.zeros(n), np.zeros(n)), None, (), {"degrees": degrees})

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        ranks, sums, shares = state.arrays
        sums[:] = 0
        np.divide(ranks, state.extra["degrees"], out=shares, where=state.extra["degrees"] > 0)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        ranks, sums, _ = state.arrays
        lost = float(ranks[state.extra["degrees"] == 0].sum())
        n = facts.vertices
        np.multiply(sums, self._alpha, out=ranks)
        ranks += (1 - self._alpha) / n + self._alpha * lost / n
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"pagerank": state.arrays[0]}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {"highest": float(ranks.max()) if ranks.size else 0.0}
