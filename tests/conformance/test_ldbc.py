"""LDBC Graphalytics' validation graphs and outputs, by its own rules of comparison."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist

SIDES = [("dir", True), ("undir", False)]
EXAMPLES = [("example-directed", True), ("example-undirected", False)]
WAYS: list[dict[str, Any]] = [
    {},
    {"policy": "filter", "memory": "10%", "far": "ram"},
    {"policy": "emogi", "memory": "10%", "far": "ram"},
]


@pytest.fixture(scope="module")
def ldbc(data: Path) -> Path:
    if not (data / "graphalytics").is_dir():
        pytest.skip(f"LDBC's validation graphs are not in {data}")
    return data / "graphalytics"


def outputs(path: Path) -> dict[int, float]:
    pairs = [line.split() for line in path.read_text().splitlines() if line.strip()]
    found = {int(vertex): float(value) if "." in value or "n" in value else int(value) for vertex, value in pairs}
    assert len(found) == len(pairs)
    return found


def answer(result: Any) -> dict[int, Any]:
    found = dict(zip(result.vertices.tolist(), result.filled().tolist(), strict=True))
    assert len(found) == result.vertices.size
    return found


def assert_exact(result: Any, path: Path) -> None:
    assert answer(result) == outputs(path)


def assert_near(result: Any, path: Path) -> None:
    expected, found = outputs(path), answer(result)
    assert set(found) == set(expected)
    for vertex, value in expected.items():
        if math.isinf(value):
            assert found[vertex] == value
        else:
            assert abs(value - found[vertex]) <= 1e-4 * value, vertex


def assert_same_parts(result: Any, path: Path) -> None:
    """Equal up to the names of the parts."""
    expected, found = outputs(path), answer(result)
    assert set(found) == set(expected)
    pairs = {(expected[vertex], found[vertex]) for vertex in expected}
    assert len(pairs) == len(set(expected.values())) == len(set(found.values()))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("side", "directed"), SIDES)
def test_validation_graphs(ldbc: Path, side: str, directed: bool, how: dict[str, Any]) -> None:
    def lists(algorithm: str) -> Any:
        # The undirected files list every edge from both ends.
        return ist.read(
            ldbc / algorithm / f"{side}-input",
            format="adjacency",
            directed=directed,
            parallel="keep" if directed else "drop",
        )

    assert_exact(ist.bfs(lists("bfs"), 1, **how), ldbc / "bfs" / f"{side}-output")
    assert_same_parts(ist.weakly_connected_components(lists("wcc"), **how), ldbc / "wcc" / f"{side}-output")
    rounds = 14 if directed else 26
    assert_near(ist.pagerank(lists("pr"), 0.85, iterations=rounds, **how), ldbc / "pr" / f"{side}-output")
    weighted = ist.read(ldbc / "sssp" / f"{side}-input.e", format="graphalytics", directed=directed)
    assert_near(ist.sssp(weighted, 1, **how), ldbc / "sssp" / f"{side}-output")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("name", "directed"), EXAMPLES)
def test_examples(ldbc: Path, name: str, directed: bool, how: dict[str, Any]) -> None:
    folder = ldbc / "example"
    graph = ist.read(folder / f"{name}.e", directed=directed)
    source = 1 if directed else 2
    assert_exact(ist.bfs(graph, source, **how), folder / f"{name}-BFS")
    assert_near(ist.sssp(graph, source, **how), folder / f"{name}-SSSP")
    assert_same_parts(ist.weakly_connected_components(graph, **how), folder / f"{name}-WCC")
    assert_near(ist.pagerank(graph, 0.85, iterations=2, **how), folder / f"{name}-PR")
