"""A program on a GPU: its state, its frontier, and kernels in place of the processor's loops.

Loop, schedule, engines and clock are those of a modelled device. What differs is here and in `link/cuda.py`:

- The state's arrays and the frontier's marks lie in managed memory, so `before`, `after` and all other parts of a program run on the host
  as they stand, between launches. Pages migrate if they do; so deltas are taken, and the frontier is advanced, by kernels.
- A delivery is one piece of work: its rows are sorted by length, and each kind is a launch (`kernels/cuda/skeleton.py`). The piece
  ends when its last kernel has, so that its buffer can be used again.
- Kernels read the live values. Where launches have a fixed order (`Card.repeats`), they read those that the launch has found, and
  counts are exactly those of the modelled device.

Rows of a delivery are uploaded from the host: 28 bytes each, beside what the link counts. Near memory keeps no edges from one delivery to
the next but Scaph's partitions, and pages of managed memory where the driver keeps them: caches of lists are made by the processor's loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isthmus.engines.engine import Delivery, Ranges, Rows, Side
from isthmus.errors import NotOnGpu
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cuda import rows as kernels
from isthmus.kernels.cuda import skeleton
from isthmus.kernels.cuda.card import Card, Shared
from isthmus.link.cuda import CudaLink, taken
from isthmus.link.link import Array
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Program, State
from isthmus.runtime.cuda_frontier import CudaFrontier
from isthmus.runtime.desk import Desk
from isthmus.runtime.launches import Launches
from isthmus.runtime.work import Piece
from isthmus.runtime.worker import Worker
from isthmus.threads import Team

if TYPE_CHECKING:
    from isthmus.runtime.session import Session

ROOM = 1 << 18  # rows that are sorted at once: 22 MB of near memory
NO_WEIGHTS_HERE = np.zeros(1, np.int32)  # a device has no empty arrays
ROW = (np.uint32, np.int64, np.int64, np.int64)  # a row's vertex, its first entry, its first weight, its length


class OnCard:
    """Memory of one run on a card, freed at its end. Use it as a context manager."""

    def __init__(self, card: Card) -> None:
        self.card, self.stream = card, card.stream()
        self._taken: list[Array | Shared] = []
        self._shared: dict[int, Shared] = {}  # by the id of what the host sees
        self._lists: dict[int, tuple[Array, Array]] = {}  # by id: a run's lists live as long as it does
        self.left: list[tuple[Array, Shared]] = []  # what stays when the run has ended: copies on the host, and the card's own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.card.finish(self.card.record(self.stream))  # no kernel may still use it
        while self._taken:
            self.card.free(self._taken.pop())

    def near(self, count: int, dtype: Any) -> Array:
        near: Array = taken(self.card, self.card.near, count, dtype)
        self._taken.append(near)
        return near

    def managed(self, array: Array) -> Array:
        """A copy that both sides use, as the host sees it."""
        shared: Shared = taken(self.card, self.card.managed, array)
        self._taken.append(shared)
        self._shared[id(shared.host)] = shared
        host: Array = shared.host
        return host

    def leave(self, array: Array) -> Array:
        """A copy on the host of an array that both sides use; its memory on the card stays, for whoever takes it from `left`."""
        fresh, shared = np.array(array), self._shared.get(id(array))
        if shared is not None:
            self._taken = [each for each in self._taken if each is not shared]
            self.card.keep(shared)
            self.left.append((fresh, shared))
        return fresh

    def upload(self, array: Array) -> Array:
        near = self.near(array.size, array.dtype)
        self.card.copy(near, array, self.stream)
        return near

    def lists(self, lists: Lists) -> tuple[Array, Array]:
        """Lists in near memory, uploaded once; those without gaps are two views of one array there too."""
        if id(lists) not in self._lists:
            if lists.has_gaps or not len(lists):
                self._lists[id(lists)] = self.upload(np.ascontiguousarray(lists.begins)), self.upload(np.ascontiguousarray(lists.ends))
            else:
                offsets = self.upload(np.append(lists.begins, lists.ends[-1]))
                self._lists[id(lists)] = offsets[:-1], offsets[1:]
        return self._lists[id(lists)]

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self.card.launch(kernel, self.stream, *(self._there(each) for each in arguments))

    def _there(self, argument: Any) -> Any:
        """An argument as a kernel sees it."""
        if isinstance(argument, tuple):
            return tuple(self._there(each) for each in argument)
        shared = self._shared.get(id(argument))
        return argument if shared is None else shared.device

    def copy_back(self, host: Array, near: Array) -> None:
        self.card.copy_back(host, near, self.stream)

    def finish(self) -> None:
        """Wait until all kernels have ended."""
        self.card.finish(self.card.record(self.stream))


def on_gpu(recipe: Recipe) -> Recipe:
    """A recipe without the parts that do not run on a GPU yet."""
    again = {name: runs for name, runs in recipe.further_runs.items() if name not in ("cache", "zero_copy")}  # these would cross the link
    return replace(recipe, cache=recipe.cache if recipe.pages else "none", further_runs=again)


def make_frontier(session: Session) -> Frontier:
    vertices, threads = session.graph.snapshot.vertices, session.team.size
    if session.card is not None:
        return CudaFrontier(vertices, threads)
    return Frontier(vertices, threads, session.model is not None)


@contextmanager
def near_state(session: Session, program: Program, state: State, frontier: Frontier) -> Iterator[OnCard | None]:
    """While inside, a GPU has the state and the frontier in memory that both sides use; without a GPU nothing changes."""
    if session.card is None:
        yield None
        return
    refuse_views(program, state)
    assert isinstance(frontier, CudaFrontier)
    with OnCard(session.card) as on:
        exchange(program, state, tuple(on.managed(array) for array in state.arrays))
        frontier.board(on)
        yield on
        on.finish()
        exchange(program, state, tuple(on.leave(array) for array in state.arrays))


def exchange(program: Program, state: State, fresh: tuple[Array, ...]) -> None:
    """Replace the state's arrays, also where the program itself holds them."""
    by_old = {id(old): new for old, new in zip(state.arrays, fresh, strict=True)}
    for holder in (state.extra, vars(program)):
        holder.update({name: by_old[id(value)] for name, value in holder.items() if id(value) in by_old})
    state.arrays = fresh


