"""Triangles and clustering coefficients against their definitions, NetworkX and LDBC's outputs.

Tests `programs/algorithms/triangle_count.py` and `programs/algorithms/local_clustering_coefficient.py`.
"""

from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.programs.ways import HOW, SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import BudgetError


def simple(edges, n):
    other = nx.Graph()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges if u != v)
    return other


def coefficients(edges, n, directed):
    """LDBC's definition: of the ordered pairs of neighbours, those that an edge leads along."""
    arcs = {(u, v) for u, v, _ in edges} | (set() if directed else {(v, u) for u, v, _ in edges})
    around = simple(edges, n)
    found = []
    for v in range(n):
        pairs = list(permutations(around[v], 2))
        found.append(sum(pair in arcs for pair in pairs) / len(pairs) if pairs else 0.0)
    return found


def counts(edges, n):
    return [found for _, found in sorted(nx.triangles(simple(edges, n)).items())]


@SETTINGS
@given(graphs(), hows, orders)
def test_triangles(graph, how, order):
    edges, n, directed = graph
    result = ist.triangle_count(build(edges, n, directed, order=order), **how)
    assert result.values.tolist() == counts(edges, n)
    assert result.summary()["result"]["triangles"] == sum(counts(edges, n)) // 3


@SETTINGS
@given(graphs(), hows, orders)
def test_coefficients(graph, how, order):
    edges, n, directed = graph
    result = ist.local_clustering_coefficient(build(edges, n, directed, order=order), **how)
    assert np.allclose(result.values, coefficients(edges, n, directed), rtol=1e-14, atol=0)
    if not directed:
        assert np.allclose(
            result.values, [c for _, c in sorted(nx.clustering(simple(edges, n)).items())], rtol=1e-14, atol=0
        )


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("least", [1, 1 << 12])
def test_every_way(tmp_path, sized, directed, least):
    """Also with tables so small that lists are kept and pass by in many runs."""
    sized(least_table=least, triangle_piece=50)
    edges = skewed(count=2400)
    expected, exact = counts(edges, 420), coefficients(edges, 420, directed)
    most = 0
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        result = ist.triangle_count(graph, **how)
        assert result.values.tolist() == expected, how
        clustering = ist.local_clustering_coefficient(graph, **how)
        assert np.allclose(clustering.values, exact, rtol=1e-14, atol=0), how
        most = max(most, len(result.trace))
    assert most > 20 if least == 1 else most <= 4


LDBC = [
    ("example", "example-directed", True),
    ("example", "example-undirected", False),
    ("lcc", "dir", True),
    ("lcc", "undir", False),
]


@pytest.mark.parametrize(("folder", "name", "directed"), LDBC)
@pytest.mark.parametrize("how", HOW)
def test_ldbc(data, folder, name, directed, how):
    root = data / "graphalytics" / folder
    if folder == "example":
        edges = [tuple(map(int, line.split()[:2])) for line in (root / f"{name}.e").read_text().splitlines()]
        graph = ist.read(tuple(np.array(edges).T), directed=directed)
        text = (root / f"{name}-LCC").read_text()
    else:
        graph = ist.read(
            root / f"{name}-input", format="adjacency", directed=directed, parallel="keep" if directed else "drop"
        )
        text = (root / f"{name}-output").read_text()
    expected = {int(v): float(value) for v, value in (line.split() for line in text.splitlines())}
    result = ist.local_clustering_coefficient(graph, **how)
    found = dict(zip(result.vertices.tolist(), result.values.tolist(), strict=True))
    assert set(found) == set(expected)
    assert all(abs(value - found[v]) <= 1e-4 * value for v, value in expected.items())


def test_no_vertex_and_no_edge():
    none = np.empty(0, np.int64)
    for n in (0, 3):
        graph = ist.read((none, none), vertices=n)
        assert ist.triangle_count(graph).values.tolist() == [0] * n
        assert ist.local_clustering_coefficient(graph).values.tolist() == [0.0] * n


@pytest.mark.parametrize("directed", [False, True])
def test_a_share_of_the_edges_is_raised_to_what_a_long_list_needs(sized, directed):
    """Budgets are for the longest list too, before the run: 500 parallel edges upward, and a hub's list."""
    sized(least_table=1, least_buffer=1 << 12)
    edges = [(0, 1, None)] * 500 + [(1, 2, None), (2, 0, None)] + [(3, v, None) for v in range(4, 20)]
    graph = build(edges, 20, directed)
    for algorithm in (ist.triangle_count, ist.local_clustering_coefficient):
        result = algorithm(graph, policy="filter", memory="1%", far="ram")
        assert result.values.tolist() == algorithm(graph).values.tolist()
        memory = result.summary()["memory"]
        assert memory["split"]["state"] >= 2 * 4 * 500
        with pytest.raises(BudgetError, match=r"needs at least .* near memory"):
            algorithm(graph, policy="filter", memory=memory["budget"] - 1, far="ram")


def test_without_in_edges_they_say_so():
    graph = build([(0, 1, None)], 2, True, in_edges=False)
    for run in (ist.triangle_count, ist.local_clustering_coefficient):
        with pytest.raises(ist.StoreError, match=r"follows in-edges, and .* was stored without them"):
            run(graph)
