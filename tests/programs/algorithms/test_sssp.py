"""Shortest paths over random graphs: oracles, SciPy, Graph500's checks; saturation; races."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph
from tests import oracles
from tests.checks import check_distances, check_tree
from tests.naive import clean
from tests.programs.races import MOVING, overlapping
from tests.programs.ways import HOW, INT_MAX, SETTINGS, graphs, reached

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.programs.algorithms.sssp import whole
from isthmus.programs.declaration import Monotone

whole_weights = st.one_of(st.just(0), st.integers(0, 9), st.integers(2**31 - 3, 2**31 - 1))
real_weights = st.one_of(st.just(0.0), st.floats(0, 4, width=32), st.just(1e308))


def build(edges, n, directed, dtype):
    """A graph whose weights are of that type, even if it has no edges; None: without weights."""
    kinds = (np.int64, np.int64) if dtype is None else (np.int64, np.int64, dtype)
    columns = tuple(np.array([edge[i] for edge in edges], kind) for i, kind in enumerate(kinds))
    return ist.read(columns, vertices=n, directed=directed)


@SETTINGS
@given(
    graphs(whole_weights),
    st.sampled_from(HOW),
    st.one_of(st.none(), st.floats(0, 2**32), st.sampled_from([0, 3, math.inf, 1e30])),
)
def test_whole_weights(graph, how, cutoff):
    edges, n, directed = graph
    oracle = clean(edges, range(n), directed=directed)
    made = build(edges, n, directed, np.int32)
    result = ist.sssp(made, 0, cutoff=cutoff, predecessors=True, **how)
    assert result.values.dtype == np.int64
    distance = reached(result)
    assert distance == oracles.sssp(oracle, 0, cutoff)
    check_distances(oracle, 0, distance, made.weighted, cutoff)
    check_tree(oracle, 0, distance, dict(enumerate(result["predecessor"].tolist())), made.weighted)


@SETTINGS
@given(graphs(real_weights), st.sampled_from(HOW), st.one_of(st.none(), st.floats(0, 8)))
def test_real_weights(graph, how, cutoff):
    """Including sums that overflow, which stop at the largest number."""
    edges, n, directed = graph
    oracle = clean(edges, range(n), directed=directed)
    result = ist.sssp(build(edges, n, directed, np.float64), 0, cutoff=cutoff, predecessors=True, **how)
    assert result.values.dtype == np.float64
    distance = reached(result)
    assert distance == {v: min(d, sys.float_info.max) for v, d in oracles.sssp(oracle, 0, cutoff).items()}
    check_tree(oracle, 0, distance, dict(enumerate(result["predecessor"].tolist())), True)


@SETTINGS
@given(graphs(whole_weights))
def test_agrees_with_scipy(graph):
    edges, n, directed = graph
    shortest = {}
    for u, v, w in edges:
        for pair in ((u, v),) if directed else ((u, v), (v, u)):
            shortest[pair] = min(w, shortest.get(pair, w))
    rows, columns = ([pair[i] for pair in shortest] for i in (0, 1))
    # Explicit zeros are edges.
    arcs = sparse.csr_array((np.array(list(shortest.values()), float), (rows, columns)), (n, n))
    found = ist.sssp(build(edges, n, directed, np.int32), 0).filled()
    assert np.where(found == INT_MAX, np.inf, found).tolist() == csgraph.dijkstra(arcs, indices=0).tolist()


def test_whole_distances_saturate_instead_of_wrapping():
    """Distances of 2**63 need more edges than a test has; so the source starts a little below."""
    graph = build([(0, 1, 3), (1, 2, 2), (2, 3, 1), (3, 4, 2**31 - 1), (0, 5, 2**31 - 1), (5, 6, 0)], 7, True, np.int32)
    program = Monotone(whole.message, math.inf, "min", INT_MAX - 6, "distance", ("out",))(source=0)
    longest = INT_MAX - 1  # unreached vertices have INT_MAX
    assert ist.run(program, graph).values.tolist() == [
        INT_MAX - 6,
        INT_MAX - 3,
        longest,
        longest,
        longest,
        longest,
        longest,
    ]


def test_long_paths_of_heavy_edges():
    n = 3000
    graph = build([(i, i + 1, 2**31 - 1) for i in range(n - 1)], n, True, np.int32)
    assert ist.sssp(graph, 0).values.tolist() == [i * (2**31 - 1) for i in range(n)]
    real = build([(i, i + 1, 1e308) for i in range(4)], 5, True, np.float64)
    with pytest.warns(ist.IsthmusWarning, match="distances stop at 1.79769e"):
        result = ist.sssp(real, 0, predecessors=True)
    longest = float(np.finfo(np.float64).max)
    assert result.values.tolist() == [0.0, 1e308, longest, longest, longest]
    assert result["predecessor"].tolist() == [None, 0, 1, 2, 3]


def test_without_weights_it_says_so():
    result = ist.sssp(build([(0, 1, None), (1, 2, None)], 3, True, None), 0)
    assert result.values.tolist() == [0, 1, 2]
    assert result.trace.notes == ["the graph has no weights: every edge counts as 1"]
    assert result.summary()["notes"] == result.trace.notes


def test_cutoffs_that_make_no_sense():
    graph = build([(0, 1, 1)], 2, True, np.int32)
    for cutoff in (-0.5, math.nan):
        with pytest.raises(OptionError, match=rf"cutoff: expected at least 0, got {cutoff}"):
            ist.sssp(graph, 0, cutoff=cutoff)


def test_negative_weights_are_refused():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([-1.0, 2.0])), allow_negative=True)
    with pytest.raises(OptionError, match=r"sssp needs weights of at least 0, and .* has negative ones"):
        ist.sssp(graph, 0)


@pytest.mark.parametrize("cutoff", [None, 2**32, 2**31, 3 * 10**9])
def test_paths_too_long_for_32_bits(cutoff, tmp_path):
    """In memory distances are narrow while they suffice."""
    heavy = 2**31 - 1
    graph = ist.ingest((np.arange(6), np.arange(1, 7), np.full(6, heavy)), tmp_path / "g.isthmus", directed=True)
    expected = [k * heavy if cutoff is None or k * heavy <= cutoff else INT_MAX for k in range(7)]
    assert ist.sssp(graph, 0, cutoff=cutoff).filled().tolist() == expected


def test_two_threads_relax_the_same_vertices(crowd, wrapped):
    expected = ist.sssp(crowd, 17, threads=1).filled()

    def run(around):
        wrapped(around)
        return ist.sssp(crowd, 17, predecessors=True, **MOVING)

    def check(result):
        assert np.array_equal(result.filled(), expected)
        tree = result["predecessor"]
        assert all((tree[v] is None) == (v == 17) for v in range(crowd.vertices))

    overlapping(run, check)


def test_two_threads_on_edges_that_are_near(crowd):
    """Whatever special loops there are for near edges, the answer is the same every time."""
    expected = ist.sssp(crowd, 17, **{**MOVING, "threads": 1}).filled()
    for _ in range(15):
        assert np.array_equal(ist.sssp(crowd, 17, threads=2).filled(), expected)
