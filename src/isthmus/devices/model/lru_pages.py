"""Far arrays behind pages of one size: a kernel that reads a list faults on pages that are not near; the least recently
used go.

This is how Grapin's evaluation pages (Grapin-Page: 4 KB, LRU). The driver of a real device migrates more than a page at
once and evicts whole blocks: `managed_memory.py`. Pages stay from snapshot to snapshot; those that the host has written
to are dropped. Only what moves is counted; kernels read the host's memory.
"""

from __future__ import annotations

import numpy as np

from isthmus.devices.model import costs
from isthmus.devices.model.figures import GpuFigures
from isthmus.devices.model.link import ModelLink
from isthmus.link.link import Array, Moved
from isthmus.link.requests import ListSpans

PAGE = 4096
FAR = -1  # the age of a page that is not near


class LruPages:
    """Which pages of some arrays, by name, are near. Pages of one read have the same age."""

    def __init__(self, near_bytes: int) -> None:
        self.room = near_bytes // PAGE
        self._ages: dict[str, Array] = {}
        self._near = self._now = 0

    def read(self, name: str, begins: Array, lengths: Array) -> tuple[int, int]:
        """A kernel reads extents of an array, in bytes, none empty; returns (pages that came, runs of consecutive
        ones).
        """
        ages = self._sized(name, int((begins + lengths).max()) if begins.size else 0)
        wanted = np.flatnonzero(covered(begins, lengths, ages.size))
        came = runs = 0
        for first in range(0, wanted.size, max(self.room, 1)):  # those of a larger read displace each other
            pages = wanted[first : first + max(self.room, 1)]
            fresh = pages[ages[pages] == FAR]
            came += int(fresh.size)
            runs += int(np.count_nonzero(np.diff(fresh) != 1)) + 1 if fresh.size else 0
            self._now += 1
            if self.room:
                self._evict(int(fresh.size), ages, pages)
                ages[pages] = self._now
                self._near += int(fresh.size)
        return came, runs

    def _evict(self, count: int, ages: Array, wanted: Array) -> None:
        """Evict pages until `count` more fit; those of `wanted` that are near stay."""
        excess = self._near + count - self.room
        if excess > 0:
            ages[wanted[ages[wanted] != FAR]] = self._now
            self._drop(excess)

    def _drop(self, excess: int) -> None:
        """Evict the `excess` least recently used pages."""
        if excess <= 0:
            return
        every = np.concatenate(list(self._ages.values()))
        near = np.flatnonzero(every != FAR)
        gone = near[np.argsort(every[near], kind="stable")[:excess]]
        at = 0
        for each in self._ages.values():
            each[gone[(gone >= at) & (gone < at + each.size)] - at] = FAR
            at += each.size
        self._near -= int(gone.size)

    def limit(self, near_bytes: int) -> None:
        """Lower the budget of pages to `near_bytes`, and evict the least recently used; it is never raised."""
        self.room = min(self.room, max(0, near_bytes) // PAGE)
        self._drop(self._near - self.room)

    def written(self, name: str, begins: Array, lengths: Array) -> None:
        """The host has written to extents of an array: their pages are not near any more."""
        if name not in self._ages:
            return
        ages = self._sized(name, int((begins + lengths).max()) if begins.size else 0)
        gone = np.flatnonzero(covered(begins, lengths, ages.size) & (ages != FAR))
        ages[gone] = FAR
        self._near -= int(gone.size)

    def forget(self, name: str) -> None:
        """The array is another one now."""
        ages = self._ages.pop(name, None)
        self._near -= 0 if ages is None else int(np.count_nonzero(ages != FAR))

    @property
    def near_bytes(self) -> int:
        return self._near * PAGE

    def _sized(self, name: str, size: int) -> Array:
        """The ages of an array's pages, at least those of its first `size` bytes."""
        ages = self._ages.get(name, np.empty(0, np.int64))
        pages = -(-size // PAGE)
        if pages > ages.size:
            ages = np.concatenate([ages, np.full(pages - ages.size, FAR, np.int64)])
        self._ages[name] = ages
        return ages


def covered(begins: Array, lengths: Array, pages: int) -> Array:
    """Which pages hold any byte of these extents."""
    first, last = begins // PAGE, (begins + lengths - 1) // PAGE
    steps = (
        np.bincount(first, minlength=pages + 1)[: pages + 1] - np.bincount(last + 1, minlength=pages + 1)[: pages + 1]
    )
    return np.asarray(np.cumsum(steps)[:pages] > 0)


class LruPagedLink(ModelLink):
    """A modelled link whose kernels read far arrays through pages of `LruPages`."""

    def __init__(self, arrays: list[Array], names: list[str], device: GpuFigures, pages: LruPages) -> None:
        super().__init__(arrays, device)
        self._names, self._lru = names, pages

    def reads(self, lists: ListSpans) -> Moved:
        extents, came, runs = lists.extents(), 0, 0
        for section in np.unique(extents.sections).tolist():
            mine = extents.sections == section
            fresh = self._lru.read(self._names[section], extents.offsets[mine], extents.lengths[mine])
            came, runs = came + fresh[0], runs + fresh[1]
        moved, batches = came * PAGE, -(-came // self.device.managed.batch_faults)
        seconds = float(costs.paged(self.device, moved, batches, runs)) if came else 0.0
        return Moved(moved, 0, self._full(moved), runs, came, batches, seconds)
