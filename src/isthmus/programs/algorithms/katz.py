"""Katz centrality with a guaranteed bound: x = beta + alpha A^T x, summed over walks of growing length.

Every iteration takes the whole residual r into x and leaves r' = alpha A^T r, so that at all times alpha A^T x = x + r
- beta. Call m the least of (beta - r) / x over all vertices. Once m is above 0, alpha A^T x <= (1 - m) x, and with r <=
c x the rest of the sum is at most c (1 - m) / m times x, entry by entry (Collatz and Wielandt's bound on the spectral
radius, read off the iteration itself). So the answer x + r has a relative error of at most c (1 - m) / m in every
single entry, without knowing the largest eigenvalue; the run stops when that is at most `tol`. If alpha is too large
for the sum to converge, m never rises above 0. No eigenvalue exceeds the largest factor by which an iteration, without
its alpha, makes a residual grow (the other bound of Collatz and Wielandt): with an alpha below 1 / that factor the sum
converges. On bipartite graphs, such as stars, that factor never comes near the eigenvalue, so the error names what the
sum of all residuals grew by, on average over the second half of the run.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.checks import above_0, finite_above_0, whole
from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.scores import degree_scores as scores
from isthmus.programs.algorithm import Answer, Live, MaxIter, Option, Runner, algorithm
from isthmus.programs.checkpoint_checks import finite, real, truth
from isthmus.programs.column import Column, Within
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.scores.deltas import Spreading
from isthmus.programs.sums import alone, summing, times
from isthmus.programs.weights import need_weights

AVERAGED = 9  # sums of residuals, at least, whose average growth is near the eigenvalue
CHECKED = 16  # iterations of a stream after which scores are checked for having grown without end
LONGEST = 1000  # iterations of a stream, as a run from scratch takes at most
PIECE = 1 << 16  # entries looked at together, so that temporary arrays stay small


class Katz(Program):
    """Katz centrality. `tol` bounds the relative error of every entry. `weight`: a walk counts the product of its
    weights.
    """

    name = "katz"
    all_active = True
    state_bytes = 24
    columns = (Column("katz_centrality", within=Within.RELATIVE),)

    def __init__(
        self,
        alpha: float = 0.1,
        beta: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        weight: bool = False,
        pulls: bool = True,
    ) -> None:
        self.alpha, self.beta, self.tol = (
            finite_above_0(name, value) for name, value in (("alpha", alpha), ("beta", beta), ("tol", tol))
        )
        self.max_iter, self.pulls = whole("max_iter", max_iter, 1), pulls
        self._weight = weight
        self.sides = ("in",) if pulls else ("out",)
        self.error_bound = np.inf
        self.converged = False
        self.growth = np.inf  # no eigenvalue is larger
        self._totals: list[float] = []  # logarithms of the sums of all residuals, while there is no bound on the error

    def reads_weights(self) -> bool:
        return self._weight

    def functions(self, facts: Facts) -> Functions:
        return summing(self.pulls, 2, 1, times if self._weight else alone)

    def begin(self, facts: Facts) -> State:
        """Three arrays: values, the residual, and alpha times what was taken from it."""
        if not facts.vertices:  # an empty answer has no error
            self.error_bound, self.converged = 0.0, True
        values, sent = np.zeros(facts.vertices), np.zeros(facts.vertices)
        return State({"values": values, "residual": np.full(facts.vertices, self.beta), "sent": sent}, None)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        facts.team.split(lambda a, b: scores.send_scaled(a, b, self.alpha, *state.arrays), facts.vertices)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        values, residual, sent = state.arrays
        parts = facts.team.split(lambda a, b: scores.katz_bounds(a, b, self.beta, values, residual), facts.vertices)
        share, margin = max(part[0] for part in parts), min(part[1] for part in parts)
        if not margin > 0:
            ratios = facts.team.split(lambda a, b: largest_ratio(residual[a:b], sent[a:b]), facts.vertices)
            self.growth = min(self.growth, max(ratios))
            with np.errstate(over="ignore", divide="ignore"):
                total = np.log(sum(facts.team.split(lambda a, b: sum_of(residual[a:b]), facts.vertices)))
            if np.isfinite(total):
                self._totals.append(float(total))
        if not np.isfinite(share):
            raise OptionError(self._too_large())
        self.error_bound = share * (1 - margin) / margin if margin > 0 else np.inf
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays[:2], "bound": (self.error_bound, self.converged, self.growth)}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        finite(*kept["arrays"])
        state.arrays = (*kept["arrays"], state["sent"])
        bound, converged, growth = kept["bound"]
        self.error_bound, self.converged, self.growth = real(bound), truth(converged), real(growth)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        if np.isinf(self.error_bound):
            if self.alpha * self.growth < 1:
                raise OptionError(
                    f"max_iter: {self.max_iter} iterations are too few for any bound on the error; give more"
                )
            raise OptionError(self._too_large())
        return {"katz_centrality": np.add(state["values"], state["residual"], out=state.memory_like("values"))}

    def _too_large(self) -> str:
        growth, totals = self.growth, self._totals[len(self._totals) // 2 :]
        totals = totals[1 - len(totals) % 2 :]  # an even number of steps: on a bipartite graph they go forth and back
        if len(totals) >= AVERAGED:
            growth = min(growth, float(np.exp((totals[-1] - totals[0]) / (len(totals) - 1))) / self.alpha)
        if not growth < np.inf:
            return (
                f"alpha: with {self.alpha:g} the weights of this graph are too large for float64; give a much "
                f"smaller one"
            )
        largest = f"the largest that converges is about {1 / growth:.3g}"
        return f"alpha: {self.alpha:g} is too large for this graph; {largest}, so give {0.95 / growth:.3g} or less"

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        scores = columns["katz_centrality"]
        return {
            "highest": float(scores.max()) if scores.size else 0.0,
            "error_bound": float(self.error_bound),
            "converged": self.converged,
        }


def sum_of(values: Array) -> Any:
    """A sum that may be infinite. Threads do not inherit numpy's settings, so the warning is switched off here."""
    with np.errstate(over="ignore"):
        return values.sum()


