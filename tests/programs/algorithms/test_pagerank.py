"""PageRank: the bound that is promised, against dense power iteration and NetworkX, on graphs made to break it."""

from __future__ import annotations

import json
import math
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.naive import clean
from tests.programs.races import MOVING, overlapping
from tests.programs.ways import BUDGETS, HOW, columns, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.kernels.scores import passes
from isthmus.programs.scores import sweeps
from isthmus.threads import Team

SETTINGS = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROUNDING = 1e-13  # what plain sums of doubles may add to a bound of zero


def build(edges, n, directed=True, **options):
    dtypes = (np.int64, np.int64) if not edges or edges[0][2] is None else (np.int64, np.int64, np.float64)
    return ist.read(
        tuple(np.array([e[i] for e in edges], kind) for i, kind in enumerate(dtypes)),
        vertices=n,
        directed=directed,
        **options,
    )


def error_of(result, expected):
    return math.fsum(abs(a - expected[v]) for v, a in enumerate(result.values.tolist()))


def assert_within(result, expected, tol):
    facts = result.summary()["result"]
    error = error_of(result, expected)
    assert facts["converged"]
    assert error <= tol + ROUNDING
    assert error <= facts["error_bound"] + ROUNDING
    assert facts["error_bound"] <= tol
    assert result.values.sum() == pytest.approx(1, abs=1e-12)


def shapes():
    """Graphs that power iteration finds hard: few edges, many ends, two sides, many parts, long cycles."""
    draw = random.Random(5)
    return {
        "dangling-heavy": [(draw.randrange(4), draw.randrange(60), None) for _ in range(80)],
        "bipartite": [
            (u + 30 * side, draw.randrange(30) + 30 * (1 - side), None)
            for u in range(30)
            for side in (0, 1)
            for _ in range(4)
        ],
        "disconnected": [
            (10 * part + draw.randrange(10), 10 * part + draw.randrange(10), None)
            for part in range(6)
            for _ in range(15)
        ],
        "cycle": [(i, (i + 1) % 60, None) for i in range(60)],
        "cycle-with-tail": [(i, i + 1, None) for i in range(59)] + [(30, 0, None)],
        "star-in": [(v, 0, None) for v in range(1, 60)],
        "star-out": [(0, v, None) for v in range(1, 60)],
        "loops": [(v, v, None) for v in range(60)] + [(0, 1, None)],
        "nothing": [],
        "two-cliques": [
            (u, v, None) for base in (0, 30) for u in range(base, base + 30) for v in range(base, base + 30)
        ]
        + [(0, 30, None)],
    }


@pytest.mark.parametrize("shape", list(shapes()))
@pytest.mark.parametrize("pulls", [True, False])
def test_the_bound_holds_on_awkward_graphs(shape, pulls):
    edges = shapes()[shape]
    graph = build(edges, 60, in_edges=pulls)
    for alpha in (0.3, 0.85, 0.99):
        expected = oracles.pagerank(clean(edges, range(60)), alpha)
        for tol in (1e-2, 1e-6, 1e-10):
            result = ist.pagerank(graph, alpha, tol=tol, max_iter=5000)
            assert_within(result, expected, tol)


@st.composite
def graphs(draw, weights):
    n = draw(st.integers(1, 12))
    ends = draw(st.integers(0, n - 1))  # vertices above it only receive
    edges = draw(st.lists(st.tuples(st.integers(0, ends), st.integers(0, n - 1), weights), max_size=36))
    return edges, n


alphas = st.sampled_from([0.2, 0.5, 0.85, 0.95])
tols = st.sampled_from([1e-1, 1e-4, 1e-8])


@SETTINGS
@given(graphs(st.none()), alphas, tols, st.booleans())
def test_even_teleport(graph, alpha, tol, directed):
    edges, n = graph
    expected = oracles.pagerank(clean(edges, range(n), directed=directed), alpha)
    assert_within(ist.pagerank(build(edges, n, directed), alpha, tol=tol), expected, tol)


