"""PageRank of a graph that changes: deltas of either sign, with the guarantee of `delta_pagerank.py`, or a better one.

Scaling two vectors to a sum of 1 may double their distance. But where residuals of either sign cancel, so that their
sum S is small, it does not, by the argument of `ranking.py`: let G be the whole walk, which keeps the sum M of the
values x, also from vertices without edges. Then G x = x + r - S t, t the teleport vector, and

    G x / M is off by at most d / (1 - d) |r - S t| / M, with |r - S t| <= |r| + |S|,
    and x + r, scaled to a sum of 1, is |S| |t - G x / M| / (M + S) from that.

Residuals that are off by up to e in sum add 2 e to |r - S t|, and 2 e / (M + S) to the last distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, by_vertex
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.scores import score_sweeps
from isthmus.programs.algorithms.pagerank import PageRank, teleport_vector
from isthmus.programs.program import Array, Facts
from isthmus.programs.scores.spreading import NOTHING, Spreading, Sums

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
            level, distance = sums.surplus / n, score_sweeps.distance_from
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
