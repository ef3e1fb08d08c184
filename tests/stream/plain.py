"""A changing graph as Python has it: a set of vertices and a dictionary of edges, and what a batch does to them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np

import isthmus as ist
from isthmus.graph.changing.change import Edits
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH

Row = tuple[int, Any, Any, Any]  # wish, source, target, weight


class RefusedError(Exception):
    """A batch that a changing graph must refuse; nothing was changed."""


@dataclass
class Plain:
    """Edges by their ends (of an undirected graph: the smaller first), with their weights; None: the graph has none."""

    directed: bool = True
    weighted: bool = True
    real: bool = False  # weights are floating-point numbers
    names: bool = False  # ids are texts
    edges: dict[tuple[Any, Any], Any] = field(default_factory=dict)
    vertices: set[Any] = field(default_factory=set)

    @property
    def kind(self) -> Any:
        return object if self.names else np.int64

    @property
    def weight_kind(self) -> Any:
        return np.float64 if self.real else np.int32

    def key(self, u: Any, v: Any) -> tuple[Any, Any]:
        return (u, v) if self.directed or u <= v else (v, u)

    def put(self, edges: Sequence[tuple[Any, Any, Any]]) -> Plain:
        """Add edges; returns the graph."""
        for u, v, w in edges:
            self.edges[self.key(u, v)] = w if self.weighted else None
            self.vertices |= {u, v}
        return self

    def read(self) -> Any:
        """A graph of these edges, read anew; vertices without edges are not in it."""
        ends = tuple(np.array([edge[k] for edge in self.edges], self.kind) for k in (0, 1))
        weights = (np.array(list(self.edges.values()), self.weight_kind),) if self.weighted else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ist.IsthmusWarning)  # that there are no edges
            return ist.read((*ends, *weights), directed=self.directed)

    def networkx(self) -> Any:
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(sorted(self.vertices))
        graph.add_weighted_edges_from((u, v, 1 if w is None else w) for (u, v), w in self.edges.items())
        return graph

    def edits(self, rows: Sequence[Row], added: Sequence[Any] = (), removed: Sequence[Any] = ()) -> Edits:
        """A batch as a graph takes it."""
        kinds = (np.uint8, self.kind, self.kind, self.weight_kind)
        wishes, sources, targets, weights = (np.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds))
        more = [np.array(list(users), self.kind) if users else None for users in (added, removed)]
        return Edits(wishes, sources, targets, weights if self.weighted else None, *more)

    def apply(
        self, rows: Sequence[Row], added: Sequence[Any] = (), removed: Sequence[Any] = (), strict: bool = False
    ) -> dict[str, int]:
        """Apply a batch, row by row; returns the counts that its report has. Raises RefusedError, and then nothing has
        changed.
        """
        used = {end for row in rows for end in row[1:3]} | set(added)
        if used & set(removed):
            raise RefusedError("removed and used")
        edges, vertices = dict(self.edges), set(self.vertices)
        known, gone = set(added) & vertices, set(removed) - vertices
        counts = {"repeated": 0, "missing": len(gone), "vertices_repeated": len(known)}
        for wish, u, v, w in rows:
            key = self.key(u, v)
            counts["repeated"] += wish == INSERT and key in edges
            counts["missing"] += wish != INSERT and key not in edges
            if wish == INSERT:
                edges[key] = w if self.weighted else None
                vertices |= {u, v}
            elif wish == DELETE:
                edges.pop(key, None)
            elif wish == REWEIGH and key in edges and self.weighted:
                edges[key] = w
        if strict and any(counts.values()):
            raise RefusedError(str(counts))
        vertices = (vertices | set(added)) - set(removed)
        edges = {edge: w for edge, w in edges.items() if not set(edge) & set(removed)}
        counts |= differences(self.edges, edges)
        counts |= {"vertices_added": len(vertices - self.vertices), "vertices_removed": len(self.vertices - vertices)}
        self.edges, self.vertices = edges, vertices
        return counts


def differences(before: dict[Any, Any], now: dict[Any, Any]) -> dict[str, int]:
    changed = sum(edge in now and now[edge] != w for edge, w in before.items())
    return {
        "inserted": len(now.keys() - before.keys()),
        "deleted": len(before.keys() - now.keys()),
        "reweighed": changed,
    }
