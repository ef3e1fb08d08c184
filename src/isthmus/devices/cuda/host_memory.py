"""Far arrays in memory of the host that kernels reach: each is there once, for all links that use it.

| array | memory that kernels read themselves | pages of managed memory |
|---|---|---|
| in memory | page-locked where it lies | copied: the driver allocates managed memory itself |
| in a file | read into page-locked memory | read into managed memory, a piece at a time |

So the host never holds an array twice, except for copies to managed memory. Two kinds of arrays in memory are copied as
well: those that do not begin at a line, where requests would be longer than the link counts, and those that somebody
else has page-locked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack

import numpy as np

from isthmus.devices.cuda.card import AlreadyLocked, Card, Shared
from isthmus.devices.cuda.gpu_space import taken
from isthmus.devices.cuda.kernels.skeleton import LINE
from isthmus.graph.store.files import BLOCK, padded
from isthmus.link.link import Array

Fill = Callable[[Array], object]  # writes an array's blocks into memory of as many bytes


class FarMemory:
    """Arrays by name. All memory is freed when it closes; links that use it are closed before."""

    def __init__(self, card: Card) -> None:
        self._card = card
        # by name, and whether managed: the array, and what is to be freed.
        self._held: dict[tuple[str, bool], tuple[Shared, Shared]] = {}

    def holds(self, name: str, managed: bool) -> bool:
        return (name, managed) in self._held

    def of_name(self, name: str, managed: bool) -> Shared:
        """An array that it holds, as bytes."""
        return self._held[name, managed][0]

    def lock(self, name: str, array: Array, managed: bool) -> Shared:
        """Hold an array that lies in memory."""
        array, card = array.view(np.uint8), self._card
        if managed or array.ctypes.data % LINE:
            return self._hold(name, managed, taken(card, card.managed if managed else card.mapped, array))
        try:
            return self._hold(name, managed, taken(card, card.register, array))
        except AlreadyLocked:
            return self._hold(name, managed, taken(card, card.mapped, array))

    def read(self, name: str, size: int, fill: Fill, managed: bool) -> Shared:
        """Hold an array of this size in bytes, which `fill` reads from a file."""
        card, whole = self._card, padded(size)
        room = taken(card, card.managed_room if managed else card.mapped_room, whole + BLOCK, np.uint8)
        skip = -room.host.ctypes.data % BLOCK  # direct reads need whole blocks
        try:
            fill(room.host[skip : skip + whole])
        except BaseException:
            card.free(room)
            raise
        seen = slice(skip, skip + max(size, 8))  # no empty array: a device has none
        return self._hold(name, managed, Shared(room.host[skip : skip + size], room.device[seen]), room)

    def _hold(self, name: str, managed: bool, array: Shared, freed: Shared | None = None) -> Shared:
        self._held[name, managed] = array, freed or array
        return array

    def keep_only(self, some: Collection[tuple[str, bool]]) -> None:
        """Free all arrays but those of some names, each with whether managed; no link uses them any more."""
        with ExitStack() as last:
            for key in [key for key in self._held if key not in some]:
                last.callback(self._card.free, self._held.pop(key)[1])

    def close(self) -> None:
        self.keep_only(())