@SETTINGS
@given(graphs(st.none()), alphas, tols, st.data())
def test_personal_teleport_and_another_way_for_dangling_mass(graph, alpha, tol, data):
    edges, n = graph
    share = st.dictionaries(st.integers(0, n - 1), st.floats(0.1, 5), min_size=1)
    personal, dangling = data.draw(st.one_of(st.none(), share)), data.draw(st.one_of(st.none(), share))
    expected = oracles.pagerank(clean(edges, range(n)), alpha, personal, dangling)
    result = ist.pagerank(build(edges, n), alpha, personal, tol=tol, dangling=dangling)
    assert_within(result, expected, tol)


@SETTINGS
@given(
    graphs(st.none()),
    st.sampled_from([1e-2, 1e-4, 1e-5, 1e-7, 1e-10]),
    st.sampled_from(["natural", "hub"]),
    st.booleans(),
    st.data(),
)
def test_near_and_far_on_one_thread_and_two(graph, tol, order, directed, data):
    edges, n = graph
    share = st.dictionaries(st.integers(0, n - 1), st.floats(0.1, 5), min_size=1)
    personal = data.draw(st.one_of(st.none(), share))
    how = data.draw(st.sampled_from([{"threads": 1}, {"threads": 2}, *HOW[1:]]))
    expected = oracles.pagerank(clean(edges, range(n), directed=directed), 0.85, personal)
    assert_within(ist.pagerank(build(edges, n, directed, order=order), 0.85, personal, tol=tol, **how), expected, tol)


@SETTINGS
@given(graphs(st.one_of(st.just(0.0), st.floats(1e-3, 100))), alphas, tols, st.booleans())
def test_by_weight(graph, alpha, tol, pulls):
    """A vertex all of whose edges weigh nothing is dangling."""
    edges, n = graph
    made = build(edges, n, in_edges=pulls)
    if not made.weighted:
        with pytest.raises(OptionError, match="has no weights"):
            ist.pagerank(made, weight=True)
        return
    expected = oracles.pagerank(clean(edges, range(n)), alpha, weight=True)
    assert_within(ist.pagerank(made, alpha, tol=tol, weight=True), expected, tol)


@settings(max_examples=25, deadline=None)
@given(graphs(st.floats(0.5, 4)), st.data())
def test_networkx_says_the_same(graph, data):
    edges, n = graph
    other = nx.MultiDiGraph()
    other.add_nodes_from(range(n))
    other.add_weighted_edges_from(edges)
    share = st.dictionaries(st.integers(0, n - 1), st.floats(0.1, 5), min_size=1)
    personal, dangling = data.draw(st.one_of(st.none(), share)), data.draw(st.one_of(st.none(), share))
    weight = bool(edges) and data.draw(st.booleans())
    theirs = nx.pagerank(other, 0.85, personal, 10_000, 1e-12, None, "weight" if weight else None, dangling)
    ours = ist.pagerank(build(edges, n), 0.85, personal, tol=1e-9, weight=weight, dangling=dangling)
    assert error_of(ours, theirs) <= 1e-8


@settings(max_examples=40, deadline=None)
@given(graphs(st.none()), st.integers(0, 6), st.sampled_from([0.0, 0.5, 0.85, 1.0]), st.booleans())
def test_a_fixed_number_of_rounds(graph, iterations, alpha, pulls):
    edges, n = graph
    expected = oracles.pagerank(clean(edges, range(n)), alpha, iterations=iterations)
    result = ist.pagerank(build(edges, n, in_edges=pulls), alpha, iterations=iterations)
    assert error_of(result, expected) <= 1e-13
    assert len(result.trace) == iterations


def test_two_solves_at_a_high_alpha():
    """The share of the second solution multiplies errors by up to 1 / (1 - alpha); a quarter of tol each is too
    much.
    """
    edges = [(0, v, None) for v in range(1, 40)] + [(v, v + 1, None) for v in range(1, 20)]
    graph = build(edges, 40)
    for alpha in (0.5, 0.9, 0.99):
        for tol in (1e-1, 1e-3, 1e-5):
            expected = oracles.pagerank(clean(edges, range(40)), alpha, {0: 1.0}, {7: 3.0, 8: 1.0})
            assert_within(ist.pagerank(graph, alpha, {0: 1.0}, 5000, tol, dangling={7: 3.0, 8: 1.0}), expected, tol)


