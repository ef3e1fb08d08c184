"""The graph of a NetworkX call: the members that NetworkX reads, and those that the backend's functions read.

There are two kinds. `Converted` has the edges of a NetworkX graph as arrays, and numbers its nodes in their order.
`Stored` is a graph of Isthmus, whose edges stay where they are.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import networkx as nx

from isthmus.errors import IsthmusWarning
from isthmus.graph.graph import Graph
from isthmus.networkx.info import DEFAULTS
from isthmus.runtime.results.result import Result
from isthmus.runtime.session import Session


class BackendGraph(ABC):
    """A graph of the backend. It cannot be changed. `options` are those of every run on it, such as `memory`."""

    __networkx_backend__ = "isthmus"
    options: dict[str, Any]

    @abstractmethod
    def is_directed(self) -> bool: ...

    @abstractmethod
    def is_multigraph(self) -> bool: ...

    @abstractmethod
    def number_of_nodes(self) -> int: ...

    @abstractmethod
    def number_of_edges(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """The nodes."""

    @abstractmethod
    def key(self, node: Any) -> Any:
        """The id of a node in the graphs of Isthmus; KeyError if there is no such node."""

    @abstractmethod
    def place(self, node: Any) -> int:
        """Where a result has the value of a node; KeyError if there is no such node."""

    @abstractmethod
    def named(self, places: Any) -> list[Any]:
        """The nodes at an array of places."""

    @abstractmethod
    def unweighted(self) -> Graph:
        """The graph for an algorithm that reads no weights."""

    @abstractmethod
    def weighted(self, weight: str | None) -> tuple[Graph, bool]:
        """(The graph with this attribute as weights, whether to read them). Without any, each edge counts as 1."""

    @abstractmethod
    def simple(self) -> Graph:
        """The graph without weights and with one edge for all parallel ones."""

    @abstractmethod
    def turned(self) -> BackendGraph:
        """The graph with every edge reversed."""

    @abstractmethod
    def has_self_loops(self) -> bool: ...

    @abstractmethod
    def degrees(self) -> Any:
        """Degrees of an undirected graph without its self loops, as an array in any order."""

    def order(self) -> int:
        return self.number_of_nodes()

    def __len__(self) -> int:
        return self.number_of_nodes()

    def __contains__(self, node: Any) -> bool:
        try:
            self.key(node)
        except (KeyError, TypeError):
            return False
        return True

    def has_node(self, node: Any) -> bool:
        return node in self

    def session(self, graph: Graph) -> Session:
        """A session on one of this graph's graphs, with the options of the backend and of this graph."""
        config = nx.config.backends.isthmus
        given = {name: config[name] for name in DEFAULTS if config[name] is not None}
        return Session(graph, **{**given, **self.options})

    def run(self, algorithm: str, graph: Graph, **arguments: Any) -> Result:
        """Run an algorithm on one of this graph's graphs, without the notes that it has for callers from Python."""
        with self.session(graph) as session:
            return quietly(session, algorithm, **arguments)


def quietly(session: Session, algorithm: str, **arguments: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsthmusWarning)
        result: Result = getattr(session, algorithm)(**arguments)
    return result
