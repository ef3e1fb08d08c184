"""How often lists were used, counted on a GPU: the words of `cache/ranking.py` lie there, and the hottest lists are
chosen there.

Levels are counted, added up by the card's prefix sum, and searched by kernels, without the host. Where lists lie in
chunks, the host needs the result to give lists places: a bit for every list, whether it is chosen, or cold; and two
bytes for every list that is to come, as the hottest get places first. It tells the GPU which lists are held, a byte
each. Where lists are contiguous, the marks stay on the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from isthmus.cache.mover import Attached
from isthmus.cache.ranking import USES, Counts, Ranking, grown, hubs
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.devices.cuda.kernels import ranking as kernels
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

AT_ONCE = 1 << 19  # lists whose entries are added up at once
Part = tuple[int, tuple[Any, ...], Array]  # some lists: how many, what tells kernels of them, where they are marked


def key_bytes(ranking: Ranking) -> int:
    """Near memory for a key: its word, and a mark."""
    return ranking.periods + 1


class CudaCounts(Counts):
    """Words in near memory, used while they are attached."""

    def __init__(self, ranking: Ranking, keys: int, team: Any, memory: Array) -> None:
        self.ranking = ranking
        self.words, self._marks = cut(ranking, memory, keys)
        self._own: Array | None = None  # memory of the words, if it is not the cache's

    @property
    def _rows(self) -> RowSpace:
        assert self.attached is not None
        mover = self.attached.mover
        assert isinstance(mover, ListMover)
        return mover.rows

    @property
    def _space(self) -> CardSpace:
        return self._rows.space

    @property
    def _kernels(self) -> ModuleType:
        return kernels.build(self._space.card.gpu)

    def fill(self, value: int) -> None:
        self._fill(self.words, value)

    def _fill(self, array: Array, value: int) -> None:
        if array.size:
            self._space.launch(self._rows.kernels.fill, array, value)
            self._space.finish()

    # Counting

    def use(self, rows: Array, offset: int) -> None:
        for (some,) in self._rows.parts([rows]):
            self._space.launch(self._kernels.use_rows, some, offset, self.words, self.ranking.current)

    def use_active(self, frontier: Frontier, offset: int, run: Attached | None) -> None:
        if frontier.list is not None:
            self.use(frontier.list, offset)
            return
        assert run is not None and isinstance(run.mover, ListMover)
        space, marks = run.mover.space, (frontier.marks, frontier.all_active)  # the run knows the frontier's memory
        space.launch(self._kernels.use_marked, frontier.vertices, *marks, offset, self.words, self.ranking.current)
        space.finish()

    def end_period(self) -> None:
        self._space.launch(self._kernels.end_period, self.words)
        self._space.finish()

    # Choosing

    def choose(self, lists: Sequence[Lists], held: Array, longest: int, capacity: int) -> Array:
        """Marks on the host where lists lie in chunks, otherwise near marks, which last until the next choice."""
        if not capacity:
            return np.zeros(held.size, np.uint8)
        if self.ranking.by_degree:
            self._space.card.copy(self._marks, hubs(lists[0], capacity), self._space.stream)
            self._space.finish()
            return self._marks
        assert self.attached is not None
        run, ranking, side_keys = self._kernels, self.ranking, self.words.size // len(lists)
        with CardSpace(self._space.card) as there:
            near_held = there.upload(held) if ranking.held_first else self.words  # else kernels do not look at it
            entries = there.near(ranking.levels, np.int64)
            there.launch(self._rows.kernels.fill, entries, 0)
            there.launch(self._rows.kernels.fill, self._marks, 0)
            parts: list[Part] = []
            for k, own in enumerate(lists):
                near = self.attached.lists(own)
                given = (k * side_keys, self.words, near_held, *near, longest, ranking.order)
                there.launch(run.count_entries, len(own), *given, entries)
                parts += [(last - first, (first, last, *given), self._marks) for first, last in ranges(len(own))]
            self._select(there, entries, capacity, parts, run.entries_on_level, run.mark_candidates)
            return self._marks_of(there, self._marks) if ranking.chunked else self._marks

    def _select(
        self, there: CardSpace, entries: Array, capacity: int, parts: Sequence[Part], on_level: Any, mark: Any
    ) -> None:
        """Mark lists by the level that no longer fits as a whole, given the `entries` of each level.

        Kernels: `on_level` finds the entries of lists on that level, `mark` marks lists by their prefix sums.
        """
        run, cutoff = self._kernels, there.near(2, np.int64)
        there.scan(entries)
        there.launch(run.find_level, entries, capacity, cutoff)
        all_sums = there.near(max((count for count, _, _ in parts), default=0), np.int64)
        for count, given, marks in parts:
            sums = all_sums[:count]
            there.launch(on_level, *given, cutoff, sums)
            there.scan(sums)
            there.launch(mark, *given, cutoff, sums, marks)
            there.launch(run.take_space, sums, cutoff)

    def differs(self, found: Array, chosen: Array, lists: Sequence[Lists]) -> bool:
        if self.ranking.least_change is None:
            return True
        assert self.attached is not None
        ((own,), counted) = lists, np.empty(2, np.int64)
        with CardSpace(self._space.card) as there:
            sums = there.near(2, np.int64)
            there.launch(self._rows.kernels.fill, sums, 0)
            there.launch(self._kernels.count_new, len(own), found, chosen, *self.attached.lists(own), sums)
            there.copy_back(counted, sums)
            there.finish()
        return bool(counted[0] > self.ranking.least_change * counted[1])

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
        run, order, keys = self._kernels, self.ranking.order, np.concatenate(members)
        if not keys.size:
            return keys.astype(np.int64)
        with CardSpace(self._space.card) as there:
            near, sizes_there = there.upload(keys), there.upload(sizes[keys])
            entries, cold = there.near(self.ranking.levels, np.int64), there.near(keys.size, np.uint8)
            there.launch(self._rows.kernels.fill, entries, 0)
            there.launch(run.count_held, near, sizes_there, self.words, order, entries)
            parts = [
                (last - first, (near[first:last], sizes_there[first:last], self.words, order), cold[first:last])
                for first, last in ranges(keys.size)
            ]
            self._select(there, entries, capacity, parts, run.held_on_level, run.mark_cold)
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
        host, size = np.empty(self.words.size, self.words.dtype), key_bytes(self.ranking) * sides * new
        self._space.copy_back(host, self.words)
        self._space.finish()
        before, own = self._own, None if size <= spare.size else self._space.near(size, np.uint8)
        self._own = own
        self.words, self._marks = cut(self.ranking, spare if own is None else own, sides * new)
        larger = grown(host, sides, old, new)
        self._space.card.copy(self.words, larger, self._space.stream)
        self._space.finish()
        if before is not None:
            self._space.free(before)

    def renumber(self, offset: int, side_keys: int, movers: Array, holes: Array, vertices: int) -> None:
        for froms, tos in self._rows.parts([movers.astype(np.int64) + offset, holes.astype(np.int64) + offset], 1):
            self._space.launch(self._kernels.move_words, froms, tos, self.words)
        self._fill(self.words[offset + vertices : offset + side_keys], 0)


def ranges(count: int) -> Iterator[tuple[int, int]]:
    """Parts of 0:count whose entries are added up at once."""
    for first in range(0, count, AT_ONCE):
        yield first, min(first + AT_ONCE, count)


def temporary_bytes(keys: int) -> int:
    """Near memory that a choice among the lists of these keys takes for a while, in chunks: at most 4 bytes for a key
    and for a size, a mark, and its bit.
    """
    return 9 * keys + -(-keys // 8) + 8 * (min(AT_ONCE, keys) + USES.levels + 3)


def cut(ranking: Ranking, memory: Array, keys: int) -> tuple[Array, Array]:
    """Words and marks in near memory; of memory that is too small, none: then nothing is kept near, or counted."""
    keys = keys if memory.size >= key_bytes(ranking) * keys else 0
    words = ranking.periods * keys
    return memory[:words].view(ranking.dtype), memory[words : words + keys]
