"""User ids and vertex numbers. The id map stays in the store; a look-up reads the few blocks it needs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from isthmus.errors import UnknownVertexError
from isthmus.graph.files import Array
from isthmus.graph.store import MemoryStore, Store

NEAR = 512  # entries read at once when a binary search gets close


class Ids:
    """The id map of a store. Numbers are in the store's own order, natural or hub."""

    def __init__(self, store: Store | MemoryStore) -> None:
        self._store = store
        self.kind = store.manifest.ids
        self._count = store.manifest.vertices
        self._hub = store.manifest.order == "hub"

    def number(self, user: Any) -> int:
        """The vertex number of one user id."""
        natural = self._find(user)
        if natural is None:
            raise UnknownVertexError(f"no vertex {user!r} in the graph")
        return int(self._store.read("order.from_natural", natural, natural + 1)[0]) if self._hub else natural

    def _find(self, user: Any) -> int | None:
        """Position in natural order, or None."""
        if self.kind == "string":
            return self._search(user.encode(), self._string) if isinstance(user, str) else None
        if isinstance(user, bool):
            return None
        try:
            value = operator.index(user)
        except TypeError:
            return None
        if self.kind == "dense":
            return value if 0 <= value < self._count else None
        return self._search(value, lambda at: int(self._store.read("ids.values", at, at + 1)[0]))

    def _search(self, wanted: Any, entry: Any) -> int | None:
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
        numbers = np.asarray(numbers)
        if self._hub:
            numbers = self._entries("order.to_natural", numbers)
        if self.kind == "dense":
            return numbers.astype(np.int64)
        if self.kind == "string":
            return np.array([self._string(int(at)).decode() for at in numbers], object)
        return self._entries("ids.values", numbers)

    def _entries(self, section: str, positions: Array) -> Array:
        """Entries at arbitrary positions: single reads for a few, the whole section for many."""
        if positions.size * NEAR >= self._count:
            return self._store.read(section)[positions]
        values = [self._store.read(section, int(at), int(at) + 1) for at in positions]
        return np.concatenate(values) if values else self._store.read(section, 0, 0)
