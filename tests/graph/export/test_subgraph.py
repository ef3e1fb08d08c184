"""Subgraphs and neighbourhoods, compared with NetworkX's; also of graphs on disk and of graphs that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError, UnknownVertexError

EDGES = np.random.default_rng(2).integers(0, 120, (2, 500)) * 3 - 7
WEIGHTS = np.arange(500)


def theirs(directed: bool) -> Any:
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_weighted_edges_from(zip(*EDGES.tolist(), WEIGHTS.tolist(), strict=True))
    return graph


def ours(where: str, directed: bool, order: str, folder: Path) -> Any:
    columns = (EDGES[0], EDGES[1], WEIGHTS)
    if where == "disk":
        return ist.ingest(columns, folder / "g.isthmus", directed=directed, order=order)
    return ist.read(columns, directed=directed, order=order)


def edges_of(graph: Any) -> list[tuple[int, int, int]]:
    """All edges; the ends of undirected ones in order."""
    rows = [
        row
        for batch in graph.edge_batches()
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    return sorted(row if graph.directed else (*sorted(row[:2]), *row[2:]) for row in rows)


def theirs_of(graph: Any) -> list[tuple[int, int, int]]:
    rows = [(u, v, w) for u, v, w in graph.edges(data="weight")]
    return sorted(row if graph.is_directed() else (*sorted(row[:2]), row[2]) for row in rows)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_subgraph_is_networkx_s(directed: bool, order: str, where: str, tmp_path: Path, sized: Any) -> None:
    sized(verified_arcs=37, id_stretch=16)
    graph, nodes = ours(where, directed, order, tmp_path), sorted(theirs(directed))
    assert edges_of(graph) == theirs_of(theirs(directed))
    for chosen in ([], nodes[:1], nodes[::3], nodes[10:40], nodes):
        part, expected = graph.subgraph(chosen), theirs(directed).subgraph(chosen)
        assert part.ids.natural(0, len(part)).tolist() == sorted(chosen)
        assert (part.edges, part.directed, part.weighted) == (expected.number_of_edges(), directed, True)
        assert edges_of(part) == theirs_of(expected)
    part = graph.subgraph(nodes[10:40])
    for v in nodes[10:40]:
        inside = theirs(directed).subgraph(nodes[10:40])
        assert part.neighbors(v).tolist() == sorted(w for w in inside[v] for _ in inside[v][w])
        if directed:
            assert part.predecessors(v).tolist() == sorted(u for u, _ in inside.in_edges(v))
    assert dict(ist.bfs(part, nodes[10])) == {
        v: nx.single_source_shortest_path_length(inside, nodes[10]).get(v) for v in nodes[10:40]
    }


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_neighbourhood_is_networkx_s(directed: bool, undirected: bool, where: str, tmp_path: Path) -> None:
    graph, nodes = ours(where, directed, "hub", tmp_path), sorted(theirs(directed))
    for radius in (0, 1, 2, 9):
        for center in (True, False):
            part = ist.ego_graph(graph, nodes[7], radius, center, undirected)
            expected = nx.ego_graph(theirs(directed), nodes[7], radius, center, undirected)
            assert sorted(expected) == part.ids.natural(0, len(part)).tolist()
            assert edges_of(part) == theirs_of(expected)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_neighbourhood_by_weight_is_networkx_s(directed: bool, where: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    weights = draw.integers(0, 9, EDGES.shape[1])
    graph = nx.DiGraph() if directed else nx.Graph()
    for u, v, w in zip(*EDGES.tolist(), weights.tolist(), strict=True):
        if not graph.has_edge(u, v) or graph[u][v]["weight"] > w:
            graph.add_edge(u, v, weight=w)
    edges, how = (EDGES[0], EDGES[1], weights), {"directed": directed, "parallel": "min"}
    mine = (
        ist.read(edges, **how) if where == "memory" else ist.ingest(edges, tmp_path / "g.isthmus", order="hub", **how)
    )
    node = sorted(graph)[7]
    for radius in (0, 1, 4.5, 7, 100):
        part, expected = (
            ist.ego_graph(mine, node, radius, distance="weight"),
            nx.ego_graph(graph, node, radius, distance="weight"),
        )
        assert sorted(expected) == part.ids.natural(0, len(part)).tolist()
        assert part.edges == expected.number_of_edges()


def test_without_weights_every_edge_counts_as_1() -> None:
    part = ist.ego_graph(ist.generate("path", vertices=9), 4, 2, distance="weight")
    assert sorted(part.degrees()) == [2, 3, 4, 5, 6]


def test_names_and_a_store(tmp_path: Path) -> None:
    from isthmus.graph.ingest.build import store_again

    ends = np.array(["ä", "b", "c"], object)
    part = ist.read((ends[[0, 1, 2]], ends[[1, 2, 0]]), directed=False).subgraph(["c", "b", "c"])
    assert (part.vertices, part.edges, part.neighbors("b").tolist()) == (2, 1, ["c"])
    with store_again(part, tmp_path / "p.isthmus") as stored:
        assert stored.neighbors("c").tolist() == ["b"]
    assert ist.verify(tmp_path / "p.isthmus").ok


def test_ids_from_0_are_dense_again(tmp_path: Path) -> None:
    part = ist.generate("path", vertices=9).subgraph(range(3))
    assert (part.info()["ids"], part.edges, dict(part.degrees())) == ("dense", 2, {0: 1, 1: 2, 2: 1})


def test_of_a_graph_that_changes() -> None:
    with ist.stream(ist.generate("path", vertices=6), ist.BFS(source=0)) as live:
        live.apply(inserts=[(0, 5), (7, 1)], deletes=[(2, 3)])
        assert edges_of(live.graph.subgraph([0, 1, 5, 7])) == [(0, 1), (0, 5), (1, 7)]
        assert sorted(ist.ego_graph(live.graph, 0, 2).ids.natural(0, 6).tolist()) == [0, 1, 2, 4, 5, 7]


def test_mistakes(tmp_path: Path) -> None:
    graph = ist.read((EDGES[0], EDGES[1]), in_edges=False)
    with pytest.raises(UnknownVertexError, match="no vertex 99999 in the graph"):
        graph.subgraph([99999])
    with pytest.raises(OptionError, match=r"subgraph: expected vertices, such as \[1, 2, 3\], got 'abc'"):
        graph.subgraph("abc")
    with pytest.raises(OptionError, match="radius: expected at least 0, got -1"):
        ist.ego_graph(graph, int(EDGES[0, 0]), -1)
    with pytest.raises(OptionError, match="distance: expected None, or 'weight' for the graph's weights, got 'cost'"):
        ist.ego_graph(graph, int(EDGES[0, 0]), distance="cost")
    with pytest.raises(OptionError, match=r"radius: expected a number of at least 0, got -0\.5"):
        ist.ego_graph(graph, int(EDGES[0, 0]), -0.5, distance="weight")
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1])), allow_negative=True)
    with pytest.raises(OptionError, match="distance: expected weights of at least 0"):
        ist.ego_graph(negative, 0, distance="weight")
    heavy = ist.read((EDGES[0], EDGES[1], np.ones(EDGES.shape[1], np.int64)))
    with pytest.raises(BudgetError, match="a neighbourhood needs more than"):
        ist.ego_graph(heavy, int(EDGES[0, 0]), 9, distance="weight", memory="200B")
    with pytest.raises(StoreError, match="ego_graph with undirected=True needs in-edges"):
        ist.ego_graph(graph, int(EDGES[0, 0]), undirected=True)
    with pytest.raises(
        BudgetError, match=r"a subgraph needs more than .*; choose fewer vertices, or give a larger memory="
    ):
        graph.subgraph(np.unique(EDGES), memory="2kB")
    with pytest.raises(BudgetError, match="a neighbourhood needs more than"):
        ist.ego_graph(graph, int(EDGES[0, 0]), 9, memory="200B")
