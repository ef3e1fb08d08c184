"""BFS, SSSP and components over random graphs: oracles, NetworkX, SciPy, Graph500's checks; saturation."""

from __future__ import annotations

import math
import threading
import time

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph
from tests import oracles
from tests.checks import check_distances, check_tree
from tests.naive import clean

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.programs.declared import Monotone
from isthmus.programs.sssp import whole

INT_MAX = 2**63 - 1
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HOW = [{}, {"policy": "filter", "memory": "1%", "far": "ram"}, {"policy": "emogi", "memory": "1%", "far": "ram", "threads": 2}]


@st.composite
def graphs(draw, weights):
    """(edges, vertices, directed): self loops, parallel edges, isolated vertices, several components, zeros."""
    n = draw(st.integers(1, 14))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, weights), max_size=40))
    return edges, n, draw(st.booleans())


whole_weights = st.one_of(st.just(0), st.integers(0, 9), st.integers(2**31 - 3, 2**31 - 1))
real_weights = st.one_of(st.just(0.0), st.floats(0, 4, width=32), st.just(1e308))


def build(edges, n, directed, dtype):
    kinds = (np.int64, np.int64) if dtype is None else (np.int64, np.int64, dtype)
    columns = tuple(np.array([edge[i] for edge in edges], kind) for i, kind in enumerate(kinds))
    return ist.read(columns, vertices=n, directed=directed)


def reached(result):
    none = INT_MAX if result.filled().dtype.kind == "i" else math.inf
    return {v: d for v, d in enumerate(result.filled().tolist()) if d != none}


@SETTINGS
@given(graphs(st.none()), st.sampled_from(HOW), st.one_of(st.none(), st.integers(0, 4)))
def test_bfs(graph, how, limit):
    edges, n, directed = graph
    oracle = clean(edges, range(n), directed=directed)
    result = ist.bfs(build(edges, n, directed, None), 0, depth_limit=limit, predecessors=True, **how)
    distance = reached(result)
    assert distance == oracles.bfs(oracle, 0, limit)
    second = nx.MultiDiGraph if directed else nx.MultiGraph
    other = second()
    other.add_nodes_from(range(n))
    other.add_edges_from((u, v) for u, v, _ in edges)
    assert distance == nx.single_source_shortest_path_length(other, 0, cutoff=limit)
    check_distances(oracle, 0, distance, False, limit)
    check_tree(oracle, 0, distance, dict(enumerate(result["predecessor"].tolist())), False)


@SETTINGS
@given(graphs(whole_weights), st.sampled_from(HOW), st.one_of(st.none(), st.floats(0, 2**32), st.sampled_from([0, 3, math.inf, 1e30])))
def test_sssp_with_whole_weights(graph, how, cutoff):
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
def test_sssp_with_real_weights(graph, how, cutoff):
    """Including sums that overflow: further away than any number is unreached, and has no predecessor."""
    edges, n, directed = graph
    oracle = clean(edges, range(n), directed=directed)
    result = ist.sssp(build(edges, n, directed, np.float64), 0, cutoff=cutoff, predecessors=True, **how)
    assert result.values.dtype == np.float64
    distance = reached(result)
    assert distance == {v: d for v, d in oracles.sssp(oracle, 0, cutoff).items() if d != math.inf}
    check_tree(oracle, 0, distance, dict(enumerate(result["predecessor"].tolist())), True)


@SETTINGS
@given(graphs(whole_weights))
def test_sssp_agrees_with_scipy(graph):
    edges, n, directed = graph
    shortest = {}
    for u, v, w in edges:
        for pair in ((u, v),) if directed else ((u, v), (v, u)):
            shortest[pair] = min(w, shortest.get(pair, w))
    rows, columns = ([pair[i] for pair in shortest] for i in (0, 1))
    arcs = sparse.csr_array((np.array(list(shortest.values()), float), (rows, columns)), (n, n))  # explicit zeros are edges
    found = ist.sssp(build(edges, n, directed, np.int32), 0).filled()
    assert np.where(found == INT_MAX, np.inf, found).tolist() == csgraph.dijkstra(arcs, indices=0).tolist()


