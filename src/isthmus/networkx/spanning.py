"""Spanning trees by Kruskal's rules.

Of edges with equal weights Kruskal takes the first, in the order of the graph's edges. So edges are ranked by weight
and then by that order, and the minimum spanning forest by rank has exactly the edges that NetworkX chooses. Prim's and
Borůvka's rules choose others. A stored graph has no order of insertion; there ties go to the edge with the smaller ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import networkx as nx
import numpy as np

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import by_name, claimed
from isthmus.networkx.conversions import edges_with_data, empty
from isthmus.networkx.converted_graph import Converted
from isthmus.networkx.stored_graph import WEIGHT, Stored

OTHERS = ("prim", "boruvka", "borůvka")


def kruskal(arguments: dict[str, Any]) -> str | None:
    return (
        f"algorithm: only kruskal is supported, got {arguments['algorithm']}"
        if arguments["algorithm"] in OTHERS
        else None
    )


def by_stored_weights(arguments: dict[str, Any]) -> str | None:
    graph = arguments["G"]
    if isinstance(graph, Stored) and graph.isthmus.weighted and arguments["weight"] != WEIGHT:
        return f"weight: a stored graph has the weights {WEIGHT!r} only"
    return None


def not_stored(arguments: dict[str, Any]) -> str | None:
    return "maximum spanning trees of stored graphs are not supported" if isinstance(arguments["G"], Stored) else None


@claimed(by_name("weight"), kruskal, by_stored_weights)
def minimum_spanning_edges(
    G: BackendGraph,
    algorithm: str = "kruskal",
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, ...]]:
    check(algorithm)
    return edges(G, weight, True, keys, data, ignore_nan)


@claimed(by_name("weight"), kruskal, not_stored)
def maximum_spanning_edges(
    G: BackendGraph,
    algorithm: str = "kruskal",
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, ...]]:
    check(algorithm)
    return edges(G, weight, False, keys, data, ignore_nan)


@claimed(by_name("weight"), kruskal, by_stored_weights)
def minimum_spanning_tree(
    G: BackendGraph, weight: str | None = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    check(algorithm)
    return tree(G, weight, True, ignore_nan)


@claimed(by_name("weight"), kruskal, not_stored)
def maximum_spanning_tree(
    G: BackendGraph, weight: str | None = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    check(algorithm)
    return tree(G, weight, False, ignore_nan)


def check(algorithm: str) -> None:
    if algorithm != "kruskal":
        raise ValueError(f"{algorithm} is not a valid choice for an algorithm.")


def edges(
    G: BackendGraph, weight: str | None, minimum: bool, keys: bool, data: bool, ignore_nan: bool
) -> Iterator[tuple[Any, ...]]:
    """The edges of the forest in ascending order of weights (descending for a maximum one), as NetworkX yields them."""
    found = edges_with_data(G, places(G, weight, minimum, ignore_nan)) if isinstance(G, Converted) else of_stored(G)
    for source, target, *key, attributes in found:
        yield (source, target, *(key if keys else ()), *((attributes,) if data else ()))


def places(G: Converted, weight: str | None, minimum: bool, ignore_nan: bool) -> list[int]:
    """The places of the forest's edges in the list of all edges."""
    order = in_order(G, weight, minimum, ignore_nan)
    ranks = np.full(G.number_of_edges(), -1, np.int64)
    ranks[order] = np.arange(len(order))
    result = G.run("minimum_spanning_forest", G.ranked(ranks))
    return [order[rank] for rank in sorted(result.values.tolist())]


def in_order(G: Converted, weight: str | None, minimum: bool, ignore_nan: bool) -> list[int]:
    """The places of all edges in Kruskal's order, without those whose weight is no number."""
    values = G.values_of(weight)
    broken = [at for at, value in enumerate(values) if isnan(value)]
    if broken and not ignore_nan:
        raise ValueError(f"NaN found as an edge weight. Edge {next(iter(edges_with_data(G, broken)))}")
    without = set(broken)
    return sorted((at for at in range(len(values)) if at not in without), key=values.__getitem__, reverse=not minimum)


def of_stored(G: BackendGraph) -> Iterator[tuple[Any, ...]]:
    """The forest of a stored graph, lightest edges first."""
    graph = G.unweighted()  # its weights are always read
    table = G.run("minimum_spanning_forest", graph).to_numpy()
    order = np.argsort(table["weight"], kind="stable")
    columns = (table[name][order].tolist() for name in ("source", "target", "weight"))
    for source, target, value in zip(*columns, strict=True):
        yield source, target, {WEIGHT: value} if graph.weighted else {}


def tree(G: BackendGraph, weight: str | None, minimum: bool, ignore_nan: bool) -> Any:
    """The forest as a NetworkX graph, with all attributes of nodes and edges."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    if isinstance(G, Converted):
        made = empty(G)
    else:
        made = nx.Graph()
        made.add_nodes_from(G)
    made.add_edges_from(edges(G, weight, minimum, True, True, ignore_nan))
    return made
