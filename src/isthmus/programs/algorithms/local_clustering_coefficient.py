"""Local clustering coefficient as LDBC Graphalytics defines it: the share of pairs of neighbours joined by an edge.

A vertex's d neighbours are those along in-edges and out-edges. Of their d (d - 1) ordered pairs, those count that an
edge joins; an undirected edge joins both ways. Such edges lie opposite the vertex in its triangles: `triangle_count`
counts them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.programs.algorithm import Answer, Runner, algorithm
from isthmus.programs.algorithms.triangle_count import Triangles
from isthmus.programs.column import Column
from isthmus.programs.program import Array, Facts, State


class LocalClustering(Triangles):
    """Clustering coefficients, from 0 to 1; 0 for a vertex with fewer than two neighbours."""

    name = "local_clustering_coefficient"
    columns = (Column("clustering"),)

    def __init__(self, directed: bool) -> None:
        super().__init__(directed, True)
        self._times = 1 if directed else 2
        self.state_bytes += 8

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        coefficients = state.extra["neighbours"].astype(np.float64)
        coefficients *= coefficients - 1
        np.divide(self._times * state.extra["counts"], coefficients, out=coefficients, where=coefficients > 0)
        return {"clustering": coefficients}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {"average": float(columns["clustering"].mean()) if columns["clustering"].size else 0.0}


@algorithm(not_live="the directions of all edges between neighbours count; triangle_count is maintained")
def local_clustering_coefficient(run: Runner) -> Answer:
    """The share of pairs of a vertex's neighbours that are joined by an edge (LDBC's LCC)."""
    return run(LocalClustering(run.graph.directed))
