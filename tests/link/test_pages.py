"""Pages: the bytes of the link behind them, exactly the least recently used make room, missing ones are read once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides

from isthmus.errors import StoreError
from isthmus.link.link import Extents
from isthmus.link.pages import Pages
from isthmus.link.ram import PROFILE, RamLink

BLOCK = 16
SECTIONS = [23 * BLOCK, 10 * BLOCK - 5]  # bytes; the last page is short


class Watched(RamLink):
    """Notes what is read, and fails when told to."""

    def __init__(self):
        draw = np.random.default_rng(1)
        self.sections = [draw.integers(0, 256, size).astype(np.uint8) for size in SECTIONS]
        super().__init__(self.sections, replace(PROFILE, block=BLOCK))
        self.read, self.fails = [], False

    def move(self, extents, buffer, channel=0):
        if self.fails:
            raise StoreError("out.targets: byte 0: gone")
        assert (extents.lengths == BLOCK).all(), "a request per page"
        self.read.append(sorted(zip(extents.sections.tolist(), (extents.offsets // BLOCK).tolist(), strict=True)))
        return super().move(extents, buffer, channel)


def make(room):
    link = Watched()
    return link, Pages(link, SECTIONS, np.zeros(room * BLOCK + 3, np.uint8))


def extents_of(runs):
    """Extents, one behind the other in the buffer, of (section, first page, pages)."""
    table = np.array(runs, np.int64).reshape(-1, 3)
    lengths = table[:, 2] * BLOCK
    return Extents(table[:, 0], table[:, 1] * BLOCK, lengths, np.cumsum(lengths) - lengths)


def wanted_of(runs):
    return [(section, page) for section, first, count in runs for page in range(first, first + count)]


def expected_bytes(link, runs):
    return b"".join(
        bytes(link.sections[s][p * BLOCK : (p + 1) * BLOCK]).ljust(BLOCK, b"\0") for s, p in wanted_of(runs)
    )


def moved(link, pages, runs):
    buffer = np.zeros(sum(count for _, _, count in runs) * BLOCK, np.uint8)
    missing = pages.move(extents_of(runs), buffer)
    assert len(buffer) == 0 or matches(bytes(buffer), expected_bytes(link, runs), runs)
    return missing


def matches(found, expected, runs):
    """Behind the end of a section anything may lie."""
    for i, (section, page) in enumerate(wanted_of(runs)):
        real = min(BLOCK, SECTIONS[section] - page * BLOCK)
        if found[i * BLOCK : i * BLOCK + real] != expected[i * BLOCK : i * BLOCK + real]:
            return False
    return True


@st.composite
def requests(draw):
    """Runs of pages of both sections, no page twice."""
    runs = []
    for section, size in enumerate(SECTIONS):
        pages = -(-size // BLOCK)
        cuts = sorted(draw(st.sets(st.integers(0, pages), max_size=6)))
        runs += [(section, first, last - first) for first, last in zip(cuts[::2], cuts[1::2], strict=False)]
    return draw(st.permutations(runs))


@settings(max_examples=300, deadline=None)
@given(room=st.integers(1, 40), moves=st.lists(requests(), max_size=12))
def test_exactly_the_least_recently_used_make_room(room, moves):
    """Pages of one request are equally old. A request for more than there is room for is as good as several."""
    link, pages = make(room)
    last: dict[tuple[int, int], int] = {}  # when each page was last wanted
    total = missed = 0
    for number, runs in enumerate(moves):
        wanted, before = wanted_of(runs), here(pages)
        link.read.clear()
        missing = moved(link, pages, runs)
        after, gone = here(pages), before - here(pages)
        if len(wanted) <= room:
            assert link.read == [sorted(set(wanted) - before)] * (missing > 0)
            assert missing == len(set(wanted) - before)
            assert set(wanted) <= after
            assert len(gone) == max(0, len(before | set(wanted)) - room)
            stayed = before & after - set(wanted)
            assert max((last[page] for page in gone), default=-1) <= min(
                (last[page] for page in stayed), default=number
            )
        last.update(dict.fromkeys(wanted, number))
        total, missed = total + len(wanted), missed + missing
    assert (pages.hits, pages.misses) == (total - missed, missed)


def here(pages):
    """(section, page) of everything near; the two tables must agree."""
    numbers = np.flatnonzero(pages._slots >= 0)
    assert pages._pages[pages._slots[numbers]].tolist() == numbers.tolist()
    assert np.count_nonzero(pages._pages >= 0) == numbers.size
    first = -(-SECTIONS[0] // BLOCK)
    return {(0, int(n)) if n < first else (1, int(n) - first) for n in numbers}


def test_a_loop_over_more_than_there_is_room_for_finds_nothing():
    """What the least recently used are known for; the recipe is to show it."""
    link, pages = make(10)
    for _ in range(4):
        assert [moved(link, pages, [(0, page, 1)]) for page in range(11)] == [1] * 11
    assert pages.hits == 0


def test_a_loop_over_what_there_is_room_for_reads_once():
    link, pages = make(11)
    assert [sum(moved(link, pages, [(0, page, 1)]) for page in range(11)) for _ in range(3)] == [11, 0, 0]


def test_a_read_that_fails_leaves_nothing_wrong():
    link, pages = make(4)
    moved(link, pages, [(0, 0, 4)])
    link.fails = True
    with pytest.raises(StoreError, match="gone"):
        moved(link, pages, [(0, 3, 3)])
    link.fails = False
    assert here(pages) < {(0, page) for page in range(4)}, "two made room for pages that never came"
    assert len(here(pages)) == 2
    assert moved(link, pages, [(1, 0, 4)]) == 4


def test_threads_that_meet():
    """Each reads its own mixture through few pages; every byte is right and every page counted."""
    link, pages = make(6)
    wanted = [[(0, k % 20, 2), (1, k % 8, 1)] for k in range(300)]
    counted = [0, 0, 0]

    def read(number):
        for runs in wanted[number::3]:
            counted[number] += moved(link, pages, runs)

    for _ in range(5):
        sides.together(3, read)
    assert pages.misses == sum(counted)
    assert pages.hits + pages.misses == 5 * 300 * 3


def test_pages_beyond_32_bits():
    """Sections of 2**36 bytes; a page number times the block exceeds 32 bits."""
    size, block = 1 << 36, 1 << 16
    pages = Pages(sides.Endless(block), [size, size], np.zeros(3 * block, np.uint8))
    buffer = np.zeros(2 * block, np.uint8)
    at = size - block
    wanted = Extents(np.array([0, 1]), np.array([at, at]), np.full(2, block), np.array([0, block]))
    for expected in (2, 0):
        buffer[:] = 0
        assert pages.move(wanted, buffer) == expected
        entries = np.arange(at // 4, size // 4)
        assert np.array_equal(buffer[:block].view(np.uint32), entries % (1 << 32))
        assert np.array_equal(buffer[block:].view(np.uint32), entries % 1000)
