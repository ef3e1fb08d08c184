"""A graph in users' hands: degrees, lists, weights, parallel edges, self loops, damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.store.store import Store

LOOPS = np.array([[0, 0], [0, 1], [0, 1], [1, 2], [3, 3]])


def test_parallel_edges_and_self_loops_directed() -> None:
    graph = ist.read(LOOPS, directed=True)
    assert (graph.edges, graph.arcs, graph.store.manifest.self_loops) == (5, 5, 2)
    assert graph.neighbors(0).tolist() == [0, 1, 1]
    assert graph.predecessors(1).tolist() == [0, 0]
    assert graph.edge_weights(0, 1).tolist() == [1, 1]
    assert (graph.degree(0), graph.degree(3)) == (4, 2)


def test_parallel_edges_and_self_loops_undirected() -> None:
    graph = ist.read(LOOPS, directed=False)
    assert (graph.edges, graph.arcs, graph.store.manifest.self_loops) == (5, 8, 2)
    assert graph.neighbors(1).tolist() == [0, 0, 2]
    assert graph.predecessors(1).tolist() == [0, 0, 2]
    assert (graph.degree(0), graph.in_degree(0), graph.degree(3)) == (3, 3, 1)  # a self loop counts once


def test_edge_weights(forge: Callable[..., Store]) -> None:
    arrays = {
        "out.offsets": np.array([0, 3, 3]),
        "out.targets": np.array([0, 1, 1], np.uint32),
        "out.weights": np.array([0.5, 2.0, 1.0]),
    }
    graph = Graph(forge("g", arrays, self_loops=1))
    assert graph.edge_weights(0, 1).tolist() == [2.0, 1.0]
    assert graph.edge_weights(0, 0).tolist() == [0.5]
    assert graph.edge_weights(1, 0).size == 0
    assert (graph.weight_bytes, graph.target_bytes, graph.edge_bytes) == (8, 4, 36)
    weights = graph.edge_weights(0, 1)
    weights[0] = 9  # the caller's own copy
    assert graph.edge_weights(0, 1).tolist() == [2.0, 1.0]


def test_weights_are_a_copy_in_memory_too() -> None:
    graph = ist.generate("path", vertices=3, weights="5:5")
    graph.edge_weights(0, 1)[0] = 9
    assert graph.edge_weights(0, 1).tolist() == [5]


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 5000])
def test_a_long_list_is_searched_not_read(
    forge: Callable[..., Store], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = np.repeat(np.arange(0, 2 * size, 2, dtype=np.uint32), 2)  # even numbers, each twice
    offsets = np.concatenate([[0], np.full(2 * size, targets.size)])
    store = forge("g", {"out.offsets": offsets, "out.targets": targets}, self_loops=2)
    graph = Graph(store)
    for v in {0, 1, size // 2 * 2, size, 2 * size - 1, 2 * size - 2}:
        assert graph.edge_weights(0, v).size == (2 if v % 2 == 0 else 0)
    really, read = store.read, [0]

    def watched(name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        array = really(name, start, stop)
        read[0] += array.nbytes
        return array

    monkeypatch.setattr(store, "read", watched)
    assert graph.has_edge(0, size // 2 * 2)
    assert read[0] <= 2 * 4 * 1024 + 500


def test_without_in_edges() -> None:
    graph = ist.generate("path", vertices=3, directed=True, in_edges=False)
    assert not graph.has_in_edges
    for ask in (graph.predecessors, graph.in_degree, graph.degree):
        with pytest.raises(
            StoreError, match=r"needs in-edges, and .* was stored without them; ingest it again without in_edges=False"
        ):
            ask(1)
    assert graph.neighbors(1).tolist() == [2]


def test_damaged_offsets_are_noticed(forge: Callable[..., Store]) -> None:
    graph = Graph(forge("g", {"out.offsets": np.array([0, 2**40, 1]), "out.targets": np.zeros(1, np.uint32)}))
    for vertex in (0, 1):
        with pytest.raises(StoreError, match=rf"out\.offsets of vertex {vertex} are .*outside 0:1; run isthmus verify"):
            graph.neighbors(vertex)


def test_info_and_repr(tmp_path: Path) -> None:
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=6, weights="1:9", directed=True)
    info = graph.info()
    assert {"vertices", "edges", "arcs", "directed", "weighted", "edge_bytes"} <= set(info)
    assert info["edge_bytes"] == graph.arcs * 8
    assert info["store_bytes"] == sum(file.stat().st_size for file in (tmp_path / "g.isthmus").iterdir())
    assert info["weight_type"] == "int32"
    assert repr(graph) == f"<Graph: 64 vertices, {graph.edges} directed edges, weighted at {tmp_path / 'g.isthmus'}>"
    assert repr(ist.generate("path", vertices=2)) == "<Graph: 2 vertices, 1 undirected edges in memory>"
    assert len(graph) == 64


def test_closing(tmp_path: Path) -> None:
    with ist.generate("path", tmp_path / "g.isthmus", vertices=3) as graph:
        assert graph.has_edge(0, 1)
    with pytest.raises(StoreError, match="the store is closed"):
        graph.has_edge(0, 1)
