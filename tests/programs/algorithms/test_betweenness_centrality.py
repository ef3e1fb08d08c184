"""Betweenness centrality: NetworkX on simple graphs, plain Python where edges are parallel, and shared reads."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.naive import clean
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, small_sizes, tight_ways

import isthmus as ist
from isthmus.errors import BudgetError, OptionError


def simple(edges, n, directed):
    """The graph with every edge once, as NetworkX and as edges."""
    other = nx.DiGraph() if directed else nx.Graph()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges)
    return other, [(u, v, None) for u, v in other.edges]


def assert_same(result, expected):
    assert result.columns == ["betweenness_centrality"]
    assert np.allclose(result.filled(), expected, rtol=1e-9, atol=1e-13, equal_nan=True)


@SETTINGS
@given(graphs(), hows, orders, st.booleans(), st.booleans(), st.data())
def test_networkx_says_the_same(graph, how, order, normalized, endpoints, data):
    """With all sources and with a sample, which the same seed draws."""
    edges, n, directed = graph
    other, kept = simple(edges, n, directed)
    made = build(kept, n, directed, order=order)
    options = {
        "k": data.draw(st.one_of(st.none(), st.integers(1, n))),
        "normalized": normalized,
        "endpoints": endpoints,
        "seed": 5,
    }
    expected = nx.betweenness_centrality(other, **options)
    assert_same(ist.betweenness_centrality(made, **options, **how), [expected[v] for v in range(n)])


@SETTINGS
@given(graphs(most=9), hows, orders, st.booleans(), st.data())
def test_parallel_edges_are_paths_of_their_own(graph, how, order, endpoints, data):
    edges, n, directed = graph
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    expected = oracles.betweenness(clean(edges, range(n), directed=directed), sources, endpoints)
    made = build(edges, n, directed, order=order)
    result = ist.betweenness_centrality(made, sources=sources, normalized=False, endpoints=endpoints, **how)
    assert_same(result, scaled(expected, n, directed, sources, endpoints))


def scaled(sums, n, directed, sources, endpoints):
    """Sums over the sources as path counts of the whole graph: the mean over those who could tell, times all."""
    others = n if endpoints else n - 1
    if others < 2:
        return sums
    told = [len(sources) - (not endpoints and v in sources) for v in range(n)]
    return [
        np.nan if not tellers else total / tellers * others / (1 if directed else 2)
        for total, tellers in zip(sums, told, strict=True)
    ]


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    """Nine sources in batches of up to eight: searches start anew on what others left behind."""
    edges = skewed()
    sources = random.Random(4).sample(range(420), 9)
    expected = oracles.betweenness(clean(edges, range(420), directed=directed), sources, True)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        result = ist.betweenness_centrality(graph, sources=sources, endpoints=True, **how)
        assert np.allclose(result.values, np.array(expected) / (9 * 419), rtol=1e-9, atol=0)


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_any_batch(sized, batch):
    sized(betweenness_batches=(batch,))
    small_sizes(sized)
    other = nx.connected_caveman_graph(20, 5)
    expected = nx.betweenness_centrality(other)
    graph = build([(u, v, None) for u, v in other.edges], 100, False)
    for memory in ("1%", None):
        assert_same(
            ist.betweenness_centrality(graph, memory=memory, far="ram", policy="filter"),
            [expected[v] for v in range(100)],
        )


def test_a_long_path_and_many_components():
    """Most levels have a single vertex, and most searches end at once."""
    edges = [(i, i + 1, None) for i in range(600)] + [(u, u + 1, None) for u in range(700, 900, 2)]
    other, kept = simple(edges, 900, False)
    expected = nx.betweenness_centrality(other)
    result = ist.betweenness_centrality(build(kept, 900, False))
    assert_same(result, [expected[v] for v in range(900)])
    assert result.summary()["result"]["depth"] == 600


def test_reads_are_shared(tmp_path, sized):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=12, seed=2)
    how = {"policy": "filter", "memory": "10%", "k": 16}
    together = ist.betweenness_centrality(graph, **how)
    sized(betweenness_batches=(1,))
    alone = ist.betweenness_centrality(graph, **how)
    assert np.allclose(together.filled(), alone.filled(), rtol=1e-9)
    assert together.summary()["transfer"]["bytes"] * 4 < alone.summary()["transfer"]["bytes"]
    graph.close()


def test_spare_memory_makes_larger_batches(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=10, seed=2)
    scarce = ist.betweenness_centrality(graph, k=64, policy="filter", memory="600kB", threads=1)
    ample = ist.betweenness_centrality(graph, k=64, policy="filter", memory="40MB", threads=1)
    assert np.allclose(scarce.filled(), ample.filled(), rtol=1e-9)
    assert ample.summary()["iterations"] * 5 < scarce.summary()["iterations"]
    for result, budget in ((scarce, 600_000), (ample, 40_000_000)):
        assert result.summary()["memory"]["near_peak"] <= budget
    with pytest.raises(BudgetError, match=r"betweenness_centrality on .* needs at least .* near memory"):
        ist.betweenness_centrality(graph, memory="100kB")
    graph.close()


def test_more_paths_than_integers_count():
    """300 diamonds in a row: 2 ** 300 shortest paths lead through, and every middle lies on half of them."""
    edges = [edge for d in range(300) for edge in diamond(3 * d)]
    result = ist.betweenness_centrality(build(edges, 901, True), sources=[0], normalized=False)
    ends = 900 * np.ones(901) - np.arange(901)  # everyone further on
    assert result.filled()[3] == pytest.approx(ends[3] * 900)
    assert result.filled()[[1, 2]] == pytest.approx(ends[3] / 2 * 900 + 450)
    with pytest.raises(OptionError, match="more than 1e308 shortest paths lead to a vertex"):
        ist.betweenness_centrality(
            build([edge for d in range(1100) for edge in diamond(3 * d)], 3301, True), sources=[0]
        )


def diamond(u):
    return [(u, u + 1, None), (u, u + 2, None), (u + 1, u + 3, None), (u + 2, u + 3, None)]


def test_small_graphs_and_the_summary():
    none = np.empty(0, np.int64)
    assert ist.betweenness_centrality(ist.read((none, none))).values.size == 0
    assert ist.betweenness_centrality(ist.read((none, none), vertices=3)).values.tolist() == [0.0] * 3
    path = build([(0, 1, None), (1, 2, None)], 3, False)
    result = ist.betweenness_centrality(path)
    assert result.values.tolist() == [0.0, 1.0, 0.0]
    assert result.summary()["result"] == {"sources": 3, "pairs": 6, "depth": 2, "highest": 1.0}
    single = ist.betweenness_centrality(path, sources=0)
    assert np.isnan(single.filled()[0])
    assert single.summary()["result"] == {"sources": 1, "pairs": 2, "depth": 2, "highest": 1.0}


def test_bad_sources():
    graph = build([(0, 1, None)], 5, True)
    for k in (0, -1, 6, 2.5):
        with pytest.raises(OptionError, match=f"k: expected a number of vertices from 1 to 5, got {k}"):
            ist.betweenness_centrality(graph, k)
    for sources in ([], [1, 2, 1]):
        with pytest.raises(OptionError, match="sources: expected at least one vertex, each once"):
            ist.betweenness_centrality(graph, sources=sources)
    with pytest.raises(OptionError, match="expected k or sources, got both"):
        ist.betweenness_centrality(graph, 2, sources=[1])
    with pytest.raises(ist.UnknownVertexError, match="no vertex 99 in the graph"):
        ist.betweenness_centrality(graph, sources=[1, 99])
