"""Streams on a GPU: after every batch the answers of a modelled device, the same bytes, and no memory that is not
freed.

`LazyCard` (tests/gpus.py) runs them without a GPU; with NUMBA_ENABLE_CUDASIM=1 one also goes through numba-cuda's
simulator. Tests `devices/cuda/residency.py` and `devices/cuda/chunks.py`.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.conformance.test_cuda import card, tight
from tests.devices.cuda.test_ranking import Weighed
from tests.devices.model.test_residency import filled, programs
from tests.gpus import FailingCard, LazyCard
from tests.stream.edits import Model

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda import gpu_space, list_mover
from isthmus.devices.cuda import residency as cuda_residency
from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.devices.cuda.kernels import skeleton
from isthmus.devices.cuda.residency import CudaResidency, address
from isthmus.devices.cuda.vertex_list import DeviceVertexList
from isthmus.errors import BatchError, BudgetError
from isthmus.kernels.compile import cuda_module
from isthmus.kernels.stream import correction
from isthmus.policies.stream_recipes import RECIPES
from isthmus.stream.maintain.monotone import MaintainedMonotone

__all__ = ["card", "tight"]  # fixtures
GPU, MODEL = "cuda:0", "model:rtx2080ti"
POLICIES = (*RECIPES, "auto:resend", "grapin:resend", "grapin-page:resend")
FAR_WIDTHS = skeleton.far_widths


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread follows each short row, so edges come in the model's order, and of parents that are equally good the
    same one is kept.

    Corrections of later batches read what depends on it. Requests are counted as by a warp, either way.
    """
    monkeypatch.setattr(skeleton, "far_widths", lambda line: skeleton.WIDTHS)


@pytest.mark.parametrize("policy", ["auto", "grapin-zc"])
def test_answers_do_not_depend_on_the_order_of_edges(
    policy: str, card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skeleton, "far_widths", FAR_WIDTHS)
    model = Model(2, 60)
    graph = model.graph()
    with ist.stream(graph, programs(model.source), device=GPU, policy=policy, memory="60%") as there:
        for _ in range(6):
            there.apply(**model.batch())
            assert there.check() == {}
    assert card.held == {}


def figures(transfer: Any) -> dict[str, Any]:
    """What does not depend on this machine's speed."""
    return {**transfer.as_dict(), "upkeep_seconds": 0}


def batches(
    model: Model, policy: str, memory: str, wanted: list[Any], count: int = 6
) -> Iterator[tuple[Any, Any, Any]]:
    """(on the GPU, on the modelled device, and number of the batch), after every batch."""
    graph = model.graph()
    how: dict[str, Any] = {"policy": policy, "memory": memory}
    with (
        ist.stream(graph, wanted, device=GPU, **how) as there,
        ist.stream(graph, wanted, device=MODEL, **how) as modelled,
    ):
        assert figures(there.opened) == figures(modelled.opened)
        assert there.device == GPU
        for number in range(count):
            batch = model.batch()
            found, expected = (live.apply(**batch).transfer for live in (there, modelled))
            assert figures(found) == figures(expected), number
            yield there, modelled, number
        assert there.check() == {}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("seed", "memory"), [(1, "10%"), (2, "60%"), (4, "0%"), (6, "200%")])
def test_answers_and_bytes_are_those_of_the_modelled_device(
    policy: str, seed: int, memory: str, card: LazyCard, tight: None
) -> None:
    """Also when vertices come and go."""
    model = Model(seed, 60)
    for there, modelled, number in batches(model, policy, memory, programs(model.source)):
        for name in modelled:
            assert filled(there[name]) == filled(modelled[name]), (name, number)
    assert card.held == {}


