"""What one user has on a card: a stream, memory that is freed at the end, and buffers to sort rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self

import numpy as np

from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.kernels import lists as list_kernels
from isthmus.devices.cuda.kernels import rows as row_kernels
from isthmus.devices.cuda.kernels import skeleton
from isthmus.errors import BudgetError
from isthmus.link.link import Array
from isthmus.memory import available, format_size
from isthmus.messages import option

ROOM = 1 << 18  # rows that are sorted at once: 31 MB of near memory
ROW = (np.uint32, np.int64, np.int64, np.int64)  # a row's vertex, its first entry, its first weight, its length
GIVEN = (*ROW, np.int64)  # columns that the host uploads: of a row, and its first entry in far memory


def taken(card: Card, make: Callable[..., Any], *arguments: Any) -> Any:
    """Memory of a card, page-locked memory of the host, or work that itself takes memory; raises BudgetError if there
    is no more.
    """
    try:
        return make(*arguments)
    except MemoryError as error:
        if make in (card.pinned, card.mapped, card.mapped_room, card.register):
            free, instead = format_size(available()), f"use {option('device', 'cpu')}, which needs none"
            raise BudgetError(
                f"{card.name}: not enough host memory to page-lock, {free} are available; {instead}"
            ) from error
        free = format_size(card.free_bytes())
        raise BudgetError(
            f"{card.name}: not enough GPU memory, {free} are free; give a smaller {option('memory')}"
        ) from error


class CardSpace:
    """Memory and work of one user on a card. Use it as a context manager, or close it."""

    def __init__(self, card: Card) -> None:
        self.card, self.stream = card, taken(card, card.stream)
        self._taken: list[Array | Shared] = []
        self._shared: dict[int, Shared] = {}  # by the id of what the host sees
        self._sources: list[Array] = []  # arrays of the host that copies may still read

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free all memory, when no kernel uses it any more; also if the card has failed, as page-locked memory is the
        host's.
        """
        memory, self._taken = self._taken, []
        shared, self._shared = self._shared, {}
        with ExitStack() as last:
            for each in memory:
                last.callback(self.card.free, each)
            if memory or shared:  # else no kernel uses anything, as after it was closed before
                self.finish()

    def free(self, memory: Array | Shared) -> None:
        """Free memory before the end: near memory, or what `shared` returns. No kernel may still use it."""
        self._taken = [each for each in self._taken if each is not memory]
        if isinstance(memory, Shared):
            del self._shared[id(memory.host)]
        self.card.free(memory)

    def free_each(self, arrays: list[Array]) -> None:
        """The same for several, which leave the list one by one: on a GPU, memory is free when nobody refers to it any
        more.
        """
        while arrays:
            self.free(arrays.pop())

    def near(self, count: int, dtype: Any) -> Array:
        near: Array = taken(self.card, self.card.near, count, dtype)
        self._taken.append(near)
        return near

    def near_each(self, *wanted: tuple[int, Any]) -> tuple[Array, ...]:
        """Near memory for several arrays, each a count and a dtype: for all of them or, if there is not enough, for
        none.
        """
        found: list[Array] = []
        try:
            for count, dtype in wanted:
                found.append(self.near(count, dtype))
        except BaseException:
            self.free_each(found)
            raise
        return tuple(found)

    def managed(self, array: Array) -> Array:
        """A copy that both sides use, as the host sees it."""
        shared: Shared = taken(self.card, self.card.managed, array)
        self._taken.append(shared)
        self.share(shared)
        host: Array = shared.host
        return host

    def share(self, shared: Shared) -> None:
        """Let launches take the host's view of memory that somebody else has taken."""
        self._shared[id(shared.host)] = shared

    def shares(self, array: Array) -> bool:
        """Whether an array is the host's view of memory that kernels use."""
        return id(array) in self._shared

    def shared(self, array: Array) -> Shared | None:
        """The memory of which an array is the host's view, if it is one."""
        return self._shared.get(id(array))

    def upload(self, array: Array) -> Array:
        near = self.near(array.size, array.dtype)
        self.card.copy(near, array, self.stream)
        self._sources.append(array)
        return near

    def launch(self, kernel: Any, *arguments: Any) -> None:
        taken(self.card, self.card.launch, kernel, self.stream, *(self._there(each) for each in arguments))

    def _there(self, argument: Any) -> Any:
        """An argument as a kernel sees it."""
        if isinstance(argument, tuple):
            return tuple(self._there(each) for each in argument)
        shared = self._shared.get(id(argument))
        return argument if shared is None else shared.device

    def scan(self, values: Array) -> None:
        """Replace near values by their prefix sums."""
        if values.size:
            taken(self.card, self.card.scan, values, self.stream)

    def copy_back(self, host: Array, near: Array) -> None:
        self.card.copy_back(host, near, self.stream)

    def number(self, near: Array, at: int) -> int:
        """An entry of a near array, waited for."""
        host = np.empty(1, near.dtype)
        self.copy_back(host, near[at : at + 1])
        self.finish()
        return int(host[0])

    def finish(self) -> None:
        """Wait until all kernels have ended."""
        sources, self._sources = self._sources, []  # another thread may upload meanwhile
        try:
            self.card.drain(self.stream)
        except BaseException:
            self._sources = sources + self._sources  # copies may still read them
            raise


