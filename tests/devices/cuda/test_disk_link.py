"""From disk to a GPU: order of reads, copies and waits, bounded page-locked memory, and all of it freed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gpus import Event, LazyCard

import isthmus as ist
from isthmus.devices.cuda.disk_link import CudaDiskLink, slowed
from isthmus.devices.model.figures import find
from isthmus.devices.model.link import ModelLink
from isthmus.errors import BudgetError, StoreError
from isthmus.graph.store.files import BLOCK
from isthmus.link.link import Extents
from isthmus.link.open import open_link
from isthmus.link.requests import ListSpans
from isthmus.link.ssd import GUESS

DEVICE = find("rtx2080ti")
ROOM = 4 * BLOCK


class OrderedCard(LazyCard):
    """Tells in which order copies are submitted and waited for, beside the reads of a disk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.order: list[str] = []

    def copy(self, near: Any, host: Any, stream: int) -> None:
        self.order.append(f"copy {host.ctypes.data}")
        super().copy(near, host, stream)

    def finish(self, event: Event) -> None:
        self.order.append("wait")
        super().finish(event)


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    with ist.generate("uniform", tmp_path / "g.isthmus", vertices=3000, edges=20000, weights="1:9") as graph:
        yield graph


@pytest.fixture
def card() -> OrderedCard:
    return OrderedCard()


@pytest.fixture
def link(graph: Any, card: OrderedCard, sized: Any) -> Any:
    sized(pinned=ROOM, few_bytes=1 << 30)
    arrays = graph.snapshot.far("out", True)
    disk = open_link(graph.snapshot, arrays, may_measure=False)
    read = disk.move
    disk.move = lambda extents, buffer, channel=0: (
        card.order.append(f"read {buffer.ctypes.data}") or read(extents, buffer, channel)
    )
    link = CudaDiskLink(arrays, disk, DEVICE, card)
    yield link
    link.close()
    assert card.held == {}


def one(section: int, offset: int, length: int, place: int = 0) -> Extents:
    return Extents(*(np.array([value]) for value in (section, offset, length, place)))


def test_a_buffer_is_read_into_while_the_other_is_copied_and_only_after_its_event(
    graph: Any, card: OrderedCard, link: CudaDiskLink
) -> None:
    whole = graph.snapshot.whole(graph.snapshot.far("out", True)[0])
    assert whole.nbytes > 20 * BLOCK
    near = link.near(20 * BLOCK)
    link.move(one(0, 0, 20 * BLOCK), near)
    card.finish(link.arrival())
    assert np.array_equal(near, whole.view(np.uint8)[: 20 * BLOCK])
    first, second = dict.fromkeys(step.split()[1] for step in card.order if step.startswith("read"))
    kinds = [step.replace(first, "A").replace(second, "B") for step in card.order]
    assert kinds == [
        "read A",
        "copy A",
        "read B",
        "copy B",
        "wait",
        "read A",
        "copy A",  # not before the event behind the first copy out of A
        "wait",
        "read B",
        "copy B",
        "wait",
        "read A",
        "copy A",
        "wait",
    ]
    card.order.clear()
    link.move(one(0, 0, BLOCK), near)  # the copy out of A was the last one
    assert [step.replace(second, "B") for step in card.order] == ["wait", "read B", "copy B"]
    link.take()


