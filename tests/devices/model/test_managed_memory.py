"""Managed memory: what a fault brings, what has to go, and that readers get the right bytes all the while."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.devices.model import costs
from isthmus.devices.model.figures import Paging, find
from isthmus.devices.model.managed_memory import ManagedMemory, Migrated, grow
from isthmus.link.link import Array, Extents

PAGE, BLOCK = 64, 512  # eight pages to a block: small enough to follow by hand
SMALL = Paging(PAGE, PAGE, BLOCK, 0.51, 4, 20e-6, 0.739, 0)
COUNTED = replace(SMALL, counted_requests=3)
DEVICE = find("rtx2080ti")


def numbers(size: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def extents(*rows: tuple[int, int, int]) -> Extents:
    """(section, offset, length) each, packed one behind the other."""
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Extents(table[:, 0], table[:, 1], table[:, 2], np.cumsum(table[:, 2]) - table[:, 2])


def memory_of(blocks: int, room: int, paging: Paging = SMALL) -> ManagedMemory:
    """One section of that many blocks, and room for some pages."""
    return ManagedMemory([numbers(blocks * paging.block_bytes)], paging, np.zeros(room * paging.page_bytes, np.uint8))


def touch(memory: ManagedMemory, *pages: int) -> Migrated:
    """Read one byte of each page."""
    return memory.read(extents(*((0, page * PAGE + 5, 1) for page in pages)), np.empty(len(pages), np.uint8))


def near(memory: ManagedMemory, *pages: int) -> list[bool]:
    return memory.near(extents(*((0, page * PAGE, PAGE) for page in pages))).tolist()


def test_one_fault_brings_a_page() -> None:
    memory = memory_of(4, 16)
    assert touch(memory, 3) == Migrated(PAGE, 1, 1, 1, 0)
    assert near(memory, 2, 3, 4) == [False, True, False]
    assert touch(memory, 3) == Migrated(), "it is near now"
    assert memory.free_bytes == 15 * PAGE


def test_what_a_fault_brings_grows_as_neighbours_fault() -> None:
    memory = memory_of(4, 32)
    assert touch(memory, 0).bytes == PAGE
    assert touch(memory, 2).bytes == PAGE, "half of the four"
    assert touch(memory, 3).bytes == 2 * PAGE, "three of four: the fourth comes along"
    assert near(memory, 0, 1, 2, 3, 4) == [True] * 4 + [False]
    assert touch(memory, 6).bytes == 4 * PAGE, "five of eight: the whole block"
    assert touch(memory, 9).bytes == PAGE, "the next block begins anew"


def test_without_growth_only_faults_come() -> None:
    memory = memory_of(4, 32, replace(SMALL, grow_share=1.0))
    assert [touch(memory, page).bytes for page in (0, 2, 3, 6)] == [PAGE] * 4


def test_a_driver_that_begins_with_more_than_a_page() -> None:
    memory = memory_of(4, 32, replace(SMALL, first_bytes=2 * PAGE))
    assert touch(memory, 3) == Migrated(2 * PAGE, 1, 1, 1, 0)
    assert near(memory, 1, 2, 3, 4) == [False, True, True, False]
    assert touch(memory, 5).bytes == 2 * PAGE, "half of the block"
    assert touch(memory, 0).bytes == 4 * PAGE, "six of eight, the two that come with this fault among them"


def test_the_share_has_to_be_passed() -> None:
    """A block of 2 MB and a threshold of 51 %: 262 pages of 512, wherever they are."""
    spread = np.zeros((1, 512), np.bool_)
    spread[0, ::2] = True
    far = np.zeros_like(spread)
    assert grow(far, spread, DEVICE.managed).sum() == 256, "every other page: half of every region"
    for more in (7, 101, 203, 305, 407):
        spread[0, more] = True
    mostly = grow(far, spread, DEVICE.managed)
    assert 261 <= mostly.sum() < 512
    spread[0, 509] = True
    assert grow(far, spread, DEVICE.managed).all()


def test_only_where_something_faults() -> None:
    close = np.zeros((2, 8), np.bool_)
    close[0, :5] = True
    faults = np.zeros_like(close)
    faults[1, 0] = True
    assert grow(close, faults, SMALL).sum() == 1, "a dense block in which nothing faults stays as it is"


def test_faults_are_handled_in_batches() -> None:
    memory = memory_of(20, 160)
    done = touch(memory, *range(0, 160, 8))
    assert (done.faults, done.batches, done.migrations) == (20, 5, 20)
    again = touch(memory, *range(0, 160, 8))
    assert again == Migrated()


def test_several_reads_of_a_page_are_one_fault() -> None:
    memory = memory_of(4, 32)
    done = touch(memory, 0, 0, 0, 8, 8, 16, 24)
    assert (done.faults, done.batches) == (4, 1)


def test_nothing_grows_beyond_a_section() -> None:
    memory = ManagedMemory([numbers(5 * PAGE - 3)], SMALL, np.zeros(32 * PAGE, np.uint8))
    touch(memory, 0, 1, 2, 3)
    assert touch(memory, 4).bytes == PAGE, "the rest of the block, of which five pages exist"


def test_pages_side_by_side_come_in_one_migration() -> None:
    memory = memory_of(4, 32)
    done = memory.read(extents((0, 0, 4 * PAGE)), np.empty(4 * PAGE, np.uint8))
    assert (done.bytes, done.faults, done.batches, done.migrations) == (4 * PAGE, 4, 1, 1)
    done = memory.read(extents((0, 14 * PAGE, 4 * PAGE)), np.empty(4 * PAGE, np.uint8))
    assert (done.faults, done.batches, done.migrations) == (4, 1, 2), "but no migration crosses a block"


def test_the_block_filled_longest_ago_goes() -> None:
    memory = memory_of(6, 12)
    touch(memory, 8, 9, 10, 11)
    touch(memory, 16, 17, 18, 19)
    touch(memory, 0, 1, 2, 3)
    assert memory.free_bytes == 0
    touch(memory, 8)  # being read does not help: the device does not tell
    assert touch(memory, 24) == Migrated(PAGE, 1, 1, 1, 4 * PAGE), "and the block goes whole"
    assert near(memory, 8, 11, 0, 16, 24) == [False, False, True, True, True]
    assert memory.free_bytes == 3 * PAGE


def test_pages_that_are_being_read_stay() -> None:
    """Even if everything near is in the block that faults."""
    memory = memory_of(3, 5)
    touch(memory, 0, 1, 2)
    assert memory.free_bytes == PAGE
    done = touch(memory, 0, 4, 5, 6, 7)
    assert done.evicted == 3 * PAGE
    assert near(memory, 0, 4, 5, 6, 7) == [True] * 5


def test_a_single_page_of_room() -> None:
    memory = memory_of(2, 1)
    done = touch(memory, 0, 5, 0, 5)
    assert (done.faults, done.bytes, done.evicted) == (4, 4 * PAGE, 3 * PAGE)


def test_prefetching_brings_pages_without_faults() -> None:
    memory = memory_of(4, 16)
    done = memory.prefetch(0, 100, 100 + 6 * PAGE)
    assert (done.bytes, done.faults, done.batches, done.evicted) == (7 * PAGE, 0, 0, 0)
    assert near(memory, 0, 1, 7, 8) == [False, True, True, False]
    assert memory.prefetch(0, 100, 100 + 6 * PAGE) == Migrated()


def test_prefetching_too_much_pushes_out_what_came_first() -> None:
    """Grus, section 3.2: why prefetching harms when memory is oversubscribed."""
    memory = memory_of(4, 16)
    done = memory.prefetch(0, 0, 10**9)
    assert (done.bytes, done.evicted) == (32 * PAGE, 16 * PAGE)
    assert near(memory, 0, 15, 16, 31) == [False, False, True, True]


def mapped(memory: ManagedMemory, *rows: tuple[int, int]) -> tuple[list[tuple[int, int]], Migrated]:
    """Read (offset, length) each from mapped pages, by requests of 32 bytes; returns what is read from far memory, and
    what migrated.
    """
    far, done = memory.mapped(extents(*((0, *row) for row in rows)), 32)
    return list(zip(far.offsets.tolist(), far.lengths.tolist(), strict=True)), done


def test_mapped_pages_stay_where_they_are() -> None:
    memory = memory_of(4, 32)
    for _ in range(100):
        assert mapped(memory, (10, 3), (PAGE - 5, 10)) == ([(10, 3), (PAGE - 5, 5), (PAGE, 5)], Migrated())
    assert near(memory, 0, 1) == [False, False]


def test_of_mapped_pages_that_are_near_nothing_is_read_from_far_memory() -> None:
    memory = memory_of(4, 32)
    memory.prefetch(0, PAGE, 2 * PAGE)
    assert mapped(memory, (10, 3), (PAGE - 5, 10)) == ([(10, 3), (PAGE - 5, 5)], Migrated())
    assert mapped(memory, (PAGE, PAGE)) == ([], Migrated())


def test_where_requests_are_counted_a_block_that_is_read_often_migrates_while_there_is_room() -> None:
    memory = memory_of(4, 12, COUNTED)
    assert mapped(memory, (0, 1), (40, 1)) == ([(0, 1), (40, 1)], Migrated()), "two requests"
    assert mapped(memory, (31, 1)) == ([(31, 1)], Migrated(BLOCK, 0, 0, 1, 0)), "the third is still far"
    assert mapped(memory, (0, 1)) == ([], Migrated())
    assert mapped(memory, (BLOCK, 65))[1] == Migrated(4 * PAGE, 0, 0, 1, 0), "there is room for half of it"
    assert near(memory, 7, 8, 11, 12) == [True, True, True, False]
    assert mapped(memory, (2 * BLOCK, 500))[1] == Migrated(), "nothing is evicted"


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3000), st.integers(1, 700)), max_size=6), max_size=8),
    st.integers(1, 60),
    st.sampled_from([PAGE, 2 * PAGE, BLOCK]),
    st.sampled_from([0.3, 0.51, 1.0]),
)
def test_readers_get_the_bytes_whatever_moves(
    calls: list[list[tuple[int, int, int]]], room: int, first: int, share: float
) -> None:
    sections = [numbers(2900), numbers(3333, 2)]
    paging = replace(SMALL, first_bytes=first, grow_share=share)
    memory = ManagedMemory(sections, paging, np.zeros(room * PAGE, np.uint8))
    came = gone = 0
    for rows in calls:
        wanted = extents(*rows)
        buffer = np.full(wanted.bytes, 77, np.uint8)
        done = memory.read(wanted, buffer)
        for (section, offset, length), place in zip(rows, wanted.places.tolist(), strict=True):
            expected = sections[section][offset : offset + length]
            assert np.array_equal(buffer[place : place + expected.size], expected)
            assert (buffer[place + expected.size : place + length] == 77).all(), "nothing lies behind a section"
        came, gone = came + done.bytes, gone + done.evicted
        assert 0 <= came - gone == room * PAGE - memory.free_bytes <= room * PAGE
        assert done.batches <= done.faults and done.migrations * PAGE <= done.bytes
        assert (done.batches == 0) == (done.faults == 0) == (done.bytes == 0)


def stream(paging: Paging, step: int, size: int = 64 << 20) -> Migrated:
    """Read one byte of every `step`th page of `size` bytes."""
    memory = ManagedMemory([np.zeros(size, np.uint8)], paging, np.zeros(size, np.uint8))
    offsets = np.arange(0, size, step * paging.page_bytes)
    wanted = Extents(
        np.zeros(offsets.size, np.int64), offsets, np.ones(offsets.size, np.int64), np.arange(offsets.size)
    )
    return memory.read(wanted, np.empty(offsets.size, np.uint8))


def test_a_kernel_that_reads_everything_reaches_the_published_peak() -> None:
    """EMOGI: 73.9 % of bulk on PCIe 3.0."""
    done = stream(DEVICE.managed, 1)
    assert done.bytes == 64 << 20
    seconds = costs.paged(DEVICE, done.bytes, done.batches, done.migrations)
    assert done.bytes / seconds / DEVICE.link.bandwidth == pytest.approx(0.739, abs=0.005)


def test_one_fault_for_each_page_would_be_far_below() -> None:
    alone = replace(DEVICE.managed, batch_faults=1, grow_share=1.0)
    done = stream(alone, 1, 4 << 20)
    seconds = costs.paged(DEVICE, done.bytes, done.batches, done.migrations)
    assert done.bytes / seconds / DEVICE.link.bandwidth < 0.02


def test_scattered_reads_move_far_more_than_they_want() -> None:
    done = stream(DEVICE.managed, 16)
    assert done.bytes == 1024 * 4096, "too sparse to grow"
    assert stream(replace(DEVICE.managed, first_bytes=65536), 16).bytes == 64 << 20
