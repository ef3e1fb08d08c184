"""User ids and vertex numbers. The id map stays in the store; a look-up reads the few blocks it needs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import UnknownVertexError
from isthmus.graph import arrow
from isthmus.graph.files import Array
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
        return int(self._store.read("order.from_natural", natural, natural + 1)[0]) if self._hub else natural

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
        while low < high:
            middle = (low + high) // 2
            if entry(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < self._count and entry(low) == wanted else None

    def _string(self, at: int) -> bytes:
        begin, end = self._store.read("ids.offsets", at, at + 2)
        return self._store.read("ids.bytes", int(begin), int(end)).tobytes()

    def users(self, numbers: Array) -> Array:
        """User ids of vertex numbers, in their order."""
        return self.users_of_natural(self.places(np.asarray(numbers)))

    def places(self, numbers: Array) -> Array:
        """Places in natural order of vertex numbers."""
        return self._entries("order.to_natural", numbers) if self._hub else numbers

    def natural(self, begin: int, end: int) -> Array:
        """User ids begin:end in natural order, which is ascending."""
        if self.kind == "dense":
            return np.arange(begin, end)
        if self.kind == "string":
            return self._strings(np.arange(begin, end))
        return self._store.read("ids.values", begin, end)

    def users_of_natural(self, numbers: Array) -> Array:
        """User ids of places in natural order."""
        if self.kind == "dense":
            return numbers.astype(np.int64)
        return self._strings(numbers) if self.kind == "string" else self._entries("ids.values", numbers)

    def numbers(self, begin: int, end: int) -> Array:
        """Vertex numbers of the places begin:end in natural order."""
        return self._store.read("order.from_natural", begin, end) if self._hub else np.arange(begin, end)

    def numbers_of_natural(self, places: Array) -> Array:
        """Vertex numbers of places in natural order."""
        return self._entries("order.from_natural", places) if self._hub else places

    def _entries(self, section: str, positions: Array) -> Array:
        """Entries at arbitrary positions of a section."""
        values = np.empty(positions.size, self._store.manifest.sections[section].dtype)
        for which, first, last in stretches(positions):
            values[which] = self._store.read(section, first, last + 1)[positions[which].astype(np.int64) - first]
        return values

    def to_arrow(self, places: Array) -> Any:
        """User ids of places in natural order, as an Arrow array."""
        return self._texts(places) if self.kind == "string" else arrow.numbers(self.users_of_natural(places))

    def text_bytes(self, places: Array) -> Array:
        """Bytes of the string ids of places in natural order; zeros if ids are integers."""
        lengths = np.zeros(places.size, np.int64)
        for which, first, last in stretches(places) if self.kind == "string" else ():
            at = places[which].astype(np.int64) - first
            lengths[which] = np.diff(self._store.read("ids.offsets", first, last + 2))[at]
        return lengths

    def _strings(self, positions: Array) -> Array:
        values = np.empty(positions.size, object)
        values[:] = self._texts(positions).to_pylist()
        return values

    def _texts(self, positions: Array) -> Any:
        """String ids as an Arrow array. Beside them it holds the text of a few neighbouring ids, however long all are together."""
        import pyarrow as pa

        parts, order = [arrow.texts(np.zeros(1, np.int64), np.empty(0, np.uint8))], [np.empty(0, np.int64)]
        for which, first, last in stretches(positions):
            offsets = self._store.read("ids.offsets", first, last + 2)
            at = positions[which].astype(np.int64) - first
            for some in pieces(at, offsets[at] // sizes.now.id_text):
                low, high = int(some[0]), int(some[-1])
                text = self._store.read("ids.bytes", int(offsets[low]), int(offsets[high + 1]))
                near = arrow.texts(offsets[low : high + 2] - offsets[low], text)
                parts.append(near.take(arrow.numbers(some - low)))
            order.append(which)
        found, back = pa.concat_arrays(parts), np.empty(positions.size, np.int64)
        back[np.concatenate(order)] = np.arange(positions.size)
        return found.take(arrow.numbers(back))


def stretches(positions: Array) -> Iterator[tuple[Array, int, int]]:
    """Groups of positions close to each other: (their indices into `positions`, the first position, the last)."""
    order = np.argsort(positions, kind="stable")
    for which in pieces(order, positions[order].astype(np.int64) // sizes.now.id_stretch):
        yield which, int(positions[which[0]]), int(positions[which[-1]])


def pieces(items: Array, groups: Array) -> list[Array]:
    """`items` cut where their group changes; none if there are no items."""
    return np.split(items, np.flatnonzero(np.diff(groups)) + 1) if items.size else []