def test_waits_that_are_missing_are_found(graph: Any, link: CudaDiskLink, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = graph.snapshot.whole(graph.snapshot.far("out", True)[0])
    monkeypatch.setattr(CudaDiskLink, "_wait", lambda self, slot: None)
    near = link.near(12 * BLOCK)
    link.move(one(0, 0, 12 * BLOCK), near)
    link.take()
    assert not np.array_equal(near, whole.view(np.uint8)[: 12 * BLOCK])


def test_page_locked_memory_is_bounded(graph: Any, card: OrderedCard, link: CudaDiskLink) -> None:
    near = link.near(16 * BLOCK)
    for _ in range(3):
        link.move(one(0, 0, 16 * BLOCK), near)
        link.pack(one(1, 40, 60), near, 0)
    held = [array.size for array in card.held.values() if array is not near]
    assert sum(held) == 2 * 2 * (ROOM + BLOCK)  # for one reader


def test_lists_are_packed_on_the_host_and_copied_together(graph: Any, card: OrderedCard, link: CudaDiskLink) -> None:
    targets, weights = (graph.snapshot.whole(array) for array in graph.snapshot.far("out", True))
    near = link.near(4096)
    wanted = Extents(
        *(np.array(column) for column in ((0, 0, 1, 1), (40, 8000, 80, 16000), (8, 12, 16, 24), (0, 8, 2048, 2064)))
    )
    requests = link.pack(wanted, near, 16)
    moved = link.take()
    assert [work.bytes for work in card.record_of] == [20, 40]
    assert near[:20].view(targets.dtype).tolist() == [*targets[10:12], *targets[2000:2003]]
    assert near[2048:2056].view(np.uint8).tolist() == weights.view(np.uint8)[80:88].tolist()
    model = ModelLink([targets, weights], link.device)
    assert requests == model.pack(wanted, np.empty(4096, np.uint8), 16)
    assert moved == model.take()


def test_a_kernel_cannot_read_a_disk_so_lists_come_to_the_buffer(
    graph: Any, card: OrderedCard, link: CudaDiskLink
) -> None:
    assert not link.kernels_reach_far
    targets = graph.snapshot.whole(graph.snapshot.far("out", True)[0])
    near = link.near(1024)
    link.gather(one(0, 1280, 256), near, ListSpans(np.array([330]), np.array([340]), (4,), 0))
    moved = link.take()
    assert near[:256].view(targets.dtype).tolist() == targets[320:384].tolist()
    assert (moved.bytes, moved.requests, moved.copies) == (256, 2, 1)


def test_a_whole_section_is_read_once(graph: Any, card: OrderedCard, link: CudaDiskLink) -> None:
    targets = graph.snapshot.whole(graph.snapshot.far("out", True)[0])
    found = link.whole(0)
    assert np.array_equal(found.view(targets.dtype), targets)
    reads = len(card.order)
    assert link.whole(0) is found and len(card.order) == reads
    assert link.take().bytes == 2 * targets.nbytes


def fail_third_read(disk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read, count = disk.move, itertools.count()

    def fails(extents: Extents, buffer: Any, channel: int = 0) -> int:
        if next(count) == 2:
            raise StoreError("the disk is gone")
        return int(read(extents, buffer, channel))

    monkeypatch.setattr(disk, "move", fails)


def test_a_read_that_fails_leaves_no_copy_under_way(
    card: OrderedCard, link: CudaDiskLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_third_read(link._disk, monkeypatch)
    with pytest.raises(StoreError, match="the disk is gone"):
        link.move(one(0, 0, 12 * BLOCK), link.near(12 * BLOCK))
    assert len(card.done) == len(card.record_of)


def test_a_section_whose_read_fails_is_read_again(
    graph: Any, card: OrderedCard, link: CudaDiskLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = graph.snapshot.whole(graph.snapshot.far("out", True)[0])
    fail_third_read(link._disk, monkeypatch)
    with pytest.raises(StoreError, match="the disk is gone"):
        link.whole(0)
    assert len(card.done) == len(card.record_of)
    assert sum(array.size for array in card.held.values()) == 2 * 2 * (ROOM + BLOCK)  # page-locked
    assert np.array_equal(link.whole(0).view(targets.dtype), targets)


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_memory_that_is_missing_is_told_and_freed(graph: Any, most: int) -> None:
    card = LazyCard(fails_at=most)
    arrays = graph.snapshot.far("out", False)
    link = CudaDiskLink(arrays, open_link(graph.snapshot, arrays, may_measure=False), DEVICE, card)
    with pytest.raises(BudgetError, match=r"not enough (GPU|host) memory"):
        link.move(one(0, 0, BLOCK), link.near(BLOCK))
    link.close()
    assert card.held == {}


def test_costs_are_those_of_the_slower_of_disk_and_interconnect() -> None:
    slow = slowed(DEVICE, GUESS)
    assert slow.link.bandwidth == GUESS.bandwidth
    assert slow.link.direct == tuple(1e5 * 32 * sectors for sectors in (1, 2, 3, 4))
    assert slow.near == DEVICE.near
