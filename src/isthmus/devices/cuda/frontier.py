"""The frontier of a run on a GPU: kernels mark, count and clear; the host gets a bitmap and the activity of partitions.

Marks lie in managed memory, so that parts of a program which change them on the host still work. As long as none does,
only what the host needs to decide crosses the link: an eighth of a byte per vertex and 24 bytes per partition in an
iteration. The edges that were counted for a decision also tell how many edges of whole partitions were followed,
without another look at the marks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.devices.cuda.kernels import rows as kernels
from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions, cut
from isthmus.link.link import Array

if TYPE_CHECKING:
    from isthmus.devices.cuda.worker import OnCard


COUNTERS = 512  # to count all edges: threads that add to the same number wait for each other


class CudaFrontier(Frontier):
    """A frontier that has a list if its vertices fit one queue, marked by the host or by a kernel. On the host until it
    is boarded.
    """

    _on: OnCard | None = None
    _others: Array | None = None  # marks of those that no cache holds
    # by lists: the marks, cuts, and active edges before each cut.
    _counted: Mapping[int, tuple[Array, Array, Array]] = {}

    def __init__(self, vertices: int, threads: int) -> None:
        super().__init__(vertices, threads, repeats=True)

    def attach(self, on: OnCard) -> None:
        """Move to memory that both sides use."""
        self._on, self._kernels = on, kernels.build(on.card.gpu)
        self.marks, self.next_marks = on.managed(self.marks), on.managed(self.next_marks)
        self._bits, self._host_bits = on.near(self.marks.size // 8, np.uint8), np.empty(self.marks.size // 8, np.uint8)
        self._count, self._host_count = on.near(1, np.int64), np.empty(1, np.int64)
        self._near: dict[str, tuple[Any, ...]] = {}  # of partitions: lists, cuts and counts
        self._even: dict[int, Partitions] = {}  # by lists: partitions to count all edges

    def advance(self) -> None:
        assert self._on is not None
        on = self._on
        self.marks, self.next_marks, self.all_active, self._counted = self.next_marks, self.marks, False, {}
        on.launch(self._kernels.fill, self.next_marks, 0)
        self.count, self.list = self._packed(self.marks), None
        if self.count <= self.queues.shape[1]:
            self.list = np.flatnonzero(np.unpackbits(self._host_bits, bitorder="little")).astype(np.uint32)
        self.used[:] = 0

    def without(self, held: Array, scratch: Array, team: Any) -> Frontier:
        """A frontier of the active vertices that are not held: of many, by a kernel if the device knows what is
        held.
        """
        on = self._on
        if self.list is not None or on is None:
            return super().without(held, scratch, team)
        if self._others is None:
            self._others = on.managed(np.zeros_like(self.marks))
        if not on.shares(held):
            return super().without(held, self._others, team)
        others = copy.copy(self)
        others.all_active, others.marks = False, self._others
        on.launch(self._kernels.fill, self._count, 0)
        on.launch(
            self._kernels.mark_others, self.vertices, self.marks, self.all_active, held, self._others, self._count
        )
        others.count = on.number(self._count, 0)
        return others

    def none_next(self) -> bool:
        return self._packed(self.next_marks) == 0

    def _packed(self, marks: Array) -> int:
        """The number of marks; copies them to the host as a bitmap."""
        assert self._on is not None
        on = self._on
        on.launch(self._kernels.fill, self._count, 0)
        on.launch(self._kernels.pack_marks, marks, self._bits, self._count)
        on.copy_back(self._host_count, self._count)
        on.copy_back(self._host_bits, self._bits)
        on.finish()
        return int(self._host_count[0])

    def activity(
        self,
        partitions: Partitions,
        lists: Lists,
        width: int,
        weight_width: int,
        block: int,
        team: Any,
        shares: bool = True,
    ) -> Activity:
        """The activity of each partition: of a few active vertices on the host, else by a kernel."""
        if self.list is not None or shares or self._on is None:
            return super().activity(partitions, lists, width, weight_width, block, team, shares)
        on, count = self._on, len(partitions)
        begins, ends, cuts, *found = self._partitions(partitions, lists)
        for near in found:
            on.launch(self._kernels.fill, near, 0)
        on.launch(
            self._kernels.count_activity,
            self.vertices,
            self.marks,
            self.all_active,
            begins,
            ends,
            cuts,
            width,
            weight_width,
            block,
            *found,
        )
        vertices, edges, blocks = host = tuple(np.empty(count, np.int64) for _ in found)
        for back, near in zip(host, found, strict=True):
            on.copy_back(back, near)
        on.finish()
        before = np.concatenate([[0], np.cumsum(edges)])
        self._counted = {**self._counted, id(lists): (self.marks, partitions.cuts, before)}
        return Activity(vertices, edges, blocks, partitions.arcs, whole_slots=partitions.slots)

    def edges(self, lists: Lists, team: Any) -> int:
        """How many edges the active vertices have: of many, by a kernel."""
        if self.list is not None or self.all_active or self._on is None or not lists.slots:
            return super().edges(lists, team)
        if id(lists) not in self._even:
            self._even[id(lists)] = cut(lists, 1, -(-lists.slots // COUNTERS))
        return int(self.activity(self._even[id(lists)], lists, 1, 0, 1, team, False).edges.sum())

    def counted_edges(self, lists: Lists, begins: Array, ends: Array) -> int | None:
        """The same of ranges between cuts of partitions whose activity was counted."""
        marks, cuts, before = self._counted.get(id(lists), (None, begins, begins))
        if marks is not self.marks or self.all_active:
            return None
        first, last = np.searchsorted(cuts, begins), np.searchsorted(cuts, ends)
        if last.max(initial=0) >= cuts.size or (cuts[first] != begins).any() or (cuts[last] != ends).any():
            return None
        return int((before[last] - before[first]).sum())

    def _partitions(self, partitions: Partitions, lists: Lists) -> tuple[Array, ...]:
        """Lists, cuts and counters in near memory, made once."""
        key = f"{id(partitions)} {id(lists)}"  # both live as long as the run
        if key not in self._near:
            on = self._on
            assert on is not None
            counts = (on.near(len(partitions), np.int64) for _ in range(3))
            self._near[key] = (*on.lists(lists), on.upload(partitions.cuts), *counts)
        return self._near[key]

    def take_deltas(self, values: Array, residual: Array, deltas: Array, team: Any) -> None:
        assert self._on is not None
        self._on.launch(self._kernels.take_deltas, self.vertices, self.marks, self.all_active, values, residual, deltas)
        self._on.finish()
