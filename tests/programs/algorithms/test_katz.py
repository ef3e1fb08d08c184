"""Katz centrality: the bound that is promised, against a dense solve and NetworkX."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.naive import clean
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError

ROUNDING = 1e-11


def matrix(edges, n, directed, weighted=False):
    """A with parallel edges added up."""
    lists = clean(edges, range(n), directed=directed).out
    dense = np.zeros((n, n))
    for u, entries in lists.items():
        for v, w in entries:
            dense[u, v] += w if weighted else 1
    return dense


def solved(dense, alpha, beta):
    return np.linalg.solve(np.eye(len(dense)) - alpha * dense.T, np.full(len(dense), beta))


def assert_within(result, exact, tol):
    facts = result.summary()["result"]
    error = (np.abs(result.values - exact) / exact).max()
    assert facts["converged"]
    assert error <= facts["error_bound"] + ROUNDING
    assert facts["error_bound"] <= tol


@SETTINGS
@given(
    graphs(),
    hows,
    orders,
    st.floats(0.05, 0.95),
    st.sampled_from([0.5, 1, 3]),
    st.sampled_from([1e-2, 1e-9]),
    st.booleans(),
)
def test_the_bound_holds(graph, how, order, share, beta, tol, in_edges):
    """Up to 95 % of the largest alpha that converges, which is far beyond 1 / the largest degree."""
    edges, n, directed = graph
    dense = matrix(edges, n, directed)
    radius = max(np.abs(np.linalg.eigvals(dense)).max(), 0.05)
    alpha = share / radius
    made = build(edges, n, directed, order=order, in_edges=in_edges)
    result = ist.katz(made, alpha, beta, tol=tol, normalized=False, max_iter=5000, **how)
    assert_within(result, solved(dense, alpha, beta), tol)


@SETTINGS
@given(graphs(st.floats(0, 4, width=32)), hows)
def test_by_weight(graph, how):
    edges, n, directed = graph
    made = build(edges, n, directed)
    if not made.weighted:
        with pytest.raises(OptionError, match=r"weight: .* has no weights"):
            ist.katz(made, weight=True)
        return
    dense = matrix(edges, n, directed, True)
    alpha = 0.7 / max(np.abs(np.linalg.eigvals(dense)).max(), 0.5)
    assert_within(
        ist.katz(made, alpha, tol=1e-8, normalized=False, weight=True, **how), solved(dense, alpha, 1.0), 1e-8
    )


@pytest.mark.parametrize("directed", [True, False])
def test_networkx_says_the_same(directed):
    edges = skewed(n=80, count=150)
    simple = sorted({(u, v, None) for u, v, _ in edges})
    other = (nx.DiGraph if directed else nx.Graph)()
    other.add_nodes_from(range(80))
    other.add_edges_from((u, v) for u, v, _ in simple)
    made = build([(u, v, None) for u, v in other.edges], 80, directed)
    expected = nx.katz_centrality_numpy(other, alpha=0.02, beta=1.5)
    found = ist.katz(made, 0.02, 1.5, tol=1e-10).values
    assert np.allclose(found, [expected[v] for v in range(80)], rtol=1e-8, atol=0)
    assert np.linalg.norm(found) == pytest.approx(1)


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed()
    dense = matrix(edges, 420, directed)
    alpha = 0.5 / np.abs(np.linalg.eigvals(dense)).max()
    exact = solved(dense, alpha, 1.0)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert_within(ist.katz(graph, alpha, normalized=False, **how), exact, 1e-6)


def test_no_vertex_and_no_edge():
    none = np.empty(0, np.int64)
    assert ist.katz(ist.read((none, none))).values.size == 0
    assert ist.katz(ist.read((none, none), vertices=4), beta=2, normalized=False).values.tolist() == [2.0] * 4


def test_stopping_short_of_the_bound():
    result = ist.katz(build([(0, 1, None), (1, 0, None), (1, 2, None)], 3, True), 0.5, max_iter=8)
    assert not result.summary()["result"]["converged"]
    assert any(
        note.startswith("stopped after 8 iterations; relative errors are bounded by") for note in result.trace.notes
    )


def test_bad_parameters():
    graph = build([(0, 1, 1), (1, 0, 1)], 2, True)
    for name in ("alpha", "beta", "tol"):
        for value in (0, -1, np.nan, np.inf):
            with pytest.raises(OptionError, match=f"{name}: expected a finite number above 0, got"):
                ist.katz(graph, **{name: value})
    with pytest.raises(OptionError, match="max_iter: expected at least 1, got 0"):
        ist.katz(graph, max_iter=0)
    for alpha in (1.0, 1.5, 40.0):
        with pytest.raises(
            OptionError,
            match=r"is too large for this graph; the largest that converges is about 1, so give 0\.95 or less",
        ):
            ist.katz(graph, alpha)
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1.0])), allow_negative=True)
    with pytest.raises(OptionError, match="katz needs weights of at least 0"):
        ist.katz(negative, weight=True)


@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("most", [3, 1000])
def test_an_alpha_that_is_too_large_is_answered_with_one_that_works(directed, weight, most):
    edges = skewed(lambda draw: draw.randrange(1, 9), n=80, count=300)
    graph = build(edges, 80, directed)
    with pytest.raises(OptionError, match="is too large for this graph; the largest that converges is about") as caught:
        ist.katz(graph, 0.9, max_iter=most, weight=weight)
    works = float(re.search(r"give ([0-9.e-]+) or less", str(caught.value))[1])
    assert ist.katz(graph, works, weight=weight).summary()["result"]["converged"]
    largest = 1 / np.abs(np.linalg.eigvals(matrix(edges, 80, directed, weight))).max()
    assert works > largest * (0.2 if most == 3 else 0.9)
    with pytest.raises(OptionError, match=r"max_iter: 1 iterations are too few|is too large for this graph"):
        ist.katz(graph, works, max_iter=1, weight=weight)


def test_the_largest_alpha_of_a_bipartite_graph():
    """A star's residuals never have one ratio, whatever the number of iterations; its largest eigenvalue is 10."""
    with pytest.raises(OptionError, match=r"the largest that converges is about 0\.1, so give 0\.095 or less"):
        ist.katz(ist.generate("star", vertices=101), 0.5)


def test_weights_that_no_alpha_of_use_suits():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([1.7e308, 1.7e308])), directed=False)
    with pytest.raises(OptionError, match=r"alpha: with 0\.1 the weights of this graph are too large for float64"):
        ist.katz(graph, weight=True)
