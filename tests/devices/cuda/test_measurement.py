"""A card with made-up timings is measured as what it is; in numba-cuda's simulator the same kernels run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard, TimedCard

from isthmus.devices.cuda.card import NumbaCard
from isthmus.devices.cuda.kernels import measuring
from isthmus.devices.cuda.measurement import CardSamples, Trial, measure_card
from isthmus.devices.model.figures import find
from isthmus.kernels.compile import cuda_module

LITTLE = Trial(copied=1 << 16, lines=1 << 8, vertices=1 << 10, rows=1 << 7, degree=8, often=4, faults=5)


@pytest.fixture
def quick(sized: Any) -> None:
    sized(trial_seconds=0.001, trial_buffer=1 << 20)


def measured(card: TimedCard) -> CardSamples:
    return measure_card(card, "timed", threads=2, rounds=3, trial=LITTLE, clock=card.clock)


def test_the_figures_are_those_of_the_card(quick: None) -> None:
    card = TimedCard()
    samples = measured(card)
    assert card.held == {}
    assert {len(rounds) for rounds in samples.kinds.values()} == {3}
    costs = samples.costs()
    assert (costs.gpu, costs.cores) == ("timed", 2)
    assert costs.bandwidth == pytest.approx(65536 / (2e-6 + 65536 / 1e9))
    assert costs.back_bandwidth == pytest.approx(65536 / (3e-6 + 65536 / 2e9))
    assert costs.transfer_seconds == pytest.approx(2e-6 + 128 / 1e9)
    assert costs.copy_seconds == pytest.approx(3e-6 + 128 / 2e9)
    for sectors, (found, rate) in enumerate(zip(costs.direct, card.read_rates, strict=True), 1):
        assert found == pytest.approx(256 * 32 * sectors / (7e-6 + 256 * 32 * sectors / rate))
    assert costs.launch_seconds == pytest.approx(7e-6 + 8 / 8e9)
    assert costs.fill_bandwidth == pytest.approx(65536 / (7e-6 + 65536 / 8e9))
    assert costs.edge_rate == pytest.approx(1024 / (7e-6 + 1024 / 5e7))
    assert costs.packing > 0 and costs.host_edge_rate > 0
    assert costs.start_seconds == pytest.approx(7e-6 + 1024 / 5e7)
    assert costs.kernel_seconds == pytest.approx(7e-6 + 256 * 32 / 1e8)
    assert costs.managed_bandwidth == pytest.approx(256 * 128 / (7e-6 + 256 * 128 / 4e8))
    assert costs.fault_seconds == pytest.approx(7e-6 / 5 + 3e-5)
    device = costs.device(find("rtx2080ti"), 1 << 30)
    assert 2.5e-5 < device.managed.fault_seconds < 3e-5
    assert device.managed.peak_share == pytest.approx(costs.managed_bandwidth / costs.bandwidth)


def test_every_push_writes_values_and_marks(quick: None) -> None:
    card = TimedCard()
    measured(card)
    pushes = [work for work in card.done if work.name == "push"]
    *_, targets, _, (values,), _, (sent,), marks = pushes[-1].arguments
    assert [work.arguments[-2] for work in pushes] == [(-run,) for run in range(1, len(pushes) + 1)]
    reached = np.unique(targets)
    assert (values[reached] == sent).all() and (marks[reached] == 1).all() and marks.sum() == reached.size


def test_the_median_of_the_rounds_counts() -> None:
    names = [
        "bandwidth",
        "back_bandwidth",
        "transfer_seconds",
        "copy_seconds",
        "fill_bandwidth",
        "launch_seconds",
        "edge_rate",
        "packing",
        "host_edge_rate",
        "managed_bandwidth",
        "fault_seconds",
    ]
    kinds = {**{f"direct {sectors}": [1.0] for sectors in range(1, 5)}, **{name: [5.0, 1.0, 2.0] for name in names}}
    samples = CardSamples("x", kinds, 1, 1.0, 1.0)
    assert (samples.costs().bandwidth, samples.costs().direct) == (2.0, (1.0,) * 4)


def test_memory_is_freed_when_there_is_not_enough(quick: None) -> None:
    for most in range(12):
        card = TimedCard(fails_at=most)
        with pytest.raises(MemoryError):
            measured(card)
        assert card.held == {}


def test_a_kernel_reads_the_first_sectors_of_every_line_once(quick: None) -> None:
    card, lines = LazyCard(threads=96), 64
    kernel = measuring.build_reading(gpu=False).read_lines
    far = np.arange(lines * 32, dtype=np.uint32)
    for entries in (8, 16, 24, 32):
        sums = np.zeros(card.threads, np.int64)
        kernel(card.threads, far, lines, entries, 104729, sums)
        assert sums.sum() == far.reshape(lines, 32)[:, :entries].sum()


def test_a_kernel_waits_for_every_page_in_turn(quick: None) -> None:
    """Pages are far apart, each says where the next is, and the host has written them before each round."""
    card, faults = TimedCard(), 5
    found = []
    launch = card.launch

    def launching(kernel: Any, stream: int, *arguments: Any) -> None:
        if kernel.__name__ == "chase":
            links, steps, _ = arguments
            at, path = 0, []
            for _ in range(steps):
                at = int(links[at])
                path.append(at)
            found.append(path)
            links[:] = 0  # as if they had gone
        launch(kernel, stream, *arguments)

    card.launch = launching  # type: ignore[method-assign]
    measured(card)
    # Once to warm up, and in three rounds.
    assert found == [[(k + 1) % faults * (2 << 20) // 4 for k in range(faults)]] * 4
    links, sums = np.array([2, 0, 3, 1], np.uint32), np.zeros(8, np.int64)
    measuring.build_reading(gpu=False).chase(8, links, 3, sums)
    assert sums.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.skipif(
    not cuda_module.simulated(), reason="set NUMBA_ENABLE_CUDASIM=1 to run kernels in numba-cuda's simulator"
)
def test_the_simulator_runs_the_same_work(quick: None) -> None:
    little = Trial(copied=1 << 10, lines=1 << 3, vertices=1 << 6, rows=1 << 3, degree=4, often=1, faults=2)
    costs = measure_card(NumbaCard(0), "simulated", threads=1, rounds=1, trial=little).costs()
    assert costs.edge_rate > 0 and len(costs.direct) == 4
