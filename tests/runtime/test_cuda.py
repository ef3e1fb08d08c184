"""A run on a GPU: order of its work, memory on every path, and what is refused. See also conformance/test_cuda.py."""

from __future__ import annotations

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
from isthmus.runtime import cuda, device

RECIPES = ("filter", "subway", "emogi", "emogi:hot", "scaph", "scaph:hbase", "hytgraph", "auto")


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


@pytest.mark.parametrize("recipe", ["filter", "subway"])
def test_a_wait_that_is_missing_is_found(use: Any, graph: Any, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests would see if kernels did not wait for copies, or buffers not for kernels."""
    use()
    expected = ist.sssp(graph, 1).filled()
    for owner, name in ((CudaLink, "_finish"), (CardSpace, "finish")):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, lambda self: None)
            try:
                found = ist.sssp(graph, 1, **{**HOW, "policy": recipe}).filled()
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
        with pytest.raises(BudgetError, match="not enough GPU memory"):
            ist.sssp(graph, 1, **{**HOW, "policy": recipe})
        assert card.held == {}
        failed += 1
    assert failed >= 5


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


def test_a_small_card_has_a_small_budget(use: Any, graph: Any) -> None:
    use(bytes=device.SPARE + 4000)
    with pytest.raises(BudgetError, match="needs at least"):
        ist.bfs(graph, 1, device="cuda:0")


def test_what_does_not_run_there_yet_is_refused(use: Any, graph: Any) -> None:
    use()
    with pytest.raises(OptionError, match=r"^policy: unified reads pages of managed memory, which does not run on a GPU yet"):
        ist.bfs(graph, 1, **{**HOW, "policy": "unified"})


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
