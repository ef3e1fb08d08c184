"""Functions give NetworkX's answers, on graphs with nodes of many kinds: those of `networkx/path_functions.py`,
`networkx/distances.py`, `networkx/reach.py`, `networkx/component_functions.py`, `networkx/triangle_functions.py` and
`networkx/centrality.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")


def named(graph: Any) -> Any:
    """Nodes of several kinds, in an order that is not sorted."""
    kinds: list[Callable[[int], Any]] = [
        str,
        lambda i: (i, "x"),
        lambda i: i,
        lambda i: frozenset([i]),
        lambda i: i + 0.5,
    ]
    order = list(reversed(list(graph)))
    other = type(graph)()
    other.add_nodes_from(kinds[i % 5](i) for i in order)
    other.add_edges_from((kinds[u % 5](u), kinds[v % 5](v), data) for u, v, data in graph.edges(data=True))
    return other


def with_weights(graph: Any) -> Any:
    for at, (_, _, data) in enumerate(graph.edges(data=True)):
        if at % 7:
            data["weight"] = at * 5 % 11
            data["cost"] = at * 3 % 13 / 4
    return graph


def undirected() -> Any:
    graph = nx.gnm_random_graph(60, 90, seed=3)
    graph.add_edges_from([(4, 4), (9, 9)])
    return with_weights(named(graph))


def directed() -> Any:
    graph = nx.gnm_random_graph(60, 150, seed=5, directed=True)
    graph.add_edges_from([(4, 4), (9, 9)])
    return with_weights(named(graph))


def parallel() -> Any:
    graph = nx.MultiDiGraph(directed())
    graph.add_edges_from(list(graph.edges)[:20], weight=3)
    return graph


GRAPHS = {
    "undirected": undirected(),
    "directed": directed(),
    "multi": parallel(),
    "multi undirected": nx.MultiGraph(undirected()),
}
SOME = ["undirected", "directed", "multi", "multi undirected"]
BOTH = pytest.mark.parametrize("kind", SOME)


def plain(answer: Any) -> Any:
    """An answer with its iterators read."""
    return [(node, dict(lengths)) for node, lengths in answer] if isinstance(answer, Iterator) else answer


def same(function: Any, graph: Any, *args: Any, **given: Any) -> Any:
    """Both answers are equal, and ours has the types of NetworkX's."""
    mine, theirs = plain(function(graph, *args, **given, backend="isthmus")), plain(function(graph, *args, **given))
    assert type(mine) is type(theirs)
    assert mine == theirs
    return mine


def near(function: Any, graph: Any, *args: Any, within: float = 1e-9, **given: Any) -> None:
    mine, theirs = function(graph, *args, **given, backend="isthmus"), function(graph, *args, **given)
    assert list(mine) == list(theirs)
    assert {type(value) for value in mine.values()} == {float}
    assert mine == pytest.approx(theirs, abs=within, rel=within, nan_ok=True)


@BOTH
@pytest.mark.parametrize("cutoff", [None, 0, 1, 2.5, -1, float("inf")])
def test_steps(kind: str, cutoff: Any) -> None:
    graph = GRAPHS[kind]
    for node in list(graph)[:4]:
        found = same(nx.single_source_shortest_path_length, graph, node, cutoff=cutoff)
        assert list(found.values()) == sorted(found.values())
        same(nx.single_target_shortest_path_length, graph, node, cutoff=cutoff)
    same(nx.all_pairs_shortest_path_length, graph, cutoff=cutoff)


@BOTH
@pytest.mark.parametrize("weight", ["weight", "cost", "nothing", None])
def test_lengths(kind: str, weight: str | None) -> None:
    graph = GRAPHS[kind]
    nodes = list(graph)
    for node in nodes[:3]:
        for cutoff in (None, 6, 2.25, -1):
            same(nx.single_source_dijkstra_path_length, graph, node, weight=weight, cutoff=cutoff)
        same(nx.single_source_bellman_ford_path_length, graph, node, weight=weight)
        same(nx.shortest_path_length, graph, node, weight=weight)
        same(nx.shortest_path_length, graph, target=node, weight=weight)
    same(nx.all_pairs_dijkstra_path_length, graph, weight=weight)
    same(nx.all_pairs_bellman_ford_path_length, graph, weight=weight)
    same(nx.shortest_path_length, graph, weight=weight, method="bellman-ford")


