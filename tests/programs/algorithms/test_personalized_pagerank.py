"""Personalised PageRank: every column within its bound, as NetworkX has it, and all from one reading."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.naive import clean
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import BudgetError, OptionError

ROUNDING = 1e-13


def assert_within(result, edges, n, directed, sources, alpha, tol, weight=False):
    oracle, facts = clean(edges, range(n), directed=directed), result.summary()["result"]
    assert result.columns == [f"pagerank_{source}" for source in sources]
    assert facts["converged"]
    assert facts["error_bound"] <= tol
    for source in sources:
        exact = oracles.pagerank(oracle, alpha, {source: 1.0}, weight=weight)
        error = sum(abs(found - exact[v]) for v, found in enumerate(result[f"pagerank_{source}"].tolist()))
        assert error <= facts["error_bound"] + ROUNDING


alphas = st.sampled_from([0.2, 0.5, 0.85, 0.95])
tols = st.sampled_from([1e-1, 1e-4, 1e-8])


@SETTINGS
@given(graphs(), hows, orders, alphas, tols, st.booleans(), st.data())
def test_the_bound_holds(graph, how, order, alpha, tol, in_edges, data):
    edges, n, directed = graph
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    made = build(edges, n, directed, order=order, in_edges=in_edges)
    assert_within(
        ist.personalized_pagerank(made, sources, alpha, tol=tol, **how), edges, n, directed, sources, alpha, tol
    )


@SETTINGS
@given(graphs(st.one_of(st.just(0.0), st.floats(1e-3, 100))), hows, st.booleans(), st.data())
def test_by_weight(graph, how, in_edges, data):
    """A vertex all of whose edges weigh nothing has nowhere to go."""
    edges, n, directed = graph
    made = build(edges, n, directed, in_edges=in_edges)
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
    if not made.weighted:
        with pytest.raises(OptionError, match="has no weights"):
            ist.personalized_pagerank(made, sources, weight=True)
        return
    result = ist.personalized_pagerank(made, sources, tol=1e-8, weight=True, **how)
    assert_within(result, edges, n, directed, sources, 0.85, 1e-8, True)


@SETTINGS
@given(graphs(), st.data())
def test_networkx_says_the_same(graph, data):
    edges, n, directed = graph
    other = nx.MultiDiGraph() if directed else nx.MultiGraph()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges if directed or u != v)  # it counts both ends of an undirected loop
    kept = [(u, v, None) for u, v in other.edges()]
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    found = ist.personalized_pagerank(build(kept, n, directed), sources, tol=1e-9)
    for source in sources:
        theirs = nx.pagerank(other, 0.85, {source: 1}, 10_000, 1e-12)
        assert sum(abs(rank - theirs[v]) for v, rank in enumerate(found[f"pagerank_{source}"])) <= 1e-8


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("count", [3, 64])
def test_every_way(tmp_path, sized, directed, count):
    edges = skewed()
    sources = list(range(3, 420, 6))[:count]
    some = sources[:: 1 + count // 4]
    oracle = clean(edges, range(420), directed=directed)
    exact = np.array([list(oracles.pagerank(oracle, 0.85, {source: 1.0}).values()) for source in some])
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        result = ist.personalized_pagerank(graph, sources, tol=1e-7, **how)
        found = np.array([result[f"pagerank_{source}"] for source in some])
        assert np.abs(found - exact).sum(axis=1).max() <= result.summary()["result"]["error_bound"] <= 1e-7
        assert all(result[name].sum() == pytest.approx(1, abs=1e-12) for name in result.columns)


def test_pagerank_of_one_source_says_the_same(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=10, seed=2)
    together = ist.personalized_pagerank(graph, [0, 5, 9], tol=1e-9, memory="10%", policy="filter")
    reading = together.summary()["transfer"]["ratio"] / together.summary()["iterations"]
    assert reading < 1.5  # all of them in one reading per iteration
    for source in (0, 5, 9):
        alone = ist.pagerank(graph, personalization={source: 1.0}, tol=1e-9).values
        assert np.abs(together[f"pagerank_{source}"] - alone).sum() <= 2e-9
    assert together.to_arrow()["pagerank_5"].to_pylist() == together["pagerank_5"].tolist()
    graph.close()


def test_the_summary_and_stopping_short_of_the_bound():
    graph = build([(0, 1, None), (1, 2, None), (2, 0, None), (2, 1, None)], 4, True)
    result = ist.personalized_pagerank(graph, 0, max_iter=3, tol=1e-12)
    facts = result.summary()["result"]
    assert result.columns == ["pagerank_0"]
    assert (facts["sources"], facts["converged"], len(result.trace)) == (1, False, 3)
    assert facts["highest"] == result.values.max()
    assert result.trace.notes[-1].startswith("stopped after 3 iterations; errors are bounded by ")
    assert result.values[3] == 0
    lonely = ist.personalized_pagerank(graph, [3])
    assert lonely.values.tolist() == [0, 0, 0, 1]
    assert lonely.summary()["result"] == {"sources": 1, "highest": 1.0, "error_bound": 0.0, "converged": True}


def test_sources_that_do_not_fit(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=12, seed=2)
    with pytest.raises(
        BudgetError, match=r"needs at least .* near memory \(vertex state .*, or fewer sources: each takes 16 bytes"
    ):
        ist.personalized_pagerank(graph, list(range(64)), memory="2MB")
    few = ist.personalized_pagerank(graph, list(range(8)), memory="2MB", policy="filter")
    assert few.summary()["memory"]["near_peak"] <= 2_000_000
    graph.close()


def test_bad_input():
    graph = build([(0, 1, 1.0)], 80, True)
    for sources in ([], list(range(65))):
        with pytest.raises(OptionError, match=f"sources: expected 1 to 64 vertices, got {len(sources)}"):
            ist.personalized_pagerank(graph, sources)
    with pytest.raises(OptionError, match=r"sources: expected different vertices, got \[3, 3\]"):
        ist.personalized_pagerank(graph, [3, 3])
    with pytest.raises(ist.UnknownVertexError, match="no vertex 99 in the graph"):
        ist.personalized_pagerank(graph, [1, 99])
    for alpha in (0, 1, math.nan):
        with pytest.raises(OptionError, match=f"alpha: expected a number between 0 and 1, got {alpha}"):
            ist.personalized_pagerank(graph, 1, alpha)
    for tol in (0, -1, math.nan):
        with pytest.raises(OptionError, match=f"tol: expected a number above 0, got {tol}"):
            ist.personalized_pagerank(graph, 1, tol=tol)
    with pytest.raises(OptionError, match="max_iter: expected at least 1, got 0"):
        ist.personalized_pagerank(graph, 1, max_iter=0)
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1.0])), allow_negative=True)
    with pytest.raises(OptionError, match="personalized_pagerank needs weights of at least 0"):
        ist.personalized_pagerank(negative, 0, weight=True)
