"""Plans: the split that a run really has, costs that follow from counts, and no edge touched."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices.cpu import Cpu
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.store.store import Store
from isthmus.link.link import Profile

SLOW = Profile("a slow disk", 1e6, 100.0, 4096, 8, True, compaction=2e6)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("p") / "g.isthmus", scale=14, weights="1:20") as graph:
        yield graph


@pytest.fixture(scope="module")
def directed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    random = np.random.default_rng(1)
    edges = (random.integers(0, 3000, 30000), random.integers(0, 3000, 30000))
    with ist.ingest(edges, tmp_path_factory.mktemp("p") / "d.isthmus") as graph:
        yield graph


JOBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "bfs": (ist.bfs, {"source": 0}),
    "sssp": (ist.sssp, {"source": 0}),
    "wcc": (ist.weakly_connected_components, {}),
    "pagerank": (ist.pagerank, {"tol": 1e-2}),
    "katz": (ist.katz, {"alpha": 1e-4}),
    "multi_source_bfs": (ist.multi_source_bfs, {"sources": [0, 1]}),
    "core_number": (ist.core_number, {}),
    "label_propagation": (ist.label_propagation, {"max_iter": 1}),
    "minimum_spanning_forest": (ist.minimum_spanning_forest, {}),
}


@pytest.mark.parametrize(("memory", "policy"), [("10%", "auto"), ("30%", "filter"), ("500%", "auto"), (None, "emogi")])
@pytest.mark.parametrize("job", list(JOBS))
def test_a_plan_is_what_a_run_does(graph: Any, job: str, policy: str, memory: Any) -> None:
    algorithm, answer = JOBS[job]
    planned = ist.plan(algorithm, graph, **answer, memory=memory, policy=policy, threads=2).summary()
    really = algorithm(graph, **answer, memory=memory, policy=policy, threads=2).summary()
    if memory is None:  # a share of what is free, which changes
        planned["memory"]["split"].pop("budget")
        really["memory"]["split"].pop("budget")
    assert planned["memory"]["split"] == really["memory"]["split"]
    assert planned["memory"]["near_peak"] == really["memory"]["near_peak"]
    for key in ("algorithm", "graph", "policy", "device"):
        assert planned[key] == really[key]


@pytest.mark.parametrize("job", list(JOBS))
def test_the_least_budget_works_and_one_byte_less_does_not(graph: Any, job: str) -> None:
    algorithm, answer = JOBS[job]
    least = ist.plan(algorithm, graph, **answer).summary()["memory"]["least"]
    assert ist.plan(algorithm, graph, **answer, memory=least).near.budget == least
    with pytest.raises(BudgetError, match="needs at least"):
        ist.plan(algorithm, graph, **answer, memory=least - 1)
    with pytest.raises(BudgetError, match="needs at least"):
        algorithm(graph, **answer, memory=least - 1)


@pytest.mark.parametrize("job", list(JOBS))
def test_all_in_memory_from_the_budget_that_is_named(graph: Any, job: str) -> None:
    algorithm, answer = JOBS[job]
    whole = ist.plan(algorithm, graph, **answer).summary()["memory"]["whole"]
    assert ist.plan(algorithm, graph, **answer, memory=whole).near.resident
    below = ist.plan(algorithm, graph, **answer, memory=max(whole - 1, ist.plan(algorithm, graph, **answer).near.least))
    assert below.near.resident == (below.near.budget == whole)


@pytest.mark.parametrize("memory", ["5%", "40%"])
@pytest.mark.parametrize("policy", ["filter", "emogi"])
def test_a_pass_costs_about_what_the_plan_says(graph: Any, policy: str, memory: str) -> None:
    """One round of PageRank is a pass; a run reads some blocks twice where buffers meet."""
    planned = ist.plan(ist.pagerank, graph, iterations=1, memory=memory, policy=policy).costs()["filter"]
    moved = ist.pagerank(graph, iterations=1, memory=memory, policy=policy).summary()["transfer"]
    assert planned.bytes <= moved["bytes"] <= 1.15 * planned.bytes
    assert planned.requests <= 2 * moved["requests"]
    assert moved["requests"] <= 2 * planned.requests + 8


class SlowDisk(Cpu):
    """The processor, with a disk of known rates."""

    def profile(self, snapshot: Any) -> Profile:
        return SLOW


def test_costs_follow_from_counts_and_rates(graph: Any) -> None:
    found = ist.plan(ist.sssp, graph, source=0, memory="10%", device=SlowDisk())
    blocks = 2 * -(-graph.arcs * 4 // 4096)
    assert found.edge_bytes == graph.arcs * 8
    costs = found.costs()
    assert list(costs) == ["filter", "zero_copy", "compaction", "unified"]
    assert {cost.bytes for cost in costs.values()} == {blocks * 4096}
    assert costs["filter"].seconds == pytest.approx(blocks * 4096 / 1e6)
    assert costs["compaction"].seconds == pytest.approx(blocks * 4096 / 1e6 + graph.arcs * 8 / 2e6)
    assert costs["zero_copy"].seconds == costs["unified"].seconds == pytest.approx(blocks / 100)
    assert costs["zero_copy"].requests == blocks
    assert ist.plan(ist.bfs, graph, source=0).edge_bytes == graph.arcs * 4, "bfs reads no weights"


def test_both_sides_count(directed: Any) -> None:
    one = ist.plan(ist.pagerank, directed)
    two = ist.plan(ist.core_number, directed)
    assert (one.edge_bytes, two.edge_bytes) == (directed.arcs * 4, directed.arcs * 8)


def test_the_most_demanding_pass_is_planned(graph: Any) -> None:
    plain = ist.plan(ist.sssp, graph, source=0)
    tree = ist.plan(ist.sssp, graph, source=0, predecessors=True)
    assert (plain.algorithm, plain.program.name) == ("sssp", "sssp")
    assert (tree.algorithm, tree.program.name) == ("sssp", "predecessors")
    assert tree.near.least > plain.near.least
    assert ist.plan(ist.pagerank, graph, weight=True).program.name == "pagerank"
    assert ist.plan(ist.php, graph, source=0, weight=True).program.name == "php"


def test_php_by_weight_fails_before_its_first_pass(graph: Any) -> None:
    least = ist.plan(ist.php, graph, source=0, weight=True).near.least
    seen: list[Any] = []
    with pytest.raises(BudgetError, match="php on"):
        ist.php(graph, source=0, weight=True, memory=least - 1, watch=seen.append)
    assert not seen


def test_no_edge_is_read(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Store.read

    def guarded(store: Any, name: str, *bounds: int) -> Any:
        assert not name.endswith((".targets", ".weights")), name
        return read(store, name, *bounds)

    monkeypatch.setattr(Store, "read", guarded)
    monkeypatch.setattr("isthmus.link.ssd.SsdLink.move", lambda *a: pytest.fail("an edge was read"))
    for algorithm, answer in JOBS.values():
        ist.plan(algorithm, graph, **answer, memory="10%")


def test_a_disk_that_was_not_measured_is_said_to_be_guessed(
    graph: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path))
    found = ist.plan(ist.bfs, graph, source=0, memory="1%")
    assert not found.summary()["link"]["measured"]
    raised, guessed = found.notes()
    assert raised.startswith("1% is below the minimum for this graph; using ")
    assert (
        guessed == f"the disk has not been measured, so seconds are guesses; isthmus calibrate {graph.path} measures it"
    )
    assert ("link", f"{found.profile} (not measured)") in found.describe()
    assert not list(tmp_path.iterdir()), "nothing is measured for a plan"


def test_rows_for_people(graph: Any) -> None:
    far = dict(ist.plan(ist.sssp, graph, source=0, memory="10%").describe())
    near = dict(ist.plan(ist.sssp, graph, source=0).describe())
    assert far["runs"].startswith("from ")
    assert near["runs"] == "in memory: all edges stay near"
    assert "  staging buffers" in far
    assert "  all edges" in near
    assert far["all in memory"] == near["all in memory"]


def test_a_graph_in_memory_and_a_program_of_ones_own() -> None:
    @ist.monotone(initial=2**31, combine="min", start=0)
    def hops(value: Any) -> Any:
        return value + 1

    with ist.generate("path", vertices=50) as path:
        found = ist.plan(functools.partial(ist.run, hops(source=0)), path)
        assert (found.algorithm, found.near.resident, found.summary()["graph"]["path"]) == ("hops", True, None)
        assert ist.plan(lambda graph, **how: ist.bfs(graph, 0, **how), path).algorithm == "bfs"


def test_mistakes(graph: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="which ran nothing"):
        ist.plan(lambda graph, **how: None, graph)
    with pytest.raises(OptionError, match="policy: expected one of"):
        ist.plan(ist.bfs, graph, source=0, policy="fast")
    with pytest.raises(OptionError, match="device: expected one of"):
        ist.plan(ist.bfs, graph, source=0, device="tpu")
    with (
        ist.ingest((np.array([1]), np.array([2])), tmp_path / "g.isthmus", in_edges=False) as one_way,
        pytest.raises(StoreError, match="follows in-edges"),
    ):
        ist.plan(ist.core_number, one_way)
