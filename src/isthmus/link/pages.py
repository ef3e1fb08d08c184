"""A page cache in front of another link: reads only missing pages, and evicts the least recently used."""

from __future__ import annotations

import threading

import numpy as np

from isthmus.kernels.loops.gather import copy_blocks
from isthmus.link.link import Array, Extents, Link

NONE = -1


class Pages(Link):
    """A link that caches pages of another link, of its block size. Every missing page is one request.

    Without eviction, pages are kept until memory is full; the others are read from the other link every time.
    """

    def __init__(self, link: Link, section_bytes: list[int], memory: Array, evicts: bool = True) -> None:
        self._evicts = evicts
        self._link, self._block = link, link.profile.block
        self.profile, self.notes = link.profile, link.notes
        self._firsts = np.concatenate([[0], np.cumsum([-(-size // self._block) for size in section_bytes])]).astype(
            np.int64
        )
        self.room = memory.size // self._block
        self._memory = memory[: self.room * self._block]
        self._slots = np.full(int(self._firsts[-1]), NONE, np.int64)  # slot of each page
        self._pages = np.full(self.room, NONE, np.int64)  # page in each slot
        self._used = np.zeros(self.room, np.int64)  # when each slot was last used; 0: free
        self._clock = 0
        self._lock = threading.Lock()
        self.hits = self.misses = 0

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        """Fill `buffer` from pages; returns how many pages were missing."""
        first = self._firsts[extents.sections] + extents.offsets // self._block
        counts = extents.lengths // self._block
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        pages = np.repeat(first, counts) + within
        places = np.repeat(extents.places, counts) + within * self._block
        missing = 0
        with self._lock:
            for at in range(0, pages.size if self._evicts else 0, self.room):
                wanted = pages[at : at + self.room]
                missing += self._bring(wanted, channel)
                copy_blocks(self._memory, self._slots[wanted], buffer, places[at : at + self.room], self._block)
            if not self._evicts:
                missing = self._admit(pages, places, buffer, channel)
            self.misses += missing
            self.hits += pages.size - missing
        return missing

    def prefetch(self, section: int, begin: int, end: int, channel: int = 0) -> int:
        """Load the pages of bytes begin:end of a section; returns how many were missing."""
        pages = np.arange(self._firsts[section] + begin // self._block, self._firsts[section] - (-end // self._block))
        missing = 0
        with self._lock:
            for at in range(0, pages.size if self._evicts else min(pages.size, self._left), self.room):
                missing += self._bring(pages[at : at + self.room], channel)
        return missing

    @property
    def _left(self) -> int:
        return int(np.count_nonzero(self._pages == NONE))

    def _admit(self, pages: Array, places: Array, buffer: Array, channel: int) -> int:
        """Load pages while they fit, and read the others without keeping them; returns how many were missing."""
        missing = np.unique(pages[self._slots[pages] == NONE])
        come = missing[: self._left]
        if come.size:
            self._bring(come, channel)
        near = self._slots[pages] != NONE
        copy_blocks(self._memory, self._slots[pages[near]], buffer, places[near], self._block)
        far = pages[~near]
        if far.size:
            self._link.move(self._extents(far, places[~near]), buffer, channel)
        return int(come.size + far.size)

    def _extents(self, pages: Array, places: Array) -> Extents:
        sections = np.searchsorted(self._firsts, pages, "right") - 1
        return Extents(
            sections, (pages - self._firsts[sections]) * self._block, np.full(pages.size, self._block), places
        )

    def _bring(self, wanted: Array, channel: int) -> int:
        self._clock += 1
        near = wanted[self._slots[wanted] != NONE]
        self._used[self._slots[near]] = self._clock
        missing = np.unique(wanted[self._slots[wanted] == NONE])
        if not missing.size:
            return 0
        slots = np.argpartition(self._used, missing.size - 1)[: missing.size]  # free slots and the least recently used
        old = self._pages[slots]
        self._slots[old[old != NONE]] = NONE
        self._pages[slots] = NONE  # until they have arrived
        self._link.move(self._extents(missing, slots * self._block), self._memory, channel)
        self._pages[slots], self._slots[missing], self._used[slots] = missing, slots, self._clock
        return int(missing.size)

    def close(self) -> None:
        """Closes nothing: the other link is closed by the code that opened it."""