def refuse_views(program: Program, state: State) -> None:
    """Raise NotOnGpu if a program holds views of its state's arrays: there it would not see what kernels write."""
    held = [value for value in (*state.extra.values(), *vars(program).values()) if isinstance(value, np.ndarray)]
    views = [value for value in held if not any(value is array for array in state.arrays)]
    if any(np.may_share_memory(view, array) for view in views for array in state.arrays):
        raise NotOnGpu(f"{program.name} does not run on a GPU yet; run it on the processor")


class CudaWorker(Worker):
    """Runs deliveries by a program's kernels. `module` has the processor's loops, `functions` the program's text."""

    def __init__(
        self, on: OnCard, desk: Desk, module: ModuleType, functions: str, program: Program, state: State, team: Team, least_again: int,
        launches: Launches | None,
    ) -> None:  # fmt: skip
        if program.loops(state) is not None:
            raise NotOnGpu(f"{program.name} does not run on a GPU yet; run it on the processor")
        assert isinstance(desk.link, CudaLink)
        self._on, self._link, sides = on, desk.link, desk.sides
        gpu = on.card.gpu
        self._vertex_kernels = kernels.build(gpu)
        self._kernels = skeleton.build(program.name, functions, sides[0].weight_width > 0, program.pulls, gpu)
        super().__init__(module, program, state, team, least_again, launches)
        self._lists = {side.name: on.lists(side.lists) for side in sides}
        self._room = max(1, min(ROOM, len(sides[0].lists)))
        self._sorted = tuple(on.near(len(skeleton.WIDTHS) * self._room, dtype) for dtype in ROW)
        self._given = tuple(on.near(self._room, dtype) for dtype in ROW)
        self._counts = on.near(len(skeleton.WIDTHS), np.int64)
        self._no_weights = on.upload(NO_WEIGHTS_HERE)

    def choose_loops(self) -> None:
        self._kernel = self._kernels.seek if self._program.seeks(self._state) else self._kernels.push

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        if delivery.task.engine.streams and delivery.far_begins is not None and self._link.kernels_reach_far:
            self._leave_far(delivery, delivery.far_begins)
        if self._launches is not None:
            self._launches.begin(delivery, delivery.edges, frontier)
        return [lambda member: self._run(delivery, delivery.edges, frontier)]

    def _leave_far(self, delivery: Delivery, begins: Array) -> None:
        """Let the kernel read a delivery's lists where they are, in mapped memory."""
        side, edges = delivery.task.side, delivery.edges
        assert isinstance(edges, Rows)
        delivery.edges = Rows(edges.vertices, begins, begins, edges.lengths)
        delivery.targets = self._link.far(side.first_section).view(side.target_dtype)
        if delivery.weights is not None:
            delivery.weights = self._link.far(side.first_section + 1).view(side.weight_dtype)

    def _rows(self, d: Delivery, lists: Rows, frontier: Frontier) -> list[Piece]:
        return [lambda member: self._run(d, lists, frontier)]

    def _run(self, delivery: Delivery, edges: Ranges | Rows, frontier: Frontier) -> None:
        side = delivery.task.side
        targets, weights = delivery.targets, self._no_weights if delivery.weights is None else delivery.weights
        if isinstance(edges, Rows):
            self._run_rows(edges, side, targets, weights, frontier)
        else:
            self._run_ranges(edges, side, targets, weights, frontier)
        self._on.finish()
        frontier.used[0] = frontier.queues.shape[1] + 1  # no queue holds what kernels have marked

    def _run_rows(self, edges: Rows, side: Side, targets: Array, weights: Array, frontier: Frontier) -> None:
        columns = (edges.vertices, edges.begins, edges.weight_begins, edges.lengths)
        for at in range(0, edges.vertices.size, self._room):
            part = [np.ascontiguousarray(column[at : at + self._room]) for column in columns]
            given = [room[: each.size] for room, each in zip(self._given, part, strict=True)]
            for near, each in zip(given, part, strict=True):
                self._on.card.copy(near, each, self._on.stream)
            self._on.launch(self._vertex_kernels.fill, self._counts, 0)
            self._on.launch(self._vertex_kernels.sort_rows, *given, self._room, *self._sorted, self._counts)
            self._launch(side, targets, weights, frontier)
            if at + self._room < edges.vertices.size:
                self._on.finish()  # before the host's columns are freed

    def _run_ranges(self, edges: Ranges, side: Side, targets: Array, weights: Array, frontier: Frontier) -> None:
        lists = self._lists[side.name]
        for k in range(edges.first.size):
            bounds = [int(each[k]) for each in (edges.begin, edges.end, edges.base, edges.weight_base)]
            for first in range(int(edges.first[k]), int(edges.last[k]), self._room):
                last = min(first + self._room, int(edges.last[k]))
                self._on.launch(self._vertex_kernels.fill, self._counts, 0)
                self._on.launch(
                    self._vertex_kernels.sort_range, first, last, *bounds, frontier.marks, frontier.all_active, *lists, self._room,
                    *self._sorted, self._counts,
                )  # fmt: skip
                self._launch(side, targets, weights, frontier)

    def _launch(self, side: Side, targets: Array, weights: Array, frontier: Frontier) -> None:
        """Run the sorted rows, a launch for each kind."""
        line = skeleton.LINE // side.width
        for kind, width in enumerate(skeleton.WIDTHS):
            self._on.launch(
                self._kernel, kind, self._room, *self._sorted, self._counts, min(width, self._on.card.threads), line,
                *self._lists[side.name], targets, weights, self._state.arrays, self._before, self._state.params, frontier.next_marks,
            )  # fmt: skip
