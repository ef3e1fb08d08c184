"""The link to a GPU: what it copies, in which order, and that it frees what it took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.devices.cuda import link as cuda_link
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.model.figures import find
from isthmus.devices.model.link import ModelLink
from isthmus.errors import BudgetError
from isthmus.link import packers
from isthmus.link.hints import Hint
from isthmus.link.link import Extents
from isthmus.link.requests import ListSpans

TARGETS, WEIGHTS = np.arange(1000, dtype=np.uint32), np.arange(1000, dtype=np.float64) / 2
DEVICE = find("rtx2080ti")


def extents(*columns: tuple[int, ...]) -> Extents:
    return Extents(*(np.array(column) for column in columns))


@pytest.fixture
def card() -> LazyCard:
    return LazyCard()


@pytest.fixture
def link(card: LazyCard) -> Any:
    link = CudaLink([TARGETS, WEIGHTS], DEVICE, card)
    yield link
    link.close()
    assert card.held == {}


def kinds(card: LazyCard) -> list[str]:
    return [work.kind for work in card.record_of]


def test_each_extent_is_a_copy_and_all_have_arrived_when_it_is_counted(card: LazyCard, link: CudaLink) -> None:
    buffer = link.near(4096)
    wanted = extents((0, 0, 1), (0, 2048, 7936), (128, 256, 128), (0, 128, 1024))
    requests = link.move(wanted, buffer)
    assert kinds(card) == ["copy"] * 3
    assert card.done == []  # under way
    moved = link.take()
    assert card.done == card.record_of
    assert buffer[:128].view(np.uint32).tolist() == list(range(32))
    assert buffer[128:384].view(np.uint32).tolist() == list(range(512, 576))
    # The section ends in the extent.
    assert buffer[1024 : 1024 + 64].view(np.float64).tolist() == WEIGHTS[992:1000].tolist()
    model = ModelLink([TARGETS, WEIGHTS], DEVICE)
    assert (requests, moved) == (model.move(wanted, np.empty(4096, np.uint8)), model.take())
    assert sum(work.bytes for work in card.record_of) == 128 + 256 + 64


def test_lists_are_packed_by_the_host_and_copied_by_zone(card: LazyCard, link: CudaLink) -> None:
    buffer = link.near(4096)
    wanted = extents((0, 0, 1, 1), (40, 400, 80, 800), (8, 12, 16, 24), (0, 8, 2048, 2064))
    link.pack(wanted, buffer, 16)
    assert kinds(card) == ["copy", "copy"]
    moved = link.take()
    assert buffer[:20].view(np.uint32).tolist() == [10, 11, 100, 101, 102]
    assert buffer[2048:2088].view(np.float64).tolist() == [5.0, 5.5, 50.0, 50.5, 51.0]
    model = ModelLink([TARGETS, WEIGHTS], DEVICE)
    model.pack(wanted, np.empty(4096, np.uint8), 16)
    assert moved == model.take()
    assert sum(work.bytes for work in card.record_of) == 60
    taken = card.taken
    for _ in range(3):
        link.pack(wanted, buffer, 16)
    assert card.taken == taken + 1  # two buffers of page-locked memory are used again and again


@pytest.fixture
def steps(card: LazyCard, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the host packs, copies and waits for, in order; A, B, ... are page-locked buffers. Packing must find its
    buffer free.
    """
    found: list[str] = []
    names: dict[int, str] = {}
    pack, submit, finish = cuda_link.copy, card.copy, card.finish

    def packing(sections: Any, extents: Extents, out: Any, *more: Any) -> int:
        assert not card.uses(out), "packed over a copy that is under way"
        found.append(f"pack {names.setdefault(out.ctypes.data, 'ABC'[len(names)])}")
        return pack(sections, extents, out, *more)

    def copying(near: Any, host: Any, stream: int) -> None:
        found.append(f"copy {names.get(host.ctypes.data, '')}".strip())
        submit(near, host, stream)

    def waiting(event: Any) -> None:
        found.append("wait")
        finish(event)

    monkeypatch.setattr(cuda_link, "copy", packing)
    monkeypatch.setattr(card, "copy", copying)
    monkeypatch.setattr(card, "finish", waiting)
    return found


def test_lists_are_packed_while_those_before_are_copied(card: LazyCard, link: CudaLink, steps: list[str]) -> None:
    buffers = [link.near(256) for _ in range(4)]
    partition = link.near(1024)
    arrivals = []
    for k, buffer in enumerate(buffers):
        if k == 1:
            link.move(extents((0,), (0,), (1024,), (0,)), partition)  # a filter task's copy is under way meanwhile, too
        link.pack(extents((0,), (40 * k,), (40,), (0,)), buffer, 8)
        arrivals.append(link.arrival())
        link.take()  # does not wait for what somebody else waits for
    assert steps == [
        "pack A",
        "copy A",
        "copy",
        "pack B",
        "copy B",
        "wait",
        "pack A",
        "copy A",  # not before the event behind the first copy out of A
        "wait",
        "pack B",
        "copy B",
    ]
    assert len(card.done) == 3
    for arrival in arrivals:
        card.finish(arrival)
    assert [buffer[:40].view(np.uint32).tolist() for buffer in buffers] == [
        list(range(10 * k, 10 * k + 10)) for k in range(4)
    ]


