"""Stored graphs in NetworkX's functions: they are not converted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.networkx.claims import CLAIMS
from isthmus.networkx.conversions import convert_to_nx

DIRECTED_ONLY = {
    "weakly_connected_components",
    "number_weakly_connected_components",
    "is_weakly_connected",
    "strongly_connected_components",
    "number_strongly_connected_components",
    "is_strongly_connected",
}
EXTRA = {
    "katz_centrality": {"alpha": 0.01, "tol": 1e-12},
    "pagerank": {"tol": 1e-12, "max_iter": 500},
    "descendants_at_distance": {"distance": 2},
    "node_connected_component": {"n": 5},
    "shortest_path_length": {"source": 5},
    "single_target_shortest_path_length": {"target": 5},
}
SOURCE = {"ancestors", "descendants", "descendants_at_distance"}


@pytest.fixture(scope="module", params=["natural", "hub"])
def store(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores") / f"{request.param}.isthmus"
    ist.generate("rmat", path, scale=7, edge_factor=4, weights="1:9", seed=1, order=request.param)
    return path


def arguments(name: str) -> dict[str, Any]:
    given = dict(EXTRA.get(name, {}))
    if "source" in name or name in SOURCE:
        given["source"] = 5
    if "dijkstra_path_length" in name or "bellman_ford_path_length" in name or name == "has_path":
        given |= {} if name.startswith(("all", "single")) else {"source": 5, "target": 9}
    return given


def read(answer: Any) -> Any:
    if hasattr(answer, "edges"):
        return {tuple(sorted(edge)) for edge in answer.edges}, answer.size("weight")
    return list(answer) if hasattr(answer, "__next__") else answer


@pytest.mark.parametrize(
    "name", sorted(set(CLAIMS) - DIRECTED_ONLY - {"maximum_spanning_edges", "maximum_spanning_tree"})
)
def test_answers_are_those_of_networkx(store: Path, name: str) -> None:
    with ist.open(store) as graph:
        here = ist.networkx_graph(graph, memory="1GB")
        other = convert_to_nx(here)
        function, given = getattr(nx, name), arguments(name)
        mine, theirs = read(function(here, **given)), read(function(other, **given))
    if name == "minimum_spanning_edges":
        assert sum(data["weight"] for *_, data in mine) == sum(data["weight"] for *_, data in theirs)
    elif name == "minimum_spanning_tree":
        assert mine[1] == theirs[1]
    elif isinstance(mine, dict) and isinstance(next(iter(mine.values())), float):
        assert mine == pytest.approx(theirs, abs=1e-9)
    else:
        assert mine == theirs


def test_directed(tmp_path: Path) -> None:
    ist.generate("rmat", tmp_path / "g.isthmus", scale=6, edge_factor=2, directed=True, seed=1)
    here = ist.networkx_graph(ist.open(tmp_path / "g.isthmus"))
    other = convert_to_nx(here)
    assert other.is_directed()
    for name in sorted(DIRECTED_ONLY | {"core_number"}):
        mine, theirs = read(getattr(nx, name)(here)), read(getattr(nx, name)(other))
        if name == "strongly_connected_components":
            mine, theirs = set(map(frozenset, mine)), set(map(frozenset, theirs))
        assert mine == theirs
    for refused in (
        nx.ancestors,
        nx.single_target_shortest_path_length,
        lambda graph, node: nx.shortest_path_length(graph, target=node),
    ):
        with pytest.raises(NotImplementedError):
            refused(here, 0)


def test_names_and_loops() -> None:
    names = np.array(["x", "y", "y", "z"], object), np.array(["y", "z", "y", "w"], object)
    here = ist.networkx_graph(ist.read(names, directed=False))
    assert list(here) == ["w", "x", "y", "z"]
    assert "x" in here
    assert 5 not in here
    assert ["x"] not in here
    assert nx.single_source_shortest_path_length(here, "x") == {"x": 0, "y": 1, "z": 2, "w": 3}
    assert nx.shortest_path_length(here, "x", "w") == 3
    assert list(nx.connected_components(here)) == [{"w", "x", "y", "z"}]
    with pytest.raises(nx.NodeNotFound, match="Source 5 is not in G"):
        nx.single_source_shortest_path_length(here, 5)
    with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
        nx.core_number(here)
    with pytest.raises(NotImplementedError):
        nx.transitivity(here)
    assert nx.clustering(here) == nx.clustering(convert_to_nx(here))
    assert repr(here) == "<Graph: 4 vertices, 4 undirected edges in memory, for NetworkX>"


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    ("sources", "targets", "expected"),
    [
        ([0, 0, 1], [1, 2, 2], False),
        ([0, 0, 2], [1, 1, 2], True),
        ([0, 1, 2], [3, 3, 3], False),
        ([2, 0, 2], [1, 3, 1], True),
        ([], [], False),
    ],
)
def test_parallel_edges_are_found(
    sized: Any, at_once: int, sources: list[int], targets: list[int], expected: bool
) -> None:
    graph = ist.read((np.array(sources, int), np.array(targets, int)), vertices=4)
    sized(block_edges=at_once)
    here = ist.networkx_graph(graph)
    assert here.is_multigraph() is expected
    back = convert_to_nx(here)
    assert sorted(back.edges()) == sorted(zip(sources, targets, strict=True))
    assert back.is_multigraph() is expected


def test_parallel_edges_that_matter() -> None:
    here = ist.networkx_graph(ist.read((np.array([0, 0, 1]), np.array([1, 1, 2])), directed=False))
    assert nx.pagerank(here) == pytest.approx(nx.pagerank(convert_to_nx(here)), abs=1e-5)
    with pytest.raises(nx.NetworkXNotImplemented, match="multigraph"):
        nx.core_number(here)
    with pytest.raises(NotImplementedError):
        nx.betweenness_centrality(here)


def test_weights() -> None:
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([2.5, 4.0])))
    here = ist.networkx_graph(graph)
    assert nx.single_source_dijkstra_path_length(here, 0) == {0: 0, 1: 2.5, 2: 6.5}
    assert nx.single_source_dijkstra_path_length(here, 0, weight="other") == {0: 0, 1: 1, 2: 2}
    negative = ist.networkx_graph(ist.read((np.array([0]), np.array([1]), np.array([-1])), allow_negative=True))
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(negative, 0, 1, backend="isthmus")


def test_a_graph_that_changes() -> None:
    with ist.stream(ist.read((np.array([0]), np.array([1])), directed=False, parallel="drop"), []) as live:
        here = ist.networkx_graph(live.graph)
        live.apply(inserts=[(1, 2), (5, 6)])
        assert list(nx.connected_components(here)) == [{0, 1, 2}, {5, 6}]
        assert sorted(convert_to_nx(here).edges) == [(0, 1), (1, 2), (5, 6)]


def test_what_is_no_graph() -> None:
    with pytest.raises(ist.OptionError, match="networkx_graph: expected a graph, got a NetworkX Graph"):
        ist.networkx_graph(nx.path_graph(3))
    with pytest.raises(ist.OptionError, match=r"networkx_graph: unknown option mem \(did you mean memory\?\)"):
        ist.networkx_graph(ist.generate("path", vertices=3), mem="1GB")
