"""NetworkX graphs into graphs of the backend, and back.

NetworkX calls `convert_from_nx` with the attributes that a function reads and keeps what it returns in the graph's
`__networkx_cache__`, until the graph changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.converted_graph import Array, Converted
from isthmus.networkx.stored_graph import Stored


def convert_from_nx(
    graph: Any,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> BackendGraph:
    """A graph of the backend with the edge attributes in `edge_attrs` (names and defaults), or with all."""
    if isinstance(graph, BackendGraph):
        return graph
    if type(graph).__getitem__ is not nx.Graph.__getitem__:
        raise NotImplementedError(
            f"{type(graph).__name__} computes neighbours by its own rule, so its edges cannot be converted"
        )
    nodes, multigraph = list(graph), graph.is_multigraph()
    sources, targets, keys, data = edges_of(graph, preserve_edge_attrs)
    numbers = dict(zip(nodes, range(len(nodes)), strict=True))
    converted = Converted(
        nodes, numbered(numbers, sources), numbered(numbers, targets), graph.is_directed(), multigraph
    )
    converted.keys, converted.data = keys, data
    for attribute, default in (edge_attrs or {}).items():
        converted.attributes[attribute] = [value for *_, value in graph.edges(data=attribute, default=default)]
    if preserve_node_attrs:
        converted.node_data = [graph.nodes[node] for node in nodes]
    if preserve_graph_attrs:
        converted.graph_data = dict(graph.graph)
    return converted


def edges_of(graph: Any, with_data: bool) -> tuple[list[Any], list[Any], list[Any] | None, list[Any] | None]:
    """(Sources, targets, keys of a multigraph's edges, attributes if asked for), in the order of `graph.edges`."""
    more = {"data": True} if with_data else {}
    edges = list(graph.edges(keys=True, **more) if graph.is_multigraph() else graph.edges(**more))
    keys = [edge[2] for edge in edges] if graph.is_multigraph() else None
    data = [edge[-1] for edge in edges] if with_data else None
    return [edge[0] for edge in edges], [edge[1] for edge in edges], keys, data


def numbered(numbers: dict[Any, int], nodes: Iterable[Any]) -> Array:
    return np.fromiter(map(numbers.__getitem__, nodes), np.int64)


def convert_to_nx(graph: Any, *, name: str | None = None) -> Any:
    """A graph of the backend as a NetworkX graph; anything else as it is."""
    if isinstance(graph, Converted):
        return converted_back(graph)
    return graph.to_networkx() if isinstance(graph, Stored) else graph


def converted_back(graph: Converted) -> Any:
    """The NetworkX graph with the attributes that were converted."""
    made = empty(graph)
    made.add_edges_from(edges_with_data(graph, range(graph.number_of_edges())))
    return made


def empty(graph: Converted) -> Any:
    """A NetworkX graph with the nodes of a converted one, and no edges."""
    kinds = {
        (False, False): nx.Graph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (True, True): nx.MultiDiGraph,
    }
    made = kinds[graph.is_directed(), graph.is_multigraph()]()
    made.graph.update(graph.graph_data)
    made.add_nodes_from(graph.nodes if graph.node_data is None else zip(graph.nodes, graph.node_data, strict=True))
    return made


def edges_with_data(graph: Converted, places: Iterable[int]) -> Iterable[tuple[Any, ...]]:
    """Edges as `add_edges_from` takes them, by their places in `graph.edges`."""
    for at in places:
        ends = graph.nodes[graph.sources[at]], graph.nodes[graph.targets[at]]
        key = () if graph.keys is None else (graph.keys[at],)
        data = {name: values[at] for name, values in graph.attributes.items()} if graph.data is None else graph.data[at]
        yield (*ends, *key, data)
