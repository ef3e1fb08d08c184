"""The vertex cache in the memory of a GPU: the same lists as `cache/vertex_cache.py` holds, chosen, kept and moved by
kernels.

Only which lists are there is known to the host as well (`filled`, in managed memory), because the host looks up the
rows of misses. Uses are counted from the frontier's marks on the device. The levels of the counting sort come to the
host, 128 KB, which finds the one that no longer fits; which of its vertices do is a prefix sum on the device. So both
caches choose the same vertices.

Places differ from those on the host in nothing that is counted. A delivery from here has no places: `Delivery.places`
has those of all vertices, and the rows are made on the device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus.cache.cache import Cache, Held
from isthmus.cache.hotness import CHANGED, INTERVAL, last_level
from isthmus.cache.vertex_cache import VERTEX_BYTES, all_held, held_of
from isthmus.devices.cuda.kernels import use_counts as kernels
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cache.use_counts import LEVELS
from isthmus.link.link import Array

AT_ONCE = 1 << 19  # vertices, or lists, whose places are computed at once: 23 MB
# Set by `board`.
OF_A_RUN = ("_mover", "_lists", "_ones", "_sizes", "_starts", "_froms", "_tos", "_some", "_levels", "_sums", "_none")


class CudaVertexCache(Cache):
    """Lists of one side in near `memory`. A run boards it before it is used."""

    def __init__(self, side: Side, memory: Array, link: CudaLink, interval: float = INTERVAL) -> None:
        self._side, self._interval = side, interval
        n = self._vertices = len(side.lists)
        self.capacity = max(0, (memory.size - VERTEX_BYTES * n) // side.entry_bytes // 8 * 8)
        self.bytes, self.refreshes = memory.size if self.capacity else 0, 0
        self._engine, self._lock = Held(), threading.Lock()
        self._laid = False
        self._count = self._processed = 0
        if not self.capacity:
            return
        self._targets = memory[: self.capacity * side.width].view(side.target_dtype)
        weights = memory[self.capacity * side.width :][: self.capacity * side.weight_width]
        self._weights = weights.view(side.weight_dtype) if side.weight_width else None
        place = np.dtype(np.uint32 if self.capacity < 1 << 32 else np.int64)
        index = memory[self.capacity * side.entry_bytes :]
        if index.size < n * (place.itemsize + 4 + 3):
            index = link.near(n * (place.itemsize + 4 + 3))
        self._places = index[: n * place.itemsize].view(place)
        index = index[n * place.itemsize :]
        self._order = index[: 4 * n].view(np.uint32)  # vertices, in the order of their lists in memory
        self._hotness, self._wanted, self._found = (index[(4 + k) * n : (5 + k) * n] for k in range(3))
        self._filled = link.managed(np.zeros(n, np.uint8))

    def attach(self, mover: ListMover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        if not self.capacity:
            return
        self._mover, space = mover, mover.space
        self._kernels, self._list_kernels = kernels.build(space.card.gpu), mover.rows.list_kernels
        self._fill = mover.rows.kernels.fill
        space.share(self._filled)
        self._lists = lists(self._side.lists)
        at_once = min(AT_ONCE, self._vertices)
        self._ones, self._sizes, self._starts, self._froms, self._tos = (
            space.near(at_once, np.int64) for _ in range(5)
        )
        self._some = space.near(at_once, np.uint32)
        self._levels, self._sums = space.near(LEVELS, np.int64), space.near(2, np.int64)
        self._none = space.near(1, np.int32)  # weights, where there are none
        if not self._laid:
            space.launch(self._fill, self._hotness, 1)
            self._find_candidates()
            self._wanted, self._found = self._found, self._wanted
            space.launch(self._fill, self._hotness, 0)
            self._lay_out()
            self._laid = True
        space.finish()

    def detach(self) -> None:
        for name in OF_A_RUN:
            vars(self).pop(name, None)

    # Serving

    @property
    def _here(self) -> Array:
        """Which lists are there, as the host sees it."""
        here: Array = self._filled.host
        return here

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        if not self.capacity:
            return frontier, iter(())
        return frontier.without(self._here, self._here, None), map(self._delivery, held_of(frontier, self._here))

    def everything(self) -> Iterator[Delivery]:
        return map(self._delivery, all_held(self._here)) if self.capacity else iter(())

    def _delivery(self, vertices: Array) -> Delivery:
        lists, nowhere = self._side.lists, np.broadcast_to(np.int64(-1), vertices.shape)
        rows = Rows(vertices, nowhere, nowhere, lists.ends[vertices] - lists.begins[vertices])
        task = Task(self._engine, self._side, np.empty(0, np.int64))
        return Delivery(task, self._targets, self._weights, rows, places=self._places)

    # Choosing

    def refresh(self, frontier: Frontier) -> None:
        if not self.capacity:
            return
        space = self._mover.space
        space.launch(self._kernels.heat, self._vertices, frontier.marks, frontier.all_active, self._hotness)
        self._processed += frontier.count
        if self._processed > self._interval * self._vertices:
            self._find_candidates()
            fresh, total = self._fresh_edges()
            self._processed = 0
            space.launch(self._fill, self._hotness, 0)
            if fresh > CHANGED * total:
                self.refreshes += 1
                self._wanted, self._found = self._found, self._wanted
                self._lay_out()
        space.finish()

    def _find_candidates(self) -> None:
        """Mark the hottest vertices whose lists fit, in `found`."""
        space, run = self._mover.space, self._kernels
        space.launch(self._fill, self._levels, 0)
        space.launch(run.count_levels, self._vertices, self._hotness, *self._lists, self.capacity, self._levels)
        edges = np.empty(LEVELS, np.int64)
        space.copy_back(edges, self._levels)
        space.finish()
        level, room = last_level(edges, self.capacity)
        for first in range(0, self._vertices, AT_ONCE):
            last = min(first + AT_ONCE, self._vertices)
            sums = self._sizes[: last - first]
            given = (first, last, self._hotness, *self._lists, self.capacity, level)
            space.launch(run.edges_on_level, *given, sums)
            space.scan(sums)
            space.launch(run.mark_hot, *given, sums, room, self._found)
            room -= space.number(sums, last - first - 1)

    def _fresh_edges(self) -> tuple[int, int]:
        """Edges of the candidates that are not wanted yet, and of all."""
        space, found = self._mover.space, np.empty(2, np.int64)
        space.launch(self._fill, self._sums, 0)
        space.launch(self._kernels.count_fresh, self._vertices, self._found, self._wanted, *self._lists, self._sums)
        space.copy_back(found, self._sums)
        space.finish()
        return int(found[0]), int(found[1])

    def _lay_out(self) -> None:
        """Move the lists that stay together, drop the others, and reserve space for wanted lists that are still to
        come.
        """
        kept, entries = self._keep_staying()
        space, run = self._mover.space, self._kernels
        for first in range(0, self._vertices, AT_ONCE):
            last = min(first + AT_ONCE, self._vertices)
            ones, sums = self._ones[: last - first], self._sizes[: last - first]
            space.launch(run.find_coming, first, last, self._wanted, self._filled.host, *self._lists, ones, sums)
            space.scan(ones)
            space.scan(sums)
            space.launch(
                run.place_coming, first, last, ones, sums, *self._lists, kept, entries, self._places, self._order
            )
            kept += space.number(ones, last - first - 1)
            entries += space.number(sums, last - first - 1)
        self._count = kept

    def _keep_staying(self) -> tuple[int, int]:
        """Move lists that stay to the front; returns how many there are, and their entries."""
        space, run = self._mover.space, self._kernels
        arrays = [self._targets] if self._weights is None else [self._targets, self._weights]
        kept = entries = 0
        for first in range(0, self._count, AT_ONCE):
            last = min(first + AT_ONCE, self._count)
            some, ones, sums = (each[: last - first] for each in (self._some, self._ones, self._sizes))
            space.launch(
                run.find_staying, first, last, self._order, self._wanted, self._here, *self._lists, some, ones, sums
            )
            space.scan(ones)
            space.scan(sums)
            starts, froms, tos = columns = self._starts, self._froms, self._tos
            space.launch(
                run.place_staying,
                last - first,
                some,
                ones,
                sums,
                *self._lists,
                kept,
                entries,
                self._places,
                self._order,
                *columns,
            )
            count, size = space.number(ones, last - first - 1), space.number(sums, last - first - 1)
            if count and kept + count < last:  # else all lists so far stay where they are
                self._mover.shift_there(size, starts[:count], froms[:count], tos[:count], arrays)
            kept, entries = kept + count, entries + size
        return kept, entries

    # Filling

    def keep(self, delivery: Delivery) -> None:
        if delivery.task.side is not self._side or not self.capacity or isinstance(delivery.task.engine, Held):
            return
        with self._lock:
            rows, kept = self._mover.rows, (self._wanted, self._filled.host, *self._lists)
            if delivery.whole is None:
                edges = delivery.edges
                assert isinstance(edges, Rows)
                for part in rows.parts([edges.vertices, edges.begins, edges.weight_begins, edges.lengths]):
                    rows.sort(self._list_kernels.sort_wanted, *part, *kept)
                    self._copy(delivery)
                return
            whole = delivery.whole
            for k in range(whole.first.size):
                bounds = [int(each[k]) for each in (whole.begin, whole.end, whole.base, whole.weight_base)]
                for first, last in rows.ranges(int(whole.first[k]), int(whole.last[k])):
                    rows.sort(self._list_kernels.sort_wanted_range, first, last, *bounds, *kept)
                    self._copy(delivery)
            self._mover.space.finish()

    def _copy(self, delivery: Delivery) -> None:
        """Copy the sorted rows of a delivery to their places."""
        weighted = self._weights is not None and delivery.weights is not None
        weights = (delivery.weights, True) if weighted else (self._none, False)
        kept = self._weights if weighted else self._none
        self._mover.rows.each_kind(
            self._list_kernels.keep, self._places, delivery.targets, *weights, self._targets, kept
        )

    def forget(self) -> None:
        if self.capacity:
            self._here[:] = 0

    def facts(self) -> dict[str, Any]:
        return {"refreshes": self.refreshes}
