"""Circuits: the bound that is promised, against a dense and a sparse solve; known networks; what has no answer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph
from scipy.sparse.linalg import spsolve
from tests.programs.ways import SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError, StoreError, UnknownVertexError
from isthmus.graph.graph import Graph
from isthmus.graph.store.manifest import Manifest, Section
from isthmus.graph.store.store import MemoryStore

ROUNDING = 1e-9  # of the spread


def laplacian(edges, n, resistances=False):
    """The matrix of Kirchhoff's law: what flows out of every vertex, by voltage."""
    dense = np.zeros((n, n))
    for u, v, w in edges:
        g = 1.0 if w is None else 1 / w if resistances else float(w)
        dense[u, u] += g
        dense[v, v] += g
        dense[u, v] -= g
        dense[v, u] -= g
    return dense


def grounded(dense, fixed):
    """Who has a path to a held vertex."""
    found, rest = set(fixed), list(fixed)
    while rest:
        for v in np.flatnonzero(dense[rest.pop()] < 0).tolist():
            if v not in found:
                found.add(v)
                rest.append(v)
    return found


def solved(dense, fixed, currents=None):
    """(voltages, currents from outside), by elimination; voltages are NaN without a path to a held vertex."""
    connected = grounded(dense, fixed)
    held, free = list(fixed), sorted(connected - set(fixed))
    voltages, outside = np.full(len(dense), np.nan), np.zeros(len(dense))
    voltages[held] = list(fixed.values())
    for v, amperes in (currents or {}).items():
        outside[v] = amperes
    voltages[free] = np.linalg.solve(
        dense[np.ix_(free, free)], outside[free] - dense[np.ix_(free, held)] @ voltages[held]
    )
    known = sorted(connected)
    outside[held] = dense[np.ix_(held, known)] @ voltages[known]
    return voltages, outside


def solved_sparsely(edges, n, fixed):
    """The voltages, for larger networks."""
    ends = np.array([(u, v) for u, v, _ in edges], np.int64).reshape(-1, 2)
    weights = np.array([1.0 if w is None else w for _, _, w in edges], np.float64)
    conductances = sparse.coo_array((weights, ends.T), (n, n)).tocsr()
    conductances = conductances + conductances.T
    conductances.eliminate_zeros()
    matrix = (sparse.diags_array(conductances.sum(axis=1)) - conductances).tocsr()
    _, component = csgraph.connected_components(conductances)
    voltages = np.full(n, np.nan)
    voltages[list(fixed)] = list(fixed.values())
    free = np.setdiff1d(np.flatnonzero(np.isin(component, component[list(fixed)])), list(fixed))
    held = np.array(list(fixed))
    voltages[free] = (
        spsolve(matrix[free][:, free].tocsc(), -(matrix[free][:, held] @ voltages[held])) if free.size else []
    )
    return voltages


def assert_within(result, expected, tol):
    """Every voltage within the reported bound, and that within `tol` of the spread; the currents too; NaN where there
    is none.
    """
    voltages, outside = expected
    facts = result.summary()["result"]
    spread = float(np.nanmax(voltages) - np.nanmin(voltages))
    assert facts["converged"]
    assert facts["error_bound"] <= tol * spread * 1.001 + ROUNDING * tol
    assert np.array_equal(np.isnan(result.filled()), np.isnan(voltages))
    assert facts["floating"] == int(np.isnan(voltages).sum())
    largest = np.nanmax(np.abs(voltages))
    # The oracle rounds.
    assert np.nanmax(np.abs(result.filled() - voltages)) <= facts["error_bound"] + ROUNDING * spread + 1e-11 * largest
    assert np.abs(result["current"] - outside).sum() <= facts["current_bound"] + ROUNDING * (
        np.abs(outside).sum() + largest
    )


@st.composite
def networks(draw, weights):
    edges, n, directed = draw(graphs(weights))
    volts = st.floats(-9, 9, width=32)
    fixed = draw(st.dictionaries(st.integers(0, n - 1), volts, min_size=1, max_size=4))
    free = sorted(grounded(laplacian(edges, n), fixed) - set(fixed))
    currents = draw(st.dictionaries(st.sampled_from(free), st.floats(-3, 3, width=32), max_size=3)) if free else {}
    return edges, n, directed, fixed, currents


CONDUCTANCES = st.sampled_from([0.0, 0.25, 1.0, 3.5, 40.0])


@SETTINGS
@given(networks(CONDUCTANCES), hows, orders, st.sampled_from([1e-2, 1e-6, 1e-9]))
def test_the_bound_holds(network, how, order, tol):
    edges, n, directed, fixed, currents = network
    made = build(edges, n, directed, order=order)
    assert_within(ist.circuit(made, fixed, currents, tol=tol, **how), solved(laplacian(edges, n), fixed, currents), tol)


@SETTINGS
@given(graphs(st.sampled_from([0.25, 1.0, 3.5, 40.0])), hows, orders)
def test_by_resistances(graph, how, order):
    edges, n, directed = graph
    fixed = {0: 1.0, n - 1: -2.0}
    made = build(edges, n, directed, order=order)
    result = ist.circuit(made, fixed, resistances=True, **how)
    assert_within(result, solved(laplacian(edges, n, True), fixed), 1e-6)


