"""NetworkX graphs become graphs of the backend, and are kept by NetworkX: `networkx/converted_graph.py` and
`networkx/backend_graph.py` too.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

import isthmus as ist
from isthmus.networkx import conversions as backend_conversions
from isthmus.networkx.conversions import convert_from_nx, convert_to_nx
from isthmus.networkx.converted_graph import Converted

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def example(kind: Any) -> Any:
    graph = kind(name="example")
    graph.add_node("alone", colour="blue")
    graph.add_edge("b", ("a", 1), weight=2)
    graph.add_edge(("a", 1), 7, weight=0.5)
    graph.add_edge(7, 7)
    graph.add_edge("b", ("a", 1), weight=3)
    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: Any) -> None:
    graph = example(kind)
    everything = {"preserve_edge_attrs": True, "preserve_node_attrs": True, "preserve_graph_attrs": True}
    back = convert_to_nx(convert_from_nx(graph, **everything))
    assert type(back) is kind
    assert nx.utils.graphs_equal(back, graph)
    assert back.graph == graph.graph


def test_attributes_that_were_asked_for() -> None:
    there = convert_from_nx(example(nx.DiGraph), edge_attrs={"weight": 9})
    assert isinstance(there, Converted)
    assert convert_to_nx(there).adj == {
        "alone": {},
        "b": {("a", 1): {"weight": 3}},
        ("a", 1): {7: {"weight": 0.5}},
        7: {7: {"weight": 9}},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_decorators_and_users_ask(kind: Any) -> None:
    graph = example(kind)
    there: Any = convert_from_nx(graph)
    assert (there.is_directed(), there.is_multigraph()) == (graph.is_directed(), graph.is_multigraph())
    assert (len(there), there.order(), there.number_of_nodes()) == (4, 4, 4)
    assert there.number_of_edges() == graph.number_of_edges()
    assert list(there) == list(graph)
    assert ("a", 1) in there
    assert there.has_node(7)
    assert "missing" not in there
    assert [1] not in there
    assert repr(there).startswith("<isthmus graph for NetworkX: 4 nodes, ")
    assert convert_from_nx(there) is there
    assert convert_to_nx([1, 2]) == [1, 2]


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions for which graphs were converted."""
    from isthmus.networkx.backend import Backend

    seen: list[str] = []

    def watched(graph: Any, **given: Any) -> Any:
        seen.append(given["name"])
        return backend_conversions.convert_from_nx(graph, **given)

    monkeypatch.setattr(Backend, "convert_from_nx", staticmethod(watched))
    return seen


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_converted_graphs_are_kept_until_the_graph_changes(conversions: list[str]) -> None:
    graph = nx.path_graph(5)
    assert nx.number_connected_components(graph, backend="isthmus") == 1
    nx.core_number(graph, backend="isthmus")
    assert conversions == ["number_connected_components"]
    nx.pagerank(graph, backend="isthmus")  # it reads weights, which were not converted
    nx.core_number(graph, backend="isthmus")
    assert conversions == ["number_connected_components", "pagerank"]
    graph.add_edge(7, 8)
    assert nx.number_connected_components(graph, backend="isthmus") == 2
    assert len(conversions) == 3
    with nx.config(cache_converted_graphs=False):
        nx.core_number(graph, backend="isthmus")
    assert len(conversions) == 4


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_one_kept_graph_serves_several_weights() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=3, cost=5)
    found = [
        nx.dijkstra_path_length(graph, "a", "b", weight=name, backend="isthmus")
        for name in ("weight", "cost", "none", None)
    ]
    assert found == [3, 5, 1, 1]


def test_graphs_with_neighbours_of_their_own_are_left_to_networkx() -> None:
    """NetworkX's AntiGraph has the edges of a graph, and the neighbours of its complement."""
    graph = nx.algorithms.approximation.kcomponents._AntiGraph(nx.path_graph(5))
    with pytest.raises(NotImplementedError, match="_AntiGraph computes neighbours by its own rule"):
        convert_from_nx(graph)


def test_a_conversion_can_be_handed_over() -> None:
    there = convert_from_nx(nx.path_graph(3))
    assert nx.single_source_shortest_path_length(there, 0) == {0: 0, 1: 1, 2: 2}
    with pytest.raises(NotImplementedError, match="'louvain_communities' is not implemented"):
        nx.community.louvain_communities(there)
    with nx.config(fallback_to_nx=True):
        assert nx.community.louvain_communities(there)


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
def test_priority(conversions: list[str]) -> None:
    large, small = nx.path_graph(10_001), nx.path_graph(5)
    with nx.config(backend_priority=["isthmus"]):
        assert nx.number_connected_components(large) == 1
        assert nx.number_connected_components(small) == 1
        assert list(nx.bfs_edges(large, 0, depth_limit=1)) == [(0, 1)]
    assert conversions == ["number_connected_components"]


def test_options_of_the_configuration() -> None:
    with nx.config.backends.isthmus(memory="1kB"), pytest.raises(ist.BudgetError):
        nx.pagerank(nx.path_graph(50), backend="isthmus")
    with nx.config.backends.isthmus(policy="no such recipe"), pytest.raises(ist.OptionError):
        nx.pagerank(nx.path_graph(50), backend="isthmus")
    with nx.config.backends.isthmus(threads=1, memory="1GB"):
        assert len(nx.pagerank(nx.path_graph(50), backend="isthmus")) == 50
