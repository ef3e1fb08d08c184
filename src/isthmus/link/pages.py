"""Pages near memory holds, the least recently used making room: a link that reads a page only when it is missing."""

from __future__ import annotations

import threading

import numpy as np

from isthmus.kernels.gather import copy_blocks
from isthmus.link.link import Array, Extents, Link

NONE = -1


class Pages(Link):
    """Another link behind pages of its block size. Every missing page is one request."""

    def __init__(self, link: Link, section_bytes: list[int], memory: Array) -> None:
        self._link, self._block = link, link.profile.block
        self.profile, self.notes = link.profile, link.notes
        self._firsts = np.concatenate([[0], np.cumsum([-(-size // self._block) for size in section_bytes])]).astype(np.int64)
        self.room = memory.size // self._block
        self._memory = memory[: self.room * self._block]
        self._slots = np.full(int(self._firsts[-1]), NONE, np.int64)  # of each page
        self._pages = np.full(self.room, NONE, np.int64)  # in each slot
        self._used = np.zeros(self.room, np.int64)  # when each slot was last used; 0: free
        self._clock = 0
        self._lock = threading.Lock()
        self.hits = self.misses = 0

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        """Fill `buffer` from pages; returns how many were missing."""
        first = self._firsts[extents.sections] + extents.offsets // self._block
        counts = extents.lengths // self._block
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        pages = np.repeat(first, counts) + within
        places = np.repeat(extents.places, counts) + within * self._block
        missing = 0
        with self._lock:
            for at in range(0, pages.size, self.room):
                wanted = pages[at : at + self.room]
                missing += self._bring(wanted, channel)
                copy_blocks(self._memory, self._slots[wanted], buffer, places[at : at + self.room], self._block)
            self.misses += missing
            self.hits += pages.size - missing
        return missing

    def _bring(self, wanted: Array, channel: int) -> int:
        self._clock += 1
        near = wanted[self._slots[wanted] != NONE]
        self._used[self._slots[near]] = self._clock
        missing = np.unique(wanted[self._slots[wanted] == NONE])
        if not missing.size:
            return 0
        slots = np.argpartition(self._used, missing.size - 1)[: missing.size]  # free ones and the least recently used
        old = self._pages[slots]
        self._slots[old[old != NONE]] = NONE
        self._pages[slots] = NONE  # until they have arrived
        sections = np.searchsorted(self._firsts, missing, "right") - 1
        offsets = (missing - self._firsts[sections]) * self._block
        self._link.move(Extents(sections, offsets, np.full(missing.size, self._block), slots * self._block), self._memory, channel)
        self._pages[slots], self._slots[missing], self._used[slots] = missing, slots, self._clock
        return int(missing.size)

    def close(self) -> None:
        """Whoever opened the link behind it closes that."""
