"""Lengths of shortest paths, by `bfs`, `multi_source_bfs` and `sssp`.

Dictionaries are in ascending order of distances, as NetworkX's are. Paths themselves are not claimed: where several are
shortest, NetworkX takes the one that it meets first, which depends on the order in which edges were added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import by_name, claimed, reversible
from isthmus.networkx.distances import distances_from, from_everywhere, nearest_first

METHODS = ("dijkstra", "bellman-ford")
Lengths = dict[Any, Any]


@claimed()
def single_source_shortest_path_length(G: BackendGraph, source: Any, cutoff: float | None = None) -> Lengths:
    return steps(G, known(G, source), cutoff)


@claimed(reversible)
def single_target_shortest_path_length(G: BackendGraph, target: Any, cutoff: float | None = None) -> Lengths:
    return steps(G.turned(), known(G, target, "Target"), cutoff)


@claimed()
def all_pairs_shortest_path_length(G: BackendGraph, cutoff: float | None = None) -> Iterator[tuple[Any, Lengths]]:
    return from_everywhere(G, None, deepest(cutoff))


@claimed(by_name("weight"))
def single_source_dijkstra_path_length(
    G: BackendGraph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Lengths:
    return lengths(G, known(G, source), weight, cutoff)


@claimed(by_name("weight"))
def all_pairs_dijkstra_path_length(
    G: BackendGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[tuple[Any, Lengths]]:
    return from_everywhere(G, weight, farthest(cutoff))


@claimed(by_name("weight"))
def dijkstra_path_length(G: BackendGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return length_between(G, source, target, weight)


@claimed(by_name("weight"))
def single_source_bellman_ford_path_length(G: BackendGraph, source: Any, weight: str | None = "weight") -> Lengths:
    return lengths(G, known(G, source), weight)


@claimed(by_name("weight"))
def all_pairs_bellman_ford_path_length(G: BackendGraph, weight: str | None = "weight") -> Iterator[tuple[Any, Lengths]]:
    return from_everywhere(G, weight)


@claimed(by_name("weight"))
def bellman_ford_path_length(G: BackendGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return length_between(G, source, target, weight)


def turns(arguments: dict[str, Any]) -> str | None:
    return reversible(arguments) if arguments["source"] is None and arguments["target"] is not None else None


@claimed(by_name("weight"), turns)
def shortest_path_length(
    G: BackendGraph, source: Any = None, target: Any = None, weight: str | None = None, method: str = "dijkstra"
) -> Any:
    if method not in METHODS:
        raise ValueError(f"method not supported: {method}")
    if source is not None and target is not None:
        known(G, source)
        if weight is None:
            known(G, target, "Target")
        return length_between(G, source, target, weight)
    if source is not None:
        return lengths(G, known(G, source), weight)
    return from_everywhere(G, weight) if target is None else lengths(G.turned(), known(G, target, "Target"), weight)


def known(G: BackendGraph, node: Any, what: str = "Source") -> Any:
    """The node, or NetworkX's error if the graph does not have it."""
    if node not in G:
        raise nx.NodeNotFound(f"{what} {node} is not in G")
    return node


def steps(G: BackendGraph, source: Any, cutoff: float | None = None) -> Lengths:
    """Numbers of edges from a source."""
    return nearest_first(G, *distances_from(G, source, None, deepest(cutoff)))


def lengths(G: BackendGraph, source: Any, weight: str | None, cutoff: float | None = None) -> Lengths:
    """Lengths of shortest paths from a source."""
    return nearest_first(G, *distances_from(G, source, weight, farthest(cutoff)))


def deepest(cutoff: float | None) -> int | None:
    """The last level of a search. NetworkX goes on while `cutoff` is above the level, so 1.5 includes level 2."""
    return None if cutoff is None or cutoff == math.inf else max(math.ceil(cutoff), 0)


def farthest(cutoff: float | None) -> float | None:
    """The greatest distance that counts."""
    return None if cutoff == math.inf else cutoff


def length_between(G: BackendGraph, source: Any, target: Any, weight: str | None) -> Any:
    known(G, source)
    if source == target:
        return 0
    values, reached = distances_from(G, source, weight)
    if target not in G or not reached[G.place(target)]:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return values[G.place(target)].item()
