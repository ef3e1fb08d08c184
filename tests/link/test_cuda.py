"""The link to a GPU: what it copies, in which order, and that it frees what it took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.errors import BudgetError
from isthmus.link.cuda import CudaLink
from isthmus.link.device import find
from isthmus.link.link import Extents
from isthmus.link.model import ModelLink
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


def test_each_extent_is_a_copy_and_all_have_arrived_when_it_returns(card: LazyCard, link: CudaLink) -> None:
    buffer = link.near(4096)
    wanted = extents((0, 0, 1), (0, 2048, 7936), (128, 256, 128), (0, 128, 1024))
    requests = link.move(wanted, buffer)
    assert kinds(card) == ["copy"] * 3
    assert card.done == card.record_of
    assert buffer[:128].view(np.uint32).tolist() == list(range(32))
    assert buffer[128:384].view(np.uint32).tolist() == list(range(512, 576))
    assert buffer[1024 : 1024 + 64].view(np.float64).tolist() == WEIGHTS[992:1000].tolist()  # the section ends in the extent
    model = ModelLink([TARGETS, WEIGHTS], DEVICE)
    assert (requests, link.take()) == (model.move(wanted, np.empty(4096, np.uint8)), model.take())
    assert sum(work.bytes for work in card.record_of) == 128 + 256 + 64


def test_lists_are_packed_by_the_host_and_copied_by_zone(card: LazyCard, link: CudaLink) -> None:
    buffer = link.near(4096)
    wanted = extents((0, 0, 1, 1), (40, 400, 80, 800), (8, 12, 16, 24), (0, 8, 2048, 2064))
    link.pack(wanted, buffer, 16)
    assert kinds(card) == ["copy", "copy"]
    assert buffer[:20].view(np.uint32).tolist() == [10, 11, 100, 101, 102]
    assert buffer[2048:2088].view(np.float64).tolist() == [5.0, 5.5, 50.0, 50.5, 51.0]
    model = ModelLink([TARGETS, WEIGHTS], DEVICE)
    model.pack(wanted, np.empty(4096, np.uint8), 16)
    assert link.take() == model.take()
    assert sum(work.bytes for work in card.record_of) == 60
    taken = card.taken
    link.pack(wanted, buffer, 16)
    assert card.taken == taken  # page-locked memory is used again


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


@pytest.mark.parametrize("most", [0, 1])
def test_a_link_that_cannot_be_opened_frees_what_it_took(most: int) -> None:
    card = LazyCard(fails_at=most)
    with pytest.raises(BudgetError, match=r"^cuda:0: not enough host memory to page-lock, .* are available; use device='cpu'"):
        CudaLink([TARGETS, WEIGHTS], DEVICE, card)
    assert card.held == {}


def test_a_buffer_that_finds_no_room() -> None:
    link = CudaLink([TARGETS], DEVICE, LazyCard(fails_at=1))
    with pytest.raises(BudgetError, match=r"^cuda:0: not enough GPU memory, 1\.07 GB are free; give a smaller memory=$"):
        link.near(100)
    link.close()
