"""Lists that move within a card's memory, or into it: for caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isthmus.devices.cuda.gpu_space import RowSpace
from isthmus.devices.cuda.kernels.skeleton import line_of
from isthmus.link.link import Array

WINDOW = 1 << 20  # entries that move at once
WIDEST = 8  # bytes of an entry
Pair = tuple[Array, Array]  # where lists are read, and where they are written: targets of both, or weights


class ListMover:
    """Moves lists. Columns are the host's: where lists lie, where they go, and their lengths. One thread at a time."""

    def __init__(self, rows: RowSpace) -> None:
        self.rows, self.space, self._kernels = rows, rows.space, rows.list_kernels
        self._scratch: Array | None = None

    def copy(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        """Copy lists to memory that none of them is read from."""
        for entries, starts, near_froms, near_tos in self._parts(froms, tos, lengths):
            for source, sink in pairs:
                self.space.launch(self._kernels.copy_lists, entries, starts, near_froms, near_tos, source, sink)

    def shift(self, froms: Array, tos: Array, lengths: Array, arrays: Sequence[Array]) -> None:
        """Move lists, in the order of their places, towards the front of their memory."""
        for part in self._parts(froms, tos, lengths):
            self.shift_there(*part, arrays)

    def shift_there(self, entries: int, starts: Array, froms: Array, tos: Array, arrays: Sequence[Array]) -> None:
        """The same for columns in near memory; `starts`: sums of the lengths of the lists before each."""
        if self._scratch is None:
            self._scratch = self.space.near(WINDOW * WIDEST, np.uint8)
        for array in arrays:
            scratch = self._scratch.view(array.dtype)
            for low in range(0, entries, WINDOW):
                high = min(low + WINDOW, entries)
                self.space.launch(self._kernels.take, low, high, starts, froms, array, scratch)
                self.space.launch(self._kernels.put, low, high, starts, tos, scratch, array)

    def fetch(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        """Copy lists from mapped memory by whole lines."""
        for near in self.rows.parts([np.zeros(froms.size, np.uint32), froms, tos, lengths]):
            self.rows.sort(self.rows.kernels.sort_rows, *near)
            for far, sink in pairs:
                self.rows.each_far_kind(self._kernels.fetch, line_of(far.dtype.itemsize), far, sink)

    def _parts(self, froms: Array, tos: Array, lengths: Array) -> Iterator[tuple[int, Array, Array, Array]]:
        for at in range(0, froms.size, self.rows.room):
            part = slice(at, at + self.rows.room)
            ends = np.cumsum(lengths[part], dtype=np.int64)
            for starts, near_froms, near_tos in self.rows.parts([ends - lengths[part], froms[part], tos[part]], 1):
                yield int(ends[-1]), starts, near_froms, near_tos
