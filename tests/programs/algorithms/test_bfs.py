"""Breadth-first search: oracles, NetworkX, Graph500's checks; over near edges levels that members walk together, alone,
or one by one.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.checks import check_distances, check_tree
from tests.naive import clean
from tests.programs import ways
from tests.programs.races import MOVING
from tests.programs.ways import HOW, INT_MAX, SETTINGS, graphs

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.programs.algorithms import bfs


@SETTINGS
@given(graphs(st.none()), st.sampled_from(HOW), st.one_of(st.none(), st.integers(0, 4)))
def test_random_graphs(graph, how, limit):
    edges, n, directed = graph
    oracle = clean(edges, range(n), directed=directed)
    result = ist.bfs(ways.build(edges, n, directed), 0, depth_limit=limit, predecessors=True, **how)
    distance = ways.reached(result)
    assert distance == oracles.bfs(oracle, 0, limit)
    second = nx.MultiDiGraph if directed else nx.MultiGraph
    other = second()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges)
    assert distance == nx.single_source_shortest_path_length(other, 0, cutoff=limit)
    check_distances(oracle, 0, distance, False, limit)
    check_tree(oracle, 0, distance, dict(enumerate(result["predecessor"].tolist())), False)


def test_options_that_make_no_sense():
    graph = ways.build([(0, 1, None)], 2, True)
    for limit in (-1, 2.5):
        with pytest.raises(OptionError, match=rf"depth_limit: expected (a whole number|at least 0), got {limit!r}"):
            ist.bfs(graph, 0, depth_limit=limit)
    for source in (9, -1, "0", None, True, 0.5, [0, 1]):
        with pytest.raises(ist.UnknownVertexError, match=r"no vertex .* in the graph"):
            ist.bfs(graph, source)
    assert ist.bfs(graph, 0, depth_limit=10**30).values.tolist() == [0, 1]
    assert ist.bfs(graph, np.int64(0), depth_limit=np.int8(0)).filled().tolist() == [0, INT_MAX]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("alone", [0, 1 << 9])
def test_levels_of_a_grid(sized, threads, alone):
    sized(search_alone=alone)  # 0: members stay together also for the smallest
    sized(search_levels=100)  # and come back in between
    rows, columns = np.divmod(np.arange(250_000), 500)
    graph = ist.generate("grid", rows=500, columns=500)
    for _ in range(5):
        result = ist.bfs(graph, 0, threads=threads)
        assert np.array_equal(result.filled(), rows + columns)
        assert [i.active_vertices for i in result.trace][:600] == [*range(1, 501), *range(499, 399, -1)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("directed", [True, False])
def test_levels_of_a_skewed_graph(tmp_path, threads, directed):
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=14, directed=directed) as graph:
        expected = ist.bfs(graph, 0, memory="5%", policy="filter").filled()
        for limit in (None, 2):
            found = ist.bfs(graph, 0, depth_limit=limit, threads=threads).filled()
            assert np.array_equal(
                found, expected if limit is None else np.where(expected <= limit, expected, np.iinfo(np.int64).max)
            )


def test_a_level_of_more_vertices_than_edges():
    """A million leaves without edges do not fit the piles that members have for small levels."""
    leaves = bfs.GANG + 5000
    sources = np.concatenate([np.zeros(leaves, np.int64), [leaves]])
    targets = np.concatenate([np.arange(1, leaves + 1), [leaves + 1]])
    chain = np.arange(leaves + 1, leaves + 2000)
    graph = ist.read((np.concatenate([sources, chain]), np.concatenate([targets, chain + 1])), directed=True)
    expected = np.concatenate([[0], np.ones(leaves), np.arange(2, 2002)])
    assert np.array_equal(ist.bfs(graph, 0, threads=2).filled(), expected)


def test_two_threads_on_edges_that_are_near(crowd):
    """Whatever special loops there are for near edges, the answer is the same every time."""
    expected = ist.bfs(crowd, 17, **{**MOVING, "threads": 1}).filled()
    for _ in range(15):
        assert np.array_equal(ist.bfs(crowd, 17, threads=2).filled(), expected)


@pytest.mark.parametrize("limit", [None, 0, 1, 3])
@pytest.mark.parametrize("directed", [True, False])
def test_a_small_graph_is_searched_without_kernels(directed, limit, sized):
    """With the same distances, and the same levels in the trace."""
    draw = np.random.default_rng(3)
    graph = ist.read(tuple(draw.integers(0, 60, (2, 90))), vertices=70, directed=directed)
    expected = ist.bfs(graph, 5, depth_limit=limit)
    sized(few_arcs=1000)
    found = ist.bfs(graph, 5, depth_limit=limit)
    assert found.raw("distance").tolist() == expected.raw("distance").tolist()
    assert found.summary()["result"] == expected.summary()["result"]
    assert [(i.active_vertices, i.active_edges) for i in found.trace] == [
        (i.active_vertices, i.active_edges) for i in expected.trace
    ]
