"""Lists one after the other in the memory of a GPU: the layout of `cache/contiguous.py`, made and filled by kernels.

Only which lists are held is known to the host as well (in managed memory), because the host looks up the rows of
misses. Places differ from those on the host in nothing that is counted. A delivery from here has no begins:
`Delivery.places` has those of all vertices, and the rows are made on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.cache.layout import Layout
from isthmus.cache.mover import Attached
from isthmus.cache.ranking import HOTNESS
from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.devices.cuda.ranking import key_bytes, ranges
from isthmus.engines.engine import Delivery, Rows
from isthmus.graph.lists import Lists
from isthmus.link.link import Array


class CudaContiguous(Layout):
    """Lists of one side in near memory. Which are chosen, and where they lie, is known to the GPU only."""

    def __init__(
        self,
        link: CudaLink | None,
        memory: Array,
        keys: int,
        dtypes: tuple[Any, Any],
        longest: int,
        team: Any,
        index: Array,
    ) -> None:
        """`index`: near memory, of which the counts take the first part."""
        super().__init__(memory, dtypes)
        self.longest = self.capacity
        self.count = 0  # lists that have a place
        if not self.capacity:
            return
        assert link is not None, "contiguous lists take memory from a link"
        place = np.dtype(np.uint32 if self.capacity < 1 << 32 else np.int64)
        index = index[-(-key_bytes(HOTNESS) * keys // 8) * 8 :]
        if index.size < keys * (place.itemsize + 4 + 1):
            index = link.near(keys * (place.itemsize + 4 + 1))
        self.places, index = index[: keys * place.itemsize].view(place), index[keys * place.itemsize :]
        self.order = index[: 4 * keys].view(np.uint32)  # vertices, in the order of their lists in memory
        self.chosen = index[4 * keys : 5 * keys]
        self._held = link.managed(np.zeros(keys, np.uint8))
        self.held = self._held.host  # as the host sees it

    def attach(self, attached: Attached | None) -> None:
        super().attach(attached)
        if attached is not None and self.capacity:
            self._mover.space.share(self._held)

    @property
    def _mover(self) -> ListMover:
        mover = self.mover
        assert isinstance(mover, ListMover)
        return mover

    def _near_lists(self, lists: Lists) -> tuple[Array, Array]:
        assert self.attached is not None
        return self.attached.lists(lists)

    def begins_of(self, keys: Array) -> Array:
        return np.broadcast_to(np.int64(-1), keys.shape)

    def forget(self) -> None:
        """The lists keep their places."""
        if self.capacity:
            self.held[:] = 0

    # Laying out

    def replace(self, found: Array, lists: Sequence[Lists], heat: Callable[[Array], Array], changed: Array) -> Array:
        (own,), first, whole = lists, np.zeros(1, np.int64), np.array([self.chosen.size])
        self._mover.copy(first, first, whole, [(found, self.chosen)])
        with CardSpace(self._mover.space.card) as there:
            there.share(self._held)
            near = self._near_lists(own)
            self._place_coming(there, near, *self._move_staying(there, near))
        return changed[:0]

    def _move_staying(self, there: CardSpace, lists: tuple[Array, Array]) -> tuple[int, int]:
        """Drop lists that are not chosen, and move those that stay to the front; returns how many stay, and their
        entries.
        """
        run, mover = self._mover.rows.list_kernels, self._mover
        most = max((last - first for first, last in ranges(self.count)), default=0)
        columns = there.near_each((most, np.uint32), *5 * [(most, np.int64)])
        staying = entries = 0
        for first, last in ranges(self.count):
            some, ones, sums, starts, froms, tos = (each[: last - first] for each in columns)
            there.launch(run.find_staying, first, last, self.order, self.chosen, self.held, *lists, some, ones, sums)
            there.scan(ones)
            there.scan(sums)
            given = (last - first, some, ones, sums, *lists, staying, entries)
            there.launch(run.place_staying, *given, self.places, self.order, starts, froms, tos)
            count, size = there.number(ones, last - first - 1), there.number(sums, last - first - 1)
            if count and staying + count < last:  # else all lists so far stay where they are
                mover.shift_there(size, starts[:count], froms[:count], tos[:count], self.near)
                mover.space.finish()  # before the next lists use the columns
            staying, entries = staying + count, entries + size
        there.free_each(list(columns))
        return staying, entries

    def _place_coming(self, there: CardSpace, lists: tuple[Array, Array], placed: int, entries: int) -> None:
        """Reserve space for chosen lists that are still to come, behind `placed` others with `entries`."""
        run, keys = self._mover.rows.list_kernels, self.chosen.size
        columns = there.near_each(*2 * [(max((last - first for first, last in ranges(keys)), default=0), np.int64)])
        for first, last in ranges(keys):
            ones, sums = (each[: last - first] for each in columns)
            there.launch(run.find_coming, first, last, self.chosen, self.held, *lists, ones, sums)
            there.scan(ones)
            there.scan(sums)
            given = (first, last, ones, sums, *lists, placed, entries)
            there.launch(run.place_coming, *given, self.places, self.order)
            placed += there.number(ones, last - first - 1)
            entries += there.number(sums, last - first - 1)
        self.count = placed

    # Filling

    def keep(self, delivery: Delivery, offset: int) -> None:
        """Rows are chosen, sorted and copied on the device; there a range need not be looked up by the host."""
        mover = self._mover
        rows, run = mover.rows, mover.rows.list_kernels
        index = (self.chosen, self.held, *self._near_lists(delivery.task.side.lists))
        with mover.lock:
            if delivery.whole is None:
                edges = delivery.edges
                assert isinstance(edges, Rows)
                for part in rows.parts([edges.vertices, edges.begins, edges.weight_begins, edges.lengths]):
                    rows.sort(run.sort_chosen, *part, *index)
                    self._copy_rows(delivery)
                return
            whole = delivery.whole
            for k in range(whole.first.size):
                bounds = [int(each[k]) for each in (whole.begin, whole.end, whole.base, whole.weight_base)]
                for first, last in rows.ranges(int(whole.first[k]), int(whole.last[k])):
                    rows.sort(run.sort_chosen_range, first, last, *bounds, *index)
                    self._copy_rows(delivery)
            mover.space.finish()

    def _copy_rows(self, delivery: Delivery) -> None:
        """Copy the sorted rows of a delivery to their places."""
        weighted = self.weights is not None and delivery.weights is not None
        weights = (delivery.weights, True) if weighted else (delivery.targets, False)
        near = (self.targets, self.weights if weighted else self.targets)
        self._mover.rows.each_kind(self._mover.rows.list_kernels.keep, self.places, delivery.targets, *weights, *near)
