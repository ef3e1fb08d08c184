"""How often lists were used of late, by key: four bytes each, uses in the current period and in the last three (Grapin,
section 5).

The hot subgraph asks here which lists to hold: candidates are ordered by a counting sort, the entries of all levels
above are added up with 64 bits, and a binary search finds the level that no longer fits as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.devices.cuda.gpu_space import RowSpace
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cache import hot_lists
from isthmus.link.link import Array


class Uses:
    """Counts on this machine. One thread at a time."""

    def __init__(self, keys: int, team: Any, memory: Array) -> None:
        """`memory`: near memory of a device for an index of the keys; this machine needs none of it."""
        self._team, self.words = team, np.zeros(keys, np.uint32)

    def attach(self, rows: RowSpace, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        """A run on a GPU begins, which has room for rows there; `lists` tells where it has lists."""

    def detach(self) -> None:
        """The run ends."""

    def use(self, rows: Array, offset: int) -> None:
        """Count one use of the lists of these vertices, whose keys begin at `offset`."""
        hot_lists.use_rows(rows, offset, self.words)

    def use_active(self, frontier: Frontier, offset: int) -> None:
        """Count one use of the lists of the active vertices."""
        if frontier.list is not None:
            self.use(frontier.list, offset)
            return
        marks, every = frontier.marks, frontier.all_active
        self._team.split(lambda a, b: hot_lists.use_range(a, b, marks, every, offset, self.words), frontier.vertices)

    def end_period(self) -> None:
        self._team.split(lambda a, b: hot_lists.end_period(a, b, self.words), self.words.size)

    def choose(
        self, lists: Sequence[Lists], lengths: Array, held: Array, longest: int, capacity: int, wanted: Array
    ) -> None:
        """Mark the hottest lists that have at most `capacity` entries together; those longer than `longest` are left
        out.

        `lists` of the sides, and `lengths` of all lists, by key.
        """
        given = (self.words, held, lengths, longest)
        parts = self._team.split(lambda a, b: (a, hot_lists.entries_by_level(a, b, *given)), lengths.size)
        if not parts or not capacity:
            wanted[:] = 0
            return
        entries = np.array([part for _, part in parts])
        entries[:, 0] = 0  # no candidates
        upwards = np.cumsum(entries.sum(axis=0)[::-1])  # entries of the highest levels
        fits = int(np.searchsorted(upwards, capacity, "right"))  # so many levels fit
        level = max(entries.shape[1] - 1 - fits, 0)
        above = int(upwards[fits - 1]) if fits else 0
        rooms = capacity - above - np.cumsum(entries[:, level]) + entries[:, level]
        room = {first: int(left) for (first, _), left in zip(parts, rooms, strict=True)}
        self._team.split(lambda a, b: hot_lists.mark_candidates(a, b, *given, level, room[a], wanted), lengths.size)

    def coldest(self, members: Sequence[Array], sizes: Array, capacity: int) -> Array:
        """Keys of the coldest lists that are held; without them, the others take at most `capacity` entries.

        `members`: keys of the lists of each chunk; `sizes` of their places, by key.
        """

        def levels_of(first: int, last: int) -> tuple[Array, Array, Array]:
            """The lists that some chunks hold, their levels, and the entries at each level."""
            keys = np.concatenate(members[first:last])
            return keys, *hot_lists.levels_of(keys, self.words, sizes)

        parts = self._team.split(levels_of, len(members))
        upwards = np.cumsum(sum(entries for _, _, entries in parts)[::-1])  # entries of the highest levels
        fits = int(np.searchsorted(upwards, capacity, "right"))  # so many levels fit
        level, room = hot_lists.LEVELS - 1 - fits, capacity - (int(upwards[fits - 1]) if fits else 0)
        found = []
        for keys, levels, _ in parts:
            # of that level, lists in the first chunks stay.
            cold, some = levels < level, np.flatnonzero(levels == level)
            ends = np.cumsum(sizes[keys[some]], dtype=np.int64)
            cold[some] = ends > room
            room -= int(ends[-1]) if some.size else 0
            found.append(keys[cold])
        return np.concatenate(found).astype(np.int64)

    def heat(self, keys: Array) -> Array:
        """All uses that are known of the lists of these keys."""
        return np.asarray(self.words[keys].view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.uint16))

    def grow(self, sides: int, old: int, new: int, spare: Array) -> None:
        """Make room for `new` keys a side instead of `old`. `spare`: near memory for the index, with that where it lies
        now.
        """
        self.words = grown(self.words, sides, old, new)

    def renumber(self, offset: int, room: int, movers: Array, holes: Array, vertices: int) -> None:
        """Of the side whose keys begin at `offset`: movers[i] has the number holes[i] now, and so many vertices of
        `room` are left.
        """
        own = self.words[offset : offset + room]
        own[holes] = own[movers]
        own[vertices:] = 0


def grown(words: Array, sides: int, old: int, new: int) -> Array:
    """The words of some sides, with room for `new` keys each instead of `old`."""
    larger = np.zeros(sides * new, np.uint32)
    for k in range(sides):
        larger[k * new : k * new + old] = words[k * old : (k + 1) * old]
    return larger
