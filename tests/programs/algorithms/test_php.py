"""Penalised hitting probability: the bound that is promised, against a dense solve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.programs.algorithms.test_katz import matrix
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError

ROUNDING = 1e-12


def solved(dense, alpha, source=0):
    """x = e + alpha P^T x with the source's row of P^T left out."""
    n = len(dense)
    strength = dense.sum(axis=1, keepdims=True)
    along = np.divide(dense, strength, out=np.zeros_like(dense), where=strength > 0).T
    along[source] = 0
    return np.linalg.solve(np.eye(n) - alpha * along, np.eye(n)[source])


@SETTINGS
@given(graphs(), hows, orders, st.sampled_from([0.2, 0.8, 0.95]), st.sampled_from([1e-1, 1e-4, 1e-9]))
def test_the_bound_holds(graph, how, order, alpha, tol):
    edges, n, directed = graph
    result = ist.php(build(edges, n, directed, order=order), 0, alpha, tol, **how)
    exact = solved(matrix(edges, n, directed), alpha)
    assert np.abs(result.values - exact).sum() <= tol + ROUNDING
    assert result.values[0] == 1.0


@SETTINGS
@given(graphs(st.one_of(st.just(0.0), st.floats(0.125, 9, width=32))), hows)
def test_by_weight(graph, how):
    edges, n, directed = graph
    made = build(edges, n, directed)
    if not made.weighted:
        with pytest.raises(OptionError, match=r"weight: .* has no weights"):
            ist.php(made, 0, weight=True)
        return
    result = ist.php(made, 0, tol=1e-8, weight=True, **how)
    assert np.abs(result.values - solved(matrix(edges, n, directed, True), 0.8)).sum() <= 1e-8 + ROUNDING


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed(lambda draw: draw.randrange(1, 9))
    exact = solved(matrix(edges, 420, directed), 0.8, 7)
    by_weight = solved(matrix(edges, 420, directed, True), 0.8, 7)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert np.abs(ist.php(graph, 7, **how).values - exact).sum() <= 1e-6
        assert np.abs(ist.php(graph, 7, weight=True, **how).values - by_weight).sum() <= 1e-6


def test_bad_parameters():
    graph = build([(0, 1, 1), (1, 0, 1)], 2, True)
    for alpha in (0, 1, -1, np.nan):
        with pytest.raises(OptionError, match="alpha: expected a number between 0 and 1, got"):
            ist.php(graph, 0, alpha)
    with pytest.raises(OptionError, match="tol: expected a number above 0, got 0"):
        ist.php(graph, 0, tol=0)
    with pytest.raises(ist.UnknownVertexError, match="no vertex 5 in the graph"):
        ist.php(graph, 5)
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1.0])), allow_negative=True)
    with pytest.raises(OptionError, match="php needs weights of at least 0"):
        ist.php(negative, 0, weight=True)
