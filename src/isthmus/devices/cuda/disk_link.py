"""The link to a GPU for stores larger than the host's memory: disk -> page-locked buffer -> GPU.

Each reader has two page-locked buffers. While the copies out of one are under way, the next blocks are read into the
other; a buffer is read into again only after the event behind its last copy, also for the next delivery. So page-locked
memory is bounded, whatever the size of the store.

A kernel cannot read a disk. So lists that engines read by zero-copy are packed on the host, like those of compaction,
and copied into the buffer of the delivery. What crosses to the GPU is counted as on every GPU; the costs are those of
the slower of disk and interconnect. Managed pages need edges in memory, and are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.devices.cuda.card import Card
from isthmus.devices.cuda.gpu_space import taken
from isthmus.devices.cuda.link import SLOTS, CudaLink, Slot
from isthmus.devices.cuda.staging import Group, groups
from isthmus.devices.model.figures import FASTER, GpuFigures
from isthmus.graph.far import FarArray
from isthmus.graph.store.files import BLOCK
from isthmus.kernels.loops.gather import pack
from isthmus.link.link import Array, Extents, Link, Moved, Profile
from isthmus.link.requests import ListSpans
from isthmus.memory import format_size
from isthmus.threads import uninterrupted

LEAST = 4 * BLOCK  # bytes of a buffer


@dataclass
class DiskSlot(Slot):
    """Page-locked memory for what is read, and a buffer to pack lists. `event` follows the last copy out of either."""

    packed: Array = field(default_factory=lambda: np.empty(0, np.uint8))


class CudaDiskLink(CudaLink):
    """Arrays in files in front of a card. `disk` reads them; this link closes it."""

    kernels_reach_far = False

    def __init__(self, arrays: list[FarArray], disk: Link, device: GpuFigures, card: Card) -> None:
        self._disk = disk
        self._bytes = np.array([array.bytes for array in arrays], np.int64)
        self._idle: list[list[DiskSlot]] = []  # buffers that no reader uses
        self._room = max(LEAST, sizes.now.pinned // BLOCK * BLOCK)
        super().__init__([], slowed(device, disk.profile), card)
        pinned = format_size(2 * SLOTS * self._room)
        self.notes += [*disk.notes, f"edges are read from disk through {pinned} of page-locked memory for each reader"]

    def gather(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        moved = self._carry_packed(extents, buffer, channel, 1)
        return self._copied(moved, channel)

    def whole(self, section: int, channel: int = 0) -> Array:
        size = int(self._bytes[section])
        if section not in self._whole:
            everything = Extents(*(np.array([value]) for value in (section, 0, size, 0)))
            self._bring(section, size, lambda near: self._carry(everything, near, channel))
        self._copied(size, channel)
        return self._whole[section]

    def _copied(self, moved: int, channel: int) -> int:
        """Count bytes that were copied to the GPU at once."""
        seconds = moved / self.device.link.bandwidth + self.device.link.transfer_seconds
        return self._count(channel, Moved(moved, 0, self._full(moved), 1, link_seconds=seconds))

    def _carry(self, extents: Extents, buffer: Array, channel: int) -> int:
        return self._through(extents, buffer, channel, self._send)

    def _carry_packed(self, extents: Extents, buffer: Array, channel: int, cores: int | None) -> int:
        """The reader packs alone, whatever `cores` is."""
        return self._through(extents, buffer, channel, self._send_packed)

    def _through(self, extents: Extents, buffer: Array, channel: int, send: Any) -> int:
        """Read extents from disk, group by group, and send each to the GPU while the next is read. Returns the bytes
        sent.
        """
        moved = 0
        with self._disk.lend() as reads:
            try:
                slots = self._idle.pop()
            except IndexError:
                slots = [DiskSlot(self._pinned(), packed=self._pinned()) for _ in range(SLOTS)]
            try:
                for group in groups(extents, self._bytes, self._room):
                    slots.append(slots.pop(0))  # the one that was read into longest ago comes first
                    slot = slots[-1]
                    self._wait(slot)
                    self._disk.move(group.reads, slot.memory, reads)
                    send(group, slot, buffer)
                    slot.event = self._sent(channel)
                    moved += int(group.lengths.sum())
            except BaseException:
                uninterrupted(self._finish)  # nobody waits for what was sent
                raise
            finally:
                self._idle.append(slots)
        return moved

    def _send(self, group: Group, slot: DiskSlot, buffer: Array) -> None:
        self._copy(slot.memory, group.starts, group, buffer)

    def _send_packed(self, group: Group, slot: DiskSlot, buffer: Array) -> None:
        """Pack the pieces side by side first."""
        starts = np.cumsum(group.lengths) - group.lengths
        pack(slot.memory, group.starts, group.lengths, starts, slot.packed, 0, starts.size)
        self._copy(slot.packed, starts, group, buffer)

    def _copy(self, memory: Array, starts: Array, group: Group, buffer: Array) -> None:
        """Copy the pieces of a group; those that are side by side in both places, together."""
        lengths, places = group.lengths, group.places
        fresh = np.ones(lengths.size, np.bool_)
        fresh[1:] = (places[1:] != places[:-1] + lengths[:-1]) | (starts[1:] != starts[:-1] + lengths[:-1])
        begins = np.flatnonzero(fresh)
        totals = np.add.reduceat(lengths, begins)
        for start, place, length in zip(starts[begins].tolist(), places[begins].tolist(), totals.tolist(), strict=True):
            self.card.copy(buffer[place : place + length], memory[start : start + length], self._stream)

    def _pinned(self) -> Array:
        """Page-locked memory that begins at a block's boundary, as direct reads need it."""
        memory: Array = taken(self.card, self.card.pinned, self._room + BLOCK, np.uint8)
        self._taken.append(memory)
        skip = -memory.ctypes.data % BLOCK
        return memory[skip : skip + self._room]

    def close(self) -> None:
        self._idle = []
        try:
            super().close()
        finally:
            self._disk.close()


def slowed(device: GpuFigures, disk: Profile) -> GpuFigures:
    """A device whose link is no faster than a disk; a request of a kernel costs a block's."""
    link = device.link
    bandwidth = min(link.bandwidth, disk.bandwidth)
    requests = [disk.request_rate * link.sector_bytes * (sectors + 1) for sectors in range(len(link.direct))]
    direct = tuple(min(*both, FASTER * bandwidth) for both in zip(link.direct, requests, strict=True))
    return replace(device, link=replace(link, bandwidth=bandwidth, direct=direct))
