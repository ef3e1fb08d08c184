"""How often lists were used of late, counted on a GPU: the words of `cache/uses.py` lie there, and candidates are
chosen there.

Levels are counted, added up by the card's prefix sum, and searched by kernels, without the host. It gets what it needs
to hand out places: a bit for every list, whether it is wanted, or cold; and two bytes for every list that is to come,
as the hottest get places first. It tells the GPU which lists are held, a byte each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.cache.uses import Uses, grown
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.kernels import uses as kernels
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cache.hot_lists import LEVELS
from isthmus.link.link import Array

AT_ONCE = 1 << 19  # lists whose entries are added up at once
KEY_BYTES = 4 + 1  # a word, and whether the list is wanted


class CudaUses(Uses):
    """Words in near memory. A run boards it, unless it `stays` with a stream."""

    def __init__(self, keys: int, team: Any, memory: Array) -> None:
        self.words, self._wanted = cut(memory, keys)
        self._begun, self._home = False, False
        self._own: Array | None = None  # memory of the words, if it is not the cache's

    def stay(self, rows: RowSpace, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        """Be used between runs as well."""
        self._home = True
        self._begin(rows, lists)

    def attach(self, rows: RowSpace, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self._run = rows.space  # it knows the frontier
        if not self._home:
            self._begin(rows, lists)

    def _begin(self, rows: RowSpace, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self._rows, self._space, self._lists, self._kernels = (
            rows,
            rows.space,
            lists,
            kernels.build(rows.space.card.gpu),
        )
        if not self._begun and self.words.size:
            self._fill(self.words)
            self._begun = True

    def detach(self) -> None:
        for name in ("_run",) if self._home else ("_run", "_rows", "_space", "_lists"):
            vars(self).pop(name, None)

    def _fill(self, array: Array) -> None:
        self._space.launch(self._rows.kernels.fill, array, 0)
        self._space.finish()

    # Counting

    def use(self, rows: Array, offset: int) -> None:
        for (some,) in self._rows.parts([rows]):
            self._space.launch(self._kernels.use_rows, some, offset, self.words)

    def use_active(self, frontier: Frontier, offset: int) -> None:
        if frontier.list is not None:
            self.use(frontier.list, offset)
            return
        self._run.launch(
            self._kernels.use_marked, frontier.vertices, frontier.marks, frontier.all_active, offset, self.words
        )
        self._run.finish()

    def end_period(self) -> None:
        self._space.launch(self._kernels.end_period, self.words)
        self._space.finish()

    # Choosing

    def choose(
        self, lists: Sequence[Lists], lengths: Array, held: Array, longest: int, capacity: int, wanted: Array
    ) -> None:
        wanted[:] = 0
        if not capacity:
            return
        run, room = self._kernels, wanted.size // max(1, len(lists))
        near = [self._lists(each) for each in lists]
        with CardSpace(self._space.card) as there:
            near_held, entries, chosen = there.upload(held), there.near(LEVELS, np.int64), there.near(2, np.int64)
            there.launch(self._rows.kernels.fill, entries, 0)
            there.launch(self._rows.kernels.fill, self._wanted, 0)
            for k, each in enumerate(near):
                there.launch(run.count_entries, len(lists[k]), k * room, self.words, near_held, *each, longest, entries)
            there.scan(entries)
            there.launch(run.find_level, entries, capacity, chosen)
            all_sums = there.near(min(AT_ONCE, room), np.int64)
            for k, each in enumerate(near):
                for first in range(0, len(lists[k]), AT_ONCE):
                    last = min(first + AT_ONCE, len(lists[k]))
                    sums = all_sums[: last - first]
                    given = (first, last, k * room, self.words, near_held, *each, longest, chosen, sums)
                    there.launch(run.entries_on_level, *given)
                    there.scan(sums)
                    there.launch(run.mark_candidates, *given, self._wanted)
                    there.launch(run.take_room, sums, chosen)
            wanted[:] = self._marks_of(there, self._wanted)

    def _marks_of(self, there: CardSpace, marks: Array) -> Array:
        """Marks that a kernel has made, which cross as a bitmap."""
        bits, count = there.near(-(-marks.size // 8), np.uint8), there.near(1, np.int64)
        there.launch(self._rows.kernels.fill, count, 0)
        there.launch(self._rows.kernels.pack_marks, marks, bits, count)
        host = np.empty(bits.size, np.uint8)
        there.copy_back(host, bits)
        there.finish()
        return np.unpackbits(host, count=marks.size, bitorder="little")

    def coldest(self, members: Sequence[Array], sizes: Array, capacity: int) -> Array:
        run, keys = self._kernels, np.concatenate(members)
        if not keys.size:
            return keys.astype(np.int64)
        with CardSpace(self._space.card) as there:
            given = (there.upload(keys), there.upload(sizes[keys]), self.words)
            entries, chosen, cold = (
                there.near(LEVELS, np.int64),
                there.near(2, np.int64),
                there.near(keys.size, np.uint8),
            )
            there.launch(self._rows.kernels.fill, entries, 0)
            there.launch(run.count_held, *given, entries)
            there.scan(entries)
            there.launch(run.find_level, entries, capacity, chosen)
            all_sums = there.near(min(AT_ONCE, keys.size), np.int64)
            for first in range(0, keys.size, AT_ONCE):
                some = slice(first, min(first + AT_ONCE, keys.size))
                sums = all_sums[: some.stop - first]
                part = (given[0][some], given[1][some], self.words, chosen, sums)
                there.launch(run.held_on_level, *part)
                there.scan(sums)
                there.launch(run.mark_cold, *part, cold[some])
                there.launch(run.take_room, sums, chosen)
            return np.asarray(keys[self._marks_of(there, cold) != 0], np.int64)

    def heat(self, keys: Array) -> Array:
        found = np.empty(keys.size, np.uint16)
        if keys.size:
            with CardSpace(self._space.card) as there:
                near, heats = there.upload(keys.astype(np.uint32)), there.near(keys.size, np.uint16)
                there.launch(self._kernels.heat, near, self.words, heats)
                there.copy_back(found, heats)
                there.finish()
        return found

    # When vertices come and go

    def grow(self, sides: int, old: int, new: int, spare: Array) -> None:
        """Rare: the words go through the host. If `spare` is too small for them, they get memory of their own."""
        host, size = np.empty(self.words.size, np.uint32), KEY_BYTES * sides * new
        self._space.copy_back(host, self.words)
        self._space.finish()
        before, own = self._own, None if size <= spare.size else self._space.near(size, np.uint8)
        self._own = own
        self.words, self._wanted = cut(spare if own is None else own, sides * new)
        larger = grown(host, sides, old, new)
        self._space.card.copy(self.words, larger, self._space.stream)
        self._space.finish()
        if before is not None:
            self._space.free(before)

    def renumber(self, offset: int, room: int, movers: Array, holes: Array, vertices: int) -> None:
        for froms, tos in self._rows.parts([movers.astype(np.int64) + offset, holes.astype(np.int64) + offset], 1):
            self._space.launch(self._kernels.move_words, froms, tos, self.words)
        if vertices < room:
            self._fill(self.words[offset + vertices : offset + room])


def temporary_bytes(keys: int) -> int:
    """Near memory that choosing among so many lists takes for a while: at most 4 bytes for a key and for a size, a
    mark, and its bit.
    """
    return 9 * keys + -(-keys // 8) + 8 * (min(AT_ONCE, keys) + LEVELS + 3)


def cut(memory: Array, keys: int) -> tuple[Array, Array]:
    """Words and marks in near memory; of memory that is too small, none: then nothing is kept near, or counted."""
    keys = keys if memory.size >= KEY_BYTES * keys else 0
    return memory[: 4 * keys].view(np.uint32), memory[4 * keys : KEY_BYTES * keys]