@SETTINGS
@given(graphs(st.none()), st.sampled_from(HOW), st.sampled_from(["natural", "hub"]))
def test_components(graph, how, order):
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


def test_whole_distances_saturate_instead_of_wrapping():
    """Distances of 2**63 need more edges than a test has; so the source starts a little below."""
    graph = build([(0, 1, 3), (1, 2, 2), (2, 3, 1), (3, 4, 2**31 - 1), (0, 5, 2**31 - 1), (5, 6, 0)], 7, True, np.int32)
    program = Monotone(whole.message, math.inf, "min", INT_MAX - 6, "distance", ("out",))(source=0)
    assert ist.run(program, graph).filled().tolist() == [INT_MAX - 6, INT_MAX - 3, INT_MAX - 1, INT_MAX, INT_MAX, INT_MAX, INT_MAX]


def test_long_paths_of_heavy_edges():
    n = 3000
    graph = build([(i, i + 1, 2**31 - 1) for i in range(n - 1)], n, True, np.int32)
    assert ist.sssp(graph, 0).values.tolist() == [i * (2**31 - 1) for i in range(n)]
    real = build([(i, i + 1, 1e308) for i in range(4)], 5, True, np.float64)
    result = ist.sssp(real, 0, predecessors=True)
    assert result.filled().tolist() == [0.0, 1e308, math.inf, math.inf, math.inf]
    assert result["predecessor"].tolist() == [None, 0, None, None, None]


def test_without_weights_sssp_says_so():
    result = ist.sssp(build([(0, 1, None), (1, 2, None)], 3, True, None), 0)
    assert result.values.tolist() == [0, 1, 2]
    assert result.trace.notes == ["the graph has no weights: every edge counts as 1"]
    assert result.summary()["notes"] == result.trace.notes


def test_options_that_make_no_sense():
    graph = build([(0, 1, 1)], 2, True, np.int32)
    for limit in (-1, 2.5):
        with pytest.raises(OptionError, match=rf"depth_limit: expected (a whole number|at least 0), got {limit!r}"):
            ist.bfs(graph, 0, depth_limit=limit)
    for cutoff in (-0.5, math.nan):
        with pytest.raises(OptionError, match=rf"cutoff: expected at least 0, got {cutoff}"):
            ist.sssp(graph, 0, cutoff=cutoff)
    for source in (9, -1, "0", None, True, 0.5, [0, 1]):
        with pytest.raises(ist.UnknownVertexError, match=r"no vertex .* in the graph"):
            ist.bfs(graph, source)
    assert ist.bfs(graph, 0, depth_limit=10**30).values.tolist() == [0, 1]
    assert ist.bfs(graph, np.int64(0), depth_limit=np.int8(0)).filled().tolist() == [0, INT_MAX]


def test_negative_weights_are_refused():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([-1.0, 2.0])), allow_negative=True)
    with pytest.raises(OptionError, match=r"sssp needs weights of at least 0, and .* has negative ones"):
        ist.sssp(graph, 0)
    with pytest.raises(OptionError, match=r"pagerank needs weights of at least 0, and .* has negative ones"):
        ist.pagerank(graph, weight=True)


# Races: two threads on the same few vertices, again and again until both really worked at once.


def overlapping(run, check, seconds=8.0):
    """Repeat `run(watch)` until the members of a team have worked on one iteration at the same time several times."""
    met = 0
    end = time.monotonic() + seconds
    while met < 5 and time.monotonic() < end:
        inside, seen = set(), set()
        lock = threading.Lock()

        def around(piece, inside=inside, seen=seen, lock=lock):
            def work(member):
                with lock:
                    inside.add(member)
                    seen.add(len(inside))
                try:
                    piece(member)
                finally:
                    with lock:
                        inside.discard(member)

            return work

        check(run(around))
        met += 2 in seen
    assert met, "two threads never ran at once: this shows nothing"


