"""Scores on a changing graph: one column per source (`stream/maintain/by_source.py`), a user's programs
(`stream/maintain/accumulative.py`), no drift.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.edits import Model

import isthmus as ist
from isthmus import sizes

THRESHOLD = 1e-10


@ist.accumulative(threshold=THRESHOLD, column="rank")
def by_degree(delta, degree, alpha=0.8):  # type: ignore[no-untyped-def]
    return alpha * delta / degree


@ist.accumulative(threshold=THRESHOLD)
def by_weight(delta, weight, factor=0.01):  # type: ignore[no-untyped-def]
    return factor * delta * weight


@ist.accumulative(initial=3.0, threshold=THRESHOLD)
def by_all(delta, weight, degree):  # type: ignore[no-untyped-def]
    return -0.1 * delta * weight / (degree + 1)


@ist.accumulative(threshold=THRESHOLD)
def by_place(delta, vertex, degree):  # type: ignore[no-untyped-def]
    return 0.5 * delta / degree if vertex % 2 == 0 else 0.0


def accumulative(source: Any) -> list[Any]:
    return [by_degree(), by_weight(source=source), by_all(), by_place()]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_accumulative_programs_are_within_their_threshold(seed: int) -> None:
    model = Model(seed + 300, (4, 12, 60)[seed % 3], names=seed % 4 == 3)
    with ist.stream(model.graph(), accumulative(model.source), threads=2) as live:
        for _ in range(8):
            live.apply(**model.batch())
            for program in accumulative(model.source):
                exact = ist.run(program(source=program.sources or None, threshold=1e-14), live.graph).values
                # A residual r at every vertex is worth at most r / (1 - 0.8) in total, per vertex.
                assert np.abs(live[program.name].values - exact).sum() <= 6 * THRESHOLD * exact.size, program.name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
def test_many_sources_are_as_from_scratch(seed: int) -> None:
    model = Model(seed + 400, (5, 12, 60)[seed % 3], names=seed % 4 == 3)
    model.edges = {edge: w + 1 for edge, w in model.edges.items()}
    sources = sorted(model.vertices)[:3]
    wanted = [
        ist.MultiSourceBFS(sources=sources),
        ist.PersonalizedPageRank(sources=sources, tol=1e-7),
        ist.PersonalizedPageRank(sources=sources, tol=1e-7, weight=True, name="weighted"),
    ]
    with ist.stream(model.graph(), wanted, threads=2) as live:
        for _ in range(6):
            batch = model.batch()
            batch["inserts"] = batch["inserts"] and [(u, v, w + 1) for u, v, w in batch["inserts"]]
            batch["remove_vertices"] = None
            live.apply(**batch)
            expected: dict[str, Any] = {
                "multi_source_bfs": ist.multi_source_bfs(live.graph, sources),
                "personalized_pagerank": ist.personalized_pagerank(live.graph, sources, tol=1e-10),
                "weighted": ist.personalized_pagerank(live.graph, sources, tol=1e-10, weight=True),
            }
            for name, exact in expected.items():
                assert live[name].columns == exact.columns
                for column in exact.columns:
                    far = np.abs(live[name].filled(column).astype(float) - exact.filled(column)).sum()
                    assert far <= (0 if name == "multi_source_bfs" else 1.01e-7), (name, column)
            searches = live["multi_source_bfs"].summary()["result"]
            assert searches == expected["multi_source_bfs"].summary()["result"]


def test_changes_of_many_sources() -> None:
    with ist.stream(ist.generate("path", vertices=5), [ist.MultiSourceBFS([0, 4])]) as live:
        first = live["multi_source_bfs"]
        live.apply(inserts=[(0, 3)], deletes=[(3, 4)])
        found = live["multi_source_bfs"].changes()
        assert sorted(found) == ["new", "old", "source", "vertex"]
        rows = list(zip(*(found[name].tolist() for name in ("vertex", "source", "old", "new")), strict=True))
        assert rows == [
            (0, 4, 4, None),
            (1, 4, 3, None),
            (2, 4, 2, None),
            (3, 0, 3, 1),
            (3, 4, 1, None),
            (4, 0, 4, None),
        ]
        assert first["distance_4"].tolist() == [4, 3, 2, 1, 0] and first.number == 0


def test_mistakes_with_sources() -> None:
    graph = ist.generate("path", vertices=5)
    with pytest.raises(ist.OptionError, match="sources: expected different vertices"):
        ist.stream(graph, [ist.MultiSourceBFS([1, 1])])
    with pytest.raises(ist.OptionError, match="sources: expected 1 to 64 vertices, got 0"):
        ist.stream(graph, [ist.PersonalizedPageRank([])])
    with ist.stream(graph, [ist.PersonalizedPageRank([1, 2])]) as live:
        with pytest.raises(
            ist.BatchError, match="remove_vertices: row 0: vertex 2 is the source of personalized_pagerank"
        ):
            live.apply(remove_vertices=[2])
        assert live.number == 0


def test_small_batches_read_little() -> None:
    """A recomputation in disguise would read all edges, once per source."""
    graph = ist.generate("rmat", scale=12, weights="1:9", seed=5)
    draw = np.random.default_rng(1)
    loose = by_degree(threshold=1e-3), by_weight(threshold=1e-3, factor=0.0001)
    read: dict[str, list[int]] = {"multi_source_bfs": [], "by_degree": [], "by_weight": []}
    with ist.stream(graph, [ist.MultiSourceBFS([0, 1, 2, 3]), *loose]) as live:
        scratch = {name: live.batches.programs[name].effort.edges_read for name in ("by_degree", "by_weight")} | {
            "multi_source_bfs": graph.arcs
        }
        for _ in range(15):
            u, v, w = (int(x) for x in draw.integers(0, graph.vertices, 3))
            near = live.graph.neighbors(w)
            report = live.apply(inserts=[(u, v, 2)], deletes=[(w, int(near[0]))] if near.size else None)
            for name, counts in read.items():
                counts.append(report.programs[name]["edges_read"])
        for name, counts in read.items():
            assert np.median(counts) < scratch[name] / 10, (name, scratch[name], counts)


def test_a_change_reaches_as_far_as_it_matters() -> None:
    graph = ist.generate("path", vertices=10_000)
    with ist.stream(graph, [by_degree(threshold=1e-6), ist.PageRank(tol=1e-4)]) as live:
        report = live.apply(inserts=[(4000, 4010)], deletes=[(7000, 7001)])
        assert 0 < report.programs["by_degree"]["edges_read"] < 4000
        assert 0 < report.programs["pagerank"]["edges_read"] < 4000


@pytest.mark.timeout(300)
def test_scores_do_not_drift() -> None:
    """1,000 small batches, half of them undone by the next; weights differ by orders of magnitude."""
    draw, n = np.random.default_rng(7), 60
    ends = draw.integers(0, n, (240, 2))
    weights = 10.0 ** draw.integers(-6, 7, 240)
    wanted = [
        ist.PageRank(tol=1e-9),
        ist.PageRank(tol=1e-9, weight=True, name="weighted"),
        ist.PHP(source=0, tol=1e-9),
        ist.PersonalizedPageRank([0, 1], tol=1e-9, name="own"),
        by_degree(),
    ]
    graph = ist.read((ends[:, 0], ends[:, 1], weights), directed=True, parallel="drop")
    with ist.stream(graph, wanted, threads=1) as live:
        for _ in range(1000):
            u, v, w = (int(x) for x in draw.integers(0, n, 3))
            near = live.graph.neighbors(w)
            live.apply(
                inserts=[(u, v, 10.0 ** int(draw.integers(-6, 7)))],
                deletes=[(w, int(near[0]))] if near.size > 1 else None,
            )
        exact: dict[str, Any] = {
            "pagerank": ist.pagerank(live.graph, tol=1e-13).values,
            "weighted": ist.pagerank(live.graph, tol=1e-13, weight=True).values,
            "php": ist.php(live.graph, 0, tol=1e-13).values,
            "own": ist.personalized_pagerank(live.graph, [0, 1], tol=1e-13).values,
            "by_degree": ist.run(by_degree(threshold=1e-15), live.graph).values,
        }
        for name, values in exact.items():
            bound = 6 * THRESHOLD * n if name == "by_degree" else 1.001e-9
            assert np.abs(live[name].values - values).sum() <= bound, name


def test_rounding_is_counted_and_undone() -> None:
    """Residuals that rounding may have changed too much are computed anew from the values, and what was added to them
    is gone.
    """
    graph = ist.generate("rmat", scale=8, weights="1:9", seed=2)
    wanted = [
        ist.PageRank(tol=1e-6),
        ist.PageRank(tol=1e-6, weight=True, name="weighted"),
        ist.Katz(alpha=0.001),
        ist.PHP(0),
        by_weight(factor=1e-4),
    ]
    with ist.stream(graph, wanted, threads=1) as live:
        live.apply(inserts=[(0, 100, 1)])
        for name in live:
            program = live.batches.programs[name]
            assert program._lost < 1e-9 and (program._lost > 0 or "pagerank" in program.program.name)
            program.state.arrays[1][5] += 1e-2  # an error of a residual, as rounding would make, only larger
            program._lost = 1.0 * graph.vertices
        report = live.apply(inserts=[(0, 101, 1)])
        scratch: dict[str, Any] = {
            "pagerank": ist.pagerank(live.graph, tol=1e-10),
            "weighted": ist.pagerank(live.graph, tol=1e-10, weight=True),
            "katz": ist.katz(live.graph, alpha=0.001, tol=1e-10),
            "php": ist.php(live.graph, 0, tol=1e-10),
            "by_weight": ist.run(by_weight(threshold=1e-14, factor=1e-4), live.graph),
        }
        for name, exact in scratch.items():
            assert report.programs[name]["edges_read"] >= graph.arcs
            assert np.abs(live[name].values - exact.values).sum() <= 1.1e-6, name


def test_a_large_change_starts_over() -> None:
    """What one thread would follow too long is computed by a run from scratch, and the bound holds after it as well."""
    graph = ist.generate("rmat", scale=9, seed=2, weights="1:9")
    with (
        sizes.using(settled_alone=1000),
        ist.stream(graph, [ist.PageRank(tol=1e-8), ist.PHP(0, tol=1e-8)], threads=2) as live,
    ):
        ends = np.random.default_rng(1).integers(0, 600, (2, 2000))
        report = live.apply(inserts=(*ends, np.ones(2000)))
        assert report.programs["pagerank"]["edges_read"] > graph.arcs
        for name, exact in (
            ("pagerank", ist.pagerank(live.graph, tol=1e-12)),
            ("php", ist.php(live.graph, 0, tol=1e-12)),
        ):
            assert np.abs(live[name].values - exact.values).sum() <= 1.001e-8
            assert live[name].summary()["result"].get("converged", True)
        live.apply(remove_vertices=[5, 6])
        assert np.abs(live["pagerank"].values - ist.pagerank(live.graph, tol=1e-12).values).sum() <= 1.001e-8


def test_a_tolerance_that_numbers_cannot_reach() -> None:
    with ist.stream(ist.generate("rmat", scale=6, seed=2), [ist.PageRank(tol=1e-17)]) as live:
        live.apply(inserts=[(0, 60)])
        assert not live["pagerank"].summary()["result"]["converged"]
        assert np.abs(live["pagerank"].values - ist.pagerank(live.graph, tol=1e-13).values).sum() < 1e-12