@pytest.mark.parametrize(("cores", "expected"), [(None, [(0, 1), (0, 1), (1, 2), (1, 2)]), (1, [(0, 2), (0, 2)])])
def test_all_threads_pack_unless_one_is_charged(
    cores: int | None, expected: Any, card: LazyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Targets and weights each; the copies behind are the same."""
    parts, pack = [], packers.pack
    monkeypatch.setattr(packers, "pack", lambda *given: parts.append(given[-2:]) or pack(*given))
    link = CudaLink([TARGETS, WEIGHTS], DEVICE, card, threads=2)
    buffer = link.near(4096)
    link.pack(extents((0, 0, 1, 1), (40, 400, 80, 800), (8, 12, 16, 24), (0, 8, 2048, 2064)), buffer, 16, cores=cores)
    link.take()
    assert sorted(parts) == expected
    assert [work.bytes for work in card.record_of] == [20, 40]
    assert buffer[:20].view(np.uint32).tolist() == [10, 11, 100, 101, 102]
    assert buffer[2048:2088].view(np.float64).tolist() == [5.0, 5.5, 50.0, 50.5, 51.0]
    link.close()
    assert card.held == {}


def test_a_buffer_that_is_packed_into_too_early_is_found(
    card: LazyCard, link: CudaLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers = [link.near(256) for _ in range(3)]
    monkeypatch.setattr(CudaLink, "_wait", lambda self, slot: None)
    for k, buffer in enumerate(buffers):
        link.pack(extents((0,), (40 * k,), (40,), (0,)), buffer, 8)
    link.take()
    assert buffers[0][:40].view(np.uint32).tolist() != list(range(10))


def test_copies_that_nobody_waits_for_end_before_their_memory_is_freed(card: LazyCard) -> None:
    link = CudaLink([TARGETS], DEVICE, card)
    link.pack(extents((0,), (40,), (40,), (0,)), link.near(256), 8)
    link.close()
    assert card.held == {} and card.done == card.record_of


def test_nothing_is_copied_for_a_kernel_that_reads_far_memory(card: LazyCard, link: CudaLink) -> None:
    buffer = link.near(1024)
    link.gather(extents((0,), (0,), (128,), (0,)), buffer, ListSpans(np.array([3]), np.array([40]), (4,), 0))
    assert card.record_of == []
    assert link.take().requests == 2
    assert np.array_equal(link.far(0).view(np.uint32), TARGETS)


def test_a_whole_section_is_copied_once(card: LazyCard, link: CudaLink) -> None:
    first = link.whole(1)
    assert np.array_equal(first.view(np.float64), WEIGHTS)
    assert link.whole(1) is first
    assert kinds(card) == ["copy"]
    assert link.take().bytes == 2 * WEIGHTS.nbytes  # the caller asks once


@pytest.mark.parametrize("what", ["copy", "drain"])
def test_a_section_that_did_not_arrive_is_copied_again(
    what: str, card: LazyCard, link: CudaLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, do = len(card.held), getattr(card, what)

    def interrupted(*given: Any) -> None:
        monkeypatch.setattr(card, what, do)
        raise KeyboardInterrupt

    monkeypatch.setattr(card, what, interrupted)
    with pytest.raises(KeyboardInterrupt):
        link.whole(1)
    assert len(card.held) == held and card.done == card.record_of
    assert np.array_equal(link.whole(1).view(np.float64), WEIGHTS)


@pytest.mark.parametrize("most", [0, 1])
def test_a_link_that_cannot_be_opened_frees_what_it_took(most: int) -> None:
    card = LazyCard(fails_at=most)
    with pytest.raises(
        BudgetError, match=r"^cuda:0: not enough host memory to page-lock, .* are available; use device='cpu'"
    ):
        CudaLink([TARGETS, WEIGHTS], DEVICE, card)
    assert card.held == {}


def test_a_buffer_that_finds_no_room() -> None:
    link = CudaLink([TARGETS], DEVICE, LazyCard(fails_at=1))
    with pytest.raises(
        BudgetError, match=r"^cuda:0: not enough GPU memory, 1\.07 GB are free; give a smaller memory=$"
    ):
        link.near(100)
    link.close()


@pytest.mark.parametrize("what", ["advise", "prefetch"])
def test_memory_may_be_full_when_the_driver_is_told_about_pages(
    what: str, card: LazyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise MemoryError(f"cuda:0: {what}: CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(card, what, full)
    with pytest.raises(BudgetError, match="cuda:0: not enough GPU memory"):
        link = CudaLink([TARGETS], DEVICE, card, 1 << 16, Hint.PREFETCH_READ_MOSTLY)
        try:
            link.prefetch(0, 0, 4000)
        finally:
            link.close()
    assert card.held == {}