def test_a_grid_against_a_sparse_solve():
    graph = ist.generate("grid", rows=40, columns=40, weights="1:9", seed=4)
    edges = [(u, int(v), w) for u in range(1600) for v in graph.neighbors(u) if u < v for w in graph.edge_weights(u, v)]
    result = ist.circuit(graph, {0: 0.0, 1599: 10.0}, tol=1e-7)
    error = np.abs(result.values - solved_sparsely(edges, 1600, {0: 0.0, 1599: 10.0})).max()
    assert error <= result.summary()["result"]["error_bound"] <= 1e-6


@pytest.mark.parametrize("directed", [True, False])
def test_every_way(tmp_path, sized, directed):
    edges = skewed(lambda draw: draw.choice([0.5, 1.0, 2.5, 0.0]))
    fixed, currents = {0: 3.0, 7: -1.0, 399: 2.0}, {5: 0.5, 20: -4.0}
    expected = solved(laplacian(edges, 420), fixed, currents)
    assert np.isnan(expected[0]).any()
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert_within(ist.circuit(graph, fixed, currents, **how), expected, 1e-6)


def test_known_networks():
    series = build([(0, 1, 2.0), (1, 2, 6.0)], 3, False)
    assert ist.circuit(series, {0: 8.0, 2: 0.0}, resistances=True).values.tolist() == pytest.approx([8, 6, 0])
    assert ist.circuit(series, {0: 8.0, 2: 0.0}, resistances=True)["current"].tolist() == pytest.approx([1, 0, -1])
    assert ist.circuit(series, {0: 8.0, 2: 0.0}).values.tolist() == pytest.approx([8, 2, 0])
    parallel = build([(0, 1, 2), (0, 1, 3), (1, 0, 1), (1, 1, 7)], 2, True)  # a loop carries nothing
    assert ist.circuit(parallel, {0: 0.0}, {1: 12.0}).values.tolist() == pytest.approx([0, 2])
    bridge = build([(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0), (1, 2, 5.0)], 4, False)
    assert ist.circuit(bridge, {0: 4.0, 3: 0.0}).values.tolist() == pytest.approx([4, 2, 2, 0])


def test_a_large_offset_changes_nothing_else():
    """The tolerance is relative to differences of voltages, not to their size."""
    graph = ist.generate("grid", rows=12, columns=12, seed=4)
    low = ist.circuit(graph, {0: 0.0, 143: 1.0}).values
    high = ist.circuit(graph, {0: 1e6, 143: 1e6 + 1}).values
    assert np.abs(high - 1e6 - low).max() < 2e-6


def test_all_held_or_equal_is_exact():
    graph = build([(0, 1, 1.0), (1, 2, 3.0)], 4, False)
    assert ist.circuit(graph, {0: 5.0, 2: 5.0}).values[:3].tolist() == [5.0] * 3
    result = ist.circuit(graph, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.7})
    assert result.values.tolist() == [0.1, 0.2, 0.3, 0.7]
    assert result["current"].tolist() == pytest.approx([-0.1, -0.2, 0.3, 0.0])


def test_floating_vertices_have_no_voltage():
    graph = build([(0, 1, 1.0), (2, 3, 1.0), (1, 4, 0.0)], 6, False)
    result = ist.circuit(graph, {0: 2.0})
    assert result.to_arrow()["voltage"].to_pylist() == [2.0, 2.0, None, None, None, None]
    assert "4 vertices have no path to a held vertex: their voltages are undefined" in result.trace.notes
    with pytest.raises(
        OptionError, match="currents: vertex 3 has no path to a held vertex, so its current has nowhere to go"
    ):
        ist.circuit(graph, {0: 2.0}, {3: 1.0})


def test_edges_move_once_per_iteration(tmp_path):
    """All of them, and no more than the square root of Jacobi's passes: 3,867 for this grid."""
    graph = ist.generate("grid", tmp_path / "g.isthmus", rows=30, columns=30)
    result = ist.circuit(graph, {0: 0.0, 899: 1.0}, policy="filter", memory="1%", far="ram")
    passes = [iteration for iteration in result.trace if iteration.active_vertices == graph.vertices]
    assert {iteration.active_edges for iteration in passes} == {graph.arcs}
    assert 20 < len(passes) <= 100
    graph.close()


def test_an_unweighted_graph_says_so():
    notes = ist.circuit(build([(0, 1, None), (1, 2, None)], 3, False), {0: 1.0}).trace.notes
    assert notes == ["the graph has no weights: every edge counts as 1"]


def test_stopping_short_of_the_bound():
    graph = ist.generate("grid", rows=20, columns=20)
    result = ist.circuit(graph, {0: 0.0, 399: 1.0}, max_iter=5)
    facts = result.summary()["result"]
    assert not facts["converged"]
    assert any(note.startswith("stopped after 5 iterations; voltages may be off by") for note in result.trace.notes)
    exact = ist.circuit(graph, {0: 0.0, 399: 1.0}, tol=1e-9).values
    assert 1e-6 < np.abs(result.values - exact).max() <= facts["error_bound"], "it says how far off it may be"


