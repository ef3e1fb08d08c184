"""Whole weights beyond 32 bits: lengths are exact beyond 2**53 and stop below the largest 64-bit number, in memory and
from afar.

Tests `programs/algorithms/sssp.py`, `programs/algorithms/widest_path.py`,
`programs/algorithms/minimum_spanning_forest.py` and `programs/algorithms/pagerank.py`.
"""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import isthmus as ist

INT_MAX = 2**63 - 1  # unreached
LONGEST = INT_MAX - 1
N = 60


@pytest.fixture(scope="module")
def edges():
    random = np.random.default_rng(7)
    return random.integers(0, N, 240), random.integers(0, N, 240), random.integers(2**52, 2**61, 240)


@pytest.fixture(scope="module")
def graph(edges, tmp_path_factory):
    return ist.ingest(edges, tmp_path_factory.mktemp("large") / "g.isthmus", vertices=N)


@pytest.fixture(scope="module")
def distances(edges):
    """By Dijkstra, with Python's integers."""
    found, queue = {}, [(0, 0)]
    while queue:
        distance, u = heapq.heappop(queue)
        if u not in found:
            found[u] = distance
            for source, v, w in zip(*(column.tolist() for column in edges), strict=True):
                if source == u:
                    heapq.heappush(queue, (min(distance + w, LONGEST), v))
    return [found.get(v, INT_MAX) for v in range(N)]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"threads": 2},
        {"policy": "filter", "memory": "1%"},
        {"policy": "emogi", "memory": "1%"},
        {"policy": "subway", "memory": "1%"},
        {"policy": "hytgraph", "memory": "10%"},
        {"memory": "1%"},
        {"device": "model:rtx2080ti", "memory": "10%"},
    ],
    ids=str,
)
def test_shortest_paths_are_exact(graph, distances, how):
    assert graph.info()["weight_type"] == "int64"
    assert ist.sssp(graph, 0, **how).values.tolist() == distances


def test_stores_of_them_are_sound_in_any_order(graph, distances, tmp_path):
    assert ist.verify(graph.path).ok
    with ist.ingest(graph.path, tmp_path / "hub.isthmus", order="hub") as other:
        assert ist.verify(other.path).ok
        assert ist.sssp(other, 0).values.tolist() == distances


@pytest.mark.parametrize(
    "how", [{}, {"policy": "filter", "memory": "1%"}, {"policy": "hytgraph", "memory": "1%"}], ids=str
)
def test_paths_that_are_too_long_reach_their_vertices(how, tmp_path):
    """Whole and real lengths stop below the value of unreached vertices, with a note, and have predecessors."""
    whole, real = np.array([2**62, 2**62, INT_MAX, 1]), np.array([1.7e308, 1.7e308, 1e308, 1.0])
    for weights, longest in ((whole, LONGEST), (real, np.finfo(np.float64).max)):
        graph = ist.ingest(
            (np.array([0, 1, 2, 4]), np.array([1, 2, 3, 5]), weights), tmp_path / "g.isthmus", overwrite=True
        )
        with pytest.warns(
            ist.IsthmusWarning,
            match=r"distances stop at .*, the longest that is counted; some paths are as long or longer",
        ):
            found = ist.sssp(graph, 0, predecessors=True, **how)
        assert found.values.tolist() == [0, weights[0], longest, longest, None, None]
        assert found["predecessor"].tolist() == [None, 0, 1, 2, None, None]


def test_a_cutoff_leaves_out_what_is_too_long():
    graph = ist.read((np.arange(2), np.arange(1, 3), np.array([2**62, INT_MAX])))
    assert ist.sssp(graph, 0, cutoff=2**62).values.tolist() == [0, 2**62, None]


def test_a_cutoff_between_two_lengths_that_a_float_cannot_tell_apart():
    graph = ist.read((np.array([0, 0]), np.array([1, 2]), np.array([2**53, 2**53 + 1])))
    assert ist.sssp(graph, 0, cutoff=2**53).filled().tolist() == [0, 2**53, INT_MAX]


def test_widest_paths_are_exact():
    graph = ist.read((np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([2**60 + 3, 2**53 + 1, 2**60 + 1])))
    assert ist.widest_path(graph, 0).values.tolist()[1:] == [2**60 + 3, 2**60 + 1]


def test_the_weight_of_a_forest_is_exact():
    graph = ist.read(
        (np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([2**62 + 1, 2**62 + 3, 2**62 + 5])), directed=False
    )
    assert ist.minimum_spanning_forest(graph).summary()["result"]["total_weight"] == 2**63 + 4


def test_ranks_read_them_as_numbers():
    graph = ist.read((np.array([0, 0]), np.array([1, 2]), np.array([2**40, 3 * 2**40])))
    ranks = ist.pagerank(graph, weight=True).values
    assert (ranks[2] - ranks[0]) / (ranks[1] - ranks[0]) == pytest.approx(3, rel=1e-4)
