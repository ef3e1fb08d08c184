"""Lists in chunks: a near copy of some lists, of which only the chunks that lose lists are rearranged (Grapin,
Algorithm 3).

The memory is cut into chunks of equal size, and no list spans two. Every list has a key; two arrays by key say where it
lies and how long its place is. `replace` goes from the lists held to those wanted:

1. Lists that are not wanted any more, or have changed, are dropped, and their entries counted by chunk.
2. Chunks that have lost a sixteenth of their entries are compacted. Then lists of the emptiest of them fill the gaps of
   the fullest, so that space becomes contiguous.
3. Wanted lists get places behind what the chunks hold, the hottest first.
4. They are copied there: by `load` at once, or by `keep` when they next cross the link for the work itself.

With `admit` a list gets its place only when it is read. All that remains to be done between snapshots is then to `drop`
lists, and to `move` those that have outgrown their places.

Other chunks are not written to, except behind their last list and where a list is filled again. Lists that are longer
than a chunk are left out, and so are those that find no room because others do not fill their chunks to the last entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.devices.cuda.list_mover import ListMover
from isthmus.kernels.cache import hot_lists
from isthmus.kernels.cache.list_layout import keep_rows
from isthmus.link.link import Array

CHUNKS = 128  # Grapin: 32 MB of 4 GB
LOST = 16  # a chunk is compacted when it has lost this part of its entries
ROUNDS = 8  # in which lists that have outgrown their places move
FEWEST = 8  # where a chunk must be larger to have room for the longest list


def chunk_entries(capacity: int, longest: int) -> int:
    """Entries of a chunk: enough for the longest list, as far as there remain FEWEST chunks."""
    return max(1, capacity // CHUNKS, min(longest, capacity // FEWEST))


class ChunkedLists:
    """Places for lists, by key. Not thread-safe, except `keep`."""

    def __init__(self, memory: Array, keys: int, dtypes: tuple[Any, Any], longest: int, team: Any) -> None:
        """`dtypes`: of targets, and of weights (None: there are none). `longest`: length of the longest list."""
        target, weight = np.dtype(dtypes[0]), None if dtypes[1] is None else np.dtype(dtypes[1])
        self.entry = entry = target.itemsize + (0 if weight is None else weight.itemsize)  # bytes
        room = memory.size // entry // 8 * 8  # so that weights are aligned
        self.chunk = chunk_entries(room, longest)
        self.count = room // self.chunk
        self.capacity = self.count * self.chunk
        self._weights_at = room * target.itemsize
        self.targets = memory[: self._weights_at].view(target)
        self.weights = None if weight is None else memory[self._weights_at : room * entry].view(weight)
        self._team = team
        # Entries of each chunk, with those that were lost before its last list.
        self.used = np.zeros(self.count, np.int64)
        self.lost = np.zeros(self.count, np.int64)  # entries between the lists of each chunk
        self.members = [np.empty(0, np.uint32) for _ in range(self.count)]  # keys of each chunk's lists, by place
        self.begins: Array = np.full(keys, -1, np.int32 if room < 1 << 31 else np.int64)  # -1: no place
        self.sizes = np.zeros(keys, np.uint32)  # of its place, which may be longer than the list
        self.held = np.zeros(keys, np.uint8)  # its place has been filled
        self.wanted = np.zeros(keys, np.uint8)
        self.moved = 0  # entries that the last `replace` had to move, at most

    @property
    def _index(self) -> tuple[Array, Array, Array]:
        return self.begins, self.sizes, self.held

    @property
    def _arrays(self) -> tuple[Array, Array, bool]:
        return self.targets, self.targets[:0] if self.weights is None else self.weights, self.weights is not None

    @property
    def end(self) -> int:
        """Bytes of the memory up to the end of the last chunk; a multiple of 8."""
        used = self.targets.nbytes if self.weights is None else self._weights_at + self.weights.nbytes
        return -(-int(used) // 8) * 8

    def attach(self, mover: ListMover) -> None:
        """A run on a GPU begins, which moves lists by this mover."""

    def detach(self) -> None:
        """The run ends: let go of its mover."""

    def forget(self) -> None:
        """Drop all lists."""
        self.begins[:] = -1
        self.sizes[:] = 0
        self.held[:] = 0
        self.wanted[:] = 0
        self.used[:] = self.lost[:] = 0
        self.members = [np.empty(0, np.uint32) for _ in range(self.count)]

    def replace(self, lengths: Array, heat: Callable[[Array], Array], changed: Array) -> Array:
        """Go over to the lists in `wanted`; returns the keys of those that have a place now and have yet to be filled.

        `lengths` of all lists now, by key; `heat` tells how often the lists of some keys were used; `changed`: keys of
        lists that are not as they were when they were filled.
        """
        parts = self._team.split(self._drop_unwanted, self.begins.size) if self.count else []
        self.drop(changed, parts)
        return self._allocate(lengths, heat)

    def drop(self, keys: Array, before: Sequence[Array] = ()) -> None:
        """Drop these lists, each named once, and reclaim their space; `before`: entries of each chunk that were dropped
        already.
        """
        self.moved = 0
        if not self.count:
            return
        dropped = sum(
            [*before, *self._team.split(lambda a, b: self._drop_keys(keys[a:b]), keys.size)],
            np.zeros(self.count, np.int64),
        )
        self._reclaim(dropped, self.chunk // LOST)

    def _reclaim(self, dropped: Array, least: int) -> None:
        """Make space contiguous in and across chunks that have lost more than `least` entries; `dropped`: those lost
        just now.
        """
        self.lost += dropped
        compacted = self.lost > least
        touched, others = np.flatnonzero(compacted), np.flatnonzero((dropped > 0) & ~compacted)
        self._team.each(lambda k: self._forget_dropped(int(others[k])), others.size)
        self._team.each(lambda k: self._compact(int(touched[k])), touched.size)
        self.lost[touched] = 0
        self.moved += int(self.used[touched].sum())
        self._fill_across(touched)

    def _drop_keys(self, keys: Array) -> Array:
        dropped = np.zeros(self.count, np.int64)
        hot_lists.drop_keys(keys, *self._index, self.chunk, dropped)
        return dropped

    def _drop_unwanted(self, first: int, last: int) -> Array:
        dropped = np.zeros(self.count, np.int64)
        hot_lists.drop_unwanted(first, last, self.wanted, *self._index, self.chunk, dropped)
        return dropped

    def _forget_dropped(self, chunk: int) -> None:
        members = self.members[chunk]
        self.members[chunk] = members[: hot_lists.still_placed(members, self.begins)]

    def _compact(self, chunk: int) -> None:
        """Within a chunk: move the lists that are left to its front."""
        members = self.members[chunk]
        count, used = hot_lists.compact(members, chunk * self.chunk, *self._index, *self._arrays)
        self.members[chunk], self.used[chunk] = members[:count].copy(), used

    def _fill_across(self, touched: Array) -> None:
        """Across chunks: move lists of the emptiest chunk into the fullest, until one of the touched chunks has all the
        space.
        """
        order = touched[np.argsort(self.used[touched], kind="stable")].tolist()
        head, tail = 0, len(order) - 1
        while head < tail:
            small, large = order[head], order[tail]
            members, at = self.members[small], int(self.used[large])
            moved, entries = self._pour(members, large * self.chunk + at, self.chunk - at)
            left = members.size - moved
            self.members[large] = np.concatenate([self.members[large], members[left:][::-1]])
            self.members[small] = members[:left].copy()
            self.used[large] += entries
            self.used[small] -= entries
            self.moved += entries
            if left:
                tail -= 1  # full: the next list does not fit
            else:
                head += 1

    def _pour(self, members: Array, at: int, room: int) -> tuple[int, int]:
        """Move the last of these lists to `at` in another chunk, as far as there is room; returns how many, and their
        entries.
        """
        moved, entries = hot_lists.pour(members, members.size, at, room, *self._index, *self._arrays)
        return int(moved), int(entries)

    def _allocate(self, lengths: Array, heat: Callable[[Array], Array]) -> Array:
        """Reserve places for wanted lists that have none, the hottest first; returns their keys by place."""
        keys = np.flatnonzero((self.wanted != 0) & (self.begins < 0))
        keys = keys[np.argsort(np.uint16(4 * hot_lists.MOST) - heat(keys), kind="stable")]  # a radix sort, for 16 bits
        return self._place(keys, lengths[keys])

    def admit(self, keys: Array, lengths: Array) -> Array:
        """Give these lists, of these lengths, places as far as there is room; returns the keys that have got one."""
        self.wanted[keys] = 1
        return self._place(keys, lengths)

    def _place(self, keys: Array, lengths: Array) -> Array:
        if not self.count:
            self.wanted[keys] = 0
            return keys[:0]
        order = np.argsort(self.used, kind="stable")  # the emptiest chunk first
        hot_lists.allocate(keys, lengths, order, self.chunk, self.used, self.begins, self.sizes, self.wanted)
        placed = keys[self.begins[keys] >= 0]
        placed = placed[np.argsort(self.begins[placed], kind="stable")]
        chunks = self.begins[placed] // self.chunk
        for chunk, first, last in runs(chunks):
            self.members[chunk] = np.concatenate([self.members[chunk], placed[first:last].astype(np.uint32)])
        return placed

    def move(self, keys: Array, sizes: Array) -> Array:
        """Give lists that are held, each once, places of these sizes instead, as far as there is room; returns their
        keys.

        What they hold moves along. Lists that find no room are dropped. The space that some leave is for the next ones.
        """
        order = np.argsort(-sizes, kind="stable")  # short lists find room anywhere
        keys, sizes = keys[order], sizes[order]
        stayed = []
        if int(sizes.sum()) > self._room:
            self._reclaim(np.zeros(self.count, np.int64), 0)
        for _ in range(ROUNDS):
            keys, sizes = self._pass_over(keys, sizes)
            count = int(np.searchsorted(np.cumsum(sizes), self._room, "right"))
            stayed.append(self._move_some(keys[:count], sizes[:count], count == keys.size))
            keys, sizes = keys[count:], sizes[count:]
            if not keys.size:
                break
        self.wanted[keys] = 0
        self._reclaim(self._drop_keys(keys), self.chunk // LOST)
        return np.concatenate(stayed)

    @property
    def _room(self) -> int:
        """Entries behind the last lists of all chunks."""
        return int(self.capacity - self.used.sum())

    def _pass_over(self, keys: Array, sizes: Array) -> tuple[Array, Array]:
        """Of lists to move, the longest first, drop those that must go before the next one has room; returns the
        others.
        """
        lengths = self.sizes[keys].astype(np.int64)
        rooms = self._room + np.cumsum(lengths) - lengths  # for each list, when those before it are gone
        count = int(np.searchsorted(rooms - sizes, 0))
        if count:
            self.wanted[keys[:count]] = 0
            self._reclaim(self._drop_keys(keys[:count]), 0)
        return keys[count:], sizes[count:]

    def _move_some(self, keys: Array, sizes: Array, last: bool) -> Array:
        """Move lists for which there is room, though perhaps not in one chunk. If others follow, all the space they
        leave is reclaimed.
        """
        froms, lengths = self.begins[keys].astype(np.int64), self.sizes[keys].astype(np.int64)
        left = np.zeros(self.count, np.int64)
        np.add.at(left, froms // self.chunk, lengths)
        self.begins[keys], self.sizes[keys] = -1, 0
        members = np.flatnonzero(left)
        self._team.each(lambda k: self._forget_dropped(int(members[k])), members.size)
        self._place(keys, sizes)
        stay = self.begins[keys] >= 0
        self.held[keys[~stay]] = 0
        keys, froms, lengths = keys[stay], froms[stay], lengths[stay]
        self._copy(froms, self.begins[keys].astype(np.int64), lengths)
        self.moved += int(lengths.sum())
        self._reclaim(left, self.chunk // LOST if last else 0)
        return keys

    def _copy(self, froms: Array, tos: Array, lengths: Array) -> None:
        """Copy lists to places that none of them had."""
        self._team.split(lambda a, b: hot_lists.copy_lists(a, b, froms, tos, lengths, *self._arrays), froms.size)

    def load(self, keys: Array, offset: int, lists: tuple[Array, Array], targets: Array, weights: Array) -> None:
        """Fill the places of these keys, lists of a side whose keys begin at `offset`, from its far arrays."""
        given = (offset, *lists, targets, weights if self.weights is not None else targets[:0])
        self._team.split(
            lambda a, b: hot_lists.load(keys, a, b, *given, self.begins, self.held, *self._arrays), keys.size
        )

    def refresh(
        self,
        keys: Array,
        groups: Array,
        changes: Any,
        offset: int,
        lists: tuple[Array, Array],
        targets: Array,
        weights: Array,
    ) -> None:
        """Bring lists of these keys that have changed up to date; `groups` of `changes`, a batch's for one side, are
        theirs.
        """
        given = (offset, changes.cuts, changes.others, changes.actions, changes.positions, *lists)
        far = (targets, weights if self.weights is not None else targets[:0])
        self._team.split(
            lambda a, b: hot_lists.refresh(keys, groups, a, b, *given, *far, self.begins, self.held, *self._arrays),
            keys.size,
        )

    def keep(
        self, rows: tuple[Array, ...], offset: int, lists: tuple[Array, Array], targets: Array, weights: Array | None
    ) -> None:
        """Fill the places of rows (vertices, begins, weight_begins, lengths) that have just been delivered whole."""
        own = slice(offset, offset + lists[0].size)
        brought = targets[:0] if weights is None or self.weights is None else weights
        keep_rows(*rows, *lists, targets, brought, self.wanted[own], self.held[own], self.begins[own], *self._arrays)

    def limit(self, entry_bytes: int) -> None:
        """Give up the last chunks and their lists, so that the others take at most so many bytes."""
        self.count = min(self.count, max(0, entry_bytes) // (self.chunk * self.entry))
        self.capacity = self.count * self.chunk
        gone = np.concatenate([np.empty(0, np.uint32), *self.members[self.count :]])
        self.begins[gone] = -1
        for array in (self.sizes, self.held, self.wanted):
            array[gone] = 0
        self.targets = self.targets[: self.capacity]
        self.weights = None if self.weights is None else self.weights[: self.capacity]
        self.used, self.lost, self.members = (
            self.used[: self.count],
            self.lost[: self.count],
            self.members[: self.count],
        )

    def grow(self, old: int, new: int, sides: int) -> None:
        """Make room for `new` keys a side instead of `old`."""
        for name in ("begins", "sizes", "held", "wanted"):
            before = getattr(self, name)
            after = np.full(sides * new, -1, before.dtype) if name == "begins" else np.zeros(sides * new, before.dtype)
            for side in range(sides):
                after[side * new : side * new + old] = before[side * old : (side + 1) * old]
            setattr(self, name, after)
        self.members = [((keys // old) * new + keys % old).astype(np.uint32) for keys in self.members]


def runs(values: Array) -> list[tuple[int, int, int]]:
    """(value, first, last) of every run of equal values."""
    cuts = np.flatnonzero(np.diff(values)) + 1
    firsts, lasts = [0, *cuts.tolist()], [*cuts.tolist(), values.size]
    return [(int(values[first]), first, last) for first, last in zip(firsts, lasts, strict=True) if last > first]
