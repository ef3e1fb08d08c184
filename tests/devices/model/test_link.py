"""The modelled link: the right bytes arrive, and what the interconnect would see of them is counted."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from isthmus.devices.model import costs
from isthmus.devices.model.figures import find
from isthmus.devices.model.link import ModelLink, Moved
from isthmus.errors import BudgetError
from isthmus.link.hints import Hint
from isthmus.link.link import Array, Extents
from isthmus.link.requests import ListSpans

DEVICE = find("rtx2080ti")
TARGETS = np.random.default_rng(1).integers(0, 2**32, 40_000, np.uint32)
WEIGHTS = np.random.default_rng(2).random(40_000)


def lines(*rows: tuple[int, int, int]) -> Extents:
    """(section, first line, lines) each, packed one behind the other."""
    table = np.array(rows, np.int64).reshape(-1, 3) * [1, 128, 128]
    return Extents(table[:, 0], table[:, 1], table[:, 2], np.cumsum(table[:, 2]) - table[:, 2])


def lists_of(*rows: tuple[int, int], widths: tuple[int, ...] = (4, 8)) -> ListSpans:
    begins, ends = np.array(rows, np.int64).reshape(-1, 2).T
    return ListSpans(begins, ends, widths)


def covering(lists: ListSpans) -> Extents:
    """The whole lines that hold lists, one list at a time."""
    exact = lists.extents()
    first, last = exact.offsets // 128, -(-(exact.offsets + exact.lengths) // 128)
    return lines(*zip(exact.sections.tolist(), first.tolist(), (last - first).tolist(), strict=True))


def arrived(extents: Extents, buffer: Array) -> None:
    for section, offset, length, place in extents.each():
        expected = (TARGETS, WEIGHTS)[section].view(np.uint8)[offset : offset + length]
        assert np.array_equal(buffer[place : place + expected.size], expected)


@pytest.fixture
def link() -> ModelLink:
    return ModelLink([TARGETS, WEIGHTS], DEVICE)


def test_copies(link: ModelLink) -> None:
    wanted = lines((0, 0, 10), (1, 7, 1), (0, 1249, 1), (0, 1250, 4))
    buffer = np.full(wanted.bytes, 9, np.uint8)
    assert link.move(wanted, buffer) == 12, "in requests of 128 bytes"
    arrived(wanted, buffer)
    assert (buffer[12 * 128 :] == 9).all(), "the targets end after 1250 lines"
    moved = link.take()
    assert moved == Moved(12 * 128, 0, 12, 4, link_seconds=float(costs.bulk(DEVICE, 12 * 128, 4)))
    assert link.take() == Moved(), "taken"


def test_nothing(link: ModelLink) -> None:
    buffer = np.empty(0, np.uint8)
    assert link.move(lines(), buffer) == link.gather(lines(), buffer, lists_of()) == 0
    assert link.take() == Moved()


def test_a_kernel_that_reads_lists(link: ModelLink) -> None:
    """Targets 0:32 fill a line; their weights two. Targets 40:41 are 4 bytes of one, their weight 8 of another."""
    lists = lists_of((0, 32), (40, 41))
    wanted = covering(lists)
    buffer = np.empty(wanted.bytes, np.uint8)
    assert link.gather(wanted, buffer, lists) == 5
    arrived(wanted, buffer)
    moved = link.take()
    assert (moved.bytes, moved.requests, moved.copies) == (3 * 128 + 2 * 32, 5, 0)
    assert moved.link_seconds == pytest.approx(float(costs.direct(DEVICE, np.array([2, 0, 0, 3]))))


def test_unweighted_lists_have_one_array(link: ModelLink) -> None:
    lists = lists_of((1, 33), widths=(4,))
    assert link.gather(covering(lists), np.empty(1024, np.uint8), lists) == 2, "unaligned: a line more"
    assert link.take().bytes == 128 + 32


def test_lists_that_the_host_packs(link: ModelLink) -> None:
    exact = Extents(
        np.array([0, 0, 0, 1]), np.array([12, 52, 400, 408]), np.array([40, 4, 8, 16]), np.array([0, 40, 44, 52])
    )
    buffer = np.empty(68, np.uint8)
    assert link.pack(exact, buffer, 16) == 1
    arrived(exact, buffer)
    moved = link.take()
    assert (moved.bytes, moved.requests, moved.copies) == (84, 1, 1), "packed bytes and their index, in one copy"
    assert moved.link_seconds == pytest.approx(float(costs.bulk(DEVICE, 84, 1)))
    assert moved.host_seconds == pytest.approx((3 * 128 + 84) / (2 * 10 * 3.84e9)), "the first two lists share a piece"
    link.pack(exact, buffer, 16, cores=1)
    assert link.take().host_seconds == pytest.approx((3 * 128 + 84) / (2 * 3.84e9))


def test_pages(link: ModelLink) -> None:
    paged = ModelLink([TARGETS, WEIGHTS], DEVICE, 1 << 20)
    lists = lists_of((10, 20), (1500, 1510))  # two pages of targets side by side, two of weights apart
    wanted = covering(lists)
    buffer = np.empty(wanted.bytes, np.uint8)
    assert paged.page(wanted, buffer, lists) == 4 * 4096 // 128
    arrived(wanted, buffer)
    moved = paged.take()
    assert (moved.bytes, moved.faults, moved.batches, moved.copies, moved.back_bytes) == (4 * 4096, 4, 1, 3, 0)
    assert moved.link_seconds == pytest.approx(float(costs.paged(DEVICE, 4 * 4096, 1, 3)))
    assert paged.page(wanted, buffer, lists) == 0, "near by now"
    arrived(wanted, buffer)
    assert paged.take() == Moved()
    with pytest.raises(BudgetError, match="no near memory was set aside for managed pages"):
        link.page(wanted, buffer, lists)
    with pytest.raises(BudgetError, match="at least one page of 4096 bytes; got 100"):
        ModelLink([TARGETS], DEVICE, 100)


@pytest.mark.parametrize("hint", [Hint.NONE, Hint.READ_MOSTLY, Hint.PREFERRED_LOCATION])
def test_evicted_pages_go_back_unless_they_are_copies(hint: Hint) -> None:
    """Grus, section 3.2: the read-mostly hint."""
    small = replace(DEVICE, managed=replace(DEVICE.managed, block_bytes=4096))
    link = ModelLink([TARGETS, WEIGHTS], small, 2 * 4096, hint)
    lists = lists_of(*((1024 * k, 1024 * k + 1) for k in range(5)), widths=(4,))
    link.page(covering(lists), np.empty(5 * 128, np.uint8), lists)
    moved = link.take()
    back = 0 if hint is Hint.READ_MOSTLY else 3 * 4096
    assert (moved.bytes, moved.faults, moved.back_bytes) == (5 * 4096, 5, back)
    assert moved.requests == 5 * 4096 // 128, "what goes back is counted apart"
    assert moved.link_seconds == pytest.approx(float(costs.paged(small, 5 * 4096, moved.batches, 5, back)))


def test_mapped_pages_are_read_where_they_are() -> None:
    """The hint accessed-by causes no migration, only a prefetch does."""
    link = ModelLink([TARGETS, WEIGHTS], DEVICE, 2 * 4096, Hint.ACCESSED_BY)
    lists = lists_of((0, 1), (1024, 1025), (2048, 2112), (1030, 1033), widths=(4,))
    wanted = covering(lists)
    buffer = np.empty(wanted.bytes, np.uint8)
    link.page(wanted, buffer, lists)
    arrived(wanted, buffer)
    moved = link.take()
    assert (moved.faults, moved.back_bytes) == (0, 0)
    assert (moved.bytes, moved.copies, moved.requests) == (32 + 32 + 256 + 64, 0, 5), "no page comes near"
    assert moved.link_seconds == pytest.approx(float(costs.direct(DEVICE, np.array([2, 1, 0, 2]))))
    assert link.page(wanted, buffer, lists) == 5, "again and again"
    link.prefetch(0, 4096, 8192)
    buffer[:] = 0
    assert link.page(wanted, buffer, lists) == 3, "two of the lists are in the page that is near"
    arrived(wanted, buffer)


def test_mapped_pages_migrate_where_the_driver_counts_requests() -> None:
    device = find("gh200")
    assert device.managed.counted_requests and not DEVICE.managed.counted_requests
    link = ModelLink([TARGETS, WEIGHTS], device, 1 << 20, Hint.ACCESSED_BY)
    lists = lists_of((0, 40_000), widths=(4,))
    wanted = covering(lists)
    buffer = np.empty(wanted.bytes, np.uint8)
    assert link.page(wanted, buffer, lists) == 1250 + 40 * 32, "every line once, then all pages, in bulk"
    arrived(wanted, buffer)
    moved = link.take()
    direct, pages = costs.direct(device, np.array([0, 0, 0, 1250])), costs.bulk(device, 40 * 4096, 1)
    assert (moved.bytes, moved.faults) == (160_000 + 40 * 4096, 0) and moved.link_seconds == pytest.approx(
        float(direct + pages)
    )
    assert link.page(wanted, buffer, lists) == 0
    arrived(wanted, buffer)


def test_prefetching(link: ModelLink) -> None:
    paged = ModelLink([TARGETS, WEIGHTS], DEVICE, 1 << 20, Hint.PREFETCH)
    paged.prefetch(0, 0, 1 << 30)
    size = -(-TARGETS.nbytes // 4096) * 4096
    moved = paged.take()
    assert (moved.bytes, moved.faults, moved.copies) == (size, 0, 1)
    assert moved.link_seconds == pytest.approx(float(costs.bulk(DEVICE, size, 1))), (
        "as fast as a copy (Grus, section 5)"
    )
    lists = lists_of((0, 40_000), widths=(4,))
    assert paged.page(covering(lists), np.empty(size, np.uint8), lists) == 0


def test_the_way_back(link: ModelLink) -> None:
    link.copy_back(12_300)
    moved = link.take()
    assert (moved.bytes, moved.back_bytes, moved.copies) == (0, 12_300, 1)
    assert moved.link_seconds == pytest.approx(6.9e-6 + 1e-6)


def test_channels_count_apart_and_together(link: ModelLink) -> None:
    def read(channel: int) -> None:
        buffer = np.empty(1280, np.uint8)
        for turn in range(200):
            wanted = lines((channel % 2, turn, 10))
            link.move(wanted, buffer, channel)
            arrived(wanted, buffer)

    threads = [threading.Thread(target=read, args=(channel,)) for channel in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [link.take(channel) for channel in range(3)]
    assert [moved.bytes for moved in taken] == [200 * 1280] * 3
    assert (link.total.bytes, link.total.copies) == (600 * 1280, 600)
    assert link.total.link_seconds == pytest.approx(sum(moved.link_seconds for moved in taken))


def test_it_says_that_seconds_are_modelled(link: ModelLink) -> None:
    assert link.notes == ["seconds are modelled: RTX 2080 Ti"]
    assert not link.profile.measured
    link.close()
