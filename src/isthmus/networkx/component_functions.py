"""Connected components of three kinds. Labels are first nodes, so sorted labels give NetworkX's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import claimed
from isthmus.networkx.distances import distances_from

WEAK, STRONG = "weakly_connected_components", "strongly_connected_components"


@claimed()
def connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    return components(G, WEAK)


@claimed()
def weakly_connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    return components(G, WEAK)


@claimed()
def strongly_connected_components(G: BackendGraph) -> Iterator[set[Any]]:
    return components(G, STRONG)


@claimed()
def number_connected_components(G: BackendGraph) -> int:
    return count(G, WEAK)


@claimed()
def number_weakly_connected_components(G: BackendGraph) -> int:
    return count(G, WEAK)


@claimed()
def number_strongly_connected_components(G: BackendGraph) -> int:
    return count(G, STRONG)


@claimed()
def is_connected(G: BackendGraph) -> bool:
    return is_one(G, WEAK)


@claimed()
def is_weakly_connected(G: BackendGraph) -> bool:
    return is_one(G, WEAK)


@claimed()
def is_strongly_connected(G: BackendGraph) -> bool:
    return is_one(G, STRONG)


@claimed()
def node_connected_component(G: BackendGraph, n: Any) -> set[Any]:
    _, reached = distances_from(G, n)
    return set(G.named(np.flatnonzero(reached)))


def components(G: BackendGraph, algorithm: str) -> Iterator[set[Any]]:
    if not len(G):
        return
    labels = G.run(algorithm, G.unweighted()).values
    _, numbers = np.unique(labels, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        yield set(G.named(places))


def count(G: BackendGraph, algorithm: str) -> int:
    return int(G.run(algorithm, G.unweighted()).summary()["result"]["components"])


def is_one(G: BackendGraph, algorithm: str) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return count(G, algorithm) == 1
