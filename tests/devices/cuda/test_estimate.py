"""`device="auto"`: the shorter estimate wins, the trace says why, and without a measured GPU nobody looks for one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.devices.cuda.test_gpu_costs import FAST
from tests.gpus import LazyCard
from tests.programs.ways import columns, skewed

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda import estimate
from isthmus.devices.cuda.estimate import Load, budget, on_gpu, on_processor
from isthmus.devices.cuda.gpu_costs import remember
from isthmus.kernels.compile import cuda_module

# a machine on which every graph pays for a GPU.
SLOW = replace(FAST, start_seconds=1e-9, kernel_seconds=1e-9, host_edge_rate=1e3)


@pytest.fixture
def graph() -> Any:
    return ist.read(columns(skewed()), vertices=400)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Make a machine whose GPUs have these costs; None: not measured."""
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))

    def make(*costs: Any, trouble: str = "", **options: Any) -> list[LazyCard]:
        cards = [LazyCard(name=f"cuda:{number}", **options) for number in range(len(costs))]
        monkeypatch.setattr(
            cuda_module,
            "found",
            lambda: ([cuda_module.Found(k, f"GPU {k}", (8, 0), trouble) for k in range(len(costs))], ""),
        )
        monkeypatch.setattr(cuda_device, "open_card", lambda number: cards[number])
        for number, known in enumerate(costs):
            if known is not None:
                remember(replace(known, gpu=f"GPU {number}"), number)
        return cards

    return make


def test_a_gpu_that_pays_is_used_and_the_trace_has_both_estimates(machine: Any, graph: Any) -> None:
    (card,) = machine(SLOW)
    expected = ist.bfs(graph, 1, device="cpu")
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cuda:0"
    assert result.summary()["repeat"]["run"]["device"] == "cuda:0"
    here = estimate.PASSES * graph.arcs / 1e3
    (note,) = [note for note in result.trace.notes if note.startswith("device auto")]
    assert note.startswith("device auto: cuda:0; a run takes an estimated ")
    assert note.endswith(f" s on cuda:0 and {here:.3g} s on the processor")
    assert "modelled seconds follow the costs measured on GPU 0" in result.trace.notes
    assert np.array_equal(result.filled(), expected.filled())
    assert any(work.kind == "launch" for work in card.record_of)
    assert card.held == {}


@pytest.mark.parametrize("costs", [FAST, replace(SLOW, bandwidth=1.0)])
def test_a_gpu_that_does_not_pay_is_not_touched(machine: Any, graph: Any, costs: Any) -> None:
    (card,) = machine(costs)
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cpu"
    assert [
        note for note in result.trace.notes if note.startswith("device auto: the processor; a run takes an estimated ")
    ]
    assert card.record_of == [] and card.taken == 0


def test_the_fastest_gpu_is_chosen(machine: Any, graph: Any) -> None:
    machine(SLOW, replace(SLOW, bandwidth=2 * SLOW.bandwidth), None)
    assert ist.bfs(graph, 1).summary()["device"] == "cuda:1"


@pytest.mark.parametrize("costs", [(None,), ()])
def test_a_gpu_that_was_not_measured_is_not_chosen(machine: Any, graph: Any, costs: Any) -> None:
    machine(*costs)
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cpu" and not [note for note in result.trace.notes if "device" in note]


def test_a_gpu_that_cannot_be_used_is_not_chosen(machine: Any, graph: Any) -> None:
    machine(SLOW, trouble="too old")
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cpu"
    assert "device auto: the processor, as no measured GPU can be used: cuda:0: too old" in result.trace.notes


