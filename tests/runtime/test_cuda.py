"""A run on a GPU: order of its work, memory on every path, and what is refused. See also conformance/test_cuda.py."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard
from tests.programs.ways import columns, skewed

import isthmus as ist
from isthmus.errors import BudgetError, OptionError
from isthmus.kernels.cuda import shim
from isthmus.link.card_space import CardSpace
from isthmus.link.cuda import CudaLink
from isthmus.runtime import cuda, desk, device

RECIPES = ("filter", "subway", "emogi", "emogi:hot", "unified", "grus", "scaph", "scaph:hbase", "hytgraph", "auto")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, sized: Any) -> Any:
    """Make a card the machine's only GPU, and lists longer than buffers."""
    sized(smallest_partition=4096, least_buffer=1024, few_edges=16, alone=64, piece=300, smallest_queue=3)

    def card(**options: Any) -> LazyCard:
        made = LazyCard(**options)
        monkeypatch.setattr(shim, "found", lambda: ([shim.Found(0, "lazy", (8, 0))], ""))
        monkeypatch.setattr(device, "open_card", lambda number: made)
        return made

    return card


@pytest.fixture(scope="module")
def graph() -> Any:
    return ist.read(columns(skewed()), vertices=400)


HOW: dict[str, Any] = {"device": "cuda:0", "policy": "filter", "memory": "1%", "threads": 2}


def test_kernels_of_a_delivery_follow_its_copies(use: Any, graph: Any) -> None:
    card = use()
    result = ist.bfs(graph, 1, **HOW)
    assert "costs and modelled seconds are those of RTX 2080 Ti: this GPU's link was not measured" in result.trace.notes
    done = [(work.kind, work.name) for work in card.done]
    first = done.index(("launch", "sort_range")) if ("launch", "sort_range") in done else done.index(("launch", "sort_rows"))
    assert ("copy", "copy") in done[:first]
    assert [name for kind, name in done if kind == "launch"][:2] == ["fill", "sort_rows"]
    pushes = [k for k, (_, name) in enumerate(done) if name == "push"]
    assert done[pushes[0] : pushes[0] + 3] == [("launch", "push")] * 3  # one for each kind of row
    assert card.held == {}


def until(most: int) -> Any:
    """A watch that ends a run after some iterations: a frontier of rubbish may never be empty."""
    left = iter(range(most))

    def watch(iteration: Any) -> None:
        assert next(left, None) is not None, "the run does not end"

    return watch


