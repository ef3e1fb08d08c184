"""The memory budget: percentages, sizes, what is too little and what it says, and what a process really takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import BudgetError, OptionError
from isthmus.memory import format_size

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("b") / "g.isthmus", scale=16, weights="1:9") as graph:
        yield graph


def split(result: Any) -> dict[str, Any]:
    memory = result.summary()["memory"]
    return {**memory["split"], "near_peak": memory["near_peak"]}


@pytest.mark.parametrize("policy", ["filter", "emogi", "auto"])
def test_a_share_means_vertex_state_plus_that_share_of_the_edges(graph: Any, policy: str) -> None:
    edge_bytes = graph.arcs * 8
    for share in (20, 50):
        result = ist.sssp(graph, 0, memory=f" {share} %", policy=policy)
        near = split(result)
        assert near["budget"] == near["state"] + near["offsets"] + near["frontier"] + edge_bytes * share // 100
        assert near["near_peak"] == near["state"] + near["offsets"] + near["frontier"] + near["edges"] <= near["budget"]
        assert not near["resident"]
        assert result.trace.notes == []


def test_the_checksums_of_far_edges_count(graph: Any) -> None:
    """Eight bytes for every block of the arrays that the program follows, beside the offsets."""
    blocks = [graph.store.manifest.sections[f"out.{name}"].blocks for name in ("targets", "weights")]
    offsets = 8 * (graph.vertices + 1)
    assert split(ist.bfs(graph, 0, memory="50%", policy="filter"))["offsets"] == offsets + 8 * blocks[0]
    assert split(ist.sssp(graph, 0, memory="50%", policy="filter"))["offsets"] == offsets + 8 * sum(blocks)
    assert split(ist.bfs(graph, 0, memory="50%", policy="filter", device="model:rtx2080ti"))["offsets"] == offsets


def test_a_small_share_is_raised_and_says_so(graph: Any) -> None:
    result = ist.sssp(graph, 0, memory="1%")
    near = split(result)
    room = near["budget"] - near["state"] - near["offsets"] - near["frontier"]
    assert room > graph.arcs * 8 // 100
    assert result.trace.notes == [f"1% is below the minimum for this graph; using {format_size(room)}"]


def test_all_of_the_edges_stay_near_when_they_fit(graph: Any) -> None:
    for memory in ("150%", "1GB", None):
        result = ist.bfs(graph, 0, memory=memory)
        assert split(result)["resident"]
        assert result.summary()["policy"] == "resident"
    assert ist.bfs(graph, 0, memory="1GB").summary()["memory"]["budget"] == 10**9


def test_too_little_names_the_least_that_works(graph: Any) -> None:
    """And that least does work, on every engine."""
    with pytest.raises(BudgetError, match=r"sssp on <Graph: .*> needs at least .* near memory \(vertex state .*\); got 10 kB") as caught:
        ist.sssp(graph, 0, memory="10kB")
    least = str(caught.value).split("memory='")[1].split("'")[0]
    expected = ist.sssp(graph, 0).values
    for policy in ("filter", "emogi", "auto"):
        result = ist.sssp(graph, 0, memory=least, policy=policy)
        assert np.array_equal(result.values, expected)
        assert split(result)["near_peak"] <= split(result)["budget"]


@pytest.mark.parametrize("run", [
    lambda g, **how: ist.bfs(g, 0, predecessors=True, **how),
    lambda g, **how: ist.sssp(g, 0, predecessors=True, **how),
    lambda g, **how: ist.pagerank(g, weight=True, **how),
    lambda g, **how: ist.pagerank(g, weight=True, dangling={0: 1}, **how),
])  # fmt: skip
def test_a_budget_that_is_too_little_for_a_later_pass_fails_before_the_first(tmp_path: Path, run: Any) -> None:
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=12, weights="1:9")
    low, high = 10**5, 3 * 10**6
    seen: list[Any] = []
    while high - low > 4000:
        middle = (low + high) // 2
        seen.clear()
        try:
            run(graph, memory=middle, policy="filter", watch=seen.append)
            high = middle
        except BudgetError:
            assert not seen, f"with {middle} bytes it worked for a while, and then failed"
            low = middle


def test_what_is_no_budget(graph: Any) -> None:
    for memory in ("lots", "-1GB", "1XB", "%", "ten%", "-5%"):
        with pytest.raises(OptionError, match=r"expected a (size|share) such as"):
            ist.bfs(graph, 0, memory=memory)


def test_a_share_that_is_no_number(graph: Any) -> None:
    with pytest.raises(OptionError, match=r"memory: expected a share such as 10%, got 1\.2\.3%"):
        ist.bfs(graph, 0, memory="1.2.3%")


def test_a_small_graph_with_real_weights_is_not_read_edge_by_edge(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    columns = (draw.integers(0, 100, 900), draw.integers(0, 100, 900), draw.random(900))
    graph = ist.ingest(columns, tmp_path / "g.isthmus")
    for policy in ("filter", "emogi"):
        result = ist.sssp(graph, int(columns[0][0]), memory="10%", policy=policy)
        blocks = 900 * 12 // 4096 + 2
        assert max(iteration.requests for iteration in result.trace) <= 4 * blocks


# What a process really takes, at a size where it shows.


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "g.isthmus"
    ist.generate("rmat", path, scale=20, edge_factor=16).close()
    return path


@pytest.mark.parametrize(("algorithm", "policy", "memory"), [
    ("pagerank", "filter", "10%"), ("bfs", "emogi", "10%"), ("weakly_connected_components", "filter", "10%"),
    ("bfs", "subway", "10%"), ("pagerank", "unified", "60%"), ("pagerank", "auto", "60%"), ("sssp", "hytgraph", "60%"),
])  # fmt: skip
def test_a_process_stays_within_its_promise(large: Path, algorithm: str, policy: str, memory: str) -> None:
    options = {"bfs": ["--source", "0", "--predecessors"], "sssp": ["--source", "0"], "pagerank": ["--tol", "1e-2"]}.get(algorithm, [])
    command = [*COMMAND, "run", algorithm, large, *options, "--memory", memory, "--policy", policy, "--json"]
    outcome = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    facts = json.loads(outcome.stdout)
    assert facts["policy"] == policy
    assert facts["transfer"]["ratio"] > 0.9
    assert facts["memory"]["near_peak"] <= facts["memory"]["budget"]
    assert (facts["memory"]["split"]["cache"] > 0) == (memory == "60%")
    assert facts["memory"]["rss_peak"] <= facts["memory"]["budget"] + 250 * 10**6


@pytest.fixture(scope="module", params=["natural", "hub"])
def isolated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A million vertices, nearly all without edges: what is not counted per vertex shows."""
    path = tmp_path_factory.mktemp("i") / "g.isthmus"
    with ist.generate("uniform", path, vertices=1_000_000, edges=1000, order=request.param) as graph:
        yield graph


@pytest.mark.parametrize("name", [
    "core_number", "label_propagation", "weakly_connected_components", "strongly_connected_components", "minimum_spanning_forest",
    "triangle_count", "pagerank",
])  # fmt: skip
def test_every_array_of_a_run_is_counted(isolated: Any, name: str) -> None:
    """Beside the least budget a run allocates a few buffers that do not grow with the graph."""
    run = getattr(ist, name)
    with pytest.raises(BudgetError) as caught:
        run(isolated, memory=1000)
    least = int(re.search(r"memory='(\d+)MB'", str(caught.value))[1]) * 10**6  # type: ignore[index]
    run(isolated, memory=least)  # compiles
    tracemalloc.start()
    try:
        run(isolated, memory=least)
        assert tracemalloc.get_traced_memory()[1] < least + 4_200_000
    finally:
        tracemalloc.stop()
