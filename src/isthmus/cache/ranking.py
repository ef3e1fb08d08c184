"""Which lists a list cache holds: how often lists were used, and the hottest ones that fit.

A list's uses are counted in a byte for each period; a byte that reaches 255 stays there. When a period ends, the lists
that were used at all are ordered by a counting sort: by uses, then by what the ranking prefers, then by number. The
entries of whole levels are added up with 64 bits, and the level that no longer fits as a whole is found; of that level,
lists are taken while they fit. `Counts` does so on this machine; a GPU has its own.

**HyTGraph** (`HOTNESS`; journal version, section VII and Algorithm 2): one byte, so counting restarts when a period
ends. A period ends after more than `interval` x |V| vertices were processed. If more than 30 % of the candidates'
edges are not in the cache, it is refreshed. Algorithm 2, corrected:
- Line 7 compares the active vertices with the cache; it should compare the candidates.
- c_tag is never reset, so after one refresh the cache also takes candidates that line 7 refused. Here `chosen` changes
  only in a refresh.
- Line 22 counts every candidate as cached, used or not. Here `chosen` and `held` are separate.
- Lines 19-20 count the vertices of the next iteration instead of those processed.
- The interval's gamma (not that of RTTzc) has no published value; ours is measured. Its beta is 0.3, not the 0.4 of the
  selection.

Beyond the paper (docs/decisions.md has the gains):
- The vertices of an iteration are counted before the check, after the cache has served its hits. So candidates that are
  active now are cached in this iteration, not when they are next active, which in a search is often never.
- Among equally hot vertices those with longer lists come first, then those with smaller numbers. In PageRank all
  vertices are equally hot at first.
- Before anything was used, all vertices count as equally hot, so the cache starts with the longest lists.

HyTGraph's released code has no cache. Lists larger than the cache are left out: one of them at the top would leave it
empty. The cache is of no use where every vertex is active once (BFS).

**Grapin** (`USES`; section 5): four bytes, uses in the current period and in the last three. The cache goes over to the
candidates whenever a period ends. Where the paper leaves a choice:
- Only lists that were used at all are candidates, and those that are held: they stay while there is space.
- Among equally hot lists those that are held come first, so that nothing moves without need, then shorter ones: a short
  list takes a whole request, so a byte of near memory saves more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from isthmus.cache.mover import Attached
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cache import ranking as kernels
from isthmus.link.link import Array

INTERVAL = 0.1  # vertices processed in a period, as a share of all; measured: docs/decisions.md


@dataclass(frozen=True)
class Ranking:
    """How lists are ranked, when the cache goes over to the hottest, and how they are laid out."""

    periods: int  # a byte of uses for each: the current one, and those before
    sizes: int  # exceeds the bits of a list's length
    held_first: bool  # among equally hot lists
    shorter_first: bool  # among these
    chunked: bool  # lists lie in chunks, otherwise one after the other
    index_bytes: int  # near memory for a key
    least_change: float | None = None  # part of the candidates' entries that must be new for a refresh; None: any
    begins_full: bool = False  # before anything was used, all lists are equally hot
    by_degree: bool = False  # hold the longest lists, however often they are used

    @property
    def dtype(self) -> Any:
        return np.dtype(f"u{self.periods}")

    @property
    def current(self) -> int:
        """Bits by which the byte of the current period is shifted."""
        return 8 * self.periods - 8

    @property
    def order(self) -> tuple[int, int, int]:
        """For kernels: see `kernels/cache/ranking.py`."""
        return self.sizes, int(self.held_first), int(self.shorter_first)

    @property
    def levels(self) -> int:
        return (2 if self.held_first else 1) * (self.periods * kernels.MOST + 1) * self.sizes


# Hotness, chosen, held, marks of misses: a byte each; where its list begins; a place in their order.
HOTNESS = Ranking(1, 64, False, False, False, 12, least_change=0.3, begins_full=True)
# The vertices of greatest degree: hub caching, which HyTGraph compares itself with.
HUBS = Ranking(1, 64, False, False, False, 12, begins_full=True, by_degree=True)
# Uses, place (up to 8 bytes), length, place among its chunk's members; held, chosen and missed: a byte each.
USES = Ranking(4, 33, True, True, True, 23)
RANKINGS = {"vertices": HOTNESS, "hot_subgraph": USES}  # by the name of a recipe's cache


def last_level(entries: Array, capacity: int) -> tuple[int, int]:
    """The level that no longer fits as a whole, given the entries at each level, and the space that those above it
    leave.
    """
    down_to = np.append(np.cumsum(entries[::-1])[::-1], 0)  # entries at this level and above
    level = int(np.argmax(down_to[1:] <= capacity))  # all above it fit
    return level, int(capacity - down_to[level + 1])


def hubs(lists: Lists, capacity: int) -> Array:
    """Marks of the longest lists that fit."""
    degrees = lists.degrees()
    order = np.argsort(-degrees, kind="stable")
    order = order[(degrees[order] > 0) & (degrees[order] <= capacity)]
    marks = np.zeros(degrees.size, np.uint8)
    marks[order[np.cumsum(degrees[order], dtype=np.int64) <= capacity]] = 1
    return marks


class Counts:
    """Uses of lists by key, counted on this machine. One thread at a time."""

    attached: Attached | None = None

    def __init__(self, ranking: Ranking, keys: int, team: Any, memory: Array) -> None:
        """`memory`: near memory of a device for an index of the keys; this machine needs none of it."""
        self.ranking, self._team, self.words = ranking, team, np.zeros(keys, ranking.dtype)

    def attach(self, attached: Attached | None) -> None:
        """A run or a stream begins; None: it ends."""
        self.attached = attached

    # Counting

    def fill(self, value: int) -> None:
        """Set all words."""
        self.words[:] = value

    def use(self, rows: Array, offset: int) -> None:
        """Count one use of the lists of these vertices, whose keys begin at `offset`."""
        kernels.use_rows(rows, offset, self.words, self.ranking.current)

    def use_active(self, frontier: Frontier, offset: int, run: Attached | None) -> None:
        """Count one use of the lists of the active vertices. `run`: the run whose frontier it is, on a GPU."""
        if frontier.list is not None:
            self.use(frontier.list, offset)
            return
        marks, words = (frontier.marks, frontier.all_active), (offset, self.words, self.ranking.current)
        self._team.split(lambda a, b: kernels.use_range(a, b, *marks, *words), frontier.vertices)

    def end_period(self) -> None:
        self._team.split(lambda a, b: kernels.end_period(a, b, self.words), self.words.size)

    # Choosing

    def choose(self, lists: Sequence[Lists], held: Array, longest: int, capacity: int) -> Array:
        """Marks by key of the hottest lists that have at most `capacity` entries together; those longer than `longest`
        are left out. `lists` of each side, and which lists are `held`.
        """
        if self.ranking.by_degree:
            return hubs(lists[0], capacity)
        found, side_keys = np.zeros(self.words.size, np.uint8), self.words.size // max(1, len(lists))

        def given(side: int) -> tuple[Any, ...]:
            return *lists[side].arrays, side * side_keys, self.words, held, longest, self.ranking.order

        levels = self.ranking.levels
        parts = self._split(lists, lambda side, a, b: kernels.entries_by_level(a, b, *given(side), levels))
        if parts and capacity:
            entries = np.array([part for _, part in parts])
            level, left = last_level(entries.sum(axis=0), capacity)
            spaces = left - np.cumsum(entries[:, level]) + entries[:, level]
            space = {first: left for (first, _), left in zip(parts, spaces.tolist(), strict=True)}
            self._split(
                lists, lambda side, a, b: kernels.mark_hottest(a, b, *given(side), level, space[side, a], found)
            )
        return found

    def _split(self, lists: Sequence[Lists], work: Callable[[int, int, int], Any]) -> list[tuple[tuple[int, int], Any]]:
        """Run work(side, first, last) on even parts of each side's vertices; returns ((side, first), result) of
        each.
        """

        def run(side: int, first: int, last: int) -> tuple[tuple[int, int], Any]:
            return (side, first), work(side, first, last)

        sides = enumerate(lists)
        return [part for side, own in sides for part in self._team.split(partial(run, side), len(own))]

    def differs(self, found: Array, chosen: Array, lists: Sequence[Lists]) -> bool:
        """Whether the lists that were found differ enough from those chosen for a refresh."""
        if self.ranking.least_change is None:
            return True
        (own,) = lists
        parts = self._team.split(lambda a, b: kernels.new_entries(a, b, found, chosen, *own.arrays), len(own))
        fresh, total = (sum(column) for column in zip(*parts, strict=True)) if parts else (0, 0)
        return bool(fresh > self.ranking.least_change * total)

    def coldest(self, members: Sequence[Array], sizes: Array, capacity: int) -> Array:
        """Keys of the coldest lists that are held; without them, the others take at most `capacity` entries.

        `members`: keys of the lists of each chunk; `sizes` of their places, by key.
        """

        def levels_of(first: int, last: int) -> tuple[Array, Array, Array]:
            """The lists that some chunks hold, their levels, and the entries at each level."""
            keys = np.concatenate(members[first:last])
            return keys, *kernels.levels_of(keys, self.words, sizes, self.ranking.order, self.ranking.levels)

        parts = self._team.split(levels_of, len(members))
        level, space = last_level(sum(entries for _, _, entries in parts), capacity)
        found = []
        for keys, levels, _ in parts:
            # Of that level, lists in the first chunks stay.
            cold, some = levels < level, np.flatnonzero(levels == level)
            ends = np.cumsum(sizes[keys[some]], dtype=np.int64)
            cold[some] = ends > space
            space -= int(ends[-1]) if some.size else 0
            found.append(keys[cold])
        return np.concatenate(found).astype(np.int64)

    def heat(self, keys: Array) -> Array:
        """All uses that are known of the lists of these keys."""
        uses = self.words[keys].view(np.uint8).reshape(-1, self.ranking.periods)
        return np.asarray(uses.sum(axis=1, dtype=np.uint16))

    # When vertices come and go

    def grow(self, sides: int, old: int, new: int, spare: Array) -> None:
        """Count for `new` keys a side instead of `old`. `spare`: near memory for the index, with that where it lies
        now.
        """
        self.words = grown(self.words, sides, old, new)

    def renumber(self, offset: int, side_keys: int, movers: Array, holes: Array, vertices: int) -> None:
        """Of the side whose keys begin at `offset`: movers[i] has the number holes[i] now, and `vertices` of
        `side_keys` are left.
        """
        own = self.words[offset : offset + side_keys]
        own[holes] = own[movers]
        own[vertices:] = 0


def grown(words: Array, sides: int, old: int, new: int) -> Array:
    """The words of some sides, with `new` keys each instead of `old`."""
    larger = np.zeros(sides * new, words.dtype)
    for k in range(sides):
        larger[k * new : k * new + old] = words[k * old : (k + 1) * old]
    return larger
