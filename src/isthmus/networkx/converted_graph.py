"""A NetworkX graph as arrays: nodes numbered in their order, and the ends of each edge as NetworkX lists them.

Graphs of Isthmus are made of the arrays when an algorithm needs them, and cached: one without weights, one for each
attribute.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.errors import IsthmusWarning
from isthmus.graph.graph import Graph
from isthmus.graph.ingest.build import read
from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.edge_weights import all_ones, as_weights

Array = np.ndarray[Any, Any]


class Converted(BackendGraph):
    """The nodes and edges of a NetworkX graph, with some of its attributes.

    `attributes` has a value for every edge by name. `data`, `node_data` and `graph_data` have all attributes, if they
    were asked for; `keys` are those of the edges of a multigraph.
    """

    def __init__(self, nodes: list[Any], sources: Array, targets: Array, directed: bool, multigraph: bool) -> None:
        self.nodes, self.sources, self.targets = nodes, sources, targets
        self._directed, self._multigraph = directed, multigraph
        self._numbers: dict[Any, int] = dict(zip(nodes, range(len(nodes)), strict=True))
        self._graphs: dict[Any, Graph] = {}
        self.options: dict[str, Any] = {}
        self.attributes: dict[str, list[Any]] = {}
        self.keys: list[Any] | None = None
        self.data: list[dict[Any, Any]] | None = None
        self.node_data: list[dict[Any, Any]] | None = None
        self.graph_data: dict[Any, Any] = {}

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def number_of_nodes(self) -> int:
        return len(self.nodes)

    def number_of_edges(self) -> int:
        return int(self.sources.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        kind = "directed" if self._directed else "undirected"
        return f"<isthmus graph for NetworkX: {len(self)} nodes, {self.number_of_edges()} {kind} edges>"

    def key(self, node: Any) -> int:
        return self._numbers[node]

    def place(self, node: Any) -> int:
        return self._numbers[node]

    def named(self, places: Array) -> list[Any]:
        return [self.nodes[place] for place in places.tolist()]

    def values_of(self, attribute: str | None) -> list[Any]:
        """An attribute of every edge; 1 where an edge does not have it."""
        if attribute is None:
            return [1] * self.number_of_edges()
        if attribute in self.attributes:
            return self.attributes[attribute]
        assert self.data is not None, "NetworkX asks for the attributes that a function reads"
        return [data.get(attribute, 1) for data in self.data]

    def unweighted(self) -> Graph:
        return self._graph(None, "keep")

    def simple(self) -> Graph:
        return self._graph(None, "drop" if self._multigraph else "keep")

    def weighted(self, weight: str | None) -> tuple[Graph, bool]:
        if weight is None or all_ones(self.values_of(weight)):
            return self.unweighted(), False
        return self._graph(weight, "keep"), True

    def ranked(self, ranks: Array) -> Graph:
        """The graph with these numbers as weights, without the edges whose number is negative. It is not cached."""
        chosen = ranks >= 0
        return self._read((self.sources[chosen], self.targets[chosen], ranks[chosen]), "keep")

    def turned(self) -> Converted:
        if not self._directed:
            return self
        other = Converted(self.nodes, self.targets, self.sources, True, self._multigraph)
        other.attributes, other.data, other.options = self.attributes, self.data, self.options
        return other

    def has_self_loops(self) -> bool:
        return bool((self.sources == self.targets).any())

    def degrees(self) -> Array:
        proper = self.sources != self.targets
        ends = np.concatenate([self.sources[proper], self.targets[proper]])
        return np.bincount(ends, minlength=len(self.nodes))

    def _graph(self, weight: str | None, parallel: str) -> Graph:
        if (weight, parallel) not in self._graphs:
            arrays: tuple[Array, ...] = (self.sources, self.targets)
            if weight is not None:
                arrays = (*arrays, as_weights(weight, self.values_of(weight)))
            self._graphs[weight, parallel] = self._read(arrays, parallel)
        return self._graphs[weight, parallel]

    def _read(self, arrays: tuple[Array, ...], parallel: str) -> Graph:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsthmusWarning)  # about graphs without edges
            return read(arrays, directed=self._directed, vertices=len(self.nodes), parallel=parallel)
