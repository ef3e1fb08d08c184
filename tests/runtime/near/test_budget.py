"""The memory budget: percentages, sizes, what is too little and what it says, and what a process really takes."""

from __future__ import annotations

import json
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard
from tests.processes import process

import isthmus as ist
from isthmus.cache.ranking import HOTNESS
from isthmus.devices import cpu
from isthmus.devices.cpu import Cpu, checksum_bytes
from isthmus.devices.cuda.device import CudaGpu
from isthmus.devices.model import device as model_device
from isthmus.devices.model.device import ModelledGpu
from isthmus.devices.model.figures import find
from isthmus.errors import BudgetError, OptionError
from isthmus.memory import format_size
from isthmus.runtime.near.budget import Split, most_staging, needs_of, split_budget, split_for

# With plain numbers: a graph of 1,000 vertices with 100 MB of targets and 200 MB of weights on each side.

EDGES = 100_000_000
STATE, LISTS, CHECKSUMS, FRONTIER = 24 * 1000 + 500, 8008, 8 * 300, 2 * 1000 + 4 * 2 * 4096
VERTEX = STATE + LISTS + CHECKSUMS + FRONTIER
LEAST_EDGES = 4 * 256 * 1024
ALL_EDGES = EDGES + 16 * 1000  # with what a program needs to solve in memory


