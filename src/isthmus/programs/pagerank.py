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

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.kernels import vertices
from isthmus.programs.program import Accumulative, Array, Facts, Program, State, accumulative


@accumulative(initial=1.0, column="pagerank")
def spread(delta, degree, alpha=0.85):  # type: ignore[no-untyped-def]
    return alpha * delta / degree


@accumulative(initial=1.0, column="pagerank")
def spread_by_weight(delta, weight, alpha=0.85):  # type: ignore[no-untyped-def]
    return alpha * delta * weight


class PageRank(Accumulative):
    """`tol` bounds the L1 error of the result. `teleport` maps vertices (user ids) to shares; None: even."""

    def __init__(
        self, alpha: float = 0.85, tol: float = 1e-6, max_iter: int = 1000, teleport: dict[Any, float] | None = None,
        by_weight: bool = False, strengths: Array | None = None,
    ) -> None:  # fmt: skip
        if not 0 < alpha < 1:
            raise OptionError(f"alpha: expected a number between 0 and 1, got {alpha}")
        if not tol > 0:
            raise OptionError(f"tol: expected a number above 0, got {tol}")
        if max_iter < 1:
            raise OptionError(f"max_iter: expected at least 1, got {max_iter}")
        message = (spread_by_weight if by_weight else spread).message
        super().__init__(message, 1 - alpha, 0.0, "pagerank")
        self.name, self.tol, self.teleport, self.strengths = "pagerank", tol, teleport, strengths
        self.state_bytes = 24 if strengths is None else 32
        self.max_iter = max_iter
        self.values_given = {"alpha": alpha}
        self.error_bound = float("inf")
        self._last_step = 1.0
        self.mass = 0.0  # the sum of x before it was normalised
        self.sends: Array | None = None  # by weight: who sends anything
        self.converged = False

    def residual(self, facts: Facts) -> Array:
        """(1 - d) times n times the teleport vector, so that values stay near 1."""
        alpha = self.values_given["alpha"]
        if self.teleport is None:
            return np.full(facts.vertices, 1 - alpha)
        shares = teleport_vector(self.teleport, facts)
        return shares * ((1 - alpha) * facts.vertices)

    def begin(self, facts: Facts) -> State:
        state = super().begin(facts)
        if self.strengths is not None:
            self.sends = self.strengths > 0
            self.strengths[~self.sends] = 1  # nothing is sent along weights of zero
            state.arrays = (*state.arrays, self.strengths)
        return state

    def functions(self, facts: Facts) -> str:
        text = super().functions(facts)
        if self.strengths is None:
            return text
        # Weighted: a vertex's delta is divided by its strength before it is multiplied by the edge's weight.
        return text.replace("return state[2][u], degree", "return state[2][u] / state[3][u], degree")

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        values, residual, deltas = state.arrays[:3]
        alpha, team = self.values_given["alpha"], facts.team
        left = shared_sum(team, residual.size, lambda a, b: vertices.sum_abs(residual, a, b))
        total = shared_sum(team, values.size, lambda a, b: vertices.sum_abs(values, a, b)) + left
        drift = shared_sum(
            team, residual.size, lambda a, b: vertices.drift(residual, deltas, frontier.marks, frontier.everyone, alpha, a, b)
        )
        plain, settled = alpha / (1 - alpha) * left, alpha / (1 - alpha) ** 2 * drift
        self._last_step = 1.0 if plain <= settled else 1 / (1 - alpha)
        self.error_bound = 2 * min(plain, settled) / total if total > 0 else 0.0
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        values, residual = state.arrays[:2]
        residual *= self._last_step
        values += residual
        self.mass = shared_sum(facts.team, values.size, lambda a, b: vertices.sum_abs(values, a, b))
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


def shared_sum(team: Any, size: int, part_sum: Callable[[int, int], float]) -> float:
    """The sum of part_sum(first, last) over even parts of 0:size, one per member of the team."""
    step = -(-size // team.size)
    parts = np.zeros(team.size)

    def part(index: int) -> None:
        parts[index] = part_sum(min(index * step, size), min((index + 1) * step, size))

    team.each(part, team.size)
    return float(parts.sum())


def teleport_vector(shares: dict[Any, float], facts: Facts) -> Array:
    """Shares by user id as a vector that sums to one."""
    vector = np.zeros(facts.vertices)
    for vertex, share in shares.items():
        if not share >= 0 or not np.isfinite(share):
            raise OptionError(f"expected shares of at least 0, got {share} for vertex {vertex!r}")
        vector[facts.number(vertex)] += share
    if vector.sum() <= 0:
        raise OptionError("expected at least one vertex with a share above 0")
    return vector / vector.sum()


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
    state_bytes = 24

    def __init__(self, alpha: float, iterations: int) -> None:
        if not 0 <= alpha <= 1:
            raise OptionError(f"alpha: expected a number from 0 to 1, got {alpha}")
        if iterations < 0:
            raise OptionError(f"iterations: expected at least 0, got {iterations}")
        self._alpha, self.max_iter = alpha, iterations

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> str:
        return """
@compiled
def source(u, degree, state, params):
    return state[0][u] / degree


@compiled
def edge(x, u, v, w, state, params):
    atomic_add(state[1], v, x)
    return False
"""

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        return State((np.full(n, 1 / n if n else 0.0), np.zeros(n)), None, (), {"dangling": np.diff(facts.offsets) == 0})

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        ranks, sums = state.arrays
        lost = float(ranks[state.extra["dangling"]].sum())
        n = facts.vertices
        np.multiply(sums, self._alpha, out=ranks)
        ranks += (1 - self._alpha) / n + self._alpha * lost / n
        sums[:] = 0
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"pagerank": state.arrays[0]}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {"highest": float(ranks.max()) if ranks.size else 0.0, "converged": None}