def test_an_error_of_the_driver_does_not_end_a_run(machine: Any, graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(SLOW)

    def fail(card: LazyCard) -> int:
        raise RuntimeError("[46] CUDA_ERROR_DEVICE_UNAVAILABLE")

    monkeypatch.setattr(LazyCard, "free_bytes", fail)
    result = ist.bfs(graph, 1)
    note = "device auto: the processor, as no measured GPU can be used: cuda:0: [46] CUDA_ERROR_DEVICE_UNAVAILABLE"
    assert result.summary()["device"] == "cpu" and note in result.trace.notes


def test_nobody_looks_for_gpus_that_start_too_late(machine: Any, graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(FAST)
    monkeypatch.setattr(cuda_module, "found", lambda: pytest.fail("somebody has looked"))
    (note,) = [note for note in ist.bfs(graph, 1).trace.notes if note.startswith("device auto")]
    assert note.endswith(" s there, and a GPU starts in 3.5 s")  # 1.5 s, and 0.4 s for each of five kernels


def test_vertices_that_do_not_fit_stay_on_the_processor(machine: Any, graph: Any) -> None:
    machine(SLOW, bytes=cuda_device.SPARE + 100)
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cpu"
    assert "device auto: the processor, as the vertices do not fit in the memory of cuda:0" in result.trace.notes


def test_a_program_that_cannot_run_there_runs_on_the_processor(machine: Any, graph: Any) -> None:
    (card,) = machine(SLOW, fails_at=2)
    with ist.session(graph) as session:
        result = session.bfs(1)
        assert result.summary()["device"] == "cpu"
        (note,) = [note for note in result.trace.notes if note.startswith("device auto")]
        assert note.startswith("device auto: the processor, as cuda:0: not enough GPU memory")
        assert session.weakly_connected_components().summary()["device"] == "cpu"
    assert card.held == {}
    with pytest.raises(ist.errors.BudgetError):  # unless it was asked for
        ist.bfs(graph, 1, device="cuda:0")


def test_a_kernel_that_finds_no_room_runs_on_the_processor(
    machine: Any, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (card,) = machine(SLOW)

    def full(*given: Any) -> None:
        raise MemoryError("the card is full")

    monkeypatch.setattr(card, "launch", full)
    result = ist.bfs(graph, 1)
    assert result.summary()["device"] == "cpu" and np.array_equal(
        result.filled(), ist.bfs(graph, 1, device="cpu").filled()
    )
    assert card.held == {}


def test_a_session_that_finds_no_room_opens_on_the_processor(
    machine: Any, graph: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (card,) = machine(SLOW)

    def full() -> None:
        raise MemoryError("the card is full")

    monkeypatch.setattr(card, "stream", full)
    with ist.session(graph) as session:
        result = session.bfs(1)
    assert result.summary()["device"] == "cpu"
    (note,) = [note for note in result.trace.notes if note.startswith("device auto")]
    assert note.startswith("device auto: the processor, as cuda:0: not enough GPU memory")
    with pytest.raises(ist.errors.BudgetError, match="not enough GPU memory"):  # unless it was asked for
        ist.session(graph, device="cuda:0")


def test_a_plan_is_for_the_chosen_device(machine: Any, graph: Any) -> None:
    machine(SLOW)
    assert ist.plan("bfs", graph, 1).summary()["device"] == "cuda:0"


def test_streams_stay_on_the_processor(machine: Any) -> None:
    (card,) = machine(SLOW)
    with ist.stream(ist.read(([0, 1], [1, 2])), [ist.BFS(source=1)]) as live:
        live.apply(inserts=([2], [3]))
    assert card.taken == 0


LOAD = Load(vertex_bytes=1000, edges=4_000_000, edge_bytes=16_000_000, disk_seconds=0.5)
COSTS = replace(FAST, bandwidth=16e6, edge_rate=2e6, host_edge_rate=1e6, start_seconds=3.0, kernel_seconds=0.1)


def test_estimates_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "available", lambda: 10**9)
    assert on_processor(LOAD, COSTS, None) == pytest.approx(0.5 + 4 * 4)
    assert on_processor(LOAD, COSTS, 10**6) == pytest.approx(4 * 4)  # read again and again, while others are followed
    assert on_processor(replace(LOAD, disk_seconds=6.0), COSTS, "10%") == pytest.approx(4 * 6)


def test_estimates_on_a_gpu() -> None:
    assert on_gpu(LOAD, COSTS, 10**9) == pytest.approx(3.5 + 0.5 + 1 + 4 * 2)
    assert on_gpu(LOAD, COSTS, 10**6) == pytest.approx(5.6 + 0.5 + 4 * 2)
    assert on_gpu(LOAD, replace(COSTS, bandwidth=1e6), 10**6) == pytest.approx(5.6 + 0.5 + 4 * 16)
    assert on_gpu(LOAD, COSTS, 999) == float("inf")


def test_budgets() -> None:
    assert budget(LOAD, None, 7) == 7
    assert budget(LOAD, "1MB", 10**9) == 10**6
    assert budget(LOAD, "10%", 10**9) == 1000 + 1_600_000
    assert budget(LOAD, "10%", 5) == 5


def test_nothing_of_cuda_is_imported_unless_a_gpu_was_measured(tmp_path: Path) -> None:
    code = (
        "import sys, isthmus as ist; ist.bfs(ist.read(([0], [1])), 0);"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('cuda', 'numba_cuda')], 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": "", "ISTHMUS_CACHE": str(tmp_path)})
