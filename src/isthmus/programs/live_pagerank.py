"""PageRank of a graph that changes: deltas of either sign, with the guarantee of `delta_pagerank.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, by_vertex
from isthmus.graph.snapshot import Snapshot
from isthmus.programs.pagerank import PageRank, teleport_vector
from isthmus.programs.program import Array, Facts
from isthmus.programs.spreading import Spreading

TELEPORTED = 1e6  # the sum of all scores at a personalised start: any number that is far from the smallest


class LivePageRank(Spreading):
    """PageRank on a graph that changes. Scores are n times the equation's, so that a new vertex changes no other's start."""

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

    def arriving(self, vertices: int) -> float:
        return 1 - self.factor if self.teleport is None else 0.0

    def threshold(self, vertices: int) -> float:
        scale = 1.0 if self.teleport is None else TELEPORTED / max(vertices, 1)
        return self.tol * scale * (1 - self.factor) / (2 * self.factor)

    def allowed(self, total: float) -> float:
        return self.tol * (1 - self.factor) / (2 * self.factor) * total

    def finished(self, scores: Array) -> Array:
        mass = float(scores.sum())
        return np.divide(scores, mass, out=scores) if mass > 0 else scores


def live_pagerank(
    graph: Snapshot, alpha: float = 0.85, personalization: dict[Any, float] | None = None, tol: float = 1e-6, weight: bool = False
) -> LivePageRank:
    return LivePageRank(alpha, tol, personalization, weight)
