"""Generators: the same seed is the same graph, known shapes are themselves, weights keep to their range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.graph.ingest.generators import KINDS, PRESETS, Rmat, WeightRange
from isthmus.graph.store.verify import verify

SMALL: dict[str, dict[str, Any]] = {
    "rmat": {"scale": 12, "edge_factor": 8},
    "uniform": {"vertices": 3000, "edges": 20_000},
    "grid": {"rows": 37, "columns": 53},
    "path": {"vertices": 5000},
    "star": {"vertices": 5000},
    "complete": {"vertices": 200},
}


def arrays(graph: Graph) -> dict[str, bytes]:
    return {name: graph.store.read(name).tobytes() for name in graph.store.manifest.sections}


def arcs(graph: Graph, side: str = "out") -> list[tuple[int, int]]:
    offsets, targets = graph.store.read(f"{side}.offsets"), graph.store.read(f"{side}.targets")
    return list(zip(np.repeat(np.arange(graph.vertices), np.diff(offsets)).tolist(), targets.tolist(), strict=True))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("directed", [False, True])
def test_the_same_whatever_the_threads_and_the_memory(tmp_path: Path, kind: str, directed: bool) -> None:
    shape: dict[str, Any] = {**SMALL[kind], "seed": 7, "directed": directed, "weights": "1:255"}
    wanted = ist.generate(kind, threads=1, **shape)
    assert arrays(ist.generate(kind, threads=2, **shape)) == arrays(wanted)
    spilled = ist.generate(kind, tmp_path / "g.isthmus", threads=2, memory="4MB", **shape)
    assert spilled.report is not None
    assert spilled.report.spilled
    assert arrays(spilled) == arrays(wanted)
    assert verify(tmp_path / "g.isthmus").ok


def test_several_blocks_of_edges(tmp_path: Path, sized: Any) -> None:
    """Edge i is the same however the edges are cut."""
    wanted = arrays(ist.generate("rmat", scale=10, seed=3))
    sized(block_edges=1000)
    assert arrays(ist.generate("rmat", scale=10, seed=3, threads=2)) == wanted


@pytest.mark.parametrize("kind", ["rmat", "uniform"])
def test_another_seed_is_another_graph(kind: str) -> None:
    graphs = [arrays(ist.generate(kind, seed=seed, **SMALL[kind]))["out.targets"] for seed in (0, 1, 2, 2**64 - 1)]
    assert len(set(graphs)) == 4


def test_another_seed_gives_other_weights() -> None:
    first, second = (
        ist.generate("path", vertices=100, weights="1:1000", seed=seed).store.read("out.weights") for seed in (1, 2)
    )
    assert (first != second).any()


@pytest.mark.parametrize(
    ("kind", "shape", "wanted"),
    [
        ("path", {"vertices": 10}, nx.path_graph(10)),
        ("star", {"vertices": 10}, nx.star_graph(9)),
        ("complete", {"vertices": 9}, nx.complete_graph(9)),
        (
            "grid",
            {"rows": 4, "columns": 7},
            nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 7), ordering="sorted"),
        ),
        ("grid", {"rows": 1, "columns": 5}, nx.path_graph(5)),
        ("grid", {"rows": 5, "columns": 1}, nx.path_graph(5)),
        ("grid", {"rows": 1, "columns": 1}, nx.empty_graph(1)),
        *((kind, {"vertices": 0}, nx.empty_graph(0)) for kind in ("path", "star", "complete")),
        *((kind, {"vertices": 1}, nx.empty_graph(1)) for kind in ("path", "star", "complete")),
        *((kind, {"vertices": 2}, nx.path_graph(2)) for kind in ("path", "star", "complete")),
        ("uniform", {"vertices": 0, "edges": 0}, nx.empty_graph(0)),
        ("uniform", {"vertices": 1, "edges": 50}, nx.empty_graph(1)),
        ("rmat", {"scale": 0}, nx.empty_graph(1)),
    ],
)
def test_known_shapes_equal_networkx(kind: str, shape: dict[str, Any], wanted: Any) -> None:
    graph = ist.generate(kind, **shape)
    assert graph.vertices == len(wanted)
    assert graph.edges == wanted.number_of_edges()
    assert arcs(graph) == sorted(wanted.to_directed().edges())


@pytest.mark.parametrize("kind", ["path", "star", "grid"])
def test_directed_shapes_point_from_the_smaller_to_the_larger(kind: str) -> None:
    graph, undirected = (ist.generate(kind, directed=directed, **SMALL[kind]) for directed in (True, False))
    assert graph.edges == graph.arcs == undirected.edges
    assert arcs(graph) == [(u, v) for u, v in arcs(undirected) if u < v]


def test_a_directed_complete_graph_has_both_directions() -> None:
    graph = ist.generate("complete", vertices=9, directed=True)
    assert arcs(graph) == sorted(nx.complete_graph(9, nx.DiGraph).edges())


@pytest.mark.parametrize("kind", list(KINDS))
def test_in_edges_are_the_out_edges_turned_round(kind: str) -> None:
    graph = ist.generate(kind, directed=True, weights="0.0:1.0", **SMALL[kind])
    forward = dict(zip(arcs(graph), graph.store.read("out.weights").tolist(), strict=True))
    backward = dict(zip(((u, v) for v, u in arcs(graph, "in")), graph.store.read("in.weights").tolist(), strict=True))
    assert forward == backward
    assert len(forward) == graph.edges


def test_no_in_edges_unless_wanted() -> None:
    assert "in.targets" not in ist.generate("path", vertices=5, directed=True, in_edges=False).store


@pytest.mark.parametrize("kind", ["rmat", "uniform"])
def test_cleaning(kind: str) -> None:
    shape = {"rmat": {"scale": 4, "edge_factor": 20}, "uniform": {"vertices": 16, "edges": 320}}[kind]
    clean = ist.generate(kind, directed=True, **shape)
    raw = ist.generate(kind, directed=True, self_loops="keep", parallel="keep", **shape)
    assert raw.edges == 320
    assert sorted({(u, v) for u, v in arcs(raw) if u != v}) == arcs(clean)
    both = ist.generate(kind, self_loops="keep", parallel="keep", **shape)
    assert both.edges == 320
    assert both.arcs == 640 - sum(u == v for u, v in arcs(raw))
    assert clean.report is not None
    assert clean.report.self_loops_dropped + clean.report.parallel_merged + clean.edges == 320


def test_undirected_rmat_is_the_directed_one_made_symmetric() -> None:
    directed = arcs(ist.generate("rmat", scale=8, directed=True))
    undirected = arcs(ist.generate("rmat", scale=8))
    assert undirected == sorted({*directed, *((v, u) for u, v in directed)})


def test_rmat_defaults() -> None:
    graph = ist.generate("rmat", scale=8)
    assert graph.report is not None
    assert (graph.vertices, graph.report.edges_read, graph.directed) == (256, 16 * 256, False)
    assert not any(u == v for u, v in arcs(graph))
    assert len(set(arcs(graph))) == graph.arcs
    assert arrays(graph) == arrays(ist.generate("rmat", scale=8, preset="graph500", seed=1))
    assert arrays(graph) == arrays(ist.generate("rmat", scale=8, probabilities=(0.57, 0.19, 0.19)))
    assert PRESETS["parmat"] == (0.5, 0.2, 0.2)
    assert arrays(ist.generate("rmat", scale=8, preset="parmat")) == arrays(
        ist.generate("rmat", scale=8, probabilities=(0.5, 0.2, 0.2))
    )


@pytest.mark.parametrize(("factor", "edges"), [(0.5, 512), (1.5, 1536), (0.0001, 0), (2.9999, 3071)])
def test_fractional_edge_factor(factor: float, edges: int) -> None:
    graph = ist.generate("rmat", scale=10, edge_factor=factor)
    assert graph.report is not None
    assert graph.report.edges_read == edges


def test_permute_renames_the_vertices_and_nothing_else() -> None:
    plain, shuffled = (ist.generate("rmat", scale=10, permute=permute) for permute in (False, True))
    degrees = [np.diff(graph.store.read("out.offsets")) for graph in (plain, shuffled)]
    assert np.array_equal(np.sort(degrees[0]), np.sort(degrees[1]))
    assert degrees[0].argmax() == 0  # without it, vertex 0 is the hub
    hubs = [set(np.argsort(-degree)[:100].tolist()) for degree in degrees]
    assert len(hubs[0] & hubs[1]) < 50


@pytest.mark.parametrize(("low", "high"), [(1, 3), (0, 2**31 - 1), (7, 7)])
def test_integer_weights_take_both_ends(low: int, high: int) -> None:
    weights = ist.generate("path", vertices=5000, weights=f"{low}:{high}").store.read("out.weights")
    assert weights.dtype == np.int32
    assert low <= weights.min()
    assert weights.max() <= high
    if high - low < 10:
        assert np.unique(weights).tolist() == list(range(low, high + 1))
        assert np.bincount(weights)[low:].min() > 0.8 * weights.size / (high - low + 1)
    else:
        assert weights.max() > 0.99 * high


@pytest.mark.parametrize(
    ("text", "asked", "dtype"),
    [
        ("0.0:1.0", None, "float64"),
        ("1:2", "float32", "float32"),
        ("1e2:1e3", None, "float64"),
        ("0.5:0.5", None, "float64"),
    ],
)
def test_real_weights_leave_out_the_upper_end(text: str, asked: str | None, dtype: str) -> None:
    weights = ist.generate("path", vertices=5000, weights=text, weight_dtype=asked).store.read("out.weights")
    low, high = map(float, text.split(":"))
    assert weights.dtype == dtype
    assert low <= weights.min()
    if low == high:
        assert (weights == low).all()
        return
    assert weights.max() < high
    assert abs(weights.mean() - (low + high) / 2) < 0.02 * (high - low)


def test_real_weights_that_round_up_to_the_end() -> None:
    """Above 2**24 - 2, float32 has whole numbers only: a quarter of the draws would round to the end."""
    weights = ist.generate("path", vertices=5000, weights="16777214.0:16777216.0", weight_dtype="float32").store.read(
        "out.weights"
    )
    assert set(weights.tolist()) == {16777214.0, 16777215.0}


def test_both_directions_of_an_edge_weigh_the_same() -> None:
    graph = ist.generate("rmat", scale=9, weights="1:1000000")
    weight = dict(zip(arcs(graph), graph.store.read("out.weights").tolist(), strict=True))
    assert all(weight[v, u] == w for (u, v), w in weight.items())
    assert len(set(weight.values())) > 0.9 * graph.edges


def test_uniform_draws_evenly() -> None:
    graph = ist.generate("uniform", vertices=100, edges=200_000, directed=True, self_loops="keep", parallel="keep")
    for side in ("out", "in"):
        degree = np.diff(graph.store.read(f"{side}.offsets"))
        chi = float(((degree - 2000) ** 2 / 2000).sum())
        assert 50 < chi < 170  # 99 degrees of freedom; both bounds are beyond 1 in 100,000
    cells = np.zeros((100, 100))
    np.add.at(cells, tuple(np.array(arcs(graph)).T), 1)
    assert 9000 < float(((cells - 20) ** 2 / 20).sum()) < 11_000  # sources and targets are independent


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("moon", {}, "expected one of rmat, uniform, grid, path, star, complete, got 'moon'"),
        (
            "rmat",
            {},
            "generate rmat: missing a required argument: 'scale'; it has scale, edge_factor, permute, probabilities",
        ),
        ("rmat", {"scale": 3, "vertices": 8}, "generate rmat: got an unexpected keyword argument 'vertices'"),
        ("rmat", {"scale": -1}, "expected a scale from 0 to 32, got -1"),
        ("rmat", {"scale": 33}, "expected a scale from 0 to 32, got 33"),
        ("rmat", {"scale": "many"}, "scale: expected a whole number, got 'many'"),
        ("rmat", {"scale": 3.5}, r"scale: expected a whole number, got 3\.5"),
        *(
            ("rmat", {"scale": 3, "edge_factor": bad}, "expected an edge factor above 0")
            for bad in (0, -1, float("nan"), float("inf"))
        ),
        ("rmat", {"scale": 32, "edge_factor": 1e12}, r"expected 0 to \d+ edges"),
        ("rmat", {"scale": 3, "preset": "facebook"}, "preset: expected one of graph500, parmat, got 'facebook'"),
        ("rmat", {"scale": 3, "probabilities": (0.5, 0.5)}, "expected three probabilities a, b, c"),
        *(
            ("rmat", {"scale": 3, "probabilities": bad}, "expected a, b, c of at least 0 that sum to at most 1")
            for bad in ((0.5, 0.5, 0.5), (-0.1, 0.5, 0.5), (float("nan"), 0.1, 0.1))
        ),
        ("rmat", {"scale": 3, "seed": -1}, r"expected a seed from 0 to 2\*\*64 - 1, got -1"),
        ("rmat", {"scale": 3, "seed": 2**64}, "expected a seed from 0"),
        ("rmat", {"scale": 3, "seed": 1.5}, r"seed: expected a whole number, got 1\.5"),
        ("rmat", {"scale": 3, "edge_factor": "2"}, "edge_factor: expected a number, got '2'"),
        ("rmat", {"scale": 3, "permute": "no"}, "permute: expected True or False, got 'no'"),
        ("rmat", {"scale": 3, "probabilities": "abc"}, "probabilities: expected three numbers a, b, c, got 'abc'"),
        ("rmat", {"scale": 3, "directed": "no"}, "directed: expected True or False, got 'no'"),
        ("uniform", {"vertices": 0, "edges": 1}, "expected at least one vertex for 1 edges, got none"),
        ("uniform", {"vertices": 3, "edges": -1}, r"expected 0 to \d+ edges, got -1"),
        ("uniform", {"vertices": 3, "edges": 2**70}, r"expected 0 to \d+ edges"),
        ("uniform", {"vertices": 3, "edges": 2.5}, r"edges: expected a whole number, got 2\.5"),
        ("grid", {"rows": 0, "columns": 3}, "expected at least one row and one column, got 0 x 3"),
        ("grid", {"rows": 2**20, "columns": 2**20}, r"expected 0 to 4294967296 vertices, got 1099511627776"),
        *(
            (kind, {"vertices": -3}, "expected 0 to 4294967296 vertices, got -3")
            for kind in ("path", "star", "complete")
        ),
        ("path", {"vertices": 2**32 + 1}, "expected 0 to 4294967296 vertices"),
        ("complete", {"vertices": 2**31}, r"expected 0 to \d+ edges"),
        ("path", {"vertices": 3, "weights": "1"}, "expected weights as LOW:HIGH such as 1:255"),
        ("path", {"vertices": 3, "weights": "1:2:3"}, "expected weights as LOW:HIGH"),
        ("path", {"vertices": 3, "weights": (1, 2)}, "expected weights as LOW:HIGH"),
        ("path", {"vertices": 3, "weights": "a:b"}, "expected weights as LOW:HIGH"),
        *(
            ("path", {"vertices": 3, "weights": bad}, "expected weights with 0 <= LOW <= HIGH, both finite")
            for bad in ("2:1", "-5:5", "nan:1", "1:nan", "0:inf")
        ),
        ("path", {"vertices": 3, "weights": "0:2147483648"}, r"whole numbers below 2\*\*31 for int32 weights"),
        ("path", {"vertices": 3, "weights": "0.5:2.5", "weight_dtype": "int32"}, "whole numbers below"),
        (
            "path",
            {"vertices": 3, "weights": "0:1e39", "weight_dtype": "float32"},
            "expected weights that float32 can hold",
        ),
        (
            "path",
            {"vertices": 3, "weights": "1:2", "weight_dtype": "int8"},
            "expected a weight type of int32, .*got 'int8'",
        ),
        ("path", {"vertices": 3, "weight_dtype": "int32"}, "a weight type needs a range of weights"),
        (
            "rmat",
            {"scale": 3, "weights": "1:2", "parallel": "sum"},
            "parallel edges of a generated graph have equal weights",
        ),
        ("path", {"vertices": 3, "self_loops": "maybe"}, "self_loops: expected keep or drop, got 'maybe'"),
        ("path", {"vertices": 3, "parallel": "maybe"}, "parallel: expected one of"),
        ("path", {"vertices": 3, "order": "random"}, "order: expected natural or hub, got 'random'"),
        ("path", {"vertices": 3, "memory": "lots"}, "expected a size such as 512MB"),
        ("path", {"vertices": 3, "threads": -1}, "threads: expected at least 1, got -1"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ist.generate(kind, tmp_path / "g.isthmus", **options)
    assert list(tmp_path.iterdir()) == []


def test_weight_ranges_by_type() -> None:
    assert WeightRange.parse("1:255") == WeightRange(1, 255, "int32")
    assert WeightRange.parse("0:1E2") == WeightRange(0, 100, "float64")
    assert WeightRange.parse("1:2", "float32") == WeightRange(1, 2, "float32")


def test_a_sample_is_drawn_from_all_over() -> None:
    source = Rmat(16)
    sample = source.sample(1 << 12)
    assert 2000 < sample.sources.size <= 1 << 13
    assert Rmat(0, edge_factor=0.5).sample(100).sources.size == 0
