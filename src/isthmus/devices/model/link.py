"""The modelled link: far memory is an array, near memory a buffer, and between them a device's interconnect.

Bytes really move, so engines and kernels work as on any link. The traffic that the interconnect would see is counted
exactly. `costs.py` computes seconds from the counts, and `resource_clock.py` what overlaps. The engine calls one of:

| call | like | counted |
|---|---|---|
| `move` | cudaMemcpyAsync of every extent | bytes in full requests |
| `gather` | a kernel that reads mapped memory | requests of 32 to 128 bytes, list by list |
| `pack` | the host packs lists, then one cudaMemcpyAsync | packed bytes and their index |
| `page` | a kernel reads managed memory | pages, faults in batches, evictions; pages left far, as `gather` |
| `prefetch` | cudaMemPrefetchAsync | pages, without faults |
| `copy_back` | cudaMemcpy to the host, waited for | bytes to the host |

Each call adds to the `Moved` of its channel, which `take` returns and resets.
"""

from __future__ import annotations

import threading

import numpy as np

from isthmus.devices.model import costs
from isthmus.devices.model.figures import GpuFigures
from isthmus.devices.model.managed_memory import ManagedMemory, Migrated, copy
from isthmus.errors import BudgetError
from isthmus.graph.store.files import aligned_empty
from isthmus.link import requests
from isthmus.link.hints import Hint
from isthmus.link.link import CHANNELS, Array, Extents, Link, Moved
from isthmus.link.requests import ListSpans