@pytest.mark.parametrize("policy", ["auto", "grapin"])
@pytest.mark.parametrize("seed", range(6))
def test_near_lists_are_what_far_memory_has(policy: str, seed: int, card: LazyCard, tight: None) -> None:
    """Entry by entry: lists that were patched, lists that moved, and lists that had to find another place."""
    model, held = Model(seed, 40), 0
    for there, _, _ in batches(model, policy, "80%", [ist.SSSP(source=model.source)], 12):
        hot = there.context.residency.hot
        for side in hot.names:
            begins, ends, targets, weights = there.graph.sides[side].arrays()
            for v in np.flatnonzero(hot.marks_of(side, there.graph.vertices)).tolist():
                at, length = int(hot.chunks.begins[hot.offset(side) + v]), int(ends[v] - begins[v])
                assert hot.chunks.targets[at : at + length].tolist() == targets[begins[v] : ends[v]].tolist()
                assert (
                    hot.chunks.weights is None
                    or (hot.chunks.weights[at : at + length] == weights[begins[v] : ends[v]]).all()
                )
                held += 1
    assert held > 0


def skewed() -> tuple[Any, list[dict[str, Any]]]:
    """A graph of some thousand edges with lists of all lengths, and batches."""
    draw = np.random.default_rng(5)
    ends = [draw.integers(0, 600, 9000) ** 2 // 600 for _ in range(2)]
    graph = ist.read((*ends, draw.integers(1, 99, 9000).astype(np.int32)), directed=False, parallel="min")
    found = []
    for _ in range(4):
        gone = draw.integers(0, 9000, 60)
        inserts = (draw.integers(0, 600, 60), draw.integers(0, 600, 60), draw.integers(1, 99, 60).astype(np.int32))
        found.append({"inserts": inserts, "deletes": (ends[0][gone], ends[1][gone])})
    return graph, found


@pytest.mark.parametrize("policy", ["auto", "grapin", "grapin-page"])
def test_long_lists_are_followed_as_on_the_modelled_device(policy: str, card: LazyCard, tight: None) -> None:
    graph, changes = skewed()
    how: dict[str, Any] = {"policy": policy, "memory": "30%", "threads": 1}
    wanted = [ist.SSSP(source=0), ist.WeaklyConnectedComponents()]
    with (
        ist.stream(graph, wanted, device=GPU, **how) as there,
        ist.stream(graph, wanted, device=MODEL, **how) as modelled,
    ):
        for batch in changes:
            found, expected = (live.apply(**batch) for live in (there, modelled))
            assert figures(found.transfer) == figures(expected.transfer)
            assert found.programs == expected.programs
        assert there.check() == {}


@pytest.mark.parametrize("policy", RECIPES)
def test_lists_of_all_lengths_are_followed_at_once(policy: str, card: LazyCard, tight: None) -> None:
    """As on a GPU: with one, 32 or 256 threads a list, in any order, from live values."""
    card.repeats = card.in_order = False
    graph, changes = skewed()
    wanted = [ist.SSSP(source=0), ist.BFS(source=0), ist.WeaklyConnectedComponents(), ist.WidestPath(source=0)]
    with ist.stream(graph, wanted, device=GPU, policy=policy, memory="30%") as live:
        for batch in changes:
            live.apply(**batch)
            assert live.check() == {}
        widths = {int(work.arguments[7]) for work in card.record_of if work.name in ("hear", "orphan_children")}
    assert widths == (set() if policy == "grapin-recompute" else {1, 32, 256})


def test_wrong_values_are_found_by_kernels(card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop of the processor corrects them, and the state stays on the card."""
    graph, changes = skewed()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU) as live:
        for name in ("orphan_heads", "orphan_children", "reset"):
            monkeypatch.delattr(correction, name)
        state = live.batches.programs["sssp"].state.arrays
        assert all(id(array) in card.held for array in state)
        card.record_of.clear()
        live.apply(**changes[0])
        done = {work.name for work in card.record_of}
        assert {"orphan_heads", "orphan_children", "give_up", "hear", "send"} <= done
        assert all(now is then for now, then in zip(live.batches.programs["sssp"].state.arrays, state, strict=True)), (
            "it stays where it is"
        )
        assert live.check() == {}


def test_kernels_read_near_lists(card: LazyCard, tight: None) -> None:
    """The lists of the hot subgraph are followed where they are, not in the host's memory."""
    model, followed = Model(2, 60), 0
    for there, _, _ in batches(model, "auto", "200%", programs(model.source)):
        near = there.context.residency.hot.chunks.targets
        pushed = [
            array
            for work in card.record_of
            if work.name == "push"
            for array in work.writes
            if array.dtype == near.dtype
        ]
        followed += sum(np.shares_memory(near, array) for array in pushed)
        card.record_of.clear()
    assert followed > 0


def test_edges_are_not_copied_for_a_batch(card: LazyCard, tight: None) -> None:
    """Arrays of the graph are registered where they are, until the graph replaces them."""
    draw = np.random.default_rng(5)
    graph = ist.read((draw.integers(0, 600, 9000), draw.integers(0, 600, 9000)), directed=True, parallel="drop")
    with ist.stream(graph, [ist.BFS(source=0)], device=GPU, policy="grapin-zc") as live:
        assert any(np.shares_memory(array, live.graph.sides["out"].targets) for array in card.held.values())
        card.record_of.clear()
        live.apply(inserts=(draw.integers(0, 600, 20), draw.integers(0, 600, 20)))
        assert sum(work.bytes for work in card.record_of if work.kind == "copy") < graph.edge_bytes
        live.apply(inserts=(draw.integers(0, 600, 9000), draw.integers(0, 600, 9000)))  # the graph needs larger arrays
        assert live.check() == {}
    assert card.held == {}


def test_a_batch_that_is_undone_leaves_nothing_near(
    card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(2, 60)
    with ist.stream(model.graph(), [ist.SSSP(source=model.source)], device=GPU, memory="60%") as live:
        live.apply(**model.batch())
        compute = MaintainedMonotone.compute

        def fail(self: Any, change: Any) -> None:
            compute(self, change)
            raise RuntimeError("stopped")

        with monkeypatch.context() as patched:
            patched.setattr(MaintainedMonotone, "compute", fail)
            with pytest.raises(RuntimeError, match="stopped"):
                live.apply(inserts=[(model.source, v, 1) for v in sorted(model.vertices)[1:9]])
        for _ in range(3):
            live.apply(**model.batch())
            assert live.check() == {}
    assert card.held == {}


@pytest.mark.parametrize("undone", [False, True])
def test_edges_that_the_graph_replaces_between_batches_are_managed_again(
    undone: bool, card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When vertices leave, or a batch is undone, lists may move to other arrays: these are never page-locked."""
    monkeypatch.setattr(card, "register", None)
    graph, changes = skewed()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU, memory="60%", policy="grapin-page") as live:
        name = "revert" if undone else "renumber"
        change = getattr(live.graph, name)

        def replacing(*given: Any) -> None:
            side = live.graph.sides["out"]
            side._remake(2 * side.slots, np.empty(0, np.int64))
            change(*given)

        with monkeypatch.context() as patched:
            patched.setattr(live.graph, name, replacing)
            if undone:
                patched.setattr(MaintainedMonotone, "compute", lambda self, change: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    live.apply(**changes[0])
            else:
                live.apply(remove_vertices=[5])
        reads = live.context.residency
        assert isinstance(reads, CudaResidency)
        _, _, targets, weights = live.graph.sides["out"].arrays()
        assert set(reads._registered) == {address(targets), address(weights)}
        for batch in changes:
            live.apply(**batch)
            assert live.check() == {}
    assert card.held == {}


def test_edges_that_found_no_managed_memory_are_page_locked_until_there_is_some(card: LazyCard, tight: None) -> None:
    graph, changes = skewed()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU, memory="60%", policy="grapin-page") as live:
        reads, side = live.context.residency, live.graph.sides["out"]
        assert isinstance(reads, CudaResidency)
        side._remake(side.slots, np.empty(0, np.int64))
        live.graph._take_snapshot()
        card.fails_at = card.taken
        reads.forget()
        card.fails_at = None
        assert address(reads._far(side.targets)) == address(side.targets)
        assert card.far, "page-locked"
        live.apply(**changes[0])
        assert not card.far and live.check() == {}
    assert card.held == {}


def test_edges_that_another_session_has_locked(card: LazyCard, tight: None) -> None:
    graph, changes = skewed()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU, policy="grapin-zc") as live:
        reads = live.context.residency
        assert isinstance(reads, CudaResidency)
        reads._unregister(list(reads._registered))
        # as it may, when the graph has just replaced them.
        other = card.register(live.graph.sides["out"].targets.view(np.uint8))
        with pytest.raises(
            BatchError, match="another session has page-locked this stream's edges; close it; nothing was applied"
        ):
            live.apply(**changes[0])
        card.free(other)
        live.apply(**changes[0])
        assert live.check() == {}
    assert card.held == {}


def test_columns_are_freed_after_the_work_on_them_if_the_caller_fails(card: LazyCard, tight: None) -> None:
    graph, _ = skewed()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU, policy="grapin-zc") as live:
        reads = live.context.residency
        assert isinstance(reads, CudaResidency)
        with pytest.raises(RuntimeError, match="stopped"):
            for (near,) in reads.uploaded([np.arange(9)], (np.int64,)):
                reads.launch(reads._rows.kernels.fill, near, 0)
                raise RuntimeError("stopped")
        with pytest.raises(RuntimeError, match="stopped"):
            for (near,) in reads._rows.parts([np.arange(9)]):
                reads.launch(reads._rows.kernels.fill, near, 0)
                raise RuntimeError("stopped")
        assert not card._waiting()
    assert card.held == {}


@pytest.mark.parametrize("policy", ["auto", "grapin", "grapin-zc"])
def test_a_budget_is_for_all_near_memory(
    policy: str, card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except the room for rows, and to move lists. Vertices that come later take what lists leave; the rest comes on
    top.
    """
    monkeypatch.setattr(gpu_space, "ROOM", 1)
    monkeypatch.setattr(list_mover, "WINDOW", 1)
    draw, weighed = np.random.default_rng(3), Weighed()
    monkeypatch.setattr(cuda_device, "open_card", lambda number: weighed)
    graph = ist.read((draw.integers(0, 2000, 40_000), draw.integers(0, 2000, 40_000)), directed=True, parallel="drop")
    budget = 1_500_000
    with ist.stream(graph, [ist.BFS(source=0)], device=GPU, policy=policy, memory=budget) as live:
        assert live.near_peak <= budget
        live.apply(inserts=(draw.integers(0, 2000, 900), draw.integers(0, 2000, 900)))
        assert weighed.most <= budget
        live.apply(inserts=(draw.integers(0, 2000, 900), np.arange(900) + 2000))
        assert live.check() == {} and live.near_peak <= budget
    assert weighed.held == {}


class FullOnce(LazyCard):
    """Memory is full when `fails_at` allocations were made, and then there is some again."""

    def _take(self, array: Any) -> Any:
        try:
            return super()._take(array)
        except MemoryError:
            self.fails_at = None
            raise


@pytest.mark.parametrize("policy", ["auto", "grapin", "grapin-page"])
def test_a_batch_during_which_memory_is_full_is_undone(
    policy: str, card: LazyCard, monkeypatch: pytest.MonkeyPatch, tight: None
) -> None:
    """Whichever allocation fails, answers stay as they were, and the batch can be applied later."""
    full, failed = FullOnce(), 0
    monkeypatch.setattr(cuda_device, "open_card", lambda number: full)
    graph, changes = skewed()
    wanted = [ist.SSSP(source=0), ist.WeaklyConnectedComponents()]
    with ist.stream(graph, wanted, device=GPU, memory="30%", policy=policy) as live:
        for count, batch in zip((0, 4, 9, 30), changes, strict=True):
            before = {name: filled(live[name]) for name in live}
            full.taken, full.fails_at = 0, count
            try:
                live.apply(**batch)
            except BudgetError:
                failed += 1
                assert {name: filled(live[name]) for name in live} == before
                live.apply(**batch)
            full.fails_at = None
            assert live.check() == {}
    assert failed >= 3 and full.held == {}


def test_a_batch_that_finds_no_memory_is_undone(card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(2, 60)
    with ist.stream(model.graph(), [ist.SSSP(source=model.source)], device=GPU, memory="60%") as live:
        live.apply(**model.batch())

        def fail(self: Any, *given: Any) -> None:
            raise BudgetError("cuda:0: not enough GPU memory")

        with monkeypatch.context() as patched:
            patched.setattr(CudaResidency, "_replace", fail)
            with pytest.raises(BudgetError, match="not enough GPU memory"):
                live.apply(inserts=[(model.source, v, 1) for v in sorted(model.vertices)[1:9]])
        for _ in range(3):
            live.apply(**model.batch())
            assert live.check() == {}
    assert card.held == {}


@pytest.mark.parametrize("policy", ["auto", "grapin-page"])
def test_memory_is_freed_whichever_allocation_fails(policy: str, card: LazyCard, tight: None) -> None:
    graph = Model(2, 60).graph()
    with ist.stream(graph, [ist.SSSP(source=0)], device=GPU, memory="60%", policy=policy):
        most = card.taken
    assert card.held == {}
    for count in range(0, most, max(1, most // 12)):
        card.taken, card.fails_at = 0, count
        with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
            ist.stream(graph, [ist.SSSP(source=0)], device=GPU, memory="60%", policy=policy)
        assert card.held == {}, count


@pytest.mark.parametrize("policy", ["auto", "grapin-zc", "grapin-page"])
def test_memory_is_freed_whenever_the_card_fails(
    policy: str, card: LazyCard, tight: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the graph's edges, which are page-locked: they are the host's."""
    graph, changes = skewed()
    how: dict[str, Any] = {"device": GPU, "memory": "30%", "policy": policy, "threads": 2}
    failing = FailingCard(waits=1 << 30)
    monkeypatch.setattr(cuda_device, "open_card", lambda number: failing)
    with ist.stream(graph, [ist.SSSP(source=0)], **how) as live:
        opening = (1 << 30) - failing.waits
        live.apply(**changes[0])
        most = (1 << 30) - failing.waits
    for waits in {*range(0, most, max(1, most // 8)), opening, opening + 1, most - 1}:
        failing = FailingCard(waits=waits)
        with (
            pytest.raises(OSError, match="the card has failed"),
            ist.stream(graph, [ist.SSSP(source=0)], **how) as live,
        ):
            assert failing.far or policy == "grapin-page"
            live.apply(**changes[0])
        assert failing.held == {}, waits


@pytest.mark.parametrize("where", [GPU, MODEL])
def test_a_stream_that_nobody_closes_is_collected(where: str, card: LazyCard, tight: None) -> None:
    graph, changes = skewed()
    before = set(threading.enumerate())
    live = ist.stream(graph, [ist.SSSP(source=0)], device=where, memory="60%", threads=3)
    live.apply(**changes[0])
    threads = set(threading.enumerate()) - before
    session = weakref.ref(live.session)
    assert card.held or where == MODEL
    card.forget()
    del live
    gc.collect()
    assert session() is None and card.held == {}
    gc.collect()  # the graph, which what was near referred to
    for thread in threads:
        thread.join(20)
    assert threads and not any(thread.is_alive() for thread in threads)


@dataclass
class CountingCard(LazyCard):
    """Counts as numba-cuda does: memory is free when nobody refers to it any more. Work that is done refers to
    nothing.
    """

    sizes: dict[int, int] = field(default_factory=dict)  # of near memory that is alive, by id
    alive: list[int] = field(default_factory=list)  # bytes of it before each allocation

    def near(self, count: int, dtype: Any) -> Any:
        self.alive.append(sum(self.sizes.values()))
        made = super().near(count, dtype)
        self.sizes[id(made)] = made.nbytes
        weakref.finalize(made, self.sizes.pop, id(made))
        return made

    def finish(self, event: Any) -> None:
        super().finish(event)
        self.forget()


def test_memory_is_free_before_more_is_taken_in_its_place() -> None:
    card = CountingCard()
    with CardSpace(card) as space:
        listed = DeviceVertexList(space)
        for vertices in (1000, 2000):
            card.alive.clear()
            listed.reserve(vertices)
            listed.clear()
            listed.take()
            assert card.alive[0] == 0
        card.fails_at = card.taken + 1
        with pytest.raises(BudgetError):
            listed.reserve(3000)
        assert card.held == {}
        card.fails_at = None
        listed.reserve(100)  # there is room for none after that
        assert len(listed.arrays) == 3


def test_positions_are_free_before_those_of_more_vertices_are_taken() -> None:
    card, reads = CountingCard(), object.__new__(CudaResidency)
    with CardSpace(card) as space:
        reads._space, reads._near_positions, reads._uploaded_positions = space, {}, set()
        for vertices in (1000, 2000):
            card.alive.clear()
            begins, ends = reads._room_for_positions("out", vertices)
            assert begins.size == ends.size == vertices
            del begins, ends
            assert card.alive[0] == 0


class Full(Weighed):
    """Has no more than `limit` bytes."""

    limit = 1 << 40

    def _room(self, count: int, dtype: Any) -> Any:
        if self.bytes_held + count * np.dtype(dtype).itemsize > self.limit:
            raise MemoryError("the card is full")
        made = super()._room(count, dtype)
        self.most = max(self.most, self.bytes_held)
        return made


def test_room_for_more_rows_is_taken_when_a_batch_has_all_that_it_needs(
    card: LazyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_residency, "LEAST_ROWS", 1)
    graph, batch = ist.read(([0], [1]), directed=True), {"inserts": (np.zeros(299, int), np.arange(2, 301))}
    limit = Full.limit
    for grows in (False, True):
        full = Full()
        monkeypatch.setattr(cuda_device, "open_card", lambda number, full=full: full)
        with (
            ist.stream(graph, [ist.BFS(source=0)], device=GPU, policy="grapin-zc") as live,
            monkeypatch.context() as patched,
        ):
            reads = live.context.residency
            assert isinstance(reads, CudaResidency)
            full.most, full.limit = full.bytes_held, limit
            if not grows:
                patched.setattr(reads._rows, "grow", lambda most: None)
            live.apply(**batch)
            limit = full.most
            assert live.check() == {} and (reads._rows.room >= 300) == grows
        assert full.held == {}


def test_a_stream_that_began_small_submits_no_more_work_than_another(
    card: LazyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are sorted and followed as many at a time as there is room for."""
    monkeypatch.setattr(cuda_residency, "LEAST_ROWS", 1)
    card.in_order, submitted = False, []
    small, large = ist.read(([0], [1]), directed=True), ist.read((np.zeros(300, int), np.arange(1, 301)), directed=True)
    for graph in (small, large):
        with ist.stream(graph, [ist.BFS(source=0)], device=GPU, policy="grapin-zc") as live:
            if graph is small:
                live.apply(inserts=(np.zeros(299, int), np.arange(2, 301)))
            before = len(card.record_of)
            live.apply(deletes=(np.zeros(150, int), np.arange(1, 151)))
            submitted.append(len(card.record_of) - before)
            assert live.check() == {}
    assert submitted[0] < 2 * submitted[1]


def test_a_gpu_that_is_too_small_is_not_answered_with_a_larger_budget(card: LazyCard, tight: None) -> None:
    card.bytes = cuda_device.SPARE + 2_000
    graph = ist.read(([0, 1], [1, 2]), directed=True)
    for memory in (None, 2_000):
        with pytest.raises(
            BudgetError, match=r"got 2 kB\. cuda:0 has 2 kB free; use device='cpu', or end other programs on the GPU$"
        ):
            ist.stream(graph, [ist.BFS(source=0)], device="cuda:0", memory=memory)


def test_recipes_compared(card: LazyCard, tight: None, tmp_path: Any) -> None:
    updates = tmp_path / "u.csv"
    updates.write_text("op,source,target,weight\n" + "".join(f"insert,{7 * k},{7 * k + 7},1\n" for k in range(40)))
    found = ist.compare_streams(Model(3, 60).graph(), [ist.BFS(source=0)], updates, device=GPU, batch=10)
    assert list(found.runs) == list(RECIPES)


@pytest.mark.skipif(
    not cuda_module.simulated(), reason="set NUMBA_ENABLE_CUDASIM=1 to run kernels in numba-cuda's simulator"
)
@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("auto", "SSSP"),
        ("grapin", "SSSP"),
        ("grapin-page", "BFS"),
        ("grapin-zc", "WidestPath"),
        ("auto", "WeaklyConnectedComponents"),
    ],
)
def test_the_simulator_keeps_answers_current(policy: str, name: str, tight: None) -> None:
    model = Model(4, 12)
    wanted = getattr(ist, name)(**({} if name.startswith("Weakly") else {"source": model.source}))
    with ist.stream(model.graph(), [wanted], device=GPU, policy=policy, memory="80%") as live:
        for _ in range(3):
            live.apply(**model.batch())
            assert live.check() == {}
