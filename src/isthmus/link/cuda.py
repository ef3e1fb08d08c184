"""The link to a GPU of this machine: edges lie in page-locked host memory, buffers in the GPU's.

It counts what a modelled link counts (`model.py`), in the same way, and bytes cross a real interconnect:

| call | here |
|---|---|
| `move` | a copy for every extent, on a stream of its own; the caller waits for its end |
| `gather` | nothing: the kernel reads mapped memory, whose arrays `far` has |
| `pack` | the host packs into page-locked memory, then a copy for targets and one for weights |
| `page` | nothing: the kernel reads managed memory, whose pages the driver migrates |
| `prefetch` | cudaMemPrefetchAsync |
| `whole` | a copy of a section, which stays near |

A reader thread calls these while the worker's kernels run on other buffers, so transfers and packing overlap kernels. They do not
overlap each other: a delivery is packed, then copied.

With pages, edges lie in managed memory, with the hint of the recipe. A GPU does not say which of its pages are near, how many faults it
had, or what it evicted: these counts are those of the modelled pages (`managed.py`) with a budget of `page_bytes`. The driver
itself uses whatever memory is free.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isthmus.kernels.cuda.card import Card, Shared
from isthmus.link.card_space import taken
from isthmus.link.device import Device
from isthmus.link.hints import Hint
from isthmus.link.link import CHANNELS, Array, Extents
from isthmus.link.managed import copy
from isthmus.link.model import ModelLink


def costs_note(device: Device, card: Card) -> str:
    """Which costs decide, for the trace."""
    if device.measured:
        return f"modelled seconds follow the costs measured on {device.name}"
    return f"costs and modelled seconds are those of {device.name}: this GPU's link was not measured"


class CudaLink(ModelLink):
    """Far arrays in page-locked memory, in front of a card. All memory that it takes is freed when it closes."""

    kernels_reach_far = True  # a kernel can read lists where they are

    def __init__(
        self, arrays: list[Array], device: Device, card: Card, page_bytes: int = 0, hint: Hint = Hint.NONE,
        registered: Callable[[Array], Shared] | None = None,
    ) -> None:  # fmt: skip
        """`registered`: page-locks an array where it is, and frees it some time after the link; otherwise arrays are copied."""
        super().__init__(arrays, device, page_bytes, hint)
        self.card = card
        self.notes = [costs_note(device, card), *card.notes]
        self._mapped: list[Shared] = []  # by section; with pages, managed memory
        self._taken: list[Array | Shared] = []  # all memory that is freed at the end
        self._whole: dict[int, Array] = {}
        self._staging: list[Array | None] = [None] * CHANNELS
        try:
            self._stream = card.stream()
            for section in self._sections:
                self._mapped.append(self._reachable(section, page_bytes > 0) if registered is None else registered(section))
            if page_bytes:
                self.notes.append("pages, faults and evictions are modelled: a GPU does not report them")
                for memory in self._mapped:
                    card.advise(memory, hint.advice)
        except BaseException:
            self.close()
            raise
        self._sections = [mapped.host for mapped in self._mapped]

    def _reachable(self, section: Array, managed: bool) -> Shared:
        """A copy of a section that kernels reach."""
        shared: Shared = taken(self.card, self.card.managed if managed else self.card.mapped, section)
        self._taken.append(shared)
        return shared

    def near(self, size: int) -> Array:
        memory: Array = taken(self.card, self.card.near, size, np.uint8)
        self._taken.append(memory)
        return memory

    def managed(self, array: Array) -> Shared:
        """A copy of an array in memory that host and kernels both use, for as long as the link is open."""
        shared: Shared = taken(self.card, self.card.managed, array)
        self._taken.append(shared)
        return shared

    def far(self, section: int) -> Array:
        """A section as kernels see it, as bytes."""
        far: Array = self._mapped[section].device
        return far

    def whole(self, section: int, channel: int = 0) -> Array:
        host = super().whole(section, channel)
        if section not in self._whole:
            self._whole[section] = self.near(host.size)
            self.card.copy(self._whole[section], host, self._stream)
            self._finish()
        return self._whole[section]

    def _carry(self, extents: Extents, buffer: Array) -> int:
        moved = 0
        for section, offset, length, place in zip(*(column.tolist() for column in extents.columns), strict=True):
            host = self._sections[section][offset : offset + length]  # shorter at the end of the array
            if host.size:
                self.card.copy(buffer[place : place + host.size], host, self._stream)
                moved += host.size
        self._finish()
        return moved

    def _carry_packed(self, extents: Extents, buffer: Array, channel: int) -> int:
        staging = self._staging[channel]
        if staging is None or staging.size < buffer.size:
            staging = self._staging[channel] = taken(self.card, self.card.pinned, buffer.size, np.uint8)
            self._taken.append(staging)
        packed = copy(self._sections, extents, staging)
        for section in np.unique(extents.sections).tolist():
            places, lengths = extents.places[extents.sections == section], extents.lengths[extents.sections == section]
            begin, end = int(places[0]), int(places[-1] + lengths[-1])  # packed lists lie side by side
            if begin < end:
                self.card.copy(buffer[begin:end], staging[begin:end], self._stream)
        self._finish()
        return packed

    def prefetch(self, section: int, begin: int, end: int, channel: int = 0) -> int:
        memory = self._mapped[section]
        self.card.prefetch(memory, begin, min(end, memory.host.nbytes), self._stream)
        self._finish()
        return super().prefetch(section, begin, end, channel)

    def _page_memory(self, size: int) -> Array | int:
        """Pages are near or far as the driver decides."""
        return size

    def _show(self, extents: Extents, buffer: Array) -> None:
        """Nothing moves before a kernel asks for it."""

    def _finish(self) -> None:
        self.card.finish(self.card.record(self._stream))

    def close(self) -> None:
        super().close()
        for memory in self._taken:
            self.card.free(memory)
        self._mapped, self._taken, self._whole, self._staging = [], [], {}, [None] * CHANNELS
