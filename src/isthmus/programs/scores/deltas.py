"""Scores by deltas: a vertex sends again only when it has received enough since it last sent.

PageRank, Katz and penalised hitting probabilities are the solution x* of x = b + A'x. A vertex u sends factor * delta *
w / divisor[u] along an edge of weight w, so sum |A'y| <= d * sum |y| for any y, where d is the factor. A run holds
values x and residuals r = b + A'x - x. A vertex is active while |r| exceeds a threshold; then r is added to its value
and sent. Smaller residuals stay, and are never dropped (Maiter's deltas; HyTGraph, Subway, Scaph, Grapin).

*Bound in sum.* x* = x + r + A'r + A'A'r + ..., so the L1 error of x + r is at most d / (1 - d) * sum |r|. If the
residuals that are known differ from the true ones by at most `off` in sum, it is at most

    d / (1 - d) * (sum |r| + off) + off.

*Normalised.* PageRank is x* scaled to a sum of 1, if vertices without edges teleport: mass that these absorb is spread
like b. Scaling at most doubles the error relative to the sum of x + r, so a run ends when 2 d / (1 - d) * sum |r| /
sum(x + r) <= tol. With the first threshold, residuals just below it everywhere satisfy this if x sums to n. If vertices
without edges have absorbed mass, x sums to less, and no vertex may be active too early; then the threshold is lowered.

*Where residuals cancel* (streams: residuals of either sign, with a small sum S) scaling doubles nothing. Let G be the
whole walk, which preserves the sum M of x (`programs/scores/sweeps.py`), and t the teleport vector. G x = x + r - S t,
so

    G x / M has an error of at most d / (1 - d) |r - S t| / M, with |r - S t| <= |r| + |S|,
    and x + r, scaled to a sum of 1, is |S| |t - G x / M| / (M + S) from that.

Residuals that differ by up to e in sum from the true ones add 2 e to |r - S t|, and 2 e / (M + S) to the last distance.

*Old divisors.* In a stream the divisor of u is the number of its edges (or the sum of their weights) when it was last
set. If edges came or went since, all messages of u are wrong by one factor. They need not be corrected at once: the sum
of their errors counts in `off`.

The residual shrinks by d each time all vertices have sent, no faster, so a tight `tol` takes several times the
iterations of sweeps, which send everything each time and can therefore extrapolate.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, by_vertex
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import deltas
from isthmus.programs.algorithms.pagerank import PageRank, teleport_vector
from isthmus.programs.checkpoint_checks import real, truth
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.functions import Functions, Scalar
from isthmus.programs.program import Array, Facts, State
from isthmus.programs.sums import alone, times
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
        self.off = 0.0  # sum of the errors of all residuals, from old divisors and from rounding
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


def of_degree(u: Any, degree: Any, state: Any) -> Any:
    return degree


def of_strength(u: Any, degree: Any, state: Any) -> Any:
    return state[3][u]


def pushing(divisor: Scalar, carried: Scalar) -> Functions:
    """Push delta times d, divided by the vertex's `divisor`, to the neighbours."""

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        parts = divisor(u, degree, state)
        return params[0] * state[2][u] / parts if parts > 0 else 0.0

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        more = carried(x, w)
        return atomic_add(state[1], v, more) + more > params[1]

    return Functions(source, edge)


class DeltaPageRank(ByDeltas, PageRank):
    """PageRank by deltas, with the options and, within `tol`, the answer of `PageRank`."""

    all_active = False
    order_free = True

    def __init__(
        self,
        alpha: float = 0.85,
        tol: float = 1e-6,
        max_iter: int = 1000,
        teleport: dict[Any, float] | None = None,
        strengths: Array | None = None,
        beside: int = 0,
    ) -> None:
        super().__init__(alpha, tol, max_iter, teleport, strengths, False, beside)
        self._most_iterations, self.max_iter = max_iter, None
        # Three or four arrays, a mask of those that start.
        self.state_bytes = (25 if strengths is None else 33) + beside

    @property
    def _first_threshold(self) -> float:
        return self.tol * (1 - self.alpha) / (2 * self.alpha)

    def functions(self, facts: Facts) -> Functions:
        return pushing(of_degree, alone) if self.strengths is None else pushing(of_strength, times)

    def begin(self, facts: Facts) -> State:
        """Residuals are n times the equation's, so that values stay near 1."""
        n = facts.vertices
        residual = np.ones(n) if self.teleport is None else teleport_vector(self.teleport, facts)
        residual *= 1 - self.alpha if self.teleport is None else (1 - self.alpha) * n
        if not n:  # an empty answer has no error
            self.error_bound, self.converged = 0.0, True
        threshold = self._first_threshold
        active = residual > threshold
        arrays = {"values": np.zeros(n), "residual": residual, "deltas": np.zeros(n)}
        if self.strengths is not None:
            arrays["divisors"] = self.strengths
        return State(arrays, None if active.all() else active, (self.alpha, threshold))

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        values, residual = state["values"], state["residual"]
        threshold = state.params[1]
        sums = facts.team.split(lambda a, b: deltas.delta_sums(values, residual, threshold, a, b), facts.vertices)
        settled, left, above, _ = (sum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0, 0, 0.0)
        total = settled + left
        self.error_bound = 2 * self.alpha / (1 - self.alpha) * left / total if total > 0 else 0.0
        self.converged = self.error_bound <= self.tol
        if self.converged or iteration >= self._most_iterations:
            return False
        if not above:
            likely, sure = threshold * self.tol / self.error_bound, self._first_threshold * total / facts.vertices
            for lower in (LOWER * likely, LOWER * sure):  # residuals below the second one everywhere satisfy the bound
                state.params = (self.alpha, lower)
                for piece in vertices_above(residual, lower):
                    frontier.wake_all(piece)
                if not frontier.none_next():
                    break
        return True

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays[:2], "params": state.params, "bound": (self.error_bound, self.converged)}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        ByDeltas.recall(self, state, kept)
        state.params = (self.alpha, real(kept["params"][1]))
        self.error_bound, self.converged = real(kept["bound"][0]), truth(kept["bound"][1])

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        ranks = np.add(state["values"], state["residual"], out=state.memory_like("values"))
        mass = float(ranks.sum())
        if mass > 0:
            ranks /= mass
        return {"pagerank": ranks}


