"""Graphs cut into a beginning and batches of changes, half inserts and half deletes, for the benchmarks of streams.

As RisGraph's batch programs do it: edges in random order, the first part is the graph at the beginning, and every batch
inserts the next ones and deletes as many of the oldest. So changes have the same distribution as the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import isthmus as ist

Array = np.ndarray[Any, Any]


@dataclass
class Window:
    """The edges of a graph in random order, of which the first `kept` are there at the beginning."""

    sources: Array
    targets: Array
    weights: Array | None
    kept: int
    directed: bool
    vertices: int

    def graph(self) -> ist.Graph:
        columns = (self.sources[: self.kept], self.targets[: self.kept])
        if self.weights is not None:
            columns = (*columns, self.weights[: self.kept])
        return ist.read(columns, directed=self.directed, vertices=self.vertices, parallel="drop")

    def batch(self, number: int, size: int) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        """Inserts (with weights) and deletes of a batch; the batches of a run have one size."""
        half = size // 2
        new = slice(self.kept + number * half, self.kept + (number + 1) * half)
        old = slice(number * half, (number + 1) * half)
        inserts = (self.sources[new], self.targets[new])
        if self.weights is not None:
            inserts = (*inserts, self.weights[new])
        return inserts, (self.sources[old], self.targets[old])


def window(graph: ist.Graph, held: int, both_ways: bool = False, weights: str = "own", seed: int = 1) -> Window:
    """The edges of a graph, `held` of them for inserts. `both_ways`: each arc of an undirected graph is an edge of a
    directed one.

    `weights`: the graph's own, none, or "sums": (source + target) modulo 128, as RisGraph computes them.
    """
    snapshot = graph.snapshot
    lists = snapshot.lists("out")
    arrays = [snapshot.whole(array) for array in snapshot.far("out", weights == "own")]
    sources = np.repeat(np.arange(graph.vertices), lists.degrees())
    targets = arrays[0].astype(np.int64)
    chosen = np.arange(sources.size) if both_ways or graph.directed else np.flatnonzero(sources <= targets)
    chosen = np.random.default_rng(seed).permutation(chosen)
    sources, targets = sources[chosen], targets[chosen]
    values = arrays[1][chosen] if len(arrays) > 1 else None
    if weights == "sums":
        values = ((sources + targets) % 128).astype(np.int32)
    return Window(sources, targets, values, chosen.size - held, both_ways or graph.directed, graph.vertices)
