"""Random batches, and a plain model of a changing graph: what is there after each of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import isthmus as ist

INFINITE = 2**63 - 1


class Model:
    """Edges and vertices as Python has them."""

    def __init__(self, seed: int, vertices: int, names: bool = False) -> None:
        self.draw = random.Random(seed)
        self.directed = self.draw.random() < 0.5
        self.count, self.names = vertices, names
        self.edges: dict[tuple[Any, Any], int] = {}
        for _ in range(vertices * self.draw.choice([1, 2, 4])):
            self.edges[self.key(self.some(), self.some())] = self.draw.randrange(0, 5)
        self.vertices = {end for edge in self.edges for end in edge}
        self.source = min(self.vertices)

    def name(self, number: int) -> Any:
        return f"n{number}" if self.names else number * 7

    def some(self, extra: int = 0) -> Any:
        return self.name(self.draw.randrange(self.count + extra))

    def key(self, u: Any, v: Any) -> tuple[Any, Any]:
        return (u, v) if self.directed or u <= v else (v, u)

    @property
    def kind(self) -> Any:
        return object if self.names else np.int64

    def graph(self) -> Any:
        """A graph of these edges, read anew. Vertices without edges are not in it."""
        ends = [np.array([edge[k] for edge in self.edges], self.kind) for k in (0, 1)]
        return ist.read((*ends, np.array(list(self.edges.values()), np.int32)), directed=self.directed)

    def batch(self) -> dict[str, Any]:
        """A random batch, as `Live.apply` takes it; the model has changed accordingly when it returns."""
        draw, size = self.draw, self.draw.choice([0, 1, 5, 40])
        rare = draw.random() < 0.3
        removed = [v for v in sorted(self.vertices) if rare and v != self.source and draw.random() < 0.05]
        pool = [self.name(k) for k in range(self.count + 3) if self.name(k) not in removed]
        deletes = [
            edge for edge in draw.sample(sorted(self.edges), min(size, len(self.edges))) if not set(edge) & set(removed)
        ]
        inserts = (
            [(draw.choice(pool), draw.choice(pool), draw.randrange(0, 5)) for _ in range(size)]
            if draw.random() < 0.8
            else []
        )
        self.apply(inserts, deletes, removed)
        return {"inserts": inserts or None, "deletes": deletes or None, "remove_vertices": removed or None}

    def apply(self, inserts: list[Any], deletes: list[Any], removed: list[Any]) -> None:
        for edge in deletes:
            self.edges.pop(edge, None)
        for u, v, w in inserts:
            self.edges[self.key(u, v)] = w
            self.vertices |= {u, v}
        self.vertices -= set(removed)
        self.edges = {edge: w for edge, w in self.edges.items() if not set(edge) & set(removed)}
