"""Core numbers against the definition, peeled one vertex at a time, and NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist


def peeled(edges, n):
    """Take the vertex of least degree again and again; its core number is the largest such degree so far."""
    around = {v: [] for v in range(n)}
    for u, v, _ in edges:
        if u != v:
            around[u].append(v)
            around[v].append(u)
    degree = {v: len(others) for v, others in around.items()}
    cores, k = [0] * n, 0
    while degree:
        v = min(degree, key=degree.get)
        k = max(k, degree.pop(v))
        cores[v] = k
        for u in around[v]:
            if u in degree:
                degree[u] -= 1
    return cores


@SETTINGS
@given(graphs(), hows, orders)
def test_the_definition(graph, how, order):
    edges, n, directed = graph
    result = ist.core_number(build(edges, n, directed, order=order), **how)
    assert result.values.tolist() == peeled(edges, n)


@SETTINGS
@given(graphs(), hows)
def test_networkx_says_the_same(graph, how):
    edges, n, directed = graph
    other = (nx.DiGraph if directed else nx.Graph)()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges if u != v)
    result = ist.core_number(build([(u, v, None) for u, v in other.edges], n, directed), **how)
    assert dict(enumerate(result.values.tolist())) == nx.core_number(other)


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed()
    answer = peeled(edges, 420)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        result = ist.core_number(graph, **how)
        assert result.values.tolist() == answer, how
    assert result.summary()["result"] == {"largest": max(answer), "in_largest": answer.count(max(answer))}


def test_each_edge_moves_once_per_direction_at_most(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=10, seed=4)
    result = ist.core_number(graph, policy="emogi", memory="10%")
    assert sum(iteration.active_edges for iteration in result.trace) == graph.arcs


def test_no_vertex_and_no_edge():
    none = np.empty(0, np.int64)
    assert ist.core_number(ist.read((none, none))).values.size == 0
    assert ist.core_number(ist.read((none, none), vertices=3)).values.tolist() == [0, 0, 0]
    assert ist.core_number(build([(0, 0, None), (1, 1, None), (1, 1, None)], 3, True)).values.tolist() == [0, 0, 0]


def test_without_in_edges_it_says_so():
    with pytest.raises(ist.StoreError, match=r"core_number follows in-edges, and .* was stored without them"):
        ist.core_number(build([(0, 1, None)], 2, True, in_edges=False))


@pytest.mark.parametrize("how", [{}, {"policy": "filter", "memory": "10%"}])
def test_edges_stored_in_one_direction_only(tmp_path, how):
    """Such a store is wrong, and `verify` says so; a run must still come to an end."""
    from isthmus.graph.store.manifest import Manifest
    from isthmus.graph.store.writer import StoreWriter

    n = 40
    arrays = {"out.offsets": np.append(np.zeros(n // 2 + 1, np.int64), np.arange(1, n // 2 + 1) * 8)}
    arrays["out.targets"] = np.tile(np.arange(8, dtype=np.uint32), n // 2)
    with StoreWriter(tmp_path / "g.isthmus") as writer:
        for section, array in arrays.items():
            writer.section(section, array.dtype, array.size)
            writer.append(section, array)
        writer.commit(Manifest(n, n // 2 * 4, n // 2 * 8, False, False, "dense", parallel=True)).close()
    with ist.open(tmp_path / "g.isthmus") as graph:
        assert ist.core_number(graph, **how).values.min() >= 0
