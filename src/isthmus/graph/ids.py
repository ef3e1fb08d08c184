"""User ids and vertex numbers. The id map stays in the store; a look-up reads the few blocks it needs.

A look-up of a name reads a name for every step of a binary search. Looking up many vertices one by one would be mostly
waiting for reads, so after some look-ups a small id map is held in memory.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError, UnknownVertexError
from isthmus.graph.export import arrow
from isthmus.graph.order import check_inverse, check_numbers, not_inverse
from isthmus.graph.store.files import Array
from isthmus.graph.store.store import MemoryStore, Store

KEPT = ("ids.", "order.")  # what the sections of an id map are called
PATIENCE = 256  # ids that are looked up in the store before the map is held
FEW = 1 << 12  # more ids at once are a column, not a look-up
GAP = 512  # entries: reading over a larger gap takes longer than a second read


class Ids:
    """The id map of a store. Numbers are in the store's own order, natural or hub. `holds`: many look-ups bring it into
    memory.
    """

    def __init__(self, store: Store | MemoryStore, holds: bool = True) -> None:
        self._store, self._holds = store, holds
        self.kind = store.manifest.ids
        self._count = store.manifest.vertices
        self._hub = store.manifest.order == "hub"
        self._inverse = isinstance(store, MemoryStore)  # both permutations of a hub order were compared
        self._asked = 0
        self._held: dict[str, Array] | None = None

    @property
    def is_natural(self) -> bool:
        """Whether vertex numbers are places in natural order."""
        return not self._hub

    def kept(self) -> Ids:
        """The same id map for results, which are written in pieces; readable also after the graph is closed or
        replaced.
        """
        part = Ids(self._store.only(*KEPT), holds=False)
        part._inverse = self._inverse
        return part

    def loaded(self) -> Ids:
        """The same id map in memory, independent of the store's files."""
        self._check_order()
        return Ids(MemoryStore(self._store.manifest, self.sections()))

    def sections(self) -> dict[str, Array]:
        """The arrays of the map, by name."""
        return {name: self._store.read(name) for name in self._store.manifest.sections if name.startswith(KEPT)}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_asked": 0, "_held": None}

    def close(self) -> None:
        self._held = None
        self._store.close()

    def _in_memory(self, more: int) -> dict[str, Array] | None:
        """The map's sections in memory, or None. `more` is the number of ids that are looked up now."""
        if self._held is None and self._holds and more <= FEW:
            self._asked += more
            sections = {
                name: section for name, section in self._store.manifest.sections.items() if name.startswith(KEPT)
            }
            if (
                self._asked > PATIENCE
                and sum(section.bytes for section in sections.values()) <= sizes.now.held_id_bytes
            ):
                self._check_order()
                held = {name: self._whole(name) for name in sections}
                if self.kind == "string":
                    self._check_texts(arrow.texts(held["ids.offsets"], held["ids.bytes"]))
                self._held = held
        return self._held

    def _whole(self, section: str) -> Array:
        """A section of the map in memory, checked for what look-ups rely on."""
        if section == "ids.values":
            return self._ascending(0, self._count)
        if section == "ids.offsets":
            return self._bounds(0, self._count - 1)
        entries = self._store.read(section)
        if section != "ids.bytes":
            check_numbers(self._store, section, entries)
        return entries

    def _bounds(self, first: int, last: int) -> Array:
        """The offsets of the strings first to last, and the end; StoreError unless they ascend within the bytes."""
        offsets = self._store.read("ids.offsets", first, last + 2)
        end = self._store.manifest.sections["ids.bytes"].count
        inside = (first > 0 or offsets[0] == 0) and (last + 1 < self._count or offsets[-1] == end)
        if not inside or (offsets[1:] < offsets[:-1]).any():
            raise StoreError(f"{self._store}: section ids.offsets does not ascend from 0 to {end}; run isthmus verify")
        return offsets

    def _not_text(self) -> StoreError:
        return StoreError(f"{self._store}: section ids.bytes has an id that is not UTF-8; run isthmus verify")

    def number(self, user: Any) -> int:
        """The vertex number of one user id."""
        return int(self.numbers_of_natural(np.array([self.place(user)]))[0])

    def place(self, user: Any) -> int:
        """The place in natural order of one user id."""
        natural = self._find(user)
        if natural is None:
            raise UnknownVertexError(f"no vertex {shown(user)} in the graph{self._hint(user)}")
        return natural

    def _hint(self, user: Any) -> str:
        """What to give instead of an id of the wrong type; empty if the type is right."""
        if isinstance(user, list | tuple | set) or (isinstance(user, np.ndarray) and user.ndim):
            return (
                "; expected one vertex, so call it for each, or use multi_source_bfs or personalized_pagerank, "
                "which take several"
            )
        right, kinds = (str, "strings") if self.kind == "string" else ((int, np.integer), "integers")
        if isinstance(user, right) and not isinstance(user, bool):
            return ""
        meant = self._meant(user)
        return f"; its ids are {kinds}" + (
            f": give {meant!r}" if meant is not None and self._find(meant) is not None else ""
        )

    def _meant(self, user: Any) -> Any:
        """An id of the wrong type in the right one: '5' as 5, 5 as '5'; None if it is no such id."""
        if self.kind == "string":
            return str(user)
        try:
            return int(user) if float(user) == int(user) else None
        except (TypeError, ValueError, OverflowError):
            return None

    def _check_order(self) -> None:
        """Compare the two permutations of a hub order, once."""
        if self._hub and not self._inverse:
            check_inverse(self._store)
            self._inverse = True

    def _renumbered(self, section: str, positions: Array) -> Array:
        """Entries of one of the permutations, compared with the other."""
        if positions.size > FEW:
            self._check_order()
        found = self._entries(section, positions)
        if not self._inverse:
            other = "order.from_natural" if section == "order.to_natural" else "order.to_natural"
            if not np.array_equal(self._entries(other, found), positions):
                raise not_inverse(self._store)
        return found

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
        return self._search(value, self._integer)

    def _search(self, wanted: Any, entry: Callable[[int], Any]) -> int | None:
        self._in_memory(1)
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

    def _integer(self, at: int) -> int:
        return int(
            self._held["ids.values"][at] if self._held is not None else self._store.read("ids.values", at, at + 1)[0]
        )

    def _string(self, at: int) -> bytes:
        if self._held is not None:
            begin, end = self._held["ids.offsets"][at : at + 2].tolist()
            return self._held["ids.bytes"][begin:end].tobytes()
        begin, end = self._store.read("ids.offsets", at, at + 2)
        return self._store.read("ids.bytes", int(begin), int(end)).tobytes()

    def users(self, numbers: Array) -> Array:
        """User ids of vertex numbers, in their order."""
        return self.users_of_natural(self.places(np.asarray(numbers)))

    def places(self, numbers: Array) -> Array:
        """Places in natural order of vertex numbers."""
        return self._renumbered("order.to_natural", numbers) if self._hub else numbers

    def natural(self, begin: int, end: int) -> Array:
        """User ids begin:end in natural order, which is ascending."""
        if self.kind == "dense":
            return np.arange(begin, end)
        if begin == end:
            return self.users_of_natural(np.empty(0, np.int64))
        before = max(begin - 1, 0)  # with the last of the part before, which must be smaller
        users = self._strings(np.arange(before, end)) if self.kind == "string" else self._ascending(before, end)
        return users[begin - before :]

    def _ascending(self, begin: int, end: int) -> Array:
        """Integer ids begin:end in natural order."""
        values = self._store.read("ids.values", begin, end)
        if (values[1:] <= values[:-1]).any():
            raise self._unsorted()
        values.flags.writeable = False  # they may be the graph's own
        return values

    def users_of_natural(self, numbers: Array) -> Array:
        """User ids of places in natural order."""
        if self.kind == "dense":
            return numbers.astype(np.int64)
        return self._strings(numbers) if self.kind == "string" else self._entries("ids.values", numbers)

    def numbers(self, begin: int, end: int) -> Array:
        """Vertex numbers of the places begin:end in natural order."""
        if not self._hub:
            return np.arange(begin, end)
        self._check_order()
        numbers = self._store.read("order.from_natural", begin, end)
        check_numbers(self._store, "order.from_natural", numbers)
        return numbers

    def numbers_of_natural(self, places: Array) -> Array:
        """Vertex numbers of places in natural order."""
        return self._renumbered("order.from_natural", places) if self._hub else places

    def _entries(self, section: str, positions: Array) -> Array:
        """Entries at arbitrary positions of a section."""
        if (held := self._in_memory(positions.size)) is not None:
            return held[section][positions.astype(np.int64)]
        values = np.empty(positions.size, self._store.manifest.sections[section].dtype)
        for which, first, last in stretches(positions):
            if section == "ids.values":
                first = max(first - 1, 0)  # each is compared with the one before it
                entries = self._ascending(first, last + 1)
            else:
                entries = self._store.read(section, first, last + 1)
            values[which] = entries[positions[which].astype(np.int64) - first]
        if section != "ids.values":
            check_numbers(self._store, section, values)
        return values

    def to_arrow(self, places: Array) -> Any:
        """User ids of places in natural order, as an Arrow array."""
        return self._texts(places) if self.kind == "string" else arrow.numbers(self.users_of_natural(places))

    def text_bytes(self, places: Array) -> Array:
        """Bytes of the string ids of places in natural order; zeros if ids are integers."""
        lengths = np.zeros(places.size, np.int64)
        for which, first, last in stretches(places) if self.kind == "string" else ():
            at = places[which].astype(np.int64) - first
            lengths[which] = np.diff(self._bounds(first, last))[at]
        return lengths

    def _strings(self, positions: Array) -> Array:
        values = np.empty(positions.size, object)
        if positions.size <= FEW and (held := self._in_memory(positions.size)) is not None:
            places, text = positions.astype(np.int64), held["ids.bytes"].data
            begins, ends = held["ids.offsets"][places].tolist(), held["ids.offsets"][places + 1].tolist()
            values[:] = [str(text[begin:end], "utf-8") for begin, end in zip(begins, ends, strict=True)]
        else:
            values[:] = self._texts(positions).to_pylist()
        return values

    def _check_texts(self, texts: Any) -> None:
        """Raise StoreError unless neighbouring string ids are UTF-8 and ascend."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise self._not_text() from None
        if not pc.all(pc.less(texts[:-1], texts[1:]), min_count=0).as_py():
            raise self._unsorted()

    def _texts(self, positions: Array) -> Any:
        """String ids as an Arrow array. Beside them it holds the text of a few neighbouring ids, however long all are
        together.
        """
        import pyarrow as pa

        parts, order = [arrow.texts(np.zeros(1, np.int64), np.empty(0, np.uint8))], [np.empty(0, np.int64)]
        for which, first, last in stretches(positions):
            first = max(first - 1, 0)  # each is compared with the one before it
            offsets = self._bounds(first, last)
            at = positions[which].astype(np.int64) - first
            for some in pieces(at, offsets[at] // sizes.now.id_text):
                low, high = max(int(some[0]) - 1, 0), int(some[-1])
                text = self._store.read("ids.bytes", int(offsets[low]), int(offsets[high + 1]))
                near = arrow.texts(offsets[low : high + 2] - offsets[low], text)
                self._check_texts(near)
                parts.append(near.take(arrow.numbers(some - low)))
            order.append(which)
        found, back = pa.concat_arrays(parts), np.empty(positions.size, np.int64)
        back[np.concatenate(order)] = np.arange(positions.size)
        return found.take(arrow.numbers(back))


def shown(user: Any) -> str:
    """A value that was given as an id, for messages: long ones, such as lists, shortened."""
    return repr(user) if isinstance(user, str | int) else reprlib.repr(user)


def stretches(positions: Array) -> Iterator[tuple[Array, int, int]]:
    """Groups of positions close to each other: (their indices into `positions`, the first position, the last)."""
    order = np.argsort(positions, kind="stable")
    ascending = positions[order].astype(np.int64)
    apart = (np.diff(ascending // sizes.now.id_stretch) > 0) | (np.diff(ascending) > GAP)
    for which in pieces(order, np.append(0, np.cumsum(apart))):
        yield which, int(positions[which[0]]), int(positions[which[-1]])


def pieces(items: Array, groups: Array) -> list[Array]:
    """`items` cut where their group changes; none if there are no items."""
    return np.split(items, np.flatnonzero(np.diff(groups)) + 1) if items.size else []