def test_rounding_ends_it():
    result = ist.circuit(ist.generate("grid", rows=20, columns=20, weights="0.1:9.0"), {0: 0.0, 399: 1.0}, tol=1e-18)
    assert not result.summary()["result"]["converged"]
    assert any(
        note.startswith("rounding allows no smaller bound; voltages may be off by") for note in result.trace.notes
    )
    assert result.summary()["result"]["error_bound"] < 1e-10


def test_bad_parameters():
    graph = build([(0, 1, 1.0), (1, 2, 1.0)], 3, False)
    with pytest.raises(OptionError, match="fixed: expected at least one vertex that is held at a voltage"):
        ist.circuit(graph, {})
    with pytest.raises(OptionError, match="fixed: expected a finite number, got nan for vertex 1"):
        ist.circuit(graph, {1: np.nan})
    with pytest.raises(OptionError, match="currents: expected a finite number, got inf for vertex 2"):
        ist.circuit(graph, {1: 0.0}, {2: np.inf})
    with pytest.raises(OptionError, match="currents: vertex 1 is held at a voltage, which sets its current"):
        ist.circuit(graph, {1: 0.0}, {1: 2.0})
    for tol in (0, -1, np.nan, np.inf):
        with pytest.raises(OptionError, match="tol: expected a finite number above 0, got"):
            ist.circuit(graph, {0: 1.0}, tol=tol)
    with pytest.raises(OptionError, match="max_iter: expected at least 1, got 0"):
        ist.circuit(graph, {0: 1.0}, max_iter=0)
    with pytest.raises(UnknownVertexError, match="no vertex 9 in the graph"):
        ist.circuit(graph, {9: 1.0})


def test_bad_networks():
    short = build([(0, 1, 0.0), (1, 2, 1.0)], 3, False)
    with pytest.raises(OptionError, match="a resistance of 0 is a short circuit; join its ends to one vertex"):
        ist.circuit(short, {0: 1.0}, resistances=True)
    huge = build([(0, 1, 1e308), (1, 2, 1e308)], 3, False)
    with pytest.raises(OptionError, match="conductances at a vertex add up to more than float64 holds"):
        ist.circuit(huge, {0: 1.0})
    with pytest.raises(OptionError, match="too large for float64"):
        ist.circuit(build([(0, 1, 1.0), (1, 2, 3.0)], 3, False), {0: 1e300, 2: 0.0})
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1.0])), allow_negative=True)
    with pytest.raises(OptionError, match="circuit needs weights of at least 0"):
        ist.circuit(negative, {0: 1.0})
    with pytest.raises(StoreError, match="follows in-edges"):
        ist.circuit(build([(0, 1, 1.0)], 2, True, in_edges=False), {0: 1.0})


@pytest.mark.parametrize("resistances", [False, True])
@pytest.mark.parametrize("seed", [0, 5, 9, 33])
def test_conductances_too_far_apart_are_an_error_not_an_answer(seed, resistances):
    """Voltages were NaN, or far outside those that are held."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(3, 40))
    edges = [
        (u, v, w)
        for u, v, w in zip(
            *draw.integers(0, n, (2, 2 * n)).tolist(), 10.0 ** draw.uniform(-300, 300, 2 * n), strict=True
        )
    ]
    graph = build(edges, n, False)
    try:
        result = ist.circuit(graph, {0: 1.0, n - 1: 0.0}, resistances=resistances)
    except OptionError as error:
        assert "got some so far apart that it cannot tell the voltages; leave out the smallest" in str(error)
    else:
        assert result.values.min() >= -0.1 and result.values.max() <= 1.1
        assert result.summary()["result"]["error_bound"] <= 0.1


def test_what_the_least_conductances_lead_to_is_not_cut_off():
    """Their resistance is more than float64 holds, and they were taken for gaps."""
    graph = build([(0, 1, 5e-324), (1, 2, 5e-324)], 3, False)
    assert ist.circuit(graph, {0: 1.0, 2: 0.0}).values.tolist() == [1.0, 0.5, 0.0]
    far = build([(0, 1, 1e308), (1, 2, 1e308)], 3, False)
    assert ist.circuit(far, {0: 1.0, 2: 0.0}, resistances=True).summary()["result"]["floating"] == 0


def test_an_edge_that_conducts_in_one_direction_only():
    """A store can claim it; there is no such resistor."""
    sections = {
        "out.offsets": Section("int64", 3),
        "out.targets": Section("uint32", 2),
        "out.weights": Section("float64", 2),
    }
    arrays = {
        "out.offsets": np.array([0, 1, 2]),
        "out.targets": np.array([1, 0], np.uint32),
        "out.weights": np.array([1.0, 0.0]),
    }
    graph = Graph(MemoryStore(Manifest(2, 1, 2, False, True, "dense", sections=sections), arrays))
    with pytest.raises(
        StoreError, match="a vertex has a path to a held one, and no edge that conducts; run isthmus verify"
    ):
        ist.circuit(graph, fixed={0: 1.0})