def largest_ratio(residual: Array, sent: Array) -> float:
    """The largest residual ÷ sent, of vertices that sent something; infinite if numbers are too large to tell."""
    largest = 0.0
    for first in range(0, sent.size, PIECE):
        a, b = residual[first : first + PIECE], sent[first : first + PIECE]
        with np.errstate(invalid="ignore", over="ignore"):
            found = (a[b > 0] / b[b > 0]).max(initial=0.0)
        largest = max(largest, float(found) if found < np.inf else np.inf)
    return largest


def small_alpha(graph: Snapshot) -> float:
    """An alpha that converges on any graph, for tests: the largest eigenvalue is at most the largest out-degree."""
    return 0.5 / (1 + int(graph.out_degrees().max(initial=0)))


class LiveKatz(Spreading):
    """Katz centrality on a graph that changes. If no |residual| exceeds tol * beta, no entry has a relative error above
    tol.
    """

    name = "katz"
    columns = Katz.columns
    fixed_divisors = True
    bounds_each = True

    def __init__(self, alpha: float, beta: float, tol: float, normalized: bool, weight: bool) -> None:
        super().__init__(finite_above_0("alpha", alpha), above_0("tol", tol), weight)
        self.beta, self.normalized = finite_above_0("beta", beta), normalized

    def first_residuals(self, facts: Facts) -> Array:
        return np.full(facts.vertices, self.beta)

    def threshold(self, vertices: int) -> float:
        return self.tol * self.beta

    def arriving(self, vertices: int) -> float:
        return self.beta

    def allowed(self, total: float) -> float:
        return np.inf

    def bound(self, remaining: float, allowed: float) -> float:
        return self.tol

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Goes on while a vertex is active; where alpha is too large for the graph, scores grow without end."""
        if iteration % CHECKED == 0 and not np.isfinite(state["residual"][: facts.vertices]).all():
            raise OptionError(f"katz does not converge on this graph: {self.explain_growth()}")
        if iteration >= LONGEST:
            raise OptionError(
                f"alpha: {self.factor:g} is too large for this graph, or nearly so: {LONGEST} iterations were "
                f"not enough"
            )
        self.error_bound, self.converged = self.tol, True
        return True

    def explain_growth(self) -> str:
        return f"alpha: {self.factor:g} is too large for it"

    def finished(self, scores: Array) -> Array:
        length = float(np.linalg.norm(scores)) if self.normalized else 0.0
        return np.divide(scores, length, out=scores) if length > 0 else scores


def live_katz(
    graph: Snapshot,
    alpha: float = 0.1,
    beta: float = 1.0,
    tol: float = 1e-6,
    normalized: bool = True,
    weight: bool = False,
) -> LiveKatz:
    return LiveKatz(alpha, beta, tol, normalized, weight)


@algorithm(live=Live("Katz", live_katz))
def katz(
    run: Runner,
    alpha: Annotated[
        float, Option("Factor for each step of a walk; below 1 / the largest eigenvalue.", sample=small_alpha)
    ] = 0.1,
    beta: Annotated[float, Option("Score that every vertex starts with.")] = 1.0,
    max_iter: MaxIter = 1000,
    tol: Annotated[float, Option("Bound on the relative error of every entry.")] = 1e-6,
    normalized: Annotated[bool, Option("Scale the scores to length 1.")] = True,
    weight: Annotated[bool, Option("Count a walk as the product of its weights.")] = False,
) -> Answer:
    """Importance by the number of walks that end at a vertex.

    Every entry has a relative error of at most `tol` before it is normalized to length 1.
    """
    need_weights(run, weight, "katz")
    program = Katz(alpha, beta, tol, max_iter, weight, run.graph.has_in_edges)
    answer = run(program)
    if not program.converged:
        run.note(
            f"stopped after {max_iter} iterations; relative errors are bounded by {program.error_bound:.3g}, not by "
            f"tol = {tol:g}"
        )
    scores, highest = answer.columns["katz_centrality"], answer.figures["highest"]
    if normalized and highest > 0:
        scores /= highest  # so that squares stay finite
        length = float(np.linalg.norm(scores))
        scores /= length
        answer.figures = {**answer.figures, "highest": 1 / length}
    return answer
