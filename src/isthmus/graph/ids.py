"""User ids and vertex numbers. The id map stays in the store; a look-up reads the few blocks it needs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError, UnknownVertexError
from isthmus.graph.files import Array
from isthmus.graph.order import check_numbers
from isthmus.graph.store import MemoryStore, Store


class Ids:
    """The id map of a store. Numbers are in the store's own order, natural or hub."""

    def __init__(self, store: Store | MemoryStore) -> None:
        self._store = store
        self.kind = store.manifest.ids
        self._count = store.manifest.vertices
        self._hub = store.manifest.order == "hub"

    def kept(self) -> Ids:
        """The same id map, readable also after the graph is closed or replaced."""
        return Ids(self._store.only("ids.", "order."))

    def close(self) -> None:
        self._store.close()

    def number(self, user: Any) -> int:
        """The vertex number of one user id."""
        natural = self._find(user)
        if natural is None:
            raise UnknownVertexError(f"no vertex {user!r} in the graph")
        return self._hub_number(natural) if self._hub else natural

    def _hub_number(self, natural: int) -> int:
        number = self._store.read("order.from_natural", natural, natural + 1)
        check_numbers(self._store, "order.from_natural", number)
        if int(self._store.read("order.to_natural", int(number[0]), int(number[0]) + 1)[0]) != natural:
            raise StoreError(f"{self._store}: sections order.to_natural and order.from_natural are not inverse; run isthmus verify")
        return int(number[0])

    def parse(self, text: str) -> Any:
        """A user id as it is written on a command line."""
        if self.kind == "string":
            return text
        try:
            return int(text)
        except ValueError:
            raise UnknownVertexError(f"no vertex {text!r} in the graph; its ids are integers") from None

    def _find(self, user: Any) -> int | None:
        """Position in natural order, or None."""
        if self.kind == "string":
            # A lone surrogate has no UTF-8 encoding, so no vertex has it in its id.
            return self._search(user.encode("utf-8", "surrogatepass"), self._string) if isinstance(user, str) else None
        if isinstance(user, bool):
            return None
        try:
            value = operator.index(user)
        except TypeError:
            return None
        if self.kind == "dense":
            return value if 0 <= value < self._count else None
        return self._search(value, lambda at: int(self._store.read("ids.values", at, at + 1)[0]))

    def _search(self, wanted: Any, entry: Callable[[int], Any]) -> int | None:
        low, high = 0, self._count
        below = above = None  # the entries before `low` and at `high`
        while low < high:
            middle = (low + high) // 2
            found = entry(middle)
            if (below is not None and found < below) or (above is not None and found > above):
                raise self._unsorted()
            if found < wanted:
                low, below = middle + 1, found
            else:
                high, above = middle, found
        return low if above == wanted else None

    def _unsorted(self) -> StoreError:
        return StoreError(f"{self._store}: the vertex ids do not ascend; run isthmus verify")

    def _string(self, at: int) -> bytes:
        begin, end = self._store.read("ids.offsets", at, at + 2)
        return self._store.read("ids.bytes", int(begin), int(end)).tobytes()

    def users(self, numbers: Array) -> Array:
        """User ids of vertex numbers, in their order."""
        numbers = np.asarray(numbers)
        return self.users_of_natural(self._entries("order.to_natural", numbers) if self._hub else numbers)

    def natural(self, begin: int, end: int) -> Array:
        """User ids begin:end in natural order, which is ascending."""
        if self.kind == "dense":
            return np.arange(begin, end)
        if begin == end:
            return self.users_of_natural(np.empty(0, np.int64))
        before = max(begin - 1, 0)  # with the last of the part before, which must be smaller
        users = self._strings(np.arange(before, end)) if self.kind == "string" else self._ascending(before, end)
        if self.kind == "string" and any(map(operator.ge, users[:-1], users[1:])):
            raise self._unsorted()
        return users[begin - before :]

    def _ascending(self, begin: int, end: int) -> Array:
        """Integer ids begin:end in natural order."""
        values = self._store.read("ids.values", begin, end)
        if (values[1:] <= values[:-1]).any():
            raise self._unsorted()
        return values

    def users_of_natural(self, numbers: Array) -> Array:
        """User ids of places in natural order."""
        if self.kind == "dense":
            return numbers.astype(np.int64)
        return self._strings(numbers) if self.kind == "string" else self._entries("ids.values", numbers)

    def numbers_of_natural(self, places: Array) -> Array:
        """Vertex numbers of places in natural order."""
        return self._entries("order.from_natural", places) if self._hub else places

    def _entries(self, section: str, positions: Array) -> Array:
        """Entries at arbitrary positions of a section."""
        values = np.empty(positions.size, self._store.manifest.sections[section].dtype)
        for which, first, last in stretches(positions):
            entries = self._ascending(first, last + 1) if section == "ids.values" else self._store.read(section, first, last + 1)
            values[which] = entries[positions[which].astype(np.int64) - first]
        if section != "ids.values":
            check_numbers(self._store, section, values)
        return values

    def _strings(self, positions: Array) -> Array:
        values = np.empty(positions.size, object)
        for which, first, last in stretches(positions):
            offsets = self._store.read("ids.offsets", first, last + 2)
            data = self._store.read("ids.bytes", int(offsets[0]), int(offsets[-1])).tobytes()
            ends = self._store.manifest.sections["ids.bytes"].count
            inside = (first > 0 or offsets[0] == 0) and (last + 1 < self._count or offsets[-1] == ends)
            if not inside or (offsets[1:] < offsets[:-1]).any():
                raise StoreError(f"{self._store}: section ids.offsets does not ascend from 0 to {ends}; run isthmus verify")
            bounds = (offsets - offsets[0]).tolist()
            try:
                for i, at in zip(which.tolist(), (positions[which].astype(np.int64) - first).tolist(), strict=True):
                    values[i] = data[bounds[at] : bounds[at + 1]].decode()
            except UnicodeDecodeError:
                raise StoreError(f"{self._store}: section ids.bytes has an id that is not UTF-8; run isthmus verify") from None
        return values


def stretches(positions: Array) -> Iterator[tuple[Array, int, int]]:
    """Groups of positions close to each other: (their indices into `positions`, the first position, the last)."""
    order = np.argsort(positions, kind="stable")
    ascending = positions[order].astype(np.int64)
    for which in np.split(order, np.flatnonzero(np.diff(ascending // sizes.now.id_stretch)) + 1):
        if which.size:
            yield which, int(positions[which[0]]), int(positions[which[-1]])