@BOTH
def test_between_two(kind: str) -> None:
    graph = GRAPHS[kind]
    first, *others = list(graph)[:30]
    for other in [first, *others]:
        assert same(nx.has_path, graph, first, other) in (True, False)
        if nx.has_path(graph, first, other):
            same(nx.shortest_path_length, graph, first, other)
            same(nx.dijkstra_path_length, graph, first, other)
            answers = [
                nx.bellman_ford_path_length(graph, first, other, weight="cost", backend=name)
                for name in ("isthmus", "networkx")
            ]
            assert answers[0] == answers[1]
        else:
            for function in (nx.shortest_path_length, nx.dijkstra_path_length, nx.bellman_ford_path_length):
                with pytest.raises(nx.NetworkXNoPath, match="not reachable"):
                    function(graph, first, other, backend="isthmus")


@pytest.mark.parametrize(
    "function",
    [
        nx.single_source_shortest_path_length,
        nx.single_target_shortest_path_length,
        nx.single_source_dijkstra_path_length,
        nx.single_source_bellman_ford_path_length,
        nx.shortest_path_length,
    ],
)
@pytest.mark.parametrize("node", ["missing", (), [1]])
def test_nodes_that_are_not_there(function: Any, node: Any) -> None:
    with pytest.raises(nx.NodeNotFound, match="is not in G"):
        function(GRAPHS["directed"], node, backend="isthmus")


def test_ends_that_are_not_there() -> None:
    graph = nx.path_graph(3)
    with pytest.raises(nx.NodeNotFound):
        nx.has_path(graph, 0, 9, backend="isthmus")
    with pytest.raises(nx.NodeNotFound, match="Target 9"):
        nx.shortest_path_length(graph, 0, 9, backend="isthmus")
    with pytest.raises(nx.NodeNotFound, match="Source 8"):
        nx.shortest_path_length(graph, 8, 9, backend="isthmus")
    with pytest.raises(nx.NetworkXNoPath):
        nx.dijkstra_path_length(graph, 0, 9, backend="isthmus")
    for function in (nx.descendants, nx.ancestors):
        with pytest.raises(nx.NetworkXError, match="The node 9 is not in the graph"):
            function(graph, 9, backend="isthmus")
    with pytest.raises(nx.NetworkXError):
        nx.descendants_at_distance(graph, 9, 1, backend="isthmus")
    with pytest.raises(ValueError, match="method not supported: no"):
        nx.shortest_path_length(graph, 0, method="no", backend="isthmus")


@BOTH
def test_reach(kind: str) -> None:
    graph = GRAPHS[kind]
    for node in list(graph)[:6]:
        same(nx.descendants, graph, node)
        same(nx.ancestors, graph, node)
        for distance in range(4):
            same(nx.descendants_at_distance, graph, node, distance)


def in_order(function: Any, graph: Any) -> None:
    mine, theirs = list(function(graph, backend="isthmus")), list(function(graph))
    assert mine == theirs
    assert all(type(each) is set for each in mine)


@pytest.mark.parametrize("kind", ["undirected", "multi undirected"])
def test_components(kind: str) -> None:
    graph = GRAPHS[kind]
    in_order(nx.connected_components, graph)
    assert same(nx.number_connected_components, graph) > 1
    assert same(nx.is_connected, graph) is False
    assert same(nx.is_connected, nx.path_graph(3)) is True
    for node in list(graph)[:5]:
        same(nx.node_connected_component, graph, node)


@pytest.mark.parametrize("kind", ["directed", "multi"])
def test_components_of_directed_graphs(kind: str) -> None:
    graph = GRAPHS[kind]
    in_order(nx.weakly_connected_components, graph)
    same(nx.number_weakly_connected_components, graph)
    same(nx.is_weakly_connected, graph)
    mine, theirs = (list(nx.strongly_connected_components(graph, **given)) for given in ({"backend": "isthmus"}, {}))
    assert set(map(frozenset, mine)) == set(map(frozenset, theirs))
    assert [min(map(list(graph).index, each)) for each in mine] == sorted(
        min(map(list(graph).index, each)) for each in theirs
    )
    same(nx.number_strongly_connected_components, graph)
    assert same(nx.is_strongly_connected, graph) is False
    assert same(nx.is_strongly_connected, nx.cycle_graph(4, create_using=nx.DiGraph)) is True


@pytest.mark.parametrize(
    ("function", "kind"),
    [(nx.is_connected, nx.Graph), (nx.is_weakly_connected, nx.DiGraph), (nx.is_strongly_connected, nx.DiGraph)],
)
def test_no_graph_is_neither_connected_nor_not(function: Any, kind: Any) -> None:
    with pytest.raises(nx.NetworkXPointlessConcept):
        function(kind(), backend="isthmus")