def random_graph(directed, n=3000, count=20_000):
    draw = np.random.default_rng(7)
    sources, targets = (n * draw.random(count) ** 3).astype(np.int64), draw.integers(0, n, count)
    return ist.read((sources, targets), vertices=n, directed=directed)


def exact(graph, alpha=0.85):
    """PageRank by a direct solution, which no iteration here resembles."""
    n = graph.vertices
    offsets, targets = graph.store.read("out.offsets").astype(np.int64), graph.store.read("out.targets")
    degrees = np.diff(offsets)
    walk = np.zeros((n, n))
    np.add.at(walk, (targets, np.repeat(np.arange(n), degrees)), 1 / np.repeat(degrees, degrees))
    walk[:, degrees == 0] = 1 / n
    return np.linalg.solve(np.eye(n) - alpha * walk, np.full(n, (1 - alpha) / n))


@pytest.mark.parametrize("directed", [True, False])
def test_many_pieces_swept_side_by_side(directed, sized):
    sized(ranked_piece=100)
    graph = random_graph(directed)
    expected = exact(graph)
    for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10):
        for threads in (1, 2):
            assert_within(ist.pagerank(graph, tol=tol, threads=threads), expected, tol)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [True, False])
def test_from_disk_in_pieces_smaller_than_a_hub(directed, weighted, tmp_path, sized):
    """Lists span buffers and are shared by threads; some vertices only receive, some loop, some have no edge at all."""
    n, weight = 400, (lambda draw: float(draw.randrange(4))) if weighted else (lambda draw: None)
    edges = skewed(weight, n) + [(v, v, 1.0 if weighted else None) for v in range(0, n, 7)]
    edges += [(v % n, n + v % 50, 2.0 if weighted else None) for v in range(300)]
    expected = oracles.pagerank(clean(edges, range(n + 60), directed=directed), weight=weighted)
    for graph, how in tight_ways(edges, n + 60, directed, tmp_path, sized):
        place = ("filter", "emogi", "auto").index(how["policy"]) + list(BUDGETS).index(how["memory"])
        tol = (1e-3, 1e-6, 1e-9)[place % 3]  # each meets every recipe, every budget and both orders
        assert_within(ist.pagerank(graph, tol=tol, weight=weighted, **how), expected, tol)


def test_from_disk_in_place_without_a_pass_more_than_allowed(tmp_path):
    """The last pass that is allowed proves what there is."""
    edges = skewed()
    graph = ist.ingest(columns(edges), tmp_path / "g.isthmus", vertices=400, directed=True)
    expected = oracles.pagerank(clean(edges, range(400)))
    for most in (1, 2, 5):
        result = ist.pagerank(graph, tol=1e-12, max_iter=most, memory="1%", policy="filter")
        facts = result.summary()["result"]
        assert len(result.trace) == most and not facts["converged"]
        assert error_of(result, expected) <= facts["error_bound"] < 10
        assert result.values.sum() == pytest.approx(1, abs=1e-12)


def test_single_precision_is_left_when_it_is_in_the_way(monkeypatch):
    """Shares that stay single would never prove 1e-9, and doubles from the start would make the test pass idly."""
    graph, kinds = random_graph(True), []
    sweep = passes.sweep_range
    monkeypatch.setattr(
        passes, "sweep_range", lambda *given: kinds.append(given[12][1].dtype.itemsize) or sweep(*given)
    )
    assert_within(ist.pagerank(graph, tol=1e-9, threads=1), exact(graph), 1e-9)
    assert kinds[0] == 4 and kinds[-1] == 8 and kinds == sorted(kinds)
    kinds.clear()
    assert_within(ist.pagerank(graph, tol=1e-3, threads=1), exact(graph), 1e-3)
    assert set(kinds) == {4}


