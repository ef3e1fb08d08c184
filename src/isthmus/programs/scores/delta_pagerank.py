"""PageRank by deltas: a vertex sends again only when it has received enough since it last sent.

As the GPU systems do it (Maiter's deltas; HyTGraph, Subway, Scaph, Grapin), but with the guarantee of
`programs/algorithms/pagerank.py`. A vertex is active while its residual exceeds a threshold; smaller residuals are
kept, never dropped. After a last x += r the L1 error of x is at most d / (1 - d) |r|, and normalising at most doubles
it relative to the sum of x; the run ends when that is at most `tol`. With the first threshold, residuals just below it
everywhere satisfy the bound if x sums to n. Where dangling vertices have absorbed mass, x sums to less and the frontier
may become empty too early. Then the threshold is lowered to what the bound needs, and the vertices above it become
active.

Any order of propagation gives the answer, and a vertex may send several times in an iteration. The residual shrinks by
d each time all vertices have sent, no faster, so a tight `tol` takes several times the iterations of
`programs/algorithms/pagerank.py`, which sends everything each time and can therefore extrapolate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import deltas
from isthmus.programs.algorithms.pagerank import PageRank, teleport_vector
from isthmus.programs.checkpoint_checks import real, truth
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.functions import Functions, Scalar
from isthmus.programs.program import Array, Facts, State
from isthmus.programs.sums import alone, times
from isthmus.programs.vertex_choice import above as vertices_above

LOWER = 0.9  # of the threshold that the bound needs, so that rounding does not make it lower the threshold twice


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