class ModelLink(Link):
    """Far arrays behind a modelled interconnect. `page_bytes` of near memory hold managed pages, which follow the hint.

    There is one reader thread, so that repeated runs count the same.
    """

    readers = 1
    shares = False
    packs = True
    has_pages = True

    def __init__(self, arrays: list[Array], device: GpuFigures, page_bytes: int = 0, hint: Hint = Hint.NONE) -> None:
        self.device = device
        self.profile = device.profile()
        self.notes = [f"seconds are modelled: {device.name}"]
        self._sections = [array.view(np.uint8) for array in arrays]
        self._hint = hint
        self._moved = [Moved() for _ in range(CHANNELS)]
        self.total = Moved()
        self._lock = threading.Lock()
        self.pages: ManagedMemory | None = None
        if page_bytes:
            if page_bytes < device.managed.page_bytes:
                raise BudgetError(
                    f"managed memory needs at least one page of {device.managed.page_bytes} bytes; got {page_bytes}"
                )
            self.pages = ManagedMemory(self._sections, device.managed, self._page_memory(page_bytes))

    def let_go(self, section: int) -> None:
        """A section that was brought near whole is no longer needed there."""

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        moved = self._carry(extents, buffer, channel)
        copies = int(extents.lengths.size)
        return self._count(
            channel, Moved(moved, 0, self._full(moved), copies, link_seconds=costs.bulk(self.device, moved, copies))
        )

    def gather(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        """Fill `buffer` with extents that hold the lists a kernel reads; returns the requests it would make."""
        self._show(extents, buffer)
        return self._count(channel, self.reads(lists))

    def reads(self, lists: ListSpans) -> Moved:
        """The traffic of a kernel that reads these lists where they are. It is not added to what the link has moved."""
        return self._direct(lists.extents())

    def pack(
        self, extents: Extents, buffer: Array, index_bytes: int, channel: int = 0, cores: int | None = None
    ) -> int:
        """Fill `buffer` with extents of any length that the host packs first.

        `index_bytes` is the size of the index of list starts; both go in one copy. `cores`: how many pack; None means
        all.
        """
        packed = self._carry_packed(extents, buffer, channel, cores)
        moved = packed + index_bytes
        return self._count(
            channel,
            Moved(
                moved,
                0,
                self._full(moved),
                1,
                link_seconds=costs.bulk(self.device, moved, 1),
                host_seconds=costs.compaction(
                    self.device, requests.fetched(extents, self.device.host.fetch_bytes), moved, cores
                ),
            ),
        )

    def page(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        """Fill `buffer` with extents that hold the lists a kernel reads from managed pages.

        Far pages migrate at a fault. If pages are mapped from the start, they are read where they are.
        """
        with self._lock:
            pages = self._managed()
            if not self._hint.direct:
                moved = self._paged(pages.read(extents, buffer))
            else:
                far, migrated = pages.mapped(lists.extents(), self.device.link.request_bytes)
                moved = self._direct(far)
                moved.add(self._brought(migrated))
                here = pages.near(extents)
                pages.read(some(extents, here), buffer)
                self._show(some(extents, ~here), buffer)
        return self._count(channel, moved)

    def prefetch(self, section: int, begin: int, end: int, channel: int = 0) -> int:
        """Load the pages of bytes begin:end of a section."""
        with self._lock:
            moved = self._brought(self._managed().prefetch(section, begin, end))
        return self._count(channel, moved)

    def whole(self, section: int, channel: int = 0) -> Array:
        """A section copied whole into near memory, where it stays."""
        size = self._sections[section].size
        self._count(channel, Moved(size, 0, self._full(size), 1, link_seconds=costs.bulk(self.device, size)))
        return self._sections[section]

    def copy_back(self, size: int, channel: int = 0) -> int:
        """Count bytes copied to the host, such as the frontier. Host and device share memory here, so no bytes move."""
        seconds = float(costs.copy_back(self.device, size, 1))
        return self._count(channel, Moved(0, size, self._full(size), 1, link_seconds=seconds))

    def take(self, channel: int = 0) -> Moved:
        """What the channel has moved since the last call."""
        moved, self._moved[channel] = self._moved[channel], Moved()
        return moved

    def _page_memory(self, size: int) -> Array | int:
        """Near memory for managed pages, or only its size."""
        return aligned_empty(size, np.uint8)

    def _carry(self, extents: Extents, buffer: Array, channel: int) -> int:
        """Copy extents into a buffer; returns the bytes."""
        return copy(self._sections, extents, buffer.view(np.uint8))

    def _carry_packed(self, extents: Extents, buffer: Array, channel: int, cores: int | None) -> int:
        """The same for extents that the host packs first, with this number of cores; None: all."""
        return self._carry(extents, buffer, channel)

    def _show(self, extents: Extents, buffer: Array) -> None:
        """Let a kernel read extents that stay far."""
        copy(self._sections, extents, buffer.view(np.uint8))

    def _managed(self) -> ManagedMemory:
        if self.pages is None:
            raise BudgetError("no near memory was set aside for managed pages")
        return self.pages

    def _direct(self, lists: Extents) -> Moved:
        """The traffic of lists that a kernel reads by zero-copy."""
        link = self.device.link
        counts = requests.count(lists.offsets, lists.lengths, link.request_bytes, link.sector_bytes)
        sectors = int(counts @ np.arange(1, counts.size + 1))
        return Moved(
            sectors * link.sector_bytes, 0, int(counts.sum()), link_seconds=float(costs.direct(self.device, counts))
        )

    def _paged(self, migrated: Migrated) -> Moved:
        """The traffic of pages that migrated by faults."""
        moved = self._brought(migrated)
        seconds = costs.paged(self.device, migrated.bytes, migrated.batches, migrated.migrations, moved.back_bytes)
        moved.faults, moved.batches, moved.link_seconds = migrated.faults, migrated.batches, float(seconds)
        return moved

    def _brought(self, migrated: Migrated) -> Moved:
        """The traffic of pages that migrated without faults."""
        back = migrated.evicted if self._hint.copies_back else 0
        seconds = costs.bulk(self.device, migrated.bytes, migrated.migrations) + back / self.device.link.back_bandwidth
        return Moved(migrated.bytes, back, self._full(migrated.bytes), migrated.migrations, link_seconds=seconds)

    def _full(self, size: int) -> int:
        """The number of full requests that carry `size` bytes."""
        return -(-size // self.device.link.request_bytes)

    def _count(self, channel: int, moved: Moved) -> int:
        self._moved[channel].add(moved)
        with self._lock:
            self.total.add(moved)
        return moved.requests

    def close(self) -> None:
        self._sections = []
        self.pages = None


def some(extents: Extents, which: Array) -> Extents:
    """The extents that a mask picks."""
    return Extents(*(column[which] for column in extents.columns))
