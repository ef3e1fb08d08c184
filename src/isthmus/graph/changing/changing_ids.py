"""Ids of a graph whose vertices come and go.

A vertex keeps its number, except that the last vertices take the numbers of removed ones. New vertices get the next
numbers, so numbers do not follow the order of ids. The id map in natural order (`graph/ids.py`) is built on demand, and
kept until vertices change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import UnknownVertexError
from isthmus.graph.ids import Ids
from isthmus.graph.store.files import Array
from isthmus.graph.store.manifest import Manifest, Section
from isthmus.graph.store.store import MemoryStore

UNKNOWN = -1


def ascending(users: Array) -> Array:
    """The order of user ids: numbers, or texts by their bytes."""
    if users.dtype == object:  # Python compares texts by code points, which is the order of their bytes in UTF-8
        return np.array(sorted(range(users.size), key=users.__getitem__), np.int64)
    return np.argsort(users, kind="stable")


class Naming:
    """The ids of the vertices between two changes of them. Snapshots keep it, so that they never see ids of later
    ones.
    """

    def __init__(self, kind: str, vertices: int, users: Array | None = None, natural: Ids | None = None) -> None:
        self.kind, self.vertices = kind, vertices
        self._users, self._map = users, natural  # one of them is made from the other on demand

    def users(self) -> Array:
        """User ids by vertex number."""
        if self._users is None:
            self._users = self.map().users(np.arange(self.vertices))
        return self._users

    def map(self) -> Ids:
        """The id map, in natural order."""
        if self._map is None:
            self._map = Ids(self._made())
        return self._map

    def _made(self) -> MemoryStore:
        users = self.users()
        order = ascending(users)
        arrays: dict[str, Array] = {}
        if self.kind == "string":
            texts = [users[at].encode() for at in order.tolist()]
            arrays["ids.offsets"] = np.cumsum([0, *map(len, texts)], dtype=np.int64)
            arrays["ids.bytes"] = np.frombuffer(b"".join(texts), np.uint8).copy()
        else:
            arrays["ids.values"] = users[order]
        hub = bool((order[1:] < order[:-1]).any())
        if hub:
            arrays["order.from_natural"] = order.astype(np.uint32)
            arrays["order.to_natural"] = np.empty(order.size, np.uint32)
            arrays["order.to_natural"][order] = np.arange(order.size, dtype=np.uint32)
        sections = {name: Section(str(array.dtype), array.size) for name, array in arrays.items()}
        manifest = Manifest(self.vertices, 0, 0, True, False, self.kind, "hub" if hub else "natural", sections=sections)
        return MemoryStore(manifest, arrays)


class ChangingIds:
    """User ids by vertex number, and back."""

    def __init__(self, ids: Ids, vertices: int) -> None:
        self.kind = "int64" if ids.kind == "dense" and not ids.is_natural else ids.kind  # dense: the id is the number
        self.vertices = vertices
        self.naming = Naming(self.kind, vertices, natural=ids)
        self._sorted: tuple[Array, Array] | None = None  # integer ids ascending, and their numbers
        self._by_name: dict[str, int] | None = None

    def users(self) -> Array:
        """User ids by vertex number."""
        return self.naming.users()

    def map(self) -> Ids:
        """The id map of the vertices that exist now."""
        return self.naming.map()

    def numbers(self, users: Array) -> Array:
        """Vertex numbers of user ids, an array of integers or of texts; UNKNOWN for those that do not exist."""
        if self.kind == "string":
            return self._numbers_of_names(users)
        if self.kind == "dense":
            inside = (users >= 0) & (users < self.vertices)
            return np.where(inside, users, UNKNOWN).astype(np.int64)
        if self._sorted is None:
            own = self.users()
            order = np.argsort(own, kind="stable")
            self._sorted = own[order], order
        ids, numbers = self._sorted
        if not ids.size:
            return np.full(users.size, UNKNOWN, np.int64)
        ascending = np.argsort(users, kind="stable")  # neighbouring look-ups then touch the same part of the map
        at = np.minimum(np.searchsorted(ids, users[ascending]), ids.size - 1)
        found = np.empty(users.size, np.int64)
        found[ascending] = np.where(ids[at] == users[ascending], numbers[at], UNKNOWN)
        return found

    def _numbers_of_names(self, users: Array) -> Array:
        if self._by_name is None:
            self._by_name = dict(zip(self.users().tolist(), range(self.vertices), strict=True))
        find = self._by_name.get
        return np.fromiter((find(name, UNKNOWN) for name in users.tolist()), np.int64, users.size)

    def saved(self) -> tuple[Any, ...]:
        """The ids as they are now, for `restore`."""
        return self.kind, self.vertices, self.naming, self._sorted

    def restore(self, saved: tuple[Any, ...], fresh: Array) -> None:
        """Go back to the ids that were saved before these vertices were added."""
        self.kind, self.vertices, self.naming, self._sorted = saved
        if self._by_name is not None:
            for name in fresh.tolist():
                del self._by_name[name]

    def add(self, fresh: Array) -> None:
        """Add vertices with these ids, none of which exists, behind the others."""
        if not fresh.size:
            return
        users = self.users()
        if self.kind == "dense":
            if np.array_equal(fresh, np.arange(self.vertices, self.vertices + fresh.size)):
                self.vertices += fresh.size
                natural = Ids(MemoryStore(Manifest(self.vertices, 0, 0, True, False, "dense"), {}))
                self.naming = Naming(self.kind, self.vertices, natural=natural)
                return
            self.kind = "int64"
        if self._by_name is not None:
            self._by_name.update(zip(fresh.tolist(), range(self.vertices, self.vertices + fresh.size), strict=True))
        self.vertices += fresh.size
        self._sorted = None
        self.naming = Naming(self.kind, self.vertices, np.concatenate([users, fresh.astype(users.dtype)]))

    def remove(self, removed: Array, movers: Array, holes: Array) -> None:
        """Remove vertices by number; then vertex movers[i] takes the number holes[i]."""
        if not removed.size:
            return
        users = self.users().copy()
        if self._by_name is not None:
            for name in users[removed].tolist():
                del self._by_name[name]
            self._by_name.update(zip(users[movers].tolist(), holes.tolist(), strict=True))
        users[holes] = users[movers]
        self.vertices -= removed.size
        if self.kind == "dense":
            self.kind = "int64"
        self._sorted = None
        self.naming = Naming(self.kind, self.vertices, users[: self.vertices].copy())

    def check_kind(self, users: Array) -> Array:
        """Ids of a batch as this graph has them; raises UnknownVertexError if they are of another kind."""
        if self.kind == "string":
            if users.dtype != object:
                raise UnknownVertexError(f"the graph's ids are texts, the batch has {users.dtype}")
            return users
        if users.dtype == object or users.dtype.kind not in "iu":
            raise UnknownVertexError(
                f"the graph's ids are integers, the batch has {'texts' if users.dtype == object else users.dtype}"
            )
        return users
