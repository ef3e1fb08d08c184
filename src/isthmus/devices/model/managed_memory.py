"""Managed memory: pages that migrate when a kernel faults on them, and are evicted when near memory is full.

Faults are handled in batches. In every batch the driver looks at the blocks (2 MB) with faults. It divides a block into
regions, from one page up in powers of two; a region migrates whole if more than `grow_share` of it is near or wanted.
So one fault brings between a page and a block, the more the more of its neighbours fault. Whole blocks are evicted,
first the one that received a page longest ago, since the device does not report which pages it reads. NVIDIA's open
driver works this way (nvidia-uvm: uvm_perf_prefetch.c, uvm_pmm_gpu.c); Ganguly et al., ISCA 2019, found the same by
measurement.

Pages that are mapped (the hint accessed-by) do not fault: a kernel reads them where they are. The device counts its
requests to each far block, and where the driver follows these counters (`counted_requests`), a block that was read
often migrates while there is room. Over PCIe it does not, so only a prefetch brings mapped pages near.

Left out: thrashing detection, and evictions of less than a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.devices.model.figures import Paging
from isthmus.kernels.loops.gather import pack
from isthmus.link.link import Array, Extents
from isthmus.link.packers import ALONE, Packers

AHEAD = 8192  # pages examined together; only limits the time per step


@dataclass
class Migrated:
    """Counts of what was migrated and evicted."""

    bytes: int = 0
    faults: int = 0
    batches: int = 0
    migrations: int = 0  # runs of consecutive pages, each moved at once
    evicted: int = 0  # bytes


class ManagedMemory:
    """Far sections cached by page in a region of near memory. Not for several threads at once."""

    def __init__(self, sections: list[Array], paging: Paging, memory: Array | int) -> None:
        """`memory` holds the pages; if it is only a number of bytes, pages are counted, and `read` fills no buffer."""
        self._sections, self._paging = sections, paging
        page = paging.page_bytes
        self._per_block = paging.block_bytes // page
        self.room = (memory if isinstance(memory, int) else memory.size) // page  # pages
        self._memory = None if isinstance(memory, int) else memory
        blocks = [-(-section.size // paging.block_bytes) for section in sections]
        self._first = np.concatenate([[0], np.cumsum(blocks)]) * self._per_block  # page of each section's start
        self._slots = np.full(int(self._first[-1]), -1, np.int64)  # slot of each page; -1: the page is far
        self._exists = np.zeros(self._slots.size, np.bool_)
        for begin, section in zip(self._first, sections, strict=False):
            self._exists[begin : begin + -(-section.size // page)] = True
        self._free = np.arange(self.room)  # slots, of which the first `_left` are free
        self._left = self.room
        self._counts = np.zeros(sum(blocks), np.int64)  # pages of each block that are near
        self._filled = np.zeros(sum(blocks), np.int64)  # when each block last received a page
        self._time = 0
        self._requests = np.zeros(sum(blocks), np.int64)  # to far pages of each block, since it last migrated

    @property
    def free_bytes(self) -> int:
        return self._left * self._paging.page_bytes

    def near(self, extents: Extents) -> Array:
        """Which extents are entirely near."""
        pieces = self._pieces(extents)
        absent = np.bincount(pieces.extents[self._slots[pieces.pages] < 0], minlength=extents.lengths.size)
        return np.asarray(absent == 0)

    def read(self, extents: Extents, buffer: Array) -> Migrated:
        """Fill `buffer` with extents; their far pages migrate first."""
        done, at = Migrated(), 0
        pieces = self._pieces(extents)
        while at < pieces.pages.size:
            stop = at + self._batch(pieces.pages[at : at + min(self.room, AHEAD)])
            wanted = np.unique(pieces.pages[at:stop])
            faulted = wanted[self._slots[wanted] < 0]
            if faulted.size:
                done.faults += int(faulted.size)
                done.batches += 1
                self._migrate(self._grown(faulted, wanted), wanted, done)
            if self._memory is not None:
                begins = self._slots[pieces.pages[at:stop]] * self._paging.page_bytes + pieces.starts[at:stop]
                pack(self._memory, begins, pieces.lengths[at:stop], pieces.places[at:stop], buffer, 0, stop - at)
            at = stop
        return done

    def mapped(self, extents: Extents, line: int) -> tuple[Extents, Migrated]:
        """Let a kernel read mapped pages, by requests of up to a `line` of bytes.

        Returns the parts of extents that it reads from far memory, and what its requests made migrate after that. A
        block that they were enough for comes near, without faults, until near memory is full; none is evicted.
        """
        done = Migrated()
        pieces = self._pieces(extents)
        far = np.flatnonzero(self._slots[pieces.pages] < 0)
        page, pages = self._paging.page_bytes, pieces.pages[far]
        sections = extents.sections[pieces.extents[far]]
        starts, lengths = pieces.starts[far], pieces.lengths[far]
        if self._paging.counted_requests and self._left:
            lines = (starts + lengths - 1) // line - starts // line + 1
            np.add.at(self._requests, pages // self._per_block, lines)
            often = np.flatnonzero(self._requests >= self._paging.counted_requests)
            table = (often[:, None] * self._per_block + np.arange(self._per_block)).ravel()
            come = table[(self._slots[table] < 0) & self._exists[table]][: self._left]
            self._requests[often] = 0
            self._migrate(come, come, done)
        offsets = (pages - self._first[sections]) * page + starts
        return Extents(sections, offsets, lengths, np.zeros(far.size, np.int64)), done

    def prefetch(self, section: int, begin: int, end: int) -> Migrated:
        """Bring bytes begin:end of a section near before a kernel faults on them; may evict earlier pages."""
        done = Migrated()
        page = self._paging.page_bytes
        pages = self._first[section] + np.arange(begin // page, -(-min(end, self._sections[section].size) // page))
        for at in range(0, pages.size, max(1, min(self.room, self._per_block))):
            wanted = pages[at : at + min(self.room, self._per_block)]
            self._migrate(wanted[self._slots[wanted] < 0], wanted, done)
        return done

    def _batch(self, pages: Array) -> int:
        """How many of these pages a kernel reads before a batch of faults is full."""
        absent = self._slots[pages] < 0
        absent[1:] &= pages[1:] != pages[:-1]
        full = int(np.searchsorted(np.cumsum(absent), self._paging.batch_faults, "right"))
        return max(full, 1)

    def _grown(self, faulted: Array, wanted: Array) -> Array:
        """Far pages that migrate with these faults; only the faulted ones if the rest does not fit."""
        blocks = np.unique(faulted // self._per_block)
        table = blocks[:, None] * self._per_block + np.arange(self._per_block)
        near = self._slots[table] >= 0
        faults = np.isin(table, faulted, assume_unique=True)
        come = table[grow(near, faults, self._paging) & ~near & self._exists[table]]
        stay = wanted.size - faulted.size
        return come if come.size + stay <= self.room else faulted

    def _migrate(self, come: Array, wanted: Array, done: Migrated) -> None:
        """Bring far pages near, evicting others if needed; those of this request stay."""
        if not come.size:
            return
        self._make_room(int(come.size), wanted, np.unique(np.concatenate([come, wanted]) // self._per_block), done)
        self._left -= int(come.size)
        slots = self._free[self._left : self._left + come.size]
        self._slots[come] = slots
        self._time += 1
        blocks, counts = np.unique(come // self._per_block, return_counts=True)
        self._counts[blocks] += counts
        self._filled[blocks] = self._time
        page = self._paging.page_bytes
        if self._memory is not None:
            places = np.searchsorted(self._first, come, "right") - 1
            copy(
                self._sections,
                Extents(places, (come - self._first[places]) * page, np.full(come.size, page), slots * page),
                self._memory,
            )
        done.bytes += int(come.size) * page
        done.migrations += 1 + int(((np.diff(come) != 1) | (np.diff(come // self._per_block) != 0)).sum())

    def _make_room(self, pages: int, wanted: Array, busy: Array, done: Migrated) -> None:
        """Evict blocks that are not busy, the longest filled first; if that is too little, unwanted pages of busy
        blocks.
        """
        short = pages - self._left
        if short <= 0:
            return
        idle = np.setdiff1d(np.flatnonzero(self._counts), busy, assume_unique=True)
        idle = idle[np.argsort(self._filled[idle], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(self._counts[idle]), short)) + 1
        gone = self._pages_of(idle[:enough])
        if gone.size < short:
            spare = np.setdiff1d(self._pages_of(busy), wanted, assume_unique=True)
            gone = np.concatenate([gone, spare[: short - gone.size]])
        self._free[self._left : self._left + gone.size] = self._slots[gone]
        self._left += int(gone.size)
        self._slots[gone] = -1
        np.subtract.at(self._counts, gone // self._per_block, 1)
        done.evicted += int(gone.size) * self._paging.page_bytes

    def _pages_of(self, blocks: Array) -> Array:
        """Near pages of some blocks."""
        table = (blocks[:, None] * self._per_block + np.arange(self._per_block)).ravel()
        return table[self._slots[table] >= 0]

    def _pieces(self, extents: Extents) -> Pieces:
        """Extents cut at page boundaries."""
        page = self._paging.page_bytes
        sizes = np.array([section.size for section in self._sections])[extents.sections]
        ends = np.minimum(extents.offsets + extents.lengths, sizes)
        first = extents.offsets // page
        counts = np.maximum(-(-ends // page) - first, 0)
        which = np.repeat(np.arange(counts.size), counts)
        pages = first[which] + np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
        begins = np.maximum(extents.offsets[which], pages * page)
        stops = np.minimum(ends[which], (pages + 1) * page)
        places = extents.places[which] + begins - extents.offsets[which]
        return Pieces(
            which, self._first[extents.sections[which]] + pages, begins - pages * page, stops - begins, places
        )


@dataclass
class Pieces:
    """Parts of extents that lie in one page each."""

    extents: Array  # which one
    pages: Array
    starts: Array  # bytes from the page's start
    lengths: Array
    places: Array


def grow(near: Array, faults: Array, paging: Paging) -> Array:
    """Which pages of some blocks migrate, given those that are near and those that faulted; one row for each block."""
    rows, pages = faults.shape
    come = faults.copy()
    regions = come.reshape(rows, -1, paging.first_bytes // paging.page_bytes)
    regions |= regions.any(axis=2, keepdims=True)
    full = near | come
    size = 2 * regions.shape[2]
    while size <= pages:
        counts = full.reshape(rows, -1, size).sum(axis=2)
        dense = (counts > paging.grow_share * size) & faults.reshape(rows, -1, size).any(axis=2)
        come |= np.repeat(dense, size, axis=1)
        size *= 2
    return come


def copy(sections: list[Array], extents: Extents, out: Array, packers: Packers = ALONE) -> int:
    """Copy extents out of sections; an extent may reach past the end of its section. Returns the bytes copied.

    With several packers, the places of a section's extents must ascend.
    """
    copied = 0
    for section in np.unique(extents.sections).tolist():
        mine = extents.sections == section
        begins, places = extents.offsets[mine], extents.places[mine]
        lengths = np.clip(sections[section].size - begins, 0, extents.lengths[mine])
        packers.pack(sections[section], begins, lengths, places, out)
        copied += int(lengths.sum())
    return copied
