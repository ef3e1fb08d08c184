"""Triangles and what follows from them, on undirected graphs. Self loops do not count, as in NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import claimed, must_be_none, no_multigraph, undirected
from isthmus.networkx.stored_graph import Stored

UNWEIGHTED = must_be_none("weight", "weighted clustering coefficients are not supported")


@claimed(no_multigraph)
def triangles(G: BackendGraph, nodes: Any = None) -> Any:
    return chosen(G, nodes, "triangle_count")


@claimed(undirected, no_multigraph, UNWEIGHTED)
def clustering(G: BackendGraph, nodes: Any = None, weight: str | None = None) -> Any:
    return chosen(G, nodes, "local_clustering_coefficient")


@claimed(undirected, no_multigraph, UNWEIGHTED)
def average_clustering(
    G: BackendGraph, nodes: Any = None, weight: str | None = None, count_zeros: bool = True
) -> float:
    found = clustering(G, nodes)
    values: list[float] = [value for value in found.values() if count_zeros or abs(value) > 0]
    return sum(values) / len(values)


def counts_degrees(arguments: dict[str, Any]) -> str | None:
    """The degrees of a stored graph count self loops, and it is not known where these are."""
    graph = arguments["G"]
    if isinstance(graph, Stored) and graph.has_self_loops():
        return "a stored graph with self loops is not supported; store it without them"
    return None


@claimed(undirected, no_multigraph, counts_degrees)
def transitivity(G: BackendGraph) -> float:
    total = int(G.run("triangle_count", G.unweighted()).values.sum())
    degrees = G.degrees().astype(np.float64)
    return 2 * total / float((degrees * (degrees - 1)).sum()) if total else 0


def chosen(G: BackendGraph, nodes: Any, algorithm: str) -> Any:
    """The value of one node, or a dictionary for some nodes (None: all)."""
    if nodes is not None and nodes not in G and not hasattr(nodes, "__iter__"):
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.")
    values = [value or 0 for value in G.run(algorithm, G.unweighted()).values.tolist()]  # 0.0 is 0, as in NetworkX
    if nodes is None:
        return dict(zip(G, values, strict=True))
    if nodes in G:
        return values[G.place(nodes)]
    return {node: values[G.place(node)] for node in nodes if node in G}
