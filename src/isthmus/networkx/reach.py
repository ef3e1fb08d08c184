"""Nodes that can be reached from a node, by `bfs`."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import claimed, reversible
from isthmus.networkx.distances import distances_from
from isthmus.networkx.path_functions import known


@claimed()
def has_path(G: BackendGraph, source: Any, target: Any) -> bool:
    known(G, source), known(G, target, "Target")
    _, reached = distances_from(G, source)
    return bool(reached[G.place(target)])


@claimed()
def descendants(G: BackendGraph, source: Any) -> set[Any]:
    return others_reached(G, source)


@claimed(reversible)
def ancestors(G: BackendGraph, source: Any) -> set[Any]:
    return others_reached(G.turned(), source)


@claimed()
def descendants_at_distance(G: BackendGraph, source: Any, distance: int) -> set[Any]:
    check(G, source)
    distances, reached = distances_from(G, source)
    return set(G.named(np.flatnonzero(reached & (distances == distance))))


def others_reached(G: BackendGraph, source: Any) -> set[Any]:
    check(G, source)
    _, reached = distances_from(G, source)
    return set(G.named(np.flatnonzero(reached))) - {source}


def check(G: BackendGraph, node: Any) -> None:
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the graph.")
