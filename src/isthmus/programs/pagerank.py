"""PageRank with a guaranteed bound, or by a fixed number of synchronous iterations.

x = (1 - d) p + d P^T x, where whoever stands on a vertex without edges goes where teleports go. One iteration puts the
right side in place of x. Two vectors come nearer to each other by the factor d in L1, so x is off by at most
d / (1 - d) |x - x before|; the run stops when that is at most `tol`. This is what power iteration converges by, so the
bound shrinks as fast as the error. Where in-edges are stored, `programs.ranking` gets there in fewer passes.

Another `dangling` distribution q takes a second solve: with x and y the PageRanks for teleports p and q, and m the mass of
x on vertices without edges, the answer is (1 - t) x + t y, t / (1 - t) = d m / (1 - d).

By iterations, as LDBC Graphalytics defines it: exactly `iterations` rounds from 1/n. Its result depends on the rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, by_vertex, is_real, whole
from isthmus.errors import OptionError
from isthmus.kernels import sweeps
from isthmus.kernels.atomics import atomic_add
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, NearEdges, Program, Seen, State
from isthmus.programs.ranking import Ranking
from isthmus.programs.sums import alone, summing, times


class PageRank(Program):
    """`tol` bounds the L1 error of the result. `teleport` maps vertices (user ids) to shares; None: even.

    `strengths`: the sum of each vertex's edge weights, to follow edges in proportion to their weights.
    `beside`: bytes per vertex that the caller holds meanwhile.
    """

    name = "pagerank"
    everyone = True
    order_free = False  # every edge counts once per iteration
    sweeps = True  # in place, where in-edges are stored

    def __init__(
        self, alpha: float = 0.85, tol: float = 1e-6, max_iter: int = 1000, teleport: dict[Any, float] | None = None,
        strengths: Array | None = None, pulls: bool = True, beside: int = 0,
    ) -> None:  # fmt: skip
        self.alpha, self.tol, self.max_iter = between_0_and_1("alpha", alpha), above_0("tol", tol), whole("max_iter", max_iter, 1)
        self.teleport, self.strengths = teleport, strengths
        self.pulls = pulls
        self.sides = ("in",) if pulls else ("out",)
        self.state_bytes = 16 + (4 if strengths is None else 8) + (8 if teleport is not None else 0) + beside
        self.error_bound = float("inf")
        self.converged = False
        self._ranking: Ranking | None = None

    def reads_weights(self) -> bool:
        return self.strengths is not None

    def functions(self, facts: Facts) -> Functions:
        return summing(self.pulls, 1, 0, times if self.strengths is not None else alone)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        teleports = None if self.teleport is None else teleport_vector(self.teleport, facts)
        ranks = np.empty(n)
        facts.team.split(lambda a, b: np.copyto(ranks[a:b], 1 / n if teleports is None else teleports[a:b]), n)
        if not n:  # nothing to be wrong about
            self.error_bound, self.converged = 0.0, True
        state = State((ranks, np.empty(n)), None, (), {"divisors": self._divisors(facts), "teleports": teleports})
        if self.sweeps and self.pulls and n:
            assert self.max_iter is not None
            weighted = self.strengths is not None
            given = (*state.extra.values(), weighted, self.alpha, self.tol, self.max_iter, *state.arrays)
            self._ranking = Ranking(facts, *given)
            state.arrays, state.params = self._ranking.state, self._ranking.params
        return state

    def _divisors(self, facts: Facts) -> Array | None:
        """What parts a vertex's rank among its edges; None: the number of edges behind the offsets at hand."""
        if self.strengths is None and (not facts.directed or not self.pulls):
            return None
        return facts.degrees() if self.strengths is None else self.strengths

    def loops(self, state: State) -> tuple[Any, Any] | None:
        return None if self._ranking is None or self._ranking.steps else (sweeps.sweep_rows, sweeps.sweep_range)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        if self._ranking is not None:
            state.params = self._ranking.params
            return
        divisors, kernel = state.extra["divisors"], sweeps.share_out
        sums = facts.team.split(lambda a, b: kernel(a, b, facts.offsets, divisors, *state.arrays), facts.vertices)
        self._stuck = sum(stuck for _, stuck in sums)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if self._ranking is not None:
            more = self._ranking.passed(iteration, self._ranking.delivered(frontier.next_marks))
            state.arrays = self._ranking.state
            self._proved()
            return more
        ranks, shares = state.arrays
        rules = (state.extra["divisors"], state.extra["teleports"], self._base(state), self.alpha, 1.0)
        change = sum(facts.team.split(lambda a, b: sweeps.receive(a, b, facts.offsets, rules, 1.0, shares, ranks), facts.vertices))
        return self._goes_on(change)

    def _base(self, state: State) -> float:
        """What teleports and vertices without edges give: to each vertex if evenly, else in all."""
        whole = float(1 - self.alpha + self.alpha * self._stuck)
        return whole / max(state.arrays[0].size, 1) if state.extra["teleports"] is None else whole

    def _goes_on(self, change: float) -> bool:
        self.error_bound = self.alpha / (1 - self.alpha) * change
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def _proved(self) -> None:
        assert self._ranking is not None
        self.error_bound = self._ranking.error_bound
        self.converged = self.error_bound <= self.tol

    def remember(self, state: State) -> dict[str, Any]:
        if self._ranking is not None:
            return self._ranking.remember()
        return {"ranks": state.arrays[0], "bound": (self.error_bound, self.converged)}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        if self._ranking is not None:
            self._ranking.recall(kept)
            state.arrays = self._ranking.state
            return
        state.arrays = (kept["ranks"], *state.arrays[1:])
        self.error_bound, self.converged = kept["bound"]

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        if self._ranking is None:
            return not facts.vertices
        self._ranking.solve(edges, seen)
        self._proved()
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"pagerank": state.given(state.arrays[0])}

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
    most = max(by_vertex("personalization, dangling", shares).values(), default=0.0)
    for vertex, share in shares.items():
        if not share >= 0:
            raise OptionError(f"expected shares of at least 0, got {share} for vertex {vertex!r}")
        vector[facts.number(vertex)] += share / (most or 1.0)  # whose sum is finite
    if vector.sum() <= 0:
        raise OptionError("expected at least one vertex with a share above 0")
    vector /= vector.sum()
    return vector


def nothing_sent(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return 0


def add_weight(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    atomic_add(state[0], u, np.float64(w))
    return False


class Strengths(Program):
    """The sum of every vertex's edge weights, in one pass."""

    name = "strengths"
    everyone = True
    max_iter = 1

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing_sent, add_weight)

    def begin(self, facts: Facts) -> State:
        return State((np.zeros(facts.vertices),), None)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        strengths = state.arrays[0]
        with np.errstate(divide="ignore", over="ignore"):
            if not np.isfinite(strengths).all() or np.isinf(1 / strengths[strengths > 0]).any():
                raise OptionError("weight: the weights at a vertex add up to more, or to less, than float64 can divide by")
        return {"strength": state.given(strengths)}


class FixedPageRank(PageRank):
    """PageRank after exactly `iterations` synchronous rounds (LDBC Graphalytics)."""

    sweeps = False

    def __init__(self, alpha: float, iterations: int, pulls: bool = True) -> None:
        if not is_real(alpha) or not 0 <= alpha <= 1:
            raise OptionError(f"alpha: expected a number from 0 to 1, got {alpha!r}")
        super().__init__(pulls=pulls)
        self.alpha, self.max_iter = alpha, whole("iterations", iterations, 0)

    def _goes_on(self, change: float) -> bool:
        return True

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {"highest": float(ranks.max()) if ranks.size else 0.0}