def test_empty_graphs() -> None:
    for function in (
        nx.pagerank,
        nx.katz_centrality,
        nx.betweenness_centrality,
        nx.core_number,
        nx.triangles,
        nx.clustering,
    ):
        assert function(nx.Graph(), backend="isthmus") == {}
    for each in (nx.connected_components, nx.all_pairs_shortest_path_length, nx.minimum_spanning_edges):
        assert list(each(nx.Graph(), backend="isthmus")) == []
    assert nx.number_connected_components(nx.Graph(), backend="isthmus") == 0
    assert nx.transitivity(nx.Graph(), backend="isthmus") == 0
    lonely = nx.empty_graph(3)
    for function in (nx.pagerank, nx.katz_centrality, nx.betweenness_centrality):
        near(function, lonely)
    same(nx.core_number, lonely)
    same(nx.transitivity, lonely)


def test_triangles() -> None:
    graph = nx.gnm_random_graph(40, 200, seed=2)
    graph.add_edges_from([(1, 1), (2, 2)])
    nodes = [3, 1, "missing", 17]
    for function in (nx.triangles, nx.clustering):
        assert list(same(function, graph)) == list(graph)
        assert list(same(function, graph, nodes)) == [3, 1, 17]
        same(function, graph, 7)
        with pytest.raises(nx.NetworkXError, match="Node 99 is not in the graph"):
            function(graph, 99, backend="isthmus")
    assert str(nx.clustering(nx.path_graph(3), backend="isthmus")) == "{0: 0, 1: 0, 2: 0}"
    same(nx.average_clustering, graph)
    same(nx.average_clustering, graph, nodes)
    same(nx.average_clustering, nx.barbell_graph(4, 3), count_zeros=False)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    same(nx.transitivity, graph)


def test_transitivity_with_self_loops() -> None:
    graph = nx.complete_graph(5)
    graph.add_edges_from([(1, 1), (5, 0), (5, 5)])
    same(nx.transitivity, graph)


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_core_numbers(kind: str) -> None:
    graph = GRAPHS[kind].copy()
    with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
        nx.core_number(graph, backend="isthmus")
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    same(nx.core_number, graph)


@BOTH
def test_pagerank(kind: str) -> None:
    graph = GRAPHS[kind]
    nodes = list(graph)
    shares, ends = {nodes[0]: 1, nodes[5]: 2.5, "missing": 4}, {nodes[7]: 1}
    for given in (
        {},
        {"weight": None},
        {"weight": "cost"},
        {"alpha": 0.5},
        {"personalization": shares},
        {"dangling": ends},
    ):
        near(nx.pagerank, graph, tol=1e-12, max_iter=300, **given)
    near(nx.pagerank, graph, personalization=shares, dangling=ends, tol=1e-12, max_iter=300)


def test_pagerank_is_within_the_tolerance() -> None:
    """NetworkX's own stops too soon for that on this graph."""
    graph = nx.gnm_random_graph(2000, 4000, seed=1, directed=True)
    exact = nx.pagerank(graph, tol=1e-15, max_iter=1000)
    mine = nx.pagerank(graph, tol=1e-6, backend="isthmus")
    assert sum(abs(mine[node] - exact[node]) for node in graph) <= 1e-6
    theirs = nx.pagerank(graph, tol=1e-6)
    assert sum(abs(theirs[node] - exact[node]) for node in graph) > 1e-6


def test_pagerank_that_does_not_converge() -> None:
    graph = nx.gnm_random_graph(200, 300, seed=1, directed=True)
    for given in ({"max_iter": 0}, {"max_iter": 1, "tol": 1e-12}):
        with pytest.raises(nx.PowerIterationFailedConvergence):
            nx.pagerank(graph, backend="isthmus", **given)
    near(nx.pagerank, graph, tol=1e-5, max_iter=14, within=1e-2)  # NetworkX's bound is reached, ours not
    with pytest.raises(ZeroDivisionError):
        nx.pagerank(graph, personalization={0: 0}, backend="isthmus")


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_katz(kind: str) -> None:
    graph = GRAPHS[kind]
    for given in ({}, {"beta": 3}, {"normalized": False}, {"weight": "cost", "alpha": 0.01}):
        near(nx.katz_centrality, graph, **{"alpha": 0.05, "tol": 1e-12, **given})


def test_katz_that_does_not_converge() -> None:
    for given in ({"alpha": 0.9}, {"max_iter": 0}, {"max_iter": 2, "tol": 1e-12}):
        with pytest.raises(nx.PowerIterationFailedConvergence):
            nx.katz_centrality(nx.complete_graph(5), backend="isthmus", **given)


@BOTH
def test_betweenness(kind: str) -> None:
    graph = GRAPHS[kind]
    for given in (
        {},
        {"normalized": False},
        {"endpoints": True},
        {"k": 7, "seed": 5},
        {"k": len(graph)},
        {"k": 1, "seed": 1},
    ):
        near(nx.betweenness_centrality, graph, **given)
    for other in (graph, nx.Graph()):
        with pytest.raises(ValueError, match="Sample larger than population"):
            nx.betweenness_centrality(other, k=1000, backend="isthmus")