def test_what_rounding_did_is_in_the_bound():
    """The hub's single-precision sum is off by far more than 1e-6: a bound that forgot it would be wrong."""
    n = 300_000
    leaves = np.arange(1, n)
    graph = ist.read((leaves, np.zeros_like(leaves)), vertices=n, directed=True)
    leaf = 1 / (n + 0.85 * (n - 1))  # of what all get alike; the hub gets that and 0.85 of every leaf's
    hub = leaf * (1 + 0.85 * (n - 1))
    for tol in (1e-2, 1e-3, 1e-4, 1e-6, 1e-9):
        result = ist.pagerank(graph, tol=tol)
        facts = result.summary()["result"]
        error = abs(result.values[0] - hub) + np.abs(result.values[1:] - leaf).sum()
        assert error <= facts["error_bound"] + n * 2.0**-53  # what adding up n doubles may do in the last step itself
        assert facts["error_bound"] <= tol


def test_fewer_passes_than_power_iteration():
    """In place, near and far; without in-edges, by power iteration, what has no edge to follow is put back at once all
    the same.
    """
    draw, n = np.random.default_rng(3), 4000
    sources = draw.choice(np.flatnonzero(draw.random(n) < 0.5), 20_000)  # half of the vertices are ends
    edges = sources, np.minimum(sources + draw.integers(1, 60, 20_000), n - 1)
    graph, pushed = (ist.read(edges, vertices=n, directed=True, in_edges=pulls) for pulls in (True, False))
    near, far, power = (
        ist.pagerank(g, tol=1e-6, **how) for g, how in ((graph, {"threads": 1}), (graph, HOW[3]), (pushed, HOW[3]))
    )
    for ranks in (near, far):
        assert np.abs(ranks.values - power.values).sum() <= 2e-6
        assert len(ranks.trace) <= 0.5 * len(power.trace)
    assert len(power.trace) <= 40, "a bound that shrinks by the damping factor alone takes 88"


def test_going_too_far_ends_when_it_does_not_help(monkeypatch):
    """With twice the step, sweeps would swing for ever; they are watched."""
    monkeypatch.setattr(sweeps, "OVER", 2.2)
    graph = random_graph(False)
    assert_within(ist.pagerank(graph, tol=1e-8, max_iter=200), exact(graph), 1e-8)


def test_stopping_short_of_the_bound_says_so():
    graph = build([(i, (i * 7 + 1) % 50, None) for i in range(50)] + [(0, 9, None)], 50)
    result = ist.pagerank(graph, max_iter=2, tol=1e-12)
    facts = result.summary()["result"]
    assert len(result.trace) == 2
    assert not facts["converged"]
    assert facts["error_bound"] > 1e-12
    assert result.trace.notes[-1].startswith("stopped after 2 iterations; the error is bounded by ")
    expected = oracles.pagerank(clean([(i, (i * 7 + 1) % 50, None) for i in range(50)] + [(0, 9, None)], range(50)))
    assert error_of(result, expected) <= facts["error_bound"]


def test_no_vertex_is_right_at_once():
    none = np.empty(0, np.int64)
    result = ist.pagerank(ist.read((none, none)))
    assert result.summary()["result"] == {"highest": 0.0, "error_bound": 0.0, "converged": True}
    assert json.loads(json.dumps(result.summary(), allow_nan=False))
    assert result.trace.notes == []


def solved(graph, alpha, personalization=None, dangling=None):
    """Ranks of a graph with vertices 0, 1, ... by a dense solve."""
    n = graph.vertices
    spread = lambda given: np.array([(given or {}).get(v, 0.0 if given else 1.0) for v in range(n)]) / n  # noqa: E731
    teleport = spread(personalization) / spread(personalization).sum()
    drain = teleport if dangling is None else spread(dangling) / spread(dangling).sum()
    counts = [np.bincount(graph.neighbors(v), minlength=n) for v in range(n)]
    along = np.stack([count / count.sum() if count.any() else drain for count in counts])
    return np.linalg.solve(np.eye(n) - alpha * along.T, (1 - alpha) * teleport)


@pytest.mark.parametrize("alpha", [0.9, 0.91, 0.95, 0.999])
@pytest.mark.parametrize(
    "kind", [{"personalization": {0: 1}}, {"dangling": {1: 1}}, {"personalization": {0: 1e308, 1: 1e308}}]
)
def test_all_mass_at_one_vertex(alpha, kind):
    """Sweeps that go too far took more from it than it had. Deltas need some 40,000 iterations for the last alpha: not
    here.
    """
    for graph in (
        build([(0, 1, None)], 3, directed=False),
        ist.generate("grid", rows=5, columns=4),
        ist.generate("star", vertices=9),
    ):
        for how in ({}, {"device": "model:rtx2080ti"})[: 1 if alpha > 0.99 else 2]:
            result = ist.pagerank(graph, alpha, tol=1e-9, max_iter=100_000, **kind, **how)
            assert result.summary()["result"]["converged"]
            assert np.abs(result.values - solved(graph, alpha, **kind)).sum() <= 1e-9 + 1e-12