TELEPORTED = 1e6  # the sum of all scores at a personalised start: any number that is far from the smallest

FEW = 0.1  # of all teleports: residuals with a larger sum are not cancelled, as values are far from the answer


class LivePageRank(Spreading):
    """PageRank on a graph that changes. Scores are n times the equation's, so that a new vertex changes no other's
    start.
    """

    name = "pagerank"
    columns = PageRank.columns

    def __init__(self, alpha: float, tol: float, teleport: dict[Any, float] | None, weight: bool) -> None:
        super().__init__(between_0_and_1("alpha", alpha), above_0("tol", tol), weight)
        self.teleport = None if teleport is None else by_vertex("personalization", teleport)
        self.sources = [] if self.teleport is None else list(self.teleport)

    def first_residuals(self, facts: Facts) -> Array:
        if self.teleport is None:
            return np.full(facts.vertices, 1 - self.factor)
        return teleport_vector(self.teleport, facts) * (1 - self.factor) * TELEPORTED

    def own(self, facts: Facts) -> Array:
        return np.full(1, 1 - self.factor) if self.teleport is None else self.first_residuals(facts)

    def arriving(self, vertices: int) -> float:
        return 1 - self.factor if self.teleport is None else 0.0

    def threshold(self, vertices: int) -> float:
        scale = 1.0 if self.teleport is None else TELEPORTED / max(vertices, 1)
        return self.tol * scale * (1 - self.factor) / (2 * self.factor)

    def allowed(self, total: float) -> float:
        return self.tol * (1 - self.factor) / (2 * self.factor) * total * self.stays

    def tight_error(self, sums: Sums, residual: Array, facts: Facts) -> float:
        total, surplus, d = sums.total, sums.surplus, self.factor
        if total <= 0 or total + surplus <= 0:
            return np.inf
        walked = d / (1 - d) * (self._around(sums, residual, facts) + 2 * self.off) / total
        # Two vectors of sum 1 are at most 2 apart.
        bound = walked + (abs(surplus) * (2 + walked) + 2 * self.off) / (total + surplus)
        return bound / self.stays

    def _around(self, sums: Sums, residual: Array, facts: Facts) -> float:
        """|r - S t|."""
        n = facts.vertices
        if self.teleport is None:
            level, distance = sums.surplus / n, deltas.distance_from
            return float(sum(facts.team.split(lambda a, b: distance(a, b, residual, level), n)))
        teleports = teleport_vector(self.teleport, facts)
        return float(np.abs(residual[:n] - sums.surplus * teleports).sum())

    def stretch(self, sums: Sums, facts: Facts) -> tuple[float, Array]:
        """Residuals with a sum of S would shrink slowly, by d in a pass. (1 + s) x has the residuals (1 + s) r - s own:
        they cancel.
        """
        even = self.teleport is None
        total = (1 - self.factor) * (facts.vertices if even else TELEPORTED)
        if abs(sums.surplus) > FEW * total:
            return 0.0, NOTHING
        return sums.surplus / (total - sums.surplus), self.own(facts)

    def balance(self, total: float, stuck: float, facts: Facts) -> float:
        """A step keeps d of what is at vertices with edges, and adds (1 - d) of all teleports."""
        kept = (1 - self.factor) * total + self.factor * stuck
        return (1 - self.factor) * (facts.vertices if self.teleport is None else TELEPORTED) / kept if kept > 0 else 1.0

    def enough(self, sums: Sums, part: float) -> float:
        by_walk = (
            2 * part * self.allowed(sums.total) - (2 / self.factor - 1) * abs(sums.surplus) - 2 * self.off / self.factor
        )
        return max(by_walk, super().enough(sums, part))

    def finished(self, scores: Array) -> Array:
        mass = float(scores.sum())
        return np.divide(scores, mass, out=scores) if mass > 0 else scores


def live_pagerank(
    graph: Snapshot,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    tol: float = 1e-6,
    weight: bool = False,
) -> LivePageRank:
    return LivePageRank(alpha, tol, personalization, weight)