class RowSpace:
    """Room for rows on a card, which are sorted by length; a launch for each kind then runs them."""

    def __init__(self, space: CardSpace, most: int) -> None:
        """`most`: rows that there can be."""
        gpu = space.card.gpu
        self.kernels, self.list_kernels = row_kernels.build(gpu), list_kernels.build(gpu)
        self.space, self.uploaded_bytes = space, 0
        self._counts = space.near(len(skeleton.WIDTHS), np.int64)
        self._take(max(1, min(ROOM, most)))

    def _take(self, room: int) -> None:
        kinds = len(skeleton.WIDTHS)
        columns = self.space.near_each(*((kinds * room, dtype) for dtype in ROW), *((room, dtype) for dtype in GIVEN))
        self.room, self._sorted, self._given = room, columns[: len(ROW)], columns[len(ROW) :]

    def grow(self, most: int) -> None:
        """Take buffers for `most` rows. If there is no memory for them, all stays as it is. No row may be in use."""
        if self.room < min(ROOM, most):
            old = [*self._sorted, *self._given]
            with suppress(BudgetError):
                self._take(min(ROOM, max(most, 2 * self.room)))  # doubled, so that few batches grow it
                self.space.finish()
                self.space.free_each(old)

    def parts(self, columns: Sequence[Array], first: int = 0) -> Iterator[list[Array]]:
        """Columns of the host in near memory, a part at a time, as the columns of GIVEN from `first` on.

        The caller has submitted all work on a part when it asks for the next.
        """
        rooms = self._given[first : first + len(columns)]
        for at in range(0, columns[0].size, self.room):
            part = [
                np.ascontiguousarray(column[at : at + self.room], room.dtype)
                for column, room in zip(columns, rooms, strict=True)
            ]
            near = [room[: each.size] for room, each in zip(rooms, part, strict=True)]
            for to, each in zip(near, part, strict=True):
                self.space.card.copy(to, each, self.space.stream)
                self.uploaded_bytes += each.nbytes
            try:
                yield near
            finally:
                self.space.finish()  # before the host's columns are freed

    def sort(self, kernel: Any, *arguments: Any) -> None:
        """Sort the rows that a kernel finds: one of those with rows to add to at the end of its arguments."""
        self.space.launch(self.kernels.fill, self._counts, 0)
        self.space.launch(kernel, *arguments, self.room, *self._sorted, self._counts)

    def each_kind(self, kernel: Any, *arguments: Any) -> None:
        """Run the sorted rows, which lie in near memory."""
        self._launch(skeleton.WIDTHS, kernel, *arguments)

    def each_far_kind(self, kernel: Any, line: int, *arguments: Any) -> None:
        """The same for rows in far memory, which a kernel reads by lines of this number of entries."""
        self._launch(skeleton.far_widths(line), kernel, line, *arguments)

    def _launch(self, widths: tuple[int, ...], kernel: Any, *arguments: Any) -> None:
        for kind, width in enumerate(widths):
            self.space.launch(
                kernel, kind, self.room, *self._sorted, self._counts, min(width, self.space.card.threads), *arguments
            )

    def ranges(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Vertices first:last in parts whose rows fit in the buffers."""
        for at in range(first, last, self.room):
            yield at, min(at + self.room, last)
