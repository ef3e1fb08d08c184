"""The link to a GPU of this machine: edges lie in page-locked host memory, buffers in the GPU's.

It counts what a modelled link counts (`devices/model/link.py`), in the same way, and bytes cross a real interconnect:

| call | here |
|---|---|
| `move` | a copy for every extent |
| `gather` | nothing: the kernel reads mapped memory, whose arrays `far` has |
| `pack` | the host packs into page-locked memory, then a copy for targets and one for weights |
| `page` | nothing: the kernel reads managed memory, whose pages the driver migrates |
| `prefetch` | cudaMemPrefetchAsync |
| `whole` | a copy of a section, which stays near |

A reader thread calls these while the worker's kernels run on other buffers. It does not wait for its copies, which have
a stream of their own: `arrival` is the event behind them, and the worker waits for it before it runs the delivery. So
the host packs lists while those of the delivery before, or whole partitions, are copied, and both overlap kernels
(HyTGraph, section VIII). Each channel has two page-locked buffers, which are used in turn, each only after the event
behind its last copy. All threads of the session pack, unless few vertices are active. A caller that does not ask for
`arrival` waits for its copies in `take`.

With pages, edges lie in managed memory, with the hint of the recipe. A GPU does not say which of its pages are near,
how many faults it had, or what it evicted: these counts are those of the modelled pages
(`devices/model/managed_memory.py`) with a budget of `page_bytes`. The driver itself uses whatever memory is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.gpu_space import taken
from isthmus.devices.model.figures import GpuFigures
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.managed_memory import copy
from isthmus.link.hints import Hint
from isthmus.link.link import CHANNELS, Array, Extents, Moved
from isthmus.link.packers import ALONE, Packers
from isthmus.threads import uninterrupted

SLOTS = 2  # page-locked buffers of a channel: one is filled while the other is copied


@dataclass
class Slot:
    """Page-locked memory that is filled and then copied; `event` is behind its last copy."""

    memory: Array
    event: Any = None


def costs_note(device: GpuFigures, card: Card) -> str:
    """Which costs decide, for the trace."""
    if device.measured:
        return f"modelled seconds follow the costs measured on {device.name}"
    return f"costs and modelled seconds are those of {device.costs_of or device.name}: this GPU's link was not measured"


class CudaLink(ModelLink):
    """Far arrays in page-locked memory, in front of a card. All memory that it takes is freed when it closes."""

    kernels_reach_far = True  # a kernel can read lists where they are

    def __init__(
        self,
        arrays: Sequence[Array | Shared],
        device: GpuFigures,
        card: Card,
        page_bytes: int = 0,
        hint: Hint = Hint.NONE,
        threads: int = 1,
    ) -> None:
        """Kernels reach an array that is `Shared`, and somebody else frees it after the link; other arrays are copied.

        `threads` of the host pack lists.
        """
        super().__init__([each.host if isinstance(each, Shared) else each for each in arrays], device, page_bytes, hint)
        self.card, self._packers = card, Packers(threads)
        self.notes = [costs_note(device, card), *card.notes]
        self._mapped: list[Shared] = []  # by section; with pages, managed memory
        self._taken: list[Array | Shared] = []  # all memory that is freed at the end
        self._whole: dict[int, Array] = {}
        self._staging: list[list[Slot]] = [[] for _ in range(CHANNELS)]  # the one that was filled longest ago first
        self._under_way: list[Any] = [None] * CHANNELS  # events behind the last copies
        try:
            self._stream = taken(card, card.stream)
            for array in arrays:
                self._mapped.append(
                    array if isinstance(array, Shared) else self._reachable(array.view(np.uint8), page_bytes > 0)
                )
            if page_bytes:
                self.notes.append("pages, faults and evictions are modelled: a GPU does not report them")
                for memory in self._mapped:
                    taken(card, card.advise, memory, hint.advice)
        except BaseException:
            self.close()
            raise
        self._sections = [mapped.host for mapped in self._mapped]

    def _reachable(self, section: Array, managed: bool) -> Shared:
        """A copy of a section that kernels reach."""
        shared: Shared = taken(self.card, self.card.managed if managed else self.card.mapped, section)
        self._taken.append(shared)
        return shared

    def begin_thread(self) -> None:
        self.card.begin_thread()

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
            self._bring(section, host.size, lambda near: self.card.copy(near, host, self._stream))
        return self._whole[section]

    def _bring(self, section: int, size: int, send: Callable[[Array], object]) -> None:
        """Bring a section near, where it is known only when all of it has arrived: after an error, another call begins
        anew.
        """
        near = self.near(size)
        try:
            send(near)
            self._finish()
        except BaseException:
            uninterrupted(lambda: self._give_up(near))
            raise
        self._whole[section] = near

    def _give_up(self, near: Array) -> None:
        """Free memory that copies may be under way to."""
        with suppress(Exception):  # of a card that has failed: it copies no more
            self._finish()
        self._free(near)

    def let_go(self, section: int) -> None:
        """Free a section that was copied whole, when no kernel uses it any more."""
        near = self._whole.pop(section, None)
        if near is not None:
            self._free(near)

    def _free(self, near: Array) -> None:
        self._taken = [each for each in self._taken if each is not near]
        self.card.free(near)

    def arrival(self, channel: int = 0) -> Any:
        event, self._under_way[channel] = self._under_way[channel], None
        return event

    def take(self, channel: int = 0) -> Moved:
        event = self.arrival(channel)
        if event is not None:
            self.card.finish(event)
        return super().take(channel)

    def _carry(self, extents: Extents, buffer: Array, channel: int) -> int:
        moved = 0
        for section, offset, length, place in extents.each():
            host = self._sections[section][offset : offset + length]  # shorter at the end of the array
            if host.size:
                self.card.copy(buffer[place : place + host.size], host, self._stream)
                moved += host.size
        self._sent(channel)
        return moved

    def _carry_packed(self, extents: Extents, buffer: Array, channel: int, cores: int | None) -> int:
        slot = self._free_slot(channel, buffer.size)
        packed = copy(self._sections, extents, slot.memory, ALONE if cores == 1 else self._packers)
        for section in np.unique(extents.sections).tolist():
            places, lengths = extents.places[extents.sections == section], extents.lengths[extents.sections == section]
            begin, end = int(places[0]), int(places[-1] + lengths[-1])  # packed lists lie side by side
            if begin < end:
                self.card.copy(buffer[begin:end], slot.memory[begin:end], self._stream)
        slot.event = self._sent(channel)
        return packed

    def _free_slot(self, channel: int, size: int) -> Slot:
        """The buffer that a channel packed into longest ago, when nothing is copied out of it any more."""
        slots = self._staging[channel]
        slot = slots.pop(0) if len(slots) == SLOTS else Slot(np.empty(0, np.uint8))
        self._wait(slot)
        if slot.memory.size < size:
            slot.memory = taken(self.card, self.card.pinned, size, np.uint8)
            self._taken.append(slot.memory)
        slots.append(slot)
        return slot

    def _wait(self, slot: Slot) -> None:
        """Wait until nothing is copied out of a buffer any more."""
        if slot.event is not None:
            self.card.finish(slot.event)
            slot.event = None

    def _sent(self, channel: int) -> Any:
        """The event behind all copies of a channel so far."""
        self._under_way[channel] = taken(self.card, self.card.record, self._stream)
        return self._under_way[channel]

    def prefetch(self, section: int, begin: int, end: int, channel: int = 0) -> int:
        memory = self._mapped[section]
        taken(self.card, self.card.prefetch, memory, begin, min(end, memory.host.nbytes), self._stream)
        self._finish()
        return super().prefetch(section, begin, end, channel)

    def _page_memory(self, size: int) -> Array | int:
        """Pages are near or far as the driver decides."""
        return size

    def _show(self, extents: Extents, buffer: Array) -> None:
        """Nothing moves before a kernel asks for it."""

    def _finish(self) -> None:
        self.card.drain(self._stream)

    def close(self) -> None:
        """Free all memory, also if the card has failed: page-locked memory is the host's."""
        memory, self._taken = self._taken, []
        self._mapped, self._whole, self._staging = [], {}, [[] for _ in range(CHANNELS)]
        with ExitStack() as last:
            for each in reversed(memory):
                last.callback(self.card.free, each)
            if memory:
                last.callback(self._finish)  # copies that nobody waited for still use this memory
            last.callback(self._packers.close)
            super().close()
