"""Strongly connected components against NetworkX and SciPy, on shapes that are hard for each phase."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph
from tests.programs.ways import HOW, SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.store.manifest import Manifest, Section
from isthmus.graph.store.store import MemoryStore


def smallest(edges, n, directed):
    other = (nx.DiGraph if directed else nx.Graph)()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges)
    parts = nx.strongly_connected_components(other) if directed else nx.connected_components(other)
    labels = [0] * n
    for part in parts:
        for v in part:
            labels[v] = min(part)
    return labels


@SETTINGS
@given(graphs(most=24), hows, orders)
def test_networkx_says_the_same(graph, how, order):
    edges, n, directed = graph
    result = ist.strongly_connected_components(build(edges, n, directed, order=order), **how)
    expected = smallest(edges, n, directed)
    assert result.values.tolist() == expected
    assert result.summary()["result"] == {
        "components": len(set(expected)),
        "largest": max(expected.count(v) for v in expected),
    }


@SETTINGS
@given(st.integers(2, 12), st.integers(1, 4), st.randoms(), hows)
def test_chains_of_cycles(count, length, draw, how):
    """Cycles one behind the other, so that the giant component is one of many, with names in any order."""
    names = list(range(count * length))
    draw.shuffle(names)
    edges = []
    for part in range(count):
        own = names[part * length : (part + 1) * length]
        edges += [(own[i], own[(i + 1) % length], None) for i in range(length)]
        if part:
            edges.append((names[part * length - 1], own[0], None))
    result = ist.strongly_connected_components(build(edges, len(names), True), **how)
    assert result.values.tolist() == smallest(edges, len(names), True)


def shapes():
    draw = random.Random(8)
    n = 300
    return {
        "path down": [(i + 1, i, None) for i in range(n - 1)],
        "path up with loops": [(i, i + d, None) for i in range(n - 1) for d in (0, 1)],
        "cycle": [(i, (i + 1) % n, None) for i in range(n)],
        "bow tie": [(draw.randrange(100), draw.randrange(100, 200), None) for _ in range(200)]
        + [(draw.randrange(100, 200), draw.randrange(100, 200), None) for _ in range(500)]
        + [(draw.randrange(100, 200), draw.randrange(200, n), None) for _ in range(200)],
        "dag": [(u, v, None) for u, v in (sorted(draw.sample(range(n), 2)) for _ in range(900))],
        "two-cycles": [
            edge
            for i in range(0, n, 2)
            for edge in ((i, i + 1, None), (i + 1, i, None), (i, i + 2 if i < 200 else i, None))
        ],
    }


@pytest.mark.parametrize("shape", list(shapes()))
@pytest.mark.parametrize("how", HOW)
def test_shapes(shape, how):
    edges = shapes()[shape]
    result = ist.strongly_connected_components(build(edges, 300, True), **how)
    assert result.values.tolist() == smallest(edges, 300, True)


def test_trimming_takes_each_edge_of_a_dag_once():
    edges = shapes()["dag"]
    result = ist.strongly_connected_components(build(edges, 300, True))
    assert sum(iteration.active_edges for iteration in result.trace) <= len(edges)


def test_every_way(tmp_path, sized):
    edges = skewed(n=400, count=900)
    answer = smallest(edges, 420, True)
    assert 10 < len(set(answer)) < 400
    for graph, how in tight_ways(edges, 420, True, tmp_path, sized):
        assert ist.strongly_connected_components(graph, **how).values.tolist() == answer, how


def test_scipy_says_the_same_of_a_larger_graph(tmp_path):
    draw = np.random.default_rng(5)
    sources, targets = (draw.integers(0, 20_000, 45_000) for _ in range(2))
    graph = ist.ingest((sources, targets), tmp_path / "g.isthmus", vertices=20_000)
    arcs = sparse.csr_array((np.ones(45_000), (sources, targets)), (20_000, 20_000))
    count, labels = csgraph.connected_components(arcs, connection="strong")
    _, first = np.unique(labels, return_index=True)
    for how in ({}, {"policy": "filter", "memory": "5%"}, {"policy": "emogi", "memory": "5%", "threads": 2}):
        result = ist.strongly_connected_components(graph, **how)
        assert np.array_equal(result.values, first[labels])
        assert result.summary()["result"]["components"] == count


def test_no_vertex_and_no_edge():
    none = np.empty(0, np.int64)
    assert ist.strongly_connected_components(ist.read((none, none))).values.size == 0
    assert ist.strongly_connected_components(ist.read((none, none), vertices=3)).values.tolist() == [0, 1, 2]


def test_without_in_edges_it_says_so():
    with pytest.raises(
        ist.StoreError, match=r"strongly_connected_components follows in-edges, and .* was stored without them"
    ):
        ist.strongly_connected_components(build([(0, 1, None)], 2, True, in_edges=False))


def test_in_edges_that_are_other_edges():
    """Otherwise there would be many rounds that settle a vertex or two each."""
    n, offsets = 12, np.arange(0, 26, 2)
    steps = np.array([1, 2])
    out, into = ((np.arange(n)[:, None] + sign * steps).ravel() % n for sign in (1, -1))
    sections = {"offsets": Section("int64", n + 1), "targets": Section("uint32", 2 * n)}
    both = {f"{side}.{name}": section for side in ("out", "in") for name, section in sections.items()}
    manifest = Manifest(n, 2 * n, 2 * n, True, False, "dense", in_edges=True, sections=both)

    def graph(targets):
        lists = {"out.offsets": offsets, "out.targets": out, "in.offsets": offsets, "in.targets": targets}
        return Graph(MemoryStore(manifest, {name: array.astype(both[name].dtype) for name, array in lists.items()}))

    assert ist.strongly_connected_components(graph(into)).values.tolist() == [0] * n
    with pytest.raises(
        StoreError, match="the in-edges and out-edges of the graph are not the same edges; run isthmus verify"
    ):
        ist.strongly_connected_components(graph(np.full(2 * n, 5)))
