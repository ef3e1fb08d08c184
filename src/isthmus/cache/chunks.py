"""Lists in chunks: a layout of which only the chunks that lose lists are rearranged (Grapin, Algorithm 3).

The memory is cut into chunks of equal size, and no list spans two. Every list has a key; two arrays by key say where it
lies and how long its place is. `replace` goes from the lists held to those chosen:

1. Lists that are not chosen any more, or have changed, are dropped, and their entries counted by chunk.
2. Chunks that have lost a sixteenth of their entries are compacted. Then lists of the emptiest of them fill the gaps of
   the fullest, so that space becomes contiguous.
3. Chosen lists get places behind the last lists of the chunks, the hottest first.
4. They are copied there: by `load` at once, or by `keep` when they next cross the link for the work itself.

With `admit` a list gets its place only when it is read. All that remains to be done between snapshots is then to `drop`
lists, and to `move` those that have outgrown their places.

Other chunks are not written to, except behind their last list and where a list is filled again. Lists that are longer
than a chunk are left out, and so are those that find no space because others do not fill their chunks to the last
entry.

The index is the host's wherever the lists are: it gives lists places one by one, which is no work for many threads. A
mover copies the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.cache.layout import Layout
from isthmus.graph.lists import Lists
from isthmus.kernels.cache import list_layout
from isthmus.kernels.cache.ranking import MOST
from isthmus.link.link import Array

CHUNKS = 128  # Grapin: 32 MB of 4 GB
LOST = 16  # a chunk is compacted when it has lost this part of its entries
ROUNDS = 8  # in which lists that have outgrown their places move
FEWEST = 8  # where a chunk must be larger to hold the longest list


def chunk_entries(capacity: int, longest: int) -> int:
    """Entries of a chunk: enough for the longest list, as far as there remain FEWEST chunks."""
    return max(1, capacity // CHUNKS, min(longest, capacity // FEWEST))


class Chunked(Layout):
    """Places for lists, by key. Not thread-safe, except `keep`."""

    def __init__(
        self, memory: Array, keys: int, dtypes: tuple[Any, Any], longest: int, team: Any, index: Array
    ) -> None:
        """`longest`: length of the longest list. `index`: near memory of a device, not needed here."""
        super().__init__(memory, dtypes)
        place = np.int32 if self.capacity < 1 << 31 else np.int64
        self.longest = self.chunk = chunk_entries(self.capacity, longest)
        self.count = self.capacity // self.chunk
        self.capacity = self.count * self.chunk
        self._team = team
        # Entries of each chunk, with those that were lost before its last list.
        self.used = np.zeros(self.count, np.int64)
        self.lost = np.zeros(self.count, np.int64)  # entries between the lists of each chunk
        self.members = [np.empty(0, np.uint32) for _ in range(self.count)]  # keys of each chunk's lists, by place
        self.begins: Array = np.full(keys, -1, place)  # -1: no place
        self.sizes = np.zeros(keys, np.uint32)  # of its place, which may be longer than the list
        self.held = np.zeros(keys, np.uint8)
        self.chosen = np.zeros(keys, np.uint8)
        self.moved = 0  # entries that the last `replace` had to move, at most

    @property
    def _index(self) -> tuple[Array, Array, Array]:
        return self.begins, self.sizes, self.held

    @property
    def end(self) -> int:
        """Bytes of the memory up to the end of the last chunk; a multiple of 8."""
        used = self.targets.nbytes if self.weights is None else self._weights_at + self.weights.nbytes
        return -(-int(used) // 8) * 8

    def forget(self) -> None:
        """Drop all lists, and their places."""
        self.begins[:] = -1
        self.sizes[:] = 0
        self.held[:] = 0
        self.chosen[:] = 0
        self.used[:] = self.lost[:] = 0
        self.members = [np.empty(0, np.uint32) for _ in range(self.count)]

    def replace(self, found: Array, lists: Sequence[Lists], heat: Callable[[Array], Array], changed: Array) -> Array:
        self.chosen[:] = found
        parts = self._team.split(self._drop_others, self.begins.size) if self.count else []
        self.drop(changed, parts)
        keys = np.flatnonzero((self.chosen != 0) & (self.begins < 0))
        keys = keys[np.argsort(np.uint16(4 * MOST) - heat(keys), kind="stable")]  # a radix sort, for 16 bits
        return self._place(keys, lengths_of(keys, lists, self.begins.size // max(1, len(lists))))

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
        list_layout.drop_keys(keys, *self._index, self.chunk, dropped)
        return dropped

    def _drop_others(self, first: int, last: int) -> Array:
        dropped = np.zeros(self.count, np.int64)
        list_layout.drop_others(first, last, self.chosen, *self._index, self.chunk, dropped)
        return dropped

    def _forget_dropped(self, chunk: int) -> None:
        members = self.members[chunk]
        self.members[chunk] = members[self.begins[members] >= 0]

    def _compact(self, chunk: int) -> None:
        """Within a chunk: move the lists that are left to its front."""
        self._forget_dropped(chunk)
        members = self.members[chunk]
        froms, lengths = self.begins_of(members), self.sizes[members].astype(np.int64)
        ends = np.cumsum(lengths)
        tos = chunk * self.chunk + ends - lengths
        moves = (froms != tos) & (self.held[members] != 0)
        self.mover.shift(froms[moves], tos[moves], lengths[moves], self.near)
        self.begins[members] = tos
        self.used[chunk] = int(ends[-1]) if ends.size else 0

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

    def _pour(self, members: Array, at: int, space: int) -> tuple[int, int]:
        """Move the last of these lists to `at` in another chunk, as far as they fit its space; returns how many, and
        their entries.
        """
        lengths = self.sizes[members[::-1]].astype(np.int64)
        ends = np.cumsum(lengths)
        moved = int(np.searchsorted(ends, space, "right"))
        keys, lengths, ends = members[::-1][:moved], lengths[:moved], ends[:moved]
        froms, tos, there = self.begins_of(keys), at + ends - lengths, self.held[keys] != 0
        self._copy(froms[there], tos[there], lengths[there])
        self.begins[keys] = tos
        return moved, int(ends[-1]) if moved else 0

    def admit(self, keys: Array, lengths: Array) -> Array:
        """Give these lists, of these lengths, places as far as there is space; returns the keys that have got one."""
        self.chosen[keys] = 1
        return self._place(keys, lengths)

    def _place(self, keys: Array, lengths: Array) -> Array:
        if not self.count:
            self.chosen[keys] = 0
            return keys[:0]
        order = np.argsort(self.used, kind="stable")  # the emptiest chunk first
        list_layout.allocate(keys, lengths, order, self.chunk, self.used, self.begins, self.sizes, self.chosen)
        placed = keys[self.begins[keys] >= 0]
        placed = placed[np.argsort(self.begins[placed], kind="stable")]
        chunks = self.begins[placed] // self.chunk
        for chunk, first, last in runs(chunks):
            self.members[chunk] = np.concatenate([self.members[chunk], placed[first:last].astype(np.uint32)])
        return placed

    def move(self, keys: Array, sizes: Array) -> Array:
        """Give lists that are held, each once, places of these sizes instead, as far as there is space; returns their
        keys.

        Their content moves along. Lists that find no space are dropped. Lists that follow use the space that others
        have left.
        """
        order = np.argsort(-sizes, kind="stable")  # short lists fit anywhere
        keys, sizes = keys[order], sizes[order]
        stayed = []
        if int(sizes.sum()) > self._space:
            self._reclaim(np.zeros(self.count, np.int64), 0)
        for _ in range(ROUNDS):
            keys, sizes = self._pass_over(keys, sizes)
            count = int(np.searchsorted(np.cumsum(sizes), self._space, "right"))
            stayed.append(self._move_some(keys[:count], sizes[:count], count == keys.size))
            keys, sizes = keys[count:], sizes[count:]
            if not keys.size:
                break
        self.chosen[keys] = 0
        self._reclaim(self._drop_keys(keys), self.chunk // LOST)
        return np.concatenate(stayed)

    @property
    def _space(self) -> int:
        """Entries behind the last lists of all chunks."""
        return int(self.capacity - self.used.sum())

    def _pass_over(self, keys: Array, sizes: Array) -> tuple[Array, Array]:
        """Of lists to move, the longest first, drop those that must go before the next one fits; returns the others."""
        lengths = self.sizes[keys].astype(np.int64)
        spaces = self._space + np.cumsum(lengths) - lengths  # for each list, when those before it are gone
        count = int(np.searchsorted(spaces - sizes, 0))
        if count:
            self.chosen[keys[:count]] = 0
            self._reclaim(self._drop_keys(keys[:count]), 0)
        return keys[count:], sizes[count:]

    def _move_some(self, keys: Array, sizes: Array, last: bool) -> Array:
        """Move lists for which there is space, though perhaps not in one chunk. If others follow, all the space they
        leave is reclaimed.
        """
        froms, lengths = self.begins_of(keys), self.sizes[keys].astype(np.int64)
        left = np.zeros(self.count, np.int64)
        np.add.at(left, froms // self.chunk, lengths)
        self.begins[keys], self.sizes[keys] = -1, 0
        members = np.flatnonzero(left)
        self._team.each(lambda k: self._forget_dropped(int(members[k])), members.size)
        self._place(keys, sizes)
        stay = self.begins[keys] >= 0
        self.held[keys[~stay]] = 0
        keys, froms, lengths = keys[stay], froms[stay], lengths[stay]
        self._copy(froms, self.begins_of(keys), lengths)
        self.moved += int(lengths.sum())
        self._reclaim(left, self.chunk // LOST if last else 0)
        return keys

    def _copy(self, froms: Array, tos: Array, lengths: Array) -> None:
        """Copy lists to places that none of them had."""
        self.mover.copy(froms, tos, lengths, [(near, near) for near in self.near])

    def load(self, keys: Array, offset: int, lists: tuple[Array, Array], targets: Array, weights: Array) -> None:
        """Fill the places of these keys, lists of a side whose keys begin at `offset`, from its far arrays."""
        rows, far = keys - offset, [targets, weights][: len(self.near)]
        froms = lists[0][rows]
        pairs = list(zip(far, self.near, strict=True))
        self.mover.fetch(froms, self.begins_of(keys), lists[1][rows] - froms, pairs)
        self.held[keys] = 1

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
        if not keys.size:
            return
        rows, weighted = keys - offset, self.weights is not None
        begins = lists[0][rows]
        numbers = (begins, lists[1][rows] - begins, self.begins_of(keys), self.held[keys], groups)
        far, near = (targets, weights if weighted else targets), (self.targets, self.near[-1])
        columns = (*numbers, changes.cuts, changes.others, changes.actions, changes.positions)
        self.mover.patch(columns, (*far, weighted), near)
        self.held[keys] = 1

    def limit(self, entry_bytes: int) -> None:
        """Give up the last chunks and their lists, so that the others take at most `entry_bytes`."""
        self.count = min(self.count, max(0, entry_bytes) // (self.chunk * self.entry))
        self.capacity = self.count * self.chunk
        gone = np.concatenate([np.empty(0, np.uint32), *self.members[self.count :]])
        self.begins[gone] = -1
        for array in (self.sizes, self.held, self.chosen):
            array[gone] = 0
        self.targets = self.targets[: self.capacity]
        self.weights = None if self.weights is None else self.weights[: self.capacity]
        self.used, self.lost, self.members = (
            self.used[: self.count],
            self.lost[: self.count],
            self.members[: self.count],
        )

    def grow(self, old: int, new: int, sides: int) -> None:
        """Index `new` keys a side instead of `old`."""
        for name in ("begins", "sizes", "held", "chosen"):
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


def lengths_of(keys: Array, lists: Sequence[Lists], side_keys: int) -> Array:
    """The lengths of the lists of these keys, of which each side has `side_keys`; 0 beyond its vertices."""
    lengths = np.zeros(keys.size, np.int64)
    for k, each in enumerate(lists):
        own = np.flatnonzero((keys >= k * side_keys) & (keys < k * side_keys + len(each)))
        rows = keys[own] - k * side_keys
        lengths[own] = each.ends[rows] - each.begins[rows]
    return lengths
