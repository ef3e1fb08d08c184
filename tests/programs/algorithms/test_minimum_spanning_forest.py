"""Minimum spanning forests against Kruskal's algorithm, edge by edge, and NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist


def kruskal(edges, n):
    """The lightest edges first, the smaller ends first among equals, as long as they join two trees."""
    tree = list(range(n))
    chosen = []
    for w, a, b in sorted((1 if w is None else w, min(u, v), max(u, v)) for u, v, w in edges):
        if tree[a] != tree[b]:
            tree = [tree[b] if t == tree[a] else t for t in tree]
            chosen.append((a, b, w))
    return sorted(chosen)


def found(result):
    return list(zip(result["source"].tolist(), result["target"].tolist(), result.values.tolist(), strict=True))


weights = st.one_of(st.integers(-3, 3), st.integers(2**31 - 2, 2**31 - 1))


@SETTINGS
@given(graphs(weights), hows, orders)
def test_whole_weights(graph, how, order):
    edges, n, directed = graph
    result = ist.minimum_spanning_forest(build(edges, n, directed, order=order, allow_negative=True), **how)
    expected = kruskal(edges, n)
    assert found(result) == expected
    total = sum(w for _, _, w in expected)
    assert result.summary()["result"] == {"edges": len(expected), "trees": n - len(expected), "total_weight": total}


@SETTINGS
@given(graphs(st.sampled_from([0.0, -0.0, 0.5, -1.5, 1e300])), hows, orders)
def test_real_weights(graph, how, order):
    edges, n, directed = graph
    result = ist.minimum_spanning_forest(build(edges, n, directed, order=order, allow_negative=True), **how)
    assert found(result) == kruskal(edges, n)


@SETTINGS
@given(graphs(), hows, orders)
def test_without_weights(graph, how, order):
    edges, n, directed = graph
    result = ist.minimum_spanning_forest(build(edges, n, directed, order=order), **how)
    assert found(result) == kruskal(edges, n)
    assert "the graph has no weights: every edge counts as 1" in result.trace.notes


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed(lambda draw: draw.randrange(30))
    answer = kruskal(edges, 420)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert found(ist.minimum_spanning_forest(graph, **how)) == answer, how


def test_networkx_says_the_same(tmp_path):
    graph = ist.generate("grid", tmp_path / "g.isthmus", rows=40, columns=40, weights="0.0:1.0", seed=6)
    read = graph.store.read
    sources = np.repeat(np.arange(graph.vertices), np.diff(read("out.offsets")))
    other = nx.Graph()
    other.add_weighted_edges_from(
        zip(sources.tolist(), read("out.targets").tolist(), read("out.weights").tolist(), strict=True)
    )
    result = ist.minimum_spanning_forest(graph, policy="filter", memory="10%")
    expected = nx.minimum_spanning_tree(other)
    assert {(u, v) for u, v, _ in found(result)} == {(min(edge), max(edge)) for edge in expected.edges}
    assert result.summary()["result"]["total_weight"] == pytest.approx(expected.size(weight="weight"))


def test_edges_inside_components_stop_moving(tmp_path):
    graph = ist.generate("grid", tmp_path / "g.isthmus", rows=60, columns=60, seed=4, weights="1:99")
    active = [
        iteration.active_edges for iteration in ist.minimum_spanning_forest(graph, memory="20%", policy="emogi").trace
    ]
    assert active == sorted(active, reverse=True)
    assert active[-1] < active[0] / 2


def test_edges_as_tables(tmp_path):
    graph = ist.read(
        (np.array(["b", "c", "a"], object), np.array(["c", "d", "d"], object), np.array([2, 1, 4])), directed=False
    )
    result = ist.minimum_spanning_forest(graph)
    rows = {"source": ["a", "b", "c"], "target": ["d", "c", "d"], "weight": [4, 2, 1]}
    assert result.to_arrow().to_pydict() == rows
    assert {name: column.tolist() for name, column in result.to_numpy().items()} == rows
    assert (len(result), result.vertices.tolist()) == (3, ["a", "b", "c", "d"])
    assert "3 edges" in repr(result)
    result.save(tmp_path / "forest.parquet")
    assert pq.read_table(tmp_path / "forest.parquet").to_pydict() == rows
    result.save(tmp_path / "forest.csv")
    assert (tmp_path / "forest.csv").read_text().splitlines()[1] == '"a","d",4'


def test_no_vertex_and_no_edge():
    none = np.empty(0, np.int64)
    for n in (0, 3):
        result = ist.minimum_spanning_forest(ist.read((none, none), vertices=n, directed=False))
        assert result.to_arrow().num_rows == 0
        assert result.summary()["result"] == {"edges": 0, "trees": n, "total_weight": 0}


def test_without_in_edges_it_says_so():
    with pytest.raises(
        ist.StoreError, match=r"minimum_spanning_forest follows in-edges, and .* was stored without them"
    ):
        ist.minimum_spanning_forest(build([(0, 1, None)], 2, True, in_edges=False))


def test_a_sum_that_is_too_large_is_noted():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([1.7e308, 1.7e308])), directed=False)
    with pytest.warns(ist.IsthmusWarning, match="add up to more than float64 holds: total_weight is infinite"):
        assert np.isinf(ist.minimum_spanning_forest(graph).summary()["result"]["total_weight"])