@pytest.mark.parametrize("recipe", ["filter", "subway"])
def test_a_wait_that_is_missing_is_found(use: Any, graph: Any, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests would see if kernels did not wait for copies, or buffers not for kernels."""
    use()
    expected = ist.sssp(graph, 1).filled()
    for owner, name in ((CudaLink, "_finish"), (CardSpace, "finish")):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, lambda self: None)
            try:
                found = ist.sssp(graph, 1, **{**HOW, "policy": recipe}, watch=until(500)).filled()
            except (AssertionError, IndexError):
                continue
            assert not np.array_equal(found, expected)


@pytest.mark.parametrize("recipe", RECIPES)
def test_memory_is_freed_whichever_allocation_fails(use: Any, graph: Any, recipe: str) -> None:
    card = use()
    ist.sssp(graph, 1, **{**HOW, "policy": recipe})
    most, failed = card.taken, 0
    for count in range(0, most, max(1, most // 12)):
        card = use(fails_at=count)
        with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
            ist.sssp(graph, 1, **{**HOW, "policy": recipe})
        assert card.held == {}
        failed += 1
    assert failed >= 5


@pytest.mark.parametrize("recipe", ["hytgraph", "emogi:hot"])
def test_caches_that_outlive_a_run_let_go_of_its_memory(use: Any, graph: Any, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    movers: list[Any] = []

    class Mover(cuda.ListMover):
        def __init__(self, rows: Any) -> None:
            super().__init__(rows)
            movers.append(weakref.ref(self))

    monkeypatch.setattr(cuda, "ListMover", Mover)
    with ist.session(graph, **{**HOW, "policy": recipe, "memory": "40%"}) as session:
        for _ in range(2):
            session.pagerank()
            gc.collect()
            assert [mover for mover in movers if mover() is not None] == []
    assert len(movers) == 2


def test_memory_is_freed_after_an_error_in_the_middle(use: Any, graph: Any) -> None:
    card = use()

    def stop(iteration: Any) -> None:
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        ist.pagerank(graph, watch=stop, **HOW)
    assert card.held == {}


def test_edges_that_fit_stay_on_the_device_from_run_to_run(use: Any, graph: Any) -> None:
    card = use()
    with ist.session(graph, device="cuda:0") as session:
        session.bfs(1)
        before = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8)
        assert before == graph.edge_bytes
        card.record_of.clear()
        session.weakly_connected_components()
        assert not [work for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8 and work.bytes > 1000]
        assert card.held
    assert card.held == {}


def test_networks_run_there_too(use: Any) -> None:
    card = use()
    network = ist.read(([0, 0, 1, 2, 3], [2, 3, 3, 4, 4], [0.5, 1.0, 2.0, 1.5, 0.25]), vertices=5)
    given = ([[1.0, 2.0], [0.5, -1.0]],)
    expected = ist.nn_inference(network, *given, layers=[2, 2, 1])
    for memory in ("1%", None):
        found = ist.nn_inference(network, *given, layers=[2, 2, 1], device="cuda:0", policy="filter", memory=memory)
        for name in expected.columns:
            assert np.allclose(found[name], expected[name])
    assert card.held == {}


@pytest.mark.parametrize(("recipe", "advice", "prefetches"), [
    ("unified", "", False), ("unified:read-mostly", "read-mostly", False), ("unified:preferred-location", "preferred-location", False),
    ("unified:prefetch+read-mostly", "read-mostly", True), ("unified:prefetch", "", True), ("grus", "accessed-by", True),
])  # fmt: skip
def test_managed_edges_are_advised_and_prefetched_before_kernels_read_them(
    use: Any, graph: Any, recipe: str, advice: str, prefetches: bool
) -> None:
    card = use()
    expected = ist.sssp(graph, 1).filled()
    how = {**HOW, "policy": recipe, "memory": "90%" if recipe == "grus" else "30%", "threads": 1}  # it prefetches half of what is left
    result = ist.sssp(graph, 1, **how)
    assert np.array_equal(result.filled(), expected)
    assert card.advice == [(graph.arcs * 4, advice)]
    kinds = [work.kind for work in card.done]
    assert ("prefetch" in kinds) == prefetches
    assert "copy" not in kinds or "prefetch" not in kinds[kinds.index("launch") :]
    model = ist.sssp(graph, 1, **{**how, "device": "model:rtx2080ti"}).summary()
    assert result.summary()["transfer"].pop("row_bytes") > 0
    assert (result.summary()["transfer"], result.summary()["engines"]) == (model["transfer"], model["engines"])
    if recipe == "unified:prefetch":  # all pages, whatever fits
        assert sum(work.bytes for work in card.done if work.kind == "prefetch") == graph.edge_bytes
    assert "pages, faults and evictions are modelled: a GPU does not report them" in result.trace.notes
    copied = sum(work.bytes for work in card.record_of if work.kind == "copy" and work.writes[0].dtype == np.uint8)
    assert copied == 0 and card.held == {}


def test_a_small_card_has_a_small_budget(use: Any, graph: Any) -> None:
    use(bytes=device.SPARE + 4000)
    with pytest.raises(BudgetError, match="needs at least"):
        ist.bfs(graph, 1, device="cuda:0")


class Viewing(ist.Program):
    """Holds a view of its state, which a device would not keep current."""

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Any) -> Any:
        return ist.Functions(lambda u, degree, state, params: 0, lambda x, u, v, w, state, params: False)

    def begin(self, facts: Any) -> Any:
        values = np.zeros(facts.vertices)
        self.half = values[:10]
        return ist.State((values,), None)

    def result(self, state: Any, facts: Any) -> Any:
        return {"value": state.arrays[0]}


def test_views_of_the_state_are_refused_and_the_arrays_themselves_exchanged() -> None:
    program = Viewing()
    state = program.begin(type("Facts", (), {"vertices": 20}))
    with pytest.raises(OptionError, match="does not run on a GPU yet"):
        cuda.refuse_views(program, state)
    program.half = state.arrays[0]
    cuda.refuse_views(program, state)
    fresh = (np.ones(20),)
    cuda.exchange(program, state, fresh)
    assert program.half is state.arrays[0] is fresh[0]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.ingest(columns(skewed()), tmp_path_factory.mktemp("disk") / "g.isthmus", vertices=400) as store:
        yield store


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe not in ("unified", "grus")])
@pytest.mark.parametrize("memory", ["1%", None])
def test_a_store_larger_than_host_memory_is_read_from_disk(use: Any, store: Any, sized: Any, recipe: str, memory: Any) -> None:
    card = use()
    sized(pinned=4096)
    how = {**HOW, "policy": recipe, "memory": memory}
    for name in ("sssp", "weakly_connected_components", "pagerank"):
        arguments = (1,) if name == "sssp" else ()
        expected = getattr(ist, name)(store, *arguments, device="cpu")
        result = getattr(ist, name)(store, *arguments, **how, far="disk")
        assert np.allclose(result.filled(), expected.filled(), atol=1e-5), name
        assert [note for note in result.trace.notes if note.startswith("edges are read from disk through 65.5 kB of page-locked memory")]
        assert card.held == {}
    if recipe == "filter":
        model = ist.sssp(store, 1, **{**how, "device": "model:rtx2080ti"}).summary()
        moved = ist.sssp(store, 1, **how, far="disk").summary()["transfer"]
        assert moved.pop("row_bytes") > 0
        assert moved == model["transfer"]


def test_the_host_s_memory_decides_where_edges_come_from(use: Any, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use()
    said = "of page-locked memory for each reader"
    for free, far, from_disk in ((1 << 40, "auto", False), (store.edge_bytes, "auto", True), (store.edge_bytes, "ram", False)):
        monkeypatch.setattr(desk, "available", lambda free=free: free)
        notes = ist.sssp(store, 1, **HOW, far=far).trace.notes
        assert any(said in note for note in notes) == from_disk
    with pytest.raises(OptionError, match=r"^policy: pages of managed memory need all edges in host memory"):
        ist.sssp(store, 1, **{**HOW, "policy": "unified"}, far="disk")


def test_edges_on_disk_need_a_store_and_no_modelled_device(use: Any, graph: Any, store: Any) -> None:
    use()
    with pytest.raises(OptionError, match=r"^far: expected a graph in a store, and no modelled device, for far='disk'; got <Graph"):
        ist.bfs(graph, 1, **HOW, far="disk")
    with pytest.raises(OptionError, match=r"got device model:rtx2080ti, whose edges are in host memory"):
        ist.bfs(store, 1, device="model:rtx2080ti", far="disk")
    with pytest.raises(OptionError, match=r"^far: expected auto, ram or disk, got 'tape'"):
        ist.bfs(store, 1, far="tape")
    assert ist.bfs(store, 1, device="cpu", far="disk").summary()["device"] == "cpu"


@pytest.mark.parametrize("recipe", ["filter", "subway", "emogi"])
def test_memory_between_disk_and_gpu_is_freed_whichever_allocation_fails(use: Any, store: Any, recipe: str) -> None:
    card = use()
    how = {**HOW, "policy": recipe, "far": "disk"}
    ist.sssp(store, 1, **how)
    most = card.taken
    for count in range(0, most, max(1, most // 8)):
        card = use(fails_at=count)
        with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
            ist.sssp(store, 1, **how)
        assert card.held == {}


@pytest.mark.parametrize("recipe", ["filter", "emogi", "hytgraph"])
@pytest.mark.parametrize("memory", ["1%", None])
def test_values_and_parents_agree(use: Any, graph: Any, recipe: str, memory: Any) -> None:
    """Every reached vertex but the source has a parent, along an edge that makes its distance."""
    card = use()
    for search in (ist.bfs, ist.sssp):
        result = search(graph, 1, predecessors=True, **{**HOW, "policy": recipe, "memory": memory})
        expected = search(graph, 1, device="cpu").filled()
        distance, tree = result.filled(), result["predecessor"]
        assert np.array_equal(distance, expected)
        for v, u in enumerate(tree):
            if u is None:
                assert v == 1 or distance[v] == np.iinfo(np.int64).max
            else:
                assert graph.has_edge(int(u), v) and distance[u] < distance[v]
    assert card.held == {}
