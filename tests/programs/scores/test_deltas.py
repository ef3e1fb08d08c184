"""PageRank by deltas: the promised bound, whatever swallows mass and whoever goes on."""

from __future__ import annotations

import random
from typing import Any

import networkx
import numpy as np
import pytest

import isthmus as ist
from isthmus.programs.scores.deltas import DeltaPageRank

DEVICE = "model:rtx2080ti"


def drawn(seed: int, n: int = 60, m: int = 240, sinks: int = 0) -> Any:
    draw = random.Random(seed)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((draw.randrange(sinks, n), draw.randrange(n), draw.randrange(1, 9)) for _ in range(m))
    return graph


def stored(source: Any) -> Any:
    columns = np.array([(u, v, w) for u, v, w in source.edges(data="weight")], np.int64).T
    return ist.read(tuple(columns), directed=True, vertices=len(source))


def error(result: Any, expected: dict[int, float]) -> float:
    return float(np.abs(result.values - np.array([expected[v] for v in sorted(expected)])).sum())


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("sinks", [0, 50])
@pytest.mark.parametrize("policy", ["filter", "subway", "emogi"])
def test_the_error_is_within_the_bound(tol: float, sinks: int, policy: str) -> None:
    source = drawn(sinks + 1, sinks=sinks)
    expected = networkx.pagerank(source, 0.85, tol=1e-15, max_iter=2000, weight=None)
    result = ist.pagerank(stored(source), tol=tol, device=DEVICE, memory="10%", policy=policy)
    facts = result.summary()["result"]
    assert facts["converged"]
    assert error(result, expected) <= facts["error_bound"] <= tol


@pytest.mark.parametrize("weight", [False, True])
def test_personal_weighted_and_with_another_place_for_dangling_mass(weight: bool) -> None:
    source = drawn(3, sinks=20)
    shares, ends = {21: 2.0, 37: 1.0}, {25: 1.0}
    expected = networkx.pagerank(
        source,
        0.7,
        personalization=shares,
        dangling=ends,
        tol=1e-15,
        max_iter=2000,
        weight="weight" if weight else None,
    )
    graph = stored(source)
    result = ist.pagerank(
        graph, 0.7, shares, tol=1e-6, weight=weight, dangling=ends, device=DEVICE, memory="10%", policy="emogi"
    )
    assert error(result, expected) <= result.summary()["result"]["error_bound"] <= 1e-6


@pytest.mark.parametrize("far", [{"device": DEVICE}, {"far": "ram"}])
def test_the_threshold_is_lowered_until_some_vertex_is_above_it(far: dict[str, str]) -> None:
    """Four dangling vertices hold little, so the sum is below the bound's first guess; two residuals are just below the
    second.
    """
    graph = ist.read((np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1])), vertices=6, directed=True)
    result = ist.pagerank(graph, tol=1e-2, memory="1%", policy="filter", **far)
    assert result.summary()["result"]["converged"] and result.summary()["result"]["error_bound"] <= 1e-2


def test_the_active_set_shrinks(tmp_path: Any) -> None:
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=12, seed=1)
    counts = [
        iteration.active_vertices
        for iteration in ist.run(DeltaPageRank(tol=1e-4), graph, memory="20%", policy="filter").trace
    ]
    assert counts[-1] < counts[0] / 4


def test_a_frontier_that_runs_dry_too_early_is_filled_again() -> None:
    """Almost all mass is lost on the way, so the first threshold is too high."""
    n = 3000
    graph = ist.read((np.zeros(n, np.int64), np.arange(1, n + 1)), directed=True)
    program = DeltaPageRank(alpha=0.99, tol=0.5)
    result = ist.run(program, graph, device=DEVICE, memory="10%", policy="filter")
    assert program.converged
    exact = np.ones(n + 1) + np.append(0.0, np.full(n, 0.99 / n))
    assert np.abs(result.values - exact / exact.sum()).sum() <= program.error_bound <= 0.5


def test_it_stops_short_of_the_bound_and_says_so() -> None:
    graph = stored(drawn(4))
    result = ist.pagerank(graph, tol=1e-9, max_iter=3, device=DEVICE, memory="10%", policy="filter")
    assert result.summary()["iterations"] == 3
    assert not result.summary()["result"]["converged"]
    assert any("stopped after 3 iterations" in note for note in result.trace.notes)
    assert (
        error(result, networkx.pagerank(drawn(4), weight=None, tol=1e-15)) <= result.summary()["result"]["error_bound"]
    )


def test_without_edges() -> None:
    graph = ist.read((np.empty(0, np.int64), np.empty(0, np.int64)), vertices=5)
    assert ist.pagerank(graph, device=DEVICE, memory="10%", policy="filter").values.tolist() == [0.2] * 5


def test_edges_without_weight_carry_nothing() -> None:
    graph = ist.read((np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 0, 3])), directed=True)
    how = {"weight": True, "tol": 1e-9}
    by_deltas = ist.pagerank(graph, device=DEVICE, memory="10%", policy="filter", **how)
    assert by_deltas.values == pytest.approx(ist.pagerank(graph, **how).values, abs=2e-9)
