"""Widest paths against a Dijkstra-like oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.naive import clean
from tests.programs.ways import INT_MAX, SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist

INT_MIN = -(2**63)


def expected(edges, n, directed, whole):
    found = oracles.widest(clean(edges, range(n), directed=directed), 0)
    if whole:
        return [INT_MAX if v == 0 else int(found[v]) if v in found else INT_MIN for v in range(n)]
    return [found.get(v, -np.inf) for v in range(n)]


@SETTINGS
@given(graphs(st.integers(-5, 9)), hows, orders)
def test_whole_weights(graph, how, order):
    edges, n, directed = graph
    result = ist.widest_path(build(edges, n, directed, order=order, allow_negative=True), 0, **how)
    assert result.filled().dtype == np.int64
    assert result.filled().tolist() == expected(edges, n, directed, True)


@SETTINGS
@given(graphs(st.floats(-2, 4, width=32)), hows, orders)
def test_real_weights(graph, how, order):
    edges, n, directed = graph
    result = ist.widest_path(build(edges, n, directed, order=order, allow_negative=True), 0, **how)
    assert result.filled().tolist() == expected(edges, n, directed, result.filled().dtype.kind == "i")


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed(lambda draw: draw.randrange(1000))
    answer = expected(edges, 420, directed, True)
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert ist.widest_path(graph, 0, **how).filled().tolist() == answer, how


@pytest.mark.parametrize("weight", [5, 0.5])
def test_the_source_and_the_unreached_have_no_width(weight):
    result = ist.widest_path(build([(0, 1, weight)], 3, True), 0)
    assert result.values.tolist() == result.to_arrow()["width"].to_pylist() == [None, weight, None]
    assert result.values.mean() == weight


def test_without_weights_it_says_so():
    result = ist.widest_path(build([(0, 1, None), (1, 2, None)], 4, True), 0)
    assert result.filled().tolist() == [INT_MAX, 1, 1, INT_MIN]
    assert result.trace.notes == ["the graph has no weights: every edge counts as 1"]
    assert result.summary()["result"] == {"reached": 3, "narrowest": 1}


def test_an_unknown_source():
    with pytest.raises(ist.UnknownVertexError, match="no vertex 9 in the graph"):
        ist.widest_path(build([(0, 1, 1)], 2, True), 9)
