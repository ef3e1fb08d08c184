"""Distances from one node or from every node, as arrays and as NetworkX's dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.graph.graph import Graph
from isthmus.networkx.backend_graph import BackendGraph, quietly
from isthmus.programs.algorithms.multi_source_bfs import MOST
from isthmus.runtime.session import Session

Array = np.ndarray[Any, Any]
Found = tuple[Array, Array]  # distances, whether each node was reached


def distances_from(G: BackendGraph, source: Any, weight: str | None = None, cutoff: float | None = None) -> Found:
    """Distances from a node to all nodes: by weight if edges have the attribute, else in edges."""
    graph, reads = G.weighted(weight)
    with G.session(graph) as session:
        return search(G, session, source, reads, cutoff)


def search(G: BackendGraph, session: Session, source: Any, weighted: bool, cutoff: float | None) -> Found:
    if cutoff is not None and cutoff < 0:  # the source counts, and nothing that is at distance 0 from it
        return np.zeros(len(G), np.int64), np.arange(len(G)) == G.place(source)
    if weighted:
        result = quietly(session, "sssp", source=G.key(source), cutoff=cutoff)
    else:  # distances are whole, so that a limit may be rounded down
        result = quietly(session, "bfs", source=G.key(source), depth_limit=None if cutoff is None else int(cutoff))
    return split(result.values)


def split(values: Array) -> Found:
    """A column with missing values as two arrays."""
    return np.ma.getdata(values), ~np.ma.getmaskarray(values)


def nearest_first(G: BackendGraph, distances: Array, reached: Array) -> dict[Any, Any]:
    """Distances by node, ascending; nodes at the same distance in the order of the graph."""
    places = np.flatnonzero(reached)
    places = places[np.argsort(distances[places], kind="stable")]
    return dict(zip(G.named(places), distances[places].tolist(), strict=True))


def from_everywhere(
    G: BackendGraph, weight: str | None, cutoff: float | None = None
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """(Node, distances from it) for every node. Searches without weights share passes over the edges.

    Weights are read before the first node is asked for: if they are not supported, NetworkX can still take over.
    """
    return searched(G, *G.weighted(weight), cutoff)


def searched(G: BackendGraph, graph: Graph, reads: bool, cutoff: float | None) -> Iterator[tuple[Any, dict[Any, Any]]]:
    with G.session(graph) as session:
        for first in range(0, len(G), MOST):
            sources = G.named(np.arange(first, min(first + MOST, len(G))))
            found = (
                (search(G, session, source, True, cutoff) for source in sources)
                if reads
                else together(G, session, sources, cutoff)
            )
            for source, (distances, reached) in zip(sources, found, strict=True):
                yield source, nearest_first(G, distances, reached)


def together(G: BackendGraph, session: Session, sources: list[Any], cutoff: float | None) -> Iterator[Found]:
    """Searches in edges from several nodes at once."""
    result = quietly(session, "multi_source_bfs", sources=[G.key(source) for source in sources])
    for column in result.columns:
        distances, reached = split(result[column])
        yield distances, reached if cutoff is None else reached & (distances <= max(cutoff, 0))
