"""Spanning trees have NetworkX's edges in NetworkX's order, also where many edges weigh the same."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pytest

import isthmus as ist

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs:UserWarning")
EDGES = [nx.minimum_spanning_edges, nx.maximum_spanning_edges]
TREES = [nx.minimum_spanning_tree, nx.maximum_spanning_tree]


def with_ties(kind: Any = nx.Graph, seed: int = 1) -> Any:
    rng = random.Random(seed)
    graph = kind(name="ties")
    nodes = [f"n{i}" for i in range(40)]
    rng.shuffle(nodes)
    graph.add_nodes_from(nodes, colour="red")
    for _ in range(160):
        graph.add_edge(*rng.choices(nodes, k=2), weight=rng.randrange(3), label=rng.random())
    graph.add_edge(nodes[0], nodes[1])  # counts as 1
    return graph


@pytest.mark.parametrize("function", EDGES)
@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
@pytest.mark.parametrize(
    "given",
    [{}, {"data": False}, {"keys": False}, {"keys": False, "data": False}, {"weight": "label"}, {"weight": None}],
)
def test_edges(function: Any, kind: Any, given: dict[str, Any]) -> None:
    graph = with_ties(kind)
    assert list(function(graph, backend="isthmus", **given)) == list(function(graph, **given))


@pytest.mark.parametrize("function", TREES)
@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_trees(function: Any, kind: Any) -> None:
    graph = with_ties(kind, seed=2)
    mine, theirs = function(graph, backend="isthmus"), function(graph)
    assert type(mine) is kind
    assert mine.graph == {"name": "ties"}
    assert list(mine.nodes(data=True)) == list(theirs.nodes(data=True))
    assert mine.adj == theirs.adj


@pytest.mark.parametrize("function", [*EDGES, *TREES])
def test_weights_that_are_no_numbers(function: Any) -> None:
    graph = with_ties()
    u, v = list(graph.edges)[7]
    graph.add_edge(u, v, weight=float("nan"))
    with pytest.raises(ValueError, match="NaN found as an edge weight"):
        list(function(graph, backend="isthmus"))
    mine, theirs = (function(graph, ignore_nan=True, **given) for given in ({"backend": "isthmus"}, {}))
    if function in TREES:
        mine, theirs = mine.edges(data=True), theirs.edges(data=True)
    assert list(mine) == list(theirs)


def test_other_rules() -> None:
    with pytest.raises(ValueError, match="nonsense is not a valid choice"):
        nx.minimum_spanning_edges(with_ties(), algorithm="nonsense", backend="isthmus")
    with pytest.raises(nx.NetworkXNotImplemented, match="directed"):
        nx.minimum_spanning_tree(nx.DiGraph([(0, 1)]), backend="isthmus")
    with pytest.raises(NotImplementedError):
        nx.minimum_spanning_tree(with_ties(), algorithm="prim", backend="isthmus")


def test_stored(tmp_path: Any) -> None:
    (tmp_path / "edges.txt").write_text("a b 3\nb c 1\na c 2\nd e 5\n")
    graph = ist.read(tmp_path / "edges.txt", weight=3, directed=False)
    here = ist.networkx_graph(graph)
    assert list(nx.minimum_spanning_edges(here)) == [
        ("b", "c", {"weight": 1}),
        ("a", "c", {"weight": 2}),
        ("d", "e", {"weight": 5}),
    ]
    tree = nx.minimum_spanning_tree(here)
    assert list(tree) == ["a", "b", "c", "d", "e"]
    assert tree.size("weight") == 8
    for refused in (nx.maximum_spanning_tree, lambda graph: nx.minimum_spanning_tree(graph, weight="cost")):
        with pytest.raises(NotImplementedError):
            refused(here)
