"""Reads of lists by a stream on a GPU: the edges stay in the host's memory, page-locked where they lie, and the host
changes them there.

What stays on the GPU from batch to batch: the hot subgraph, where lists begin and end, and the state of programs, in
managed memory. Runs, and the loops that correct answers (`correction_loops.py`), read lists of the hot subgraph where
they are; other lists are read by zero-copy. For the recipe with pages, the graph's edges themselves lie in managed
memory, and both sides use them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from isthmus.cache.list_cache import ListCache
from isthmus.cache.mover import Attached
from isthmus.cache.ranking import USES
from isthmus.devices.correction_loops import Maintained, MonotoneState
from isthmus.devices.cuda.card import AlreadyLocked, Card, Shared
from isthmus.devices.cuda.correction_loops import CudaLoops
from isthmus.devices.cuda.gpu_space import ROW, CardSpace, RowSpace, taken
from isthmus.devices.cuda.kernels.skeleton import LINE, line_of
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_cache import on_card
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.devices.cuda.lru_pages import CudaLruPagedLink
from isthmus.devices.cuda.ranking import temporary_bytes
from isthmus.devices.cuda.vertex_list import DeviceVertexList, listed_bytes
from isthmus.devices.model.residency import SPARE, ModelResidency
from isthmus.devices.residency import Transfer
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.changing.change import Change
from isthmus.graph.lists import Lists
from isthmus.link.link import Array
from isthmus.programs.program import Facts

LEAST_ROWS = 1 << 12  # that are sorted at once, 0.5 MB: the first batch of a stream that began empty may have many


class CudaResidency(ModelResidency):
    """Edges in page-locked or managed memory of the host. Close it after the session."""

    def __init__(self, *given: Any) -> None:
        """As `ModelResidency`, and a card."""
        *others, card = given
        self.card: Card = card
        self._space = CardSpace(card)
        self._registered: dict[int, Shared] = {}  # the graph's arrays, by address
        self._in_managed: set[int] = set()  # of these, what lies in managed memory; others are page-locked
        # a program holds its session.
        self._lodged: WeakKeyDictionary[Maintained, dict[str, tuple[Array, ...]]] = WeakKeyDictionary()
        self._near_positions: dict[str, tuple[Array, Array]] = {}  # by side, with room for more vertices
        self._uploaded_positions: set[str] = set()  # sides whose positions are those of the current snapshot
        try:
            self._graph, self._recipe = others[0], others[2]
            self._manage_edges()
            self._rows = RowSpace(self._space, max(LEAST_ROWS, self._graph.vertices))
            self.no_weights = self._space.upload(np.zeros(1, np.int32))
            self._space.finish()
            self.listed = DeviceVertexList(self._space)
            super().__init__(*others)
        except BaseException:
            self.close()
            raise

    def _hot_subgraph(self, near_bytes: int) -> ListCache:
        snapshot = self._graph.snapshot
        memory = self._space.near(near_bytes + USES.index_bytes * len(self._sides) * snapshot.vertices, "uint8")
        kinds = (snapshot.target_dtype, snapshot.weight_dtype if self._weights else None)
        lists, team, on_read = self._lists(), self._graph.team, self._recipe.on_read
        hot = ListCache(self._sides, lists, memory, kinds, team, USES, None, on_read, on_card())
        hot.stay(Attached(ListMover(self._rows, self._far), self._near_lists))  # lists also move between runs
        return hot

    # The graph's arrays

    def _far(self, array: Array) -> Array:
        """A far array as kernels see it."""
        far: Array = self._register(array.view("uint8")).device.view(array.dtype)
        return far

    def _register(self, section: Array) -> Shared:
        at = address(section)
        known = self._registered.get(at)
        if known is None or known.host.size != section.size:
            self._unregister([at])
            try:
                known = self._registered[at] = taken(self.card, self.card.register, section)
            except AlreadyLocked as error:
                raise OptionError("another session has page-locked this stream's edges; close it") from error
        return known

    def _unregister(self, addresses: list[int]) -> None:
        for at in addresses:
            if at in self._registered:
                memory = self._registered.pop(at)
                if at in self._in_managed:
                    self._in_managed.remove(at)
                    self.card.keep(memory)  # the graph may still use it
                else:
                    self.card.free(memory)

    def _manage_edges(self) -> None:
        """For pages: let the graph's edges lie in managed memory."""
        if self._recipe.pages:
            for side in {id(each): each for each in self._graph.sides.values()}.values():
                side.move_edges(self._managed)

    def _managed(self, array: Array) -> Array:
        """An array of the graph in managed memory: itself, if it lies there."""
        if address(array) in self._in_managed:
            return array
        memory: Shared = taken(self.card, self.card.managed, array.view("uint8"))
        self._unregister([address(array)])
        host: Array = memory.host.view(array.dtype)
        self._registered[address(host)] = memory
        self._in_managed.add(address(host))
        return host

    def _follow_arrays(self) -> None:
        """Let go of arrays that the graph has replaced, before others are used; for pages, move those that replace
        them.
        """
        self._uploaded_positions.clear()
        used = {address(array) for side in self._sides for array in self._graph.sides[side].arrays()[2:]}
        self._unregister([at for at in self._registered if at not in used])
        self._manage_edges()

    def link(self, names: list[str], arrays: list[Array]) -> CudaLink:
        there = [self._register(array.view("uint8")) for array in arrays]
        if self.pages is None:
            return CudaLink(there, self._device, self.card)
        return CudaLruPagedLink(there, names, self._device, self.pages, self.card)

    # What programs have there

    def place_state(self, owner: Maintained, arrays: tuple[Array, ...], name: str = "state") -> tuple[Array, ...]:
        """Copies in managed memory; those that the owner had before are freed."""
        fresh: list[Array] = []
        try:
            for array in arrays:
                fresh.append(self._space.managed(array))
        except BaseException:
            self._free_shared(fresh)
            raise
        placed = self._lodged.setdefault(owner, {})
        self._free_shared(placed.pop(name, ()))
        placed[name] = tuple(fresh)
        return placed[name]

    def _free_shared(self, arrays: Any) -> None:
        self._space.finish()
        for array in arrays:
            memory = self._space.shared(array)
            assert memory is not None
            self._space.free(memory)

    def shared(self, array: Array) -> Shared | None:
        return self._space.shared(array)

    def positions(self, lists: Lists) -> tuple[Array, Array] | None:
        """Uploaded once for a snapshot."""
        name = next(
            (side for side in self._sides if address(self._graph.sides[side].arrays()[0]) == address(lists.begins)),
            None,
        )
        if name is None:
            return None
        begins, ends = self._room_for_positions(name, len(lists))
        if name not in self._uploaded_positions:
            columns = [np.ascontiguousarray(each) for each in lists.arrays]  # held until they are copied
            for near, host in zip((begins, ends), columns, strict=True):
                self.card.copy(near, host, self._space.stream)
            self._space.finish()
            self._uploaded_positions.add(name)
        return begins, ends

    def _near_lists(self, lists: Lists) -> tuple[Array, Array]:
        near = self.positions(lists)
        assert near is not None
        return near

    def _room_for_positions(self, name: str, vertices: int) -> tuple[Array, Array]:
        if name not in self._near_positions or self._near_positions[name][0].size < vertices:
            self._space.free_each(list(self._near_positions.pop(name, ())))
            self._uploaded_positions.discard(name)
            begins, ends = self._space.near_each(*2 * [(with_spare(vertices), np.int64)])
            self._near_positions[name] = begins, ends
        begins, ends = self._near_positions[name]
        return begins[:vertices], ends[:vertices]

    # For correction

    def correction_loops(self, lists: Maintained, state: MonotoneState, facts: Facts) -> CudaLoops:
        return CudaLoops(self, lists, state, facts)

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self._space.launch(kernel, *arguments)

    def finish(self) -> None:
        self._space.finish()

    def uploaded(self, columns: list[Array], kinds: tuple[Any, ...]) -> Iterator[list[Array]]:
        """Columns of the host in near memory, a part at a time. The caller has submitted all work on a part when it
        asks for the next.
        """
        room = min(self._rows.room, self.card.threads) if self.card.in_order else self._rows.room
        for at in range(0, columns[0].size, room):
            with CardSpace(self.card) as there:
                part = [
                    np.ascontiguousarray(column[at : at + room], kind)
                    for column, kind in zip(columns, kinds, strict=True)
                ]
                near = [there.upload(each) for each in part]
                there.finish()
                try:
                    yield near
                finally:
                    self._space.finish()  # before the near columns are freed

    def follow(self, side: str, rows: Array, weights: bool, kernel: Any, *arguments: Any) -> None:
        """Run a kernel on the lists of these vertices: those of the hot subgraph where they are, others over the link.

        Where threads run in order, lists are followed in the order of `rows`, one by one: then what is found, and what
        is read because of it, is exactly as on a modelled device.
        """
        hot, held = self.hot, np.zeros(rows.size, np.bool_)
        if hot is not None:
            held = hot.chunks.held[rows.astype(np.int64) + hot.offset(self._stored(side))] != 0
        for some in stretches(held) if self.card.in_order else (np.flatnonzero(held), np.flatnonzero(~held)):
            if some.size:
                run = self._follow_near if held[some[0]] else self._follow_far
                run(side, rows[some], weights, kernel, arguments)

    def _follow_near(self, side: str, rows: Array, weights: bool, kernel: Any, arguments: tuple[Any, ...]) -> None:
        assert self.hot is not None
        chunks, lists = self.hot.chunks, self._graph.snapshot.lists(side)
        places = chunks.begins[rows.astype(np.int64) + self.hot.offset(self._stored(side))].astype(np.int64)
        near_weights = chunks.weights if self._has(weights) else self.no_weights
        columns = [rows, places, places, lists.ends[rows] - lists.begins[rows]]
        if self.card.in_order:
            self._one_by_one(columns, kernel, chunks.targets, near_weights, arguments)
            return
        for some in self._rows.parts(columns):
            self._rows.sort(self._rows.kernels.sort_rows, *some)
            self._rows.each_kind(
                kernel, LINE // chunks.targets.dtype.itemsize, chunks.targets, near_weights, *arguments
            )

    def _follow_far(self, side: str, rows: Array, weights: bool, kernel: Any, arguments: tuple[Any, ...]) -> None:
        lists, (targets, own_weights) = self._graph.snapshot.lists(side), self._graph.sides[side].arrays()[2:]
        far = (self._far(targets), self._far(own_weights) if self._has(weights) else self.no_weights)
        if self.card.in_order:
            begins = lists.begins[rows]
            self._one_by_one([rows, begins, begins, lists.ends[rows] - begins], kernel, *far, arguments)
            return
        positions = self._near_lists(lists)
        for (some,) in self._rows.parts([rows]):
            self._rows.sort(self._rows.list_kernels.sort_held, some, positions[0], *positions)
            line = line_of(*(each.dtype.itemsize for each in far[: 1 + self._has(weights)]))
            self._rows.each_far_kind(kernel, line, *far, *arguments)

    def _one_by_one(
        self, columns: list[Array], kernel: Any, targets: Array, weights: Any, arguments: tuple[Any, ...]
    ) -> None:
        """Follow rows, a thread each, in their order."""
        for rows in self.uploaded(columns, ROW):
            with CardSpace(self.card) as there:
                count = there.upload(np.array([rows[0].size]))
                there.finish()
                self.launch(kernel, 0, 0, *rows, count, 1, LINE // targets.dtype.itemsize, targets, weights, *arguments)
                self._space.finish()

    def _has(self, weights: bool) -> bool:
        return weights and self._graph.snapshot.weighted

    # When the snapshot advances

    def committed(self, change: Change) -> None:
        self._follow_arrays()
        super().committed(change)

    def renumbered(self, change: Change) -> None:
        self._uploaded_positions.clear()
        super().renumbered(change)

    def forget(self) -> None:
        """Also after `renumber` and `revert`, which may replace arrays."""
        with suppress(BudgetError):  # then kernels read them by zero-copy, until the next batch moves them
            self._follow_arrays()
        super().forget()

    def end_batch(self) -> Transfer:
        """Also take buffers for more rows, if memory is left: the batch has all the memory that it needs."""
        self._rows.grow(self._graph.vertices)
        return super().end_batch()

    def close(self) -> None:
        """Free all memory, also if the card has failed: the graph's edges are the host's."""
        self._lodged.clear()
        with ExitStack() as last:
            for at in list(self._registered):
                last.callback(self._unregister, [at])
            self._space.close()


def with_spare(vertices: int) -> int:
    """Vertices whose positions fit in the memory taken for them."""
    return vertices + vertices // SPARE + 64


def card_bytes(vertices: int, sides: int, hot: bool) -> int:
    """Near memory beside lists and state: the positions of all sides, a list of vertices, and what choosing takes for a
    while.
    """
    return (
        16 * sides * with_spare(vertices)
        + listed_bytes(vertices)
        + (temporary_bytes(sides * with_spare(vertices)) if hot else 0)
    )


def stretches(marks: Array) -> list[Array]:
    """The places of marks, cut where they change."""
    return np.split(np.arange(marks.size), np.flatnonzero(np.diff(marks)) + 1)


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
