"""Penalised hitting probability: nearness to the source, by walks that do not return to it.

php[source] = 1, and for other vertices php[v] = alpha * sum of php[u] w(u, v) / w(u) over the edges u -> v, w(u) the
sum of u's edge weights (Guan et al. 2011; in the delta form of Maiter, Zhang et al. 2014, which HyTGraph runs). What
flows back into the source is absorbed there.

A vertex is active while its residual exceeds tol (1 - alpha) / (alpha n). When none is active, all residuals
together are at most tol (1 - alpha) / alpha; adding them to the values leaves an L1 error of at most `tol`,
because every step keeps at most alpha of what is sent.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.programs.algorithm import Answer, Live, Option, Runner, UseWeights, Vertex, algorithm
from isthmus.programs.checkpoint_checks import within
from isthmus.programs.column import Column, Within
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.functions import Functions
from isthmus.programs.program import NOTHING_YET, Array, Facts, State
from isthmus.programs.scores.deltas import Spreading
from isthmus.programs.strengths import strengths_of
from isthmus.programs.weights import need_weights


def share(delta: Any, strength: Any, params: Any) -> Any:
    return params[0] * delta / strength if strength > 0 else 0.0


def of_degree(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return share(state[2][u], np.float64(degree), params)


def of_strength(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return share(state[2][u], state[3][u], params)


def hit(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Walks go on from v unless it is the source."""
    if v == params[2]:
        return False
    more = x * w
    return atomic_add(state[1], v, more) + more > params[1]


class PHP(ByDeltas):
    """PHP; `tol` bounds its L1 error. `strengths`: each vertex's sum of edge weights, to follow edges in proportion to
    them.
    """

    name = "php"
    columns = (Column("php", within=Within.TOTAL),)

    def __init__(self, source: Any, alpha: float = 0.8, tol: float = 1e-6, strengths: Array | None = None) -> None:
        self.source, self.alpha, self.tol, self.strengths = (
            source,
            between_0_and_1("alpha", alpha),
            above_0("tol", tol),
            strengths,
        )
        self.state_bytes = 24 if strengths is None else 32

    def reads_weights(self) -> bool:
        return self.strengths is not None

    def functions(self, facts: Facts) -> Functions:
        return Functions(of_degree if self.strengths is None else of_strength, hit)

    def begin(self, facts: Facts) -> State:
        root = facts.number(self.source)
        residual = np.zeros(facts.vertices)
        residual[root] = 1.0
        threshold = self.tol * (1 - self.alpha) / (self.alpha * facts.vertices)
        arrays = {"values": np.zeros(facts.vertices), "residual": residual, "deltas": np.zeros(facts.vertices)}
        if self.strengths is not None:
            arrays["strengths"] = self.strengths
        return State(arrays, np.array([root]), (self.alpha, threshold, root))

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        super().recall(state, kept)
        within(state["residual"], 2)  # probabilities, rounded

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"php": np.add(state["values"], state["residual"], out=state.memory_like("values"))}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {"reached": int(np.count_nonzero(columns["php"])), "error_bound": self.tol}


class LivePHP(Spreading):
    """PHP on a graph that changes: as `PHP`, with residuals of either sign."""

    name = "php"
    columns = PHP.columns

    def __init__(self, source: Any, alpha: float, tol: float, weight: bool) -> None:
        super().__init__(between_0_and_1("alpha", alpha), above_0("tol", tol), weight)
        self.sources = [source]

    def first_residuals(self, facts: Facts) -> Array:
        residual = np.zeros(facts.vertices)
        residual[facts.number(self.sources[0])] = 1.0
        return residual

    def absorber(self, facts: Facts) -> int:
        return facts.number(self.sources[0])

    def threshold(self, vertices: int) -> float:
        return self.tol * (1 - self.factor) / (self.factor * max(vertices, 1))

    def allowed(self, total: float) -> float:
        return self.tol * (1 - self.factor) / self.factor

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {"reached": int(np.count_nonzero(columns["php"])), "error_bound": float(self.error_bound)}


def live_php(graph: Snapshot, source: Any, alpha: float = 0.8, tol: float = 1e-6, weight: bool = False) -> LivePHP:
    return LivePHP(source, alpha, tol, weight)


@algorithm(live=Live("PHP", live_php))
def php(
    run: Runner,
    source: Vertex,
    alpha: Annotated[float, Option("Probability of going on after each step.")] = 0.8,
    tol: Annotated[float, Option("Bound on the L1 error of the result.")] = 1e-6,
    weight: UseWeights = False,
) -> Answer:
    """Nearness to a source by penalised hitting probability, with a guaranteed error bound."""
    need_weights(run, weight, "php")
    if not weight:
        return run(PHP(source, alpha, tol))
    run.must_fit(PHP(source, alpha, tol, NOTHING_YET))
    return run(PHP(source, alpha, tol, strengths_of(run)))
