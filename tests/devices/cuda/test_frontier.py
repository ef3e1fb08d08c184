"""The frontier of a run on a GPU: what its kernels have counted is not counted again by the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard
from tests.programs.ways import columns, skewed

import isthmus as ist
from isthmus.devices import run_clock
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda.frontier import CudaFrontier
from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.devices.cuda.worker import OnCard
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut
from isthmus.kernels.compile import cuda_module

LISTS = Lists.of(np.array([0, 3, 3, 10, 11, 30]))


@pytest.fixture
def frontier(sized: Any) -> Any:
    """A dense frontier on a card: vertices 0, 2 and 4 are active."""
    sized(smallest_queue=1)
    card = LazyCard()
    lists = CardLists(card)
    made = CudaFrontier(5, 1)
    made.start(np.array([True, False, True, False, True]))
    with OnCard(card, lists) as on:
        made.attach(on)
        yield made
    lists.close()
    assert card.held == {}


def ranges(*bounds: int) -> tuple[Any, Any]:
    return np.array(bounds[::2]), np.array(bounds[1::2])


def test_edges_of_whole_partitions_are_known_when_activity_was_counted(frontier: CudaFrontier) -> None:
    assert frontier.list is None
    partitions = cut(LISTS, 1, 10)
    assert frontier.counted_edges(LISTS, *ranges(0, 10)) is None
    activity = frontier.activity(partitions, LISTS, 4, 0, 128, None, False)
    assert activity.edges.sum() == 3 + 7 + 19
    cuts = partitions.cuts.tolist()
    for first in range(len(cuts)):
        for last in range(first, len(cuts)):
            found = frontier.counted_edges(LISTS, *ranges(cuts[first], cuts[last]))
            assert found == activity.edges[first:last].sum()
    assert frontier.counted_edges(LISTS, *ranges(cuts[0], cuts[1], cuts[2], cuts[3])) == activity.edges[[0, 2]].sum()
    assert frontier.counted_edges(LISTS, *ranges(0, 5)) is None, "a part of a partition"
    assert frontier.counted_edges(Lists.of(np.array([0, 3])), *ranges(0, 3)) is None, "other lists"


def test_all_edges_are_counted_by_a_kernel_and_forgotten_with_the_iteration(frontier: CudaFrontier) -> None:
    assert frontier.edges(LISTS, None) == 3 + 7 + 19
    assert frontier.counted_edges(LISTS, *ranges(0, 30)) == 29
    held = np.array([1, 0, 0, 0, 0], np.uint8)
    team = type("Team", (), {"split": staticmethod(lambda work, size: [work(0, size)])})()
    others = frontier.without(held, np.zeros(8, np.uint8), team)
    assert others.counted_edges(LISTS, *ranges(0, 30)) is None, "of other marks"
    assert others.edges(LISTS, None) == 7 + 19
    assert frontier.counted_edges(LISTS, *ranges(0, 30)) == 29
    frontier.advance()
    assert frontier.counted_edges(LISTS, *ranges(0, 30)) is None


@pytest.mark.parametrize(
    ("policy", "memory"), [("filter", "20%"), ("hytgraph", "60%"), ("scaph", "90%"), ("auto", None)]
)
def test_the_host_reads_no_marks_to_count_followed_edges(
    policy: str, memory: Any, sized: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized(smallest_partition=4096, least_buffer=12288, few_edges=16, alone=64, piece=300, smallest_queue=3)
    graph = ist.read(columns(skewed()), vertices=400)
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
    card = LazyCard()
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    by_host, by_card = [], []
    marked, counted = run_clock.marked_edges, CudaFrontier.counted_edges

    def here(edges: Any, lists: Any, frontier: Any) -> int:
        by_host.append(not frontier.all_active)
        return marked(edges, lists, frontier)

    def there(self: CudaFrontier, lists: Any, begins: Any, ends: Any) -> int | None:
        found = counted(self, lists, begins, ends)
        by_card.append(found)
        return found

    monkeypatch.setattr(run_clock, "marked_edges", here)
    monkeypatch.setattr(CudaFrontier, "counted_edges", there)
    how = {"policy": policy, "memory": memory, "threads": 1}
    found = ist.sssp(graph, 1, device="cuda:0", **how).summary()
    assert not any(by_host) and any(by_card)
    expected = ist.sssp(graph, 1, device="model:rtx2080ti", **how).summary()
    assert found["seconds"]["modelled"] == expected["seconds"]["modelled"]