@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_weights_that_do_not_add_up(weight):
    graph = build([(0, 1, weight), (0, 2, weight), (1, 2, 1.0)], 3)
    for run in (
        ist.pagerank,
        lambda g, **how: ist.php(g, 0, **how),
        lambda g, **how: ist.personalized_pagerank(g, [0], **how),
    ):
        with pytest.raises(
            OptionError, match="weight: the sum of a vertex's weights is too large or too small for float64"
        ):
            run(graph, weight=True)


def test_options_that_make_no_sense():
    graph = build([(0, 1, None)], 2)
    for alpha in (0, 1, -0.5, math.nan):
        with pytest.raises(OptionError, match=f"alpha: expected a number between 0 and 1, got {alpha}"):
            ist.pagerank(graph, alpha)
        with pytest.raises(OptionError, match=f"alpha: expected a number between 0 and 1, got {alpha}"):
            ist.pagerank(graph, alpha, dangling={0: 1})
    for tol in (0, -1, math.nan):
        with pytest.raises(OptionError, match=f"tol: expected a number above 0, got {tol}"):
            ist.pagerank(graph, tol=tol)
    with pytest.raises(OptionError, match="max_iter: expected at least 1, got 0"):
        ist.pagerank(graph, max_iter=0)
    with pytest.raises(OptionError, match="iterations: expected at least 0, got -1"):
        ist.pagerank(graph, iterations=-1)
    for extra in ({"personalization": {0: 1}}, {"dangling": {0: 1}}, {"weight": True}):
        with pytest.raises(OptionError, match="a fixed number of iterations is LDBC's PageRank"):
            ist.pagerank(graph, iterations=3, **extra)
    for shares, complaint in (
        ({0: -1}, "expected shares of at least 0, got -1 for vertex 0"),
        ({0: math.nan}, "got nan for vertex 0"),
        ({0: math.inf}, "got inf for vertex 0"),
        ({0: 0}, "at least one vertex with a share above 0"),
        ({}, "at least one vertex with a share above 0"),
    ):
        with pytest.raises(OptionError, match=complaint):
            ist.pagerank(graph, personalization=shares)
        with pytest.raises(OptionError, match=complaint):
            ist.pagerank(graph, dangling=shares)
    with pytest.raises(ist.UnknownVertexError, match="no vertex 9 in the graph"):
        ist.pagerank(graph, personalization={9: 1})


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 17, 1000])
def test_shares_become_doubles_where_they_lie(n):
    expected = np.random.default_rng(n).random(n).astype(np.float32)
    single = np.empty(n).view(np.float32)
    single[:n] = expected
    team = Team(2)
    doubles = sweeps.as_doubles(single, n, team)
    team.close()
    assert doubles.dtype == np.float64 and np.may_share_memory(doubles, single)
    assert np.array_equal(doubles, expected)


def test_two_threads_add_to_the_same_vertices(crowd, wrapped):
    expected = ist.pagerank(crowd, iterations=3, threads=1).values
    pushing = ist.read(
        (
            crowd.ids.users(np.repeat(np.arange(crowd.vertices), np.diff(crowd.store.read("out.offsets")))),
            crowd.store.read("out.targets"),
        ),
        in_edges=False,
    )

    def run(around):
        wrapped(around)
        return ist.pagerank(pushing, iterations=3, **MOVING)

    overlapping(run, lambda result: np.testing.assert_allclose(result.values, expected, rtol=1e-12))


def test_negative_weights_are_refused():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([-1.0, 2.0])), allow_negative=True)
    with pytest.raises(OptionError, match=r"pagerank needs weights of at least 0, and .* has negative ones"):
        ist.pagerank(graph, weight=True)
