"""Weakly connected components: NetworkX on random graphs, in both orders; races."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.programs.races import MOVING, overlapping
from tests.programs.ways import HOW, SETTINGS, graphs

import isthmus as ist


@SETTINGS
@given(graphs(st.none()), st.sampled_from(HOW), st.sampled_from(["natural", "hub"]))
def test_random_graphs(graph, how, order):
    edges, n, directed = graph
    columns = tuple(np.array([edge[i] for edge in edges], np.int64) for i in (0, 1))
    made = ist.read(columns, vertices=n, directed=directed, order=order, in_edges=False)
    result = ist.weakly_connected_components(made, **how)
    other = nx.Graph()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges)
    parts = list(nx.connected_components(other))
    assert result.values.tolist() == [min(part) for v in range(n) for part in parts if v in part]
    assert result.summary()["result"] == {"components": len(parts), "largest": max(map(len, parts))}


def test_two_threads_join_the_same_components(crowd, wrapped):
    def run(around):
        wrapped(around)
        return ist.weakly_connected_components(crowd, **MOVING)

    overlapping(run, lambda result: np.testing.assert_array_equal(result.filled(), np.zeros(crowd.vertices)))


def test_two_threads_on_edges_that_are_near(crowd):
    for _ in range(15):
        assert not ist.weakly_connected_components(crowd, threads=2).values.any()
