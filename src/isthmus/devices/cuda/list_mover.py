"""Lists that move within a card's memory, or into it: for caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from isthmus.cache.mover import Index, Pair, Rows
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.kernels.skeleton import line_of
from isthmus.link.link import Array

WINDOW = 1 << 20  # entries that move at once
WIDEST = 8  # bytes of an entry


def unmapped(array: Array) -> Array:
    raise NotImplementedError("no kernel reads far lists here")


class ListMover:
    """Moves lists. Columns are the host's: where lists lie, where they go, and their lengths, 24 bytes for each list.

    `far`: a far array as kernels see it. One thread moves lists at a time; others wait.
    """

    def __init__(self, rows: RowSpace, far: Callable[[Array], Array] = unmapped) -> None:
        self.rows, self.space, self._kernels, self._far = rows, rows.space, rows.list_kernels, far
        self.lock = threading.RLock()
        self._scratch: Array | None = None

    def copy(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        """Copy lists to memory that none of them is read from."""
        with self.lock:
            for entries, starts, near_froms, near_tos in self._parts(froms, tos, lengths):
                for source, sink in pairs:
                    self.space.launch(self._kernels.copy_lists, entries, starts, near_froms, near_tos, source, sink)

    def shift(self, froms: Array, tos: Array, lengths: Array, arrays: Sequence[Array]) -> None:
        """Move lists, in the order of their places, towards the front of their memory."""
        with self.lock:
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
        with self.lock:
            mapped = [(self._far(far), sink) for far, sink in pairs]
            for near in self.rows.parts([np.zeros(froms.size, np.uint32), froms, tos, lengths]):
                self.rows.sort(self.rows.kernels.sort_rows, *near)
                for far, sink in mapped:
                    self.rows.each_far_kind(self._kernels.fetch, line_of(far.dtype.itemsize), far, sink)

    def patch(self, columns: tuple[Array, ...], far: tuple[Array, Array, bool], near: tuple[Array, Array]) -> None:
        """The device gets the changes of the batch, and reads the entries that have changed where they are."""
        targets, weights, weighted = far
        with self.lock, CardSpace(self.space.card) as there:
            uploaded = [there.upload(np.ascontiguousarray(column)) for column in columns]
            mapped = (self._far(targets), self._far(weights), weighted)
            there.launch(self._kernels.patch_lists, *uploaded, *mapped, *near)
            there.finish()  # before the host's columns are freed

    def keep(self, rows: Rows, lists: Pair, index: Index, pairs: Sequence[Pair]) -> None:
        vertices, begins, weight_begins, lengths = rows
        whole = (lengths == lists[1][vertices] - lists[0][vertices]) & (lengths > 0)
        with self.lock:
            fill = np.flatnonzero(whole & (index.chosen[vertices] != 0) & (index.held[vertices] == 0))
            vertices, lengths = vertices[fill], lengths[fill]
            for froms, pair in zip((begins, weight_begins), pairs, strict=False):
                self.copy(froms[fill], index.begins[vertices].astype(np.int64), lengths, [pair])
            index.held[vertices] = 1

    def _parts(self, froms: Array, tos: Array, lengths: Array) -> Iterator[tuple[int, Array, Array, Array]]:
        for at in range(0, froms.size, self.rows.room):
            part = slice(at, at + self.rows.room)
            ends = np.cumsum(lengths[part], dtype=np.int64)
            for starts, near_froms, near_tos in self.rows.parts([ends - lengths[part], froms[part], tos[part]], 1):
                yield int(ends[-1]), starts, near_froms, near_tos
