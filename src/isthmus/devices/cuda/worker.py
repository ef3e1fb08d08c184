"""A program on a GPU: its state, its frontier, and kernels in place of the processor's loops.

Loop, schedule, engines and clock are those of a modelled device. What differs is here and in `devices/cuda/link.py`:

- The state's arrays and the frontier's marks lie in managed memory, so `before`, `after` and all other parts of a
  program run on the host as they stand, between launches. Pages migrate if they do; so deltas are taken, and the
  frontier is advanced, by kernels. The state of a stream's programs stays there from batch to batch.
- A delivery is one piece of work. It waits for the event behind the copies into its buffer; then its rows are sorted by
  length, and each kind is a launch (`devices/cuda/kernels/skeleton.py`). The piece ends when its last kernel has, so
  that its buffer can be used again.
- Kernels read the live values. Where launches have a fixed order (`Card.repeats`), they read those that the launch has
  found, and counts are exactly those of the modelled device.

Rows of a delivery are uploaded from the host, beside what the link counts: 28 bytes each, of cached lists 4; a run's
summary has their sum (`row_bytes`), with those that caches upload to move lists. Dense frontiers of whole partitions
need none. Lists that are read by zero-copy and may be followed again are copied into the buffer by a kernel first, so
that they cross the link once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.devices.cpu import RunParts
from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.kernels import skeleton
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.devices.worker import LiveValues, Piece, Worker
from isthmus.engines.engine import Delivery, Ranges, Rows, Side
from isthmus.errors import NotOnGpu
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array
from isthmus.messages import option
from isthmus.programs.program import State
from isthmus.threads import Team

NO_WEIGHTS_HERE = np.zeros(1, np.int32)  # a device has no empty arrays


class OnCard(CardSpace):
    """Memory of one run on a card, freed at its end."""

    def __init__(self, card: Card, lists: CardLists, residency: Any = None) -> None:
        """`residency` has what stays on the card between the batches of a stream."""
        super().__init__(card)
        self._card_lists, self._residency = lists, residency
        self._detached: list[tuple[Array, Shared]] = []  # what stays when the run has ended: on the host, and here

    def reach(self, array: Array) -> Array:
        """An array of the state in memory that both sides use: itself, if it lies there already, or a copy."""
        shared = None if self._residency is None else self._residency.shared(array)
        if shared is None:
            return self.managed(array)
        self.share(shared)
        return array

    def detach(self, own: Array, there: Array) -> Array:
        """The host's own array with what an array there holds. The memory on the card stays for `unchanged`.

        The array is another one only if the program has replaced it by a larger one meanwhile.
        """
        if own is there:
            return own
        if own.shape == there.shape and own.dtype == there.dtype:
            own[...] = there
        else:
            own = np.array(there)
        shared = self._shared.get(id(there))
        if shared is not None:
            self._taken = [each for each in self._taken if each is not shared]
            self.card.keep(shared)
            self._detached.append((own, shared))
        return own

    def unchanged(self, state: State) -> list[tuple[Array, Shared]]:
        """Arrays of a state that has ended, on the host and on the card, where both hold the same: none that was
        taken.
        """
        return [(own, shared) for own, shared in self._detached if not any(own is taken for taken in state.taken)]

    def lists(self, lists: Lists) -> tuple[Array, Array]:
        """Begins and ends of lists in near memory, which stay there after the run."""
        kept = None if self._residency is None else self._residency.positions(lists)
        return self._card_lists.there(lists) if kept is None else kept


class CudaWorker(Worker):
    """Runs deliveries by a program's kernels."""

    def __init__(self, on: OnCard, parts: RunParts, team: Team, sources: LiveValues) -> None:
        link, sides, cache = parts.link, parts.sides, parts.cache
        assert isinstance(link, CudaLink)
        self._on, self._link = on, link
        functions, weighted = parts.program.text(parts.facts), sides[0].weight_width > 0
        self._kernels = skeleton.build(parts.program.name, functions, weighted, parts.program.pulls, on.card.gpu)
        super().__init__(parts.module, parts.program, parts.state, team, parts.least_again, sources)
        self._lists = {side.name: on.lists(side.lists) for side in sides}
        self._rows_there = RowSpace(on, len(sides[0].lists))
        self._no_weights = on.upload(NO_WEIGHTS_HERE)
        # Lists that are read by zero-copy may be followed again, so they stay in the buffer.
        self._gathers = "zero_copy" in parts.recipe.further_runs or cache.bytes > 0
        if cache.bytes:
            cache.attach(ListMover(self._rows_there), on.lists)

    @property
    def uploaded_bytes(self) -> int:  # type: ignore[override]
        return self._rows_there.uploaded_bytes

    def choose_loops(self) -> None:
        """Choose the kernel for the next iteration. A program's own loops are machine code of the processor."""
        if self._program.loops(self._state) is not None:
            own = "its own loops (Program.loops) are compiled for the processor"
            raise NotOnGpu(f"{self._program.name} does not run on a GPU: {own}; use {option('device', 'cpu')}")
        self._kernel = self._kernels.seek if self._program.seeks(self._state) else self._kernels.push

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        far = delivery.task.engine.streams and delivery.far_begins is not None and self._link.kernels_reach_far
        stays = far and not self._gathers
        if stays:
            self._leave_far(delivery)
        self._sources.begin(delivery, delivery.edges, frontier)
        return [lambda member: self._run(delivery, delivery.edges, frontier, stays, far and self._gathers)]

    def _far_arrays(self, side: Side) -> tuple[Array, Array | None]:
        """A side's edges as kernels see them in mapped memory."""
        weights = self._link.far(side.first_section + 1).view(side.weight_dtype) if side.weight_width else None
        return self._link.far(side.first_section).view(side.target_dtype), weights

    def _leave_far(self, delivery: Delivery) -> None:
        """Let the kernel read a delivery's lists where they are, in mapped memory."""
        edges, begins = delivery.edges, delivery.far_begins
        assert isinstance(edges, Rows) and begins is not None
        delivery.edges = Rows(edges.vertices, begins, begins, edges.lengths)
        delivery.targets, delivery.weights = self._far_arrays(delivery.task.side)

    def _rows(self, d: Delivery, lists: Rows, frontier: Frontier) -> list[Piece]:
        return [lambda member: self._run(d, lists, frontier)]

    def _run(
        self, delivery: Delivery, edges: Ranges | Rows, frontier: Frontier, far: bool = False, gather: bool = False
    ) -> None:
        """Run edges. `far`: they lie in far memory; `gather`: so they do, and are brought into the buffer first."""
        side, rows = delivery.task.side, self._rows_there
        self._on.card.begin_thread()
        if delivery.arrival is not None:
            self._on.card.finish(delivery.arrival)
            delivery.arrival = None
        if not isinstance(edges, Rows):
            self._run_ranges(delivery, edges, frontier)
        elif delivery.places is not None:
            for (vertices,) in rows.parts([edges.vertices]):
                rows.sort(rows.list_kernels.sort_held, vertices, delivery.places, *self._lists[side.name])
                self._launch(delivery, frontier)
        else:
            columns = [edges.vertices, edges.begins, edges.weight_begins, edges.lengths]
            if gather and delivery.far_begins is not None:
                columns.append(delivery.far_begins)
            for vertices, begins, weight_begins, lengths, *far_begins in rows.parts(columns):
                if far_begins:
                    self._gather(delivery, vertices, begins, weight_begins, lengths, *far_begins)
                rows.sort(rows.kernels.sort_rows, vertices, begins, weight_begins, lengths)
                self._launch(delivery, frontier, far)
        self._on.finish()
        frontier.used[0] = frontier.queues.shape[1] + 1  # no queue holds what kernels have marked

    def _gather(
        self, d: Delivery, vertices: Array, begins: Array, weight_begins: Array, lengths: Array, far_begins: Array
    ) -> None:
        """Read rows from mapped memory into the buffer, where further runs and the cache find them."""
        rows, (targets, weights) = self._rows_there, self._far_arrays(d.task.side)
        for places, far, near in ((begins, targets, d.targets), (weight_begins, weights, d.weights)):
            if far is not None:
                rows.sort(rows.kernels.sort_rows, vertices, far_begins, places, lengths)
                rows.each_far_kind(rows.list_kernels.fetch, skeleton.line_of(far.dtype.itemsize), far, near)

    def _run_ranges(self, delivery: Delivery, edges: Ranges, frontier: Frontier) -> None:
        rows, lists = self._rows_there, self._lists[delivery.task.side.name]
        for k in range(edges.first.size):
            bounds = [int(each[k]) for each in (edges.begin, edges.end, edges.base, edges.weight_base)]
            for first, last in rows.ranges(int(edges.first[k]), int(edges.last[k])):
                rows.sort(rows.kernels.sort_range, first, last, *bounds, frontier.marks, frontier.all_active, *lists)
                self._launch(delivery, frontier)

    def _launch(self, delivery: Delivery, frontier: Frontier, far: bool = False) -> None:
        """Run the sorted rows, a launch for each kind."""
        side, weights = delivery.task.side, self._no_weights if delivery.weights is None else delivery.weights
        run = self._rows_there.each_far_kind if far else self._rows_there.each_kind
        run(
            self._kernel,
            skeleton.line_of(side.width, side.weight_width),
            *self._lists[side.name],
            delivery.targets,
            weights,
            self._state.arrays,
            self._sources.arrays,
            self._state.params,
            frontier.next_marks,
        )