class Numbers(SimpleNamespace):
    """A graph of which only the sizes are known."""

    vertices, target_bytes, weight_bytes, weighted, arcs = 1000, 4, 8, True, EDGES // 4
    staging_bytes = 0

    def slots(self, side: str) -> int:
        return {"out": self.arcs, "in": self.arcs // 2}[side]

    def list_bytes(self, side: str) -> int:
        return 8008

    def far(self, side: str, weights: bool) -> list[Any]:
        arrays = [SimpleNamespace(blocks=300, file=3), SimpleNamespace(blocks=600, file=3)]
        return [*arrays[: 1 + weights], SimpleNamespace(blocks=77, file=None)]

    def __str__(self) -> str:
        return "numbers"


def program(weights: bool = False, **changes: Any) -> Any:
    usual = {
        "name": "search",
        "sides": ("out",),
        "state_bytes": 24,
        "solve_bytes": 16,
        "max_iter": None,
        "runs_again": False,
        "needs_spare_memory": False,
        "follows_each_vertex_once": False,
        "reads_weights": lambda: weights,
        "table_bytes": lambda graph: 500,
    }
    return SimpleNamespace(**{**usual, **changes})


def figures(near_bytes: int, gpu: str = "") -> Any:
    known = find("rtx2080ti")
    near, managed = replace(known.near, bytes=near_bytes), replace(known.managed, page_bytes=65536)
    return replace(known, name="card", gpu=gpu, near=near, managed=managed)


def model_of(near_bytes: int) -> ModelledGpu:
    return ModelledGpu(figures(near_bytes), "card")


def gpu_of(near_bytes: int) -> CudaGpu:
    return CudaGpu(figures(near_bytes, "cuda:0"), "cuda:0", LazyCard())


def planned(
    memory: Any, policy: str = "filter", of: Any = None, graph: Any = None, device: Any = None, **changes: Any
) -> Split:
    of, graph, device = of or program(), graph or Numbers(), device or Cpu()
    needs = replace(needs_of(of, graph, device, 2), **changes)
    return split_budget(needs, memory, policy, device, f"{of.name} on {graph}")


def test_a_share_is_for_edges_and_the_rest_for_vertices() -> None:
    near = planned("10%")
    assert (near.state, near.offsets, near.frontier) == (STATE, LISTS + CHECKSUMS, FRONTIER)
    assert (near.budget, near.edges, near.cache, near.resident) == (VERTEX + EDGES // 10, EDGES // 10, 0, False)
    assert (near.least, near.whole, near.peak) == (VERTEX + LEAST_EDGES, VERTEX + ALL_EDGES, near.budget)
    assert near.as_dict() == {
        "budget": near.budget,
        "state": STATE,
        "offsets": LISTS + CHECKSUMS,
        "frontier": FRONTIER,
        "edges": EDGES // 10,
        "resident": False,
        "cache": 0,
    }


def test_what_a_program_reads_counts() -> None:
    assert planned("10%", of=program(weights=True)).edges == 3 * EDGES // 10
    assert planned("10%", of=program(weights=True)).offsets == LISTS + 3 * CHECKSUMS
    both = planned("10%", of=program(sides=("out", "in")))
    assert (both.edges, both.offsets) == (15 * EDGES // 100, 2 * (LISTS + CHECKSUMS))


def test_checksums_are_those_of_arrays_in_files() -> None:
    assert checksum_bytes(Numbers(), "out", False) == 8 * 300  # type: ignore[arg-type]
    assert checksum_bytes(Numbers(), "out", True) == 8 * 900  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "edges", "cache"),
    [
        (10, EDGES // 10, 0),  # as large as buffers may get, before anything is kept
        (50, 4 * 4 << 20, EDGES // 2 - (4 * 4 << 20)),  # enough for the buffers
        (90, EDGES * 9 // 40, EDGES * 27 // 40),  # a quarter for the buffers
        (300, EDGES * 3 // 4, EDGES),  # no more is kept than there is
    ],
)
def test_memory_to_spare_keeps_edges(share: int, edges: int, cache: int) -> None:
    near = planned(f"{share}%", keeps=True)
    assert (near.edges, near.cache) == (edges, cache)
    near = planned(f"{share}%", keeps=True, index=3000)
    assert (near.edges, near.cache, near.budget) == (edges, cache + 3000, VERTEX + 3000 + EDGES * share // 100)
    assert planned(f"{share}%", index=3000).cache == 0


def test_pages_have_their_part() -> None:
    near = planned("10%", pages=1_000_000)
    assert (near.edges, near.cache) == (EDGES // 10 - 1_000_000, 1_000_000)
    assert near.least == VERTEX + LEAST_EDGES + 1_000_000
    assert planned("10%", pages=1_000_000, keeps=True).cache == 1_000_000
    assert planned("50%", pages=1_000_000, keeps=True).cache == EDGES // 2 - (4 * 4 << 20)
    assert planned("200%", "auto", pages=1_000_000).cache == 0


def test_edges_are_resident_from_the_byte_on_that_holds_them() -> None:
    near = planned(VERTEX + ALL_EDGES, "auto", keeps=True)
    assert (near.resident, near.state, near.edges, near.cache) == (True, STATE + 16_000, EDGES, 0)
    assert near.peak == near.budget == near.whole
    assert not planned(VERTEX + ALL_EDGES - 1, "auto").resident
    assert not planned(VERTEX + ALL_EDGES, "filter").resident, "a recipe by name moves edges"
    assert planned(VERTEX + ALL_EDGES, "filter").state == STATE


def test_the_default_is_a_share_of_the_memory_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (cpu, model_device):
        monkeypatch.setattr(each, "available", lambda: 10**9)
    assert (planned(None).budget, planned(None).resident) == (600_000_000, True)
    assert planned(None, device=model_of(50_000_000)).budget == 50_000_000
    assert planned(None, device=model_of(10**12)).budget == 600_000_000
    assert planned(None, device=gpu_of(10**12)).budget == 10**12, "memory of the GPU, not of the host"


def test_a_gpu_cannot_be_given_more_memory_than_it_has() -> None:
    words = r"got 60 kB\. cuda:0 has 60 kB free; use device='cpu', or end other programs on the GPU$"
    for memory in (None, 60_000):
        with pytest.raises(BudgetError, match=words):
            planned(memory, device=gpu_of(60_000))
    with pytest.raises(BudgetError, match=r"Give memory='1MB' or more$"):
        planned(60_000, device=gpu_of(10**9))
    with pytest.raises(BudgetError, match=r"Give memory='1MB' or more$"):  # a modelled device can be given more
        planned(60_000, device=model_of(60_000))


def test_a_modelled_device_has_smaller_buffers_one_queue_and_no_checksums() -> None:
    near, frontier = planned("10%", device=model_of(10**9)), FRONTIER - 4 * 4096
    least = STATE + LISTS + frontier + 4 * (80 << 10)
    assert (near.offsets, near.frontier, near.edges, near.least) == (LISTS, frontier, EDGES // 40, least)
    assert planned("1%", device=model_of(10**9)).edges == 4 * (80 << 10), "more than a quarter"


def test_the_least_that_works_is_exact() -> None:
    with pytest.raises(
        BudgetError,
        match=(
            r"^search on numbers needs at least 1\.12 MB near memory \(vertex state 69\.7 kB\); got 1\.12 MB\. Give "
            r"memory='2MB' or more$"
        ),
    ):
        planned(VERTEX + LEAST_EDGES - 1)
    near = planned(VERTEX + LEAST_EDGES)
    assert (near.least, near.edges, near.notes) == (near.budget, LEAST_EDGES, [])
    assert planned("2MB").budget == 2_000_000


def test_the_least_for_a_few_edges_is_all_of_them_and_room_to_align_them() -> None:
    few = planned("100%", graph=Numbers(arcs=250))
    assert few.least == VERTEX + 1000 + 4 * 24 * 4096
    assert few.whole == max(few.least, VERTEX + 1000 + 16_000)
    assert few.notes == ["100% is below the minimum for this graph; using 394 kB for edges"]


def test_a_share_of_exactly_the_least_needs_no_note() -> None:
    assert planned("50%", graph=Numbers(arcs=LEAST_EDGES // 2)).notes == []
    blank = planned(" 49 % ", graph=Numbers(arcs=LEAST_EDGES // 2))
    assert blank.notes == ["49 % is below the minimum for this graph; using 1.05 MB for edges"]


@pytest.mark.parametrize(("edge_bytes", "most"), [(0, 1 << 20), (10**6, 10**6 + (1 << 20)), (10**9, 128 << 20)])
def test_more_staging_than_a_few_tasks_is_of_no_use(edge_bytes: int, most: int) -> None:
    assert most_staging(edge_bytes) == most
    assert planned("300%").edges == EDGES + (1 << 20)


def recipe_of(**changes: Any) -> Any:
    facts = {"cache": "partitions", "keeps": True, "pages": False, **changes}
    return SimpleNamespace(**facts, keeps_lists=facts["cache"] == "vertices")


def split_by(recipe: Any, of: Any = None, memory: Any = "90%", model: Any = None) -> Split:
    return split_for(of or program(), Numbers(), recipe, model or Cpu(), memory, 2, "filter")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "changes", "keeps"),
    [
        ({}, {}, True),
        ({"keeps": False}, {}, False),
        ({}, {"needs_spare_memory": True}, False),
        ({}, {"max_iter": 1}, False),  # one pass uses every edge once
        ({}, {"max_iter": 1, "runs_again": True}, True),
        ({}, {"max_iter": 2}, True),
        ({"pages": True}, {"max_iter": 1}, True),
        ({}, {"follows_each_vertex_once": True}, True),  # partitions hold many vertices
        ({"cache": "vertices"}, {"follows_each_vertex_once": True}, False),
        ({"cache": "vertices"}, {}, True),
    ],
)
def test_edges_are_kept_if_they_can_be_used_again(recipe: dict[str, Any], changes: dict[str, Any], keeps: bool) -> None:
    near = split_by(recipe_of(**recipe), program(**changes))
    index = HOTNESS.index_bytes * 1000 if recipe.get("cache") == "vertices" else 0
    assert near.cache == ((EDGES * 27 // 40 + index) if keeps else 0)
    assert near.notes == []


def test_from_disk_pages_are_64_blocks_at_least() -> None:
    assert split_by(recipe_of(pages=True, keeps=False)).cache == 64 * 4096


def test_on_a_modelled_device_each_array_has_a_page() -> None:
    card = model_of(10**9)
    pages = recipe_of(pages=True, keeps=False)
    plain = split_by(pages, memory="10%", model=card)
    assert plain.cache == 2 * 65536, "its page, and room for what the last page has too much"
    assert split_by(pages, program(weights=True), "10%", card).cache == 4 * 65536
    assert split_by(pages, program(sides=("out", "in")), "10%", card).cache == 4 * 65536
    tight = split_by(pages, memory=plain.least, model=card)
    assert (tight.cache, tight.peak) == (65536, plain.least), "no more than the budget"
    assert split_by(recipe_of(keeps=False), memory="10%", model=card).cache == 0


def test_a_modelled_device_says_what_its_memory_cannot_do() -> None:
    small = "the budget leaves no room to keep edges near"
    assert split_by(recipe_of(), memory="0.1%", model=model_of(10**9)).notes[1:] == [small]
    assert split_by(recipe_of(cache="vertices"), memory="0.1%", model=model_of(10**9)).notes[1:] == [small]
    assert split_by(recipe_of(keeps=False), memory="0.1%", model=model_of(10**9)).notes[1:] == []
    assert split_by(recipe_of(), memory="10%", model=model_of(10**9)).notes == []
    assert split_by(recipe_of(), memory="10MB", model=model_of(10**7)).notes == []
    more = split_by(recipe_of(), memory="11MB", model=model_of(10**7))
    assert more.notes == ["the budget is more than the 10 MB of memory of card"]


# On real graphs.


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
    assert result.trace.notes == [f"1% is below the minimum for this graph; using {format_size(room)} for edges"]


def test_all_of_the_edges_stay_near_when_they_fit(graph: Any) -> None:
    for memory in ("150%", "1GB", None):
        result = ist.bfs(graph, 0, memory=memory)
        assert split(result)["resident"]
        assert result.summary()["policy"] == "resident"
    assert ist.bfs(graph, 0, memory="1GB").summary()["memory"]["budget"] == 10**9


def test_too_little_names_the_least_that_works(graph: Any) -> None:
    """And that least does work, on every engine."""
    with pytest.raises(
        BudgetError, match=r"sssp on <Graph: .*> needs at least .* near memory \(vertex state .*\); got 10 kB"
    ) as caught:
        ist.sssp(graph, 0, memory="10kB")
    least = str(caught.value).split("memory='")[1].split("'")[0]
    expected = ist.sssp(graph, 0).values
    for policy in ("filter", "emogi", "auto"):
        result = ist.sssp(graph, 0, memory=least, policy=policy)
        assert np.array_equal(result.values, expected)
        assert split(result)["near_peak"] <= split(result)["budget"]


@pytest.mark.parametrize(
    "run",
    [
        lambda g, **how: ist.bfs(g, 0, predecessors=True, **how),
        lambda g, **how: ist.sssp(g, 0, predecessors=True, **how),
        lambda g, **how: ist.pagerank(g, weight=True, **how),
        lambda g, **how: ist.pagerank(g, weight=True, dangling={0: 1}, **how),
    ],
)
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


@pytest.mark.parametrize(
    ("algorithm", "policy", "memory"),
    [
        ("pagerank", "filter", "10%"),
        ("bfs", "emogi", "10%"),
        ("weakly_connected_components", "filter", "10%"),
        ("bfs", "subway", "10%"),
        ("pagerank", "unified", "60%"),
        ("pagerank", "auto", "60%"),
        ("sssp", "hytgraph", "60%"),
    ],
)
def test_a_process_stays_within_its_promise(large: Path, algorithm: str, policy: str, memory: str) -> None:
    options = {"bfs": ["--source", "0", "--predecessors"], "sssp": ["--source", "0"], "pagerank": ["--tol", "0.1"]}.get(
        algorithm, []
    )
    outcome = process("run", algorithm, large, *options, "--memory", memory, "--policy", policy, "--json", timeout=120)
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


@pytest.mark.parametrize(
    "name",
    [
        "core_number",
        "label_propagation",
        "weakly_connected_components",
        "strongly_connected_components",
        "minimum_spanning_forest",
        "triangle_count",
        "pagerank",
    ],
)
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


def test_what_a_link_takes_beside_its_buffers_counts() -> None:
    graph = Numbers(staging_bytes=12_345)
    plain, staged = (planned("10%", "auto", graph=each) for each in (Numbers(), graph))
    assert staged.offsets - plain.offsets == staged.budget - plain.budget == staged.least - plain.least == 12_345