MOVING = {"policy": "filter", "memory": "50%", "far": "ram", "threads": 2}  # so that the team of the runtime works on pieces


MOVING_ALONE = {key: value for key, value in MOVING.items() if key != "threads"}


@pytest.fixture(scope="module")
def crowd():
    """A few hubs that everybody points at, with weights: threads meet at the same vertices all the time."""
    draw = np.random.default_rng(7)
    sources, targets = draw.integers(0, 4000, 300_000), draw.integers(0, 40, 300_000)
    weights = draw.integers(0, 90, 600_000).astype(np.int32)
    return ist.read((np.concatenate([sources, targets]), np.concatenate([targets, sources]), weights))


@pytest.fixture
def wrapped(monkeypatch, sized):
    """`wrapped(around)` puts a wrapper around every piece of work of a team."""
    from isthmus.runtime import worker

    plain = worker.Worker.pieces
    sized(piece=1 << 12, alone=0)

    def wrap(around):
        monkeypatch.setattr(worker.Worker, "pieces", lambda self, *details: [around(piece) for piece in plain(self, *details)])

    return wrap


def test_two_threads_relax_the_same_vertices(crowd, wrapped):
    expected = ist.sssp(crowd, 17, threads=1).values

    def run(around):
        wrapped(around)
        return ist.sssp(crowd, 17, predecessors=True, **MOVING)

    def check(result):
        assert np.array_equal(result.values, expected)
        tree = result["predecessor"]
        assert all((tree[v] is None) == (v == 17) for v in range(crowd.vertices))

    overlapping(run, check)


def test_two_threads_join_the_same_components(crowd, wrapped):
    def run(around):
        wrapped(around)
        return ist.weakly_connected_components(crowd, **MOVING)

    overlapping(run, lambda result: np.testing.assert_array_equal(result.filled(), np.zeros(crowd.vertices)))


def test_two_threads_on_edges_that_are_near(crowd):
    """Whatever special loops a program has for near edges, the answer is the same every time."""
    nearest, hops = (search(crowd, 17, threads=1, **MOVING_ALONE).values for search in (ist.sssp, ist.bfs))
    for _ in range(15):
        assert np.array_equal(ist.sssp(crowd, 17, threads=2).values, nearest)
        assert np.array_equal(ist.bfs(crowd, 17, threads=2).values, hops)
        assert not ist.weakly_connected_components(crowd, threads=2).values.any()


def test_two_threads_add_to_the_same_vertices(crowd, wrapped):
    expected = ist.pagerank(crowd, iterations=3, threads=1).values
    pushing = ist.read(
        (crowd.ids.users(np.repeat(np.arange(crowd.vertices), np.diff(crowd.store.read("out.offsets")))), crowd.store.read("out.targets")),
        in_edges=False,
    )

    def run(around):
        wrapped(around)
        return ist.pagerank(pushing, iterations=3, **MOVING)

    overlapping(run, lambda result: np.testing.assert_allclose(result.values, expected, rtol=1e-12))


@pytest.mark.parametrize("cutoff", [None, 2**32, 2**31, 3 * 10**9])
def test_paths_too_long_for_32_bits(cutoff, tmp_path):
    """In memory distances are narrow while they suffice."""
    heavy = 2**31 - 1
    graph = ist.ingest((np.arange(6), np.arange(1, 7), np.full(6, heavy)), tmp_path / "g.isthmus", directed=True)
    expected = [k * heavy if cutoff is None or k * heavy <= cutoff else INT_MAX for k in range(7)]
    assert ist.sssp(graph, 0, cutoff=cutoff).filled().tolist() == expected
