"""A graph of Isthmus for NetworkX's functions: `nx.pagerank(ist.networkx_graph(g))` runs on the store itself.

Its weights are the attribute "weight"; no edge has any other attribute, so with another one every edge counts as 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Unpack

import networkx as nx
import numpy as np

from isthmus import sizes
from isthmus.errors import UnknownVertexError
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.graph.store.files import Array
from isthmus.networkx.backend_graph import BackendGraph
from isthmus.runtime.options import SESSION, SessionOptions, refuse_unknown
from isthmus.runtime.session import check_graph

WEIGHT = "weight"


class Stored(BackendGraph):
    """An open graph of Isthmus, on disk or in memory."""

    def __init__(self, graph: Graph, options: dict[str, Any]) -> None:
        self.isthmus, self.options = graph, options

    def is_directed(self) -> bool:
        return self.isthmus.directed

    def is_multigraph(self) -> bool:
        """Whether some edges are parallel. If the store may have such edges, the first call takes a pass over all."""
        return self.isthmus.parallel and self._has_parallel_edges

    @cached_property
    def _has_parallel_edges(self) -> bool:
        """Whether a list has the same target twice. Lists are sorted, so equal targets are neighbours."""
        begins, at_once = self.isthmus.snapshot.lists("out").begins, sizes.now.block_edges
        for first in range(0, self.isthmus.arcs, at_once):
            targets = self.isthmus.entries("out.targets", first, min(first + at_once + 1, self.isthmus.arcs))
            same = np.flatnonzero(targets[1:] == targets[:-1]) + first + 1
            if not np.isin(same, begins).all():
                return True
        return False

    def number_of_nodes(self) -> int:
        return self.isthmus.vertices

    def number_of_edges(self) -> int:
        return self.isthmus.edges

    def __iter__(self) -> Iterator[Any]:
        ids, at_once = self.isthmus.ids, sizes.now.result_rows
        for first in range(0, len(self), at_once):
            yield from ids.natural(first, min(first + at_once, len(self))).tolist()

    def __repr__(self) -> str:
        return f"{repr(self.isthmus).removesuffix('>')}, for NetworkX>"

    def key(self, node: Any) -> Any:
        try:
            self.isthmus.ids.number(node)
        except UnknownVertexError:
            raise KeyError(node) from None
        return node

    def place(self, node: Any) -> int:
        return int(self.isthmus.ids.places(np.array([self.isthmus.ids.number(self.key(node))]))[0])

    def named(self, places: Array) -> list[Any]:
        names: list[Any] = self.isthmus.ids.users_of_natural(places).tolist() if places.size else []
        return names

    def unweighted(self) -> Graph:
        return self.isthmus

    def weighted(self, weight: str | None) -> tuple[Graph, bool]:
        reads = weight == WEIGHT and self.isthmus.weighted
        if reads and self.isthmus.snapshot.negative_weights:
            raise NotImplementedError(f"{self} has negative weights, which are not supported")
        return self.isthmus, reads

    def simple(self) -> Graph:
        return self.isthmus

    def turned(self) -> Stored:
        assert not self.isthmus.directed, "refused by can_run"
        return self

    def has_self_loops(self) -> bool:
        return self.isthmus.snapshot.self_loops > 0

    def degrees(self) -> Array:
        return self.isthmus.snapshot.out_degrees()

    def to_networkx(self) -> Any:
        """The same graph as a NetworkX graph, in memory."""
        many = nx.MultiDiGraph if self.isthmus.directed else nx.MultiGraph
        one = nx.DiGraph if self.isthmus.directed else nx.Graph
        made = (many if self.is_multigraph() else one)()
        made.add_nodes_from(self)
        for sources, targets, weights in self._edges():
            if weights is None:
                made.add_edges_from(zip(sources, targets, strict=True))
            else:
                made.add_weighted_edges_from(zip(sources, targets, weights, strict=True), WEIGHT)
        return made

    def _edges(self) -> Iterator[tuple[list[Any], list[Any], list[Any] | None]]:
        """Sources, targets and weights of some edges at a time; an undirected edge once."""
        graph = self.isthmus.frozen() if isinstance(self.isthmus, ChangingGraph) else self.isthmus
        begins, at_once = graph.snapshot.lists("out").begins, sizes.now.block_edges
        for first in range(0, graph.arcs, at_once):
            last = min(first + at_once, graph.arcs)
            sources = np.searchsorted(begins, np.arange(first, last), "right") - 1
            targets = graph.entries("out.targets", first, last).astype(np.int64)
            once = np.ones(targets.size, bool) if graph.directed else sources <= targets
            weights = graph.entries("out.weights", first, last)[once].tolist() if graph.weighted else None
            yield graph.ids.users(sources[once]).tolist(), graph.ids.users(targets[once]).tolist(), weights


def networkx_graph(graph: Graph, **options: Unpack[SessionOptions]) -> Stored:
    """A graph that NetworkX's functions take as it is: the backend `isthmus` runs them on the store.

    Options such as `memory`, `policy` and `threads` are those of every run.
    """
    check_graph("networkx_graph", graph)
    refuse_unknown("networkx_graph", options, SESSION)
    return Stored(graph, dict(options))
