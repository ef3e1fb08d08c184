"""The hot subgraph: lists of the vertices used most often of late, in chunks (Grapin, section 5).

A use is one read of a vertex's list. Each list has four bytes that count its uses: in the current period, and in the
last three; a byte that reaches 255 stays there. Its hotness is their sum. When a period ends, the hottest lists whose
entries fit are the candidates (`uses.py`). `chunks.py` then goes over to them.

A period is a batch where the graph changes: the stream ends it (`end_period`), and says which lists have changed. In a
run on one snapshot a period ends with the iteration in which a tenth of the vertices were processed since the last.

Where the paper leaves a choice:
- Only lists that were used at all are candidates.
- Among equally hot lists those that are held come first, so that nothing moves without need, then shorter ones: a short
  list takes a whole request, so a byte of near memory saves more. Lists that are held and not hot any more stay while
  there is room.
- A list that is longer than a chunk is left out. Chunks are a 128th of the memory, as in the paper, but larger if the
  longest list needs it, up to an eighth.
- In a run on one snapshot new lists are copied when they next cross the link for the work itself, as the vertex cache
  does. A stream loads them when its snapshot advances, as published, or keeps them when they are read (`on_read`). Then
  a list that is read several times in one batch crosses once, and a period's end only makes room. Lists that have
  changed are patched: the changed arcs cross in any case. Those that outgrow their places move to larger ones with what
  they hold. Before anything is hot, the shortest lists are kept.

Lists of both sides may share one cache: the key of vertex v's list is v plus a multiple of the number of vertices that
there is room for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Cache, Held
from isthmus.cache.chunks import ChunkedLists
from isthmus.cache.hotness import INTERVAL
from isthmus.cache.uses import Uses
from isthmus.cache.vertex_cache import pieces
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

LEAST_SPARE, MOST_SPARE = 32, 2  # parts of the memory that are free for lists that the next period reads
AT_ONCE = 4  # periods that room is made for at once, as it takes a pass over all lists
# The place of a list that is kept on reading is larger by this part and an entry, from so many entries on.
SLACK, SHORT = 8, 3
MEMBER_BYTES = 4 + 4 + 4  # of a list that is held, to rank it: key, hotness and length
# Hotness, place (up to 8 bytes), length, place among its chunk's members; held, wanted and missed: a byte each.
VERTEX_BYTES = 23


class HotSubgraph(Cache):
    """Lists of some sides. `interval`: periods end by themselves, after so many vertices, as a share of all; None: by
    `end_period`.

    `on_read`: lists are kept when they are read, as long as there is room; a period's end only makes room.
    """

    def __init__(
        self,
        names: Sequence[str],
        lists: Sequence[Lists],
        memory: Array,
        dtypes: tuple[Any, Any],
        team: Any,
        interval: float | None = INTERVAL,
        on_read: bool = False,
        chunked: type[ChunkedLists] = ChunkedLists,
        uses: type[Uses] = Uses,
    ) -> None:
        """`memory` has the lists and, by VERTEX_BYTES a key, the index. `dtypes`: of targets and of weights, or
        None.
        """
        self.names, self._team, self._interval, self.on_read = list(names), team, interval, on_read
        self.room = len(lists[0])  # keys a side
        keys = len(self.names) * self.room
        degrees = [each.degrees() for each in lists]
        longest = max((int(each.max()) for each in degrees if each.size), default=0)
        entries = memory[: max(0, memory.size - VERTEX_BYTES * keys) // 8 * 8]
        self.chunks = chunked(entries, keys, dtypes, longest, team)
        self.uses = uses(keys, team, memory[entries.size :])
        self._keys = keys
        self._misses = np.zeros(-(-self.room // 8) * 8, np.uint8)
        self._processed = self.replacements = 0
        self.ranked = 0  # bytes of the index that the last replacement had to rank
        self._engine = Held()
        self._side: Side | None = None  # that was served last
        self._lock = threading.Lock()
        self._longest = fitting(degrees, self.capacity)  # of lists that are kept on reading
        self._read = 0  # entries of lists that were to be kept in this period
        self._memory, self.bytes = memory, memory.size

    @property
    def capacity(self) -> int:
        return int(self.chunks.capacity)

    def offset(self, name: str) -> int:
        """The key of a side's first list."""
        return self.names.index(name) * self.room

    # Serving

    def attach(self, mover: ListMover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self.chunks.attach(mover)
        self.uses.attach(mover.rows, lists)

    def detach(self) -> None:
        self.chunks.detach()
        self.uses.detach()

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        self._side = side
        if not self.capacity:
            return frontier, iter(())
        held = self.marks_of(side.name, frontier.vertices)
        return frontier.without(held, self._misses, self._team), self._hits(frontier, side, held)

    def marks_of(self, name: str, vertices: int) -> Array:
        """A byte for each of a side's first vertices: whether its list is held."""
        return self.chunks.held[self.offset(name) : self.offset(name) + vertices]

    def _hits(self, frontier: Frontier, side: Side, held: Array) -> Iterator[Delivery]:
        step = sizes.now.cache_vertices if frontier.list is None else max(1, frontier.vertices)
        for first in range(0, frontier.vertices, step):
            active = frontier.rows(first, min(first + step, frontier.vertices))
            hits = active[held[active] != 0]
            if hits.size:
                yield self._delivery(hits.astype(np.int64), side)

    def everything(self) -> Iterator[Delivery]:
        side = self._side
        if side is None or not self.capacity:
            return
        held = self.marks_of(side.name, len(side.lists))
        for first in range(0, held.size, sizes.now.cache_vertices):
            vertices = np.flatnonzero(held[first : first + sizes.now.cache_vertices]) + first
            if vertices.size:
                yield self._delivery(vertices, side)

    def _delivery(self, vertices: Array, side: Side) -> Delivery:
        keys = vertices + self.offset(side.name)
        begins = self.chunks.begins[keys].astype(np.int64)
        rows = Rows(vertices, begins, begins, side.lists.ends[vertices] - side.lists.begins[vertices])
        weights = self.chunks.weights if side.weight_width else None
        return Delivery(Task(self._engine, side, np.empty(0, np.int64)), self.chunks.targets, weights, rows)

    # Counting uses

    def refresh(self, frontier: Frontier) -> None:
        """Count the uses of an iteration; a period may end by itself."""
        side = self._side
        if side is None or not self.capacity:
            return
        self.uses.use_active(frontier, self.offset(side.name))
        self._processed += frontier.count
        if self._interval is not None and self._processed > self._interval * frontier.vertices:
            self._processed = 0
            self.replace([side.lists])
            self.end_period()

    def use(self, name: str, rows: Array) -> None:
        """Count one use of the lists of these vertices."""
        self.uses.use(rows, self.offset(name))

    def end_period(self) -> None:
        self.uses.end_period()

    # Replacing lists

    def replace(self, lists: Sequence[Lists], changed: Sequence[Array] = ()) -> Array:
        """Go over to the hottest lists; returns the keys of those that have yet to be filled.

        `lists` of each side as they are now; `changed`: vertices of each side whose lists have changed since they were
        filled.
        """
        gone = [vertices.astype(np.int64) + k * self.room for k, vertices in enumerate(changed)]
        keys = np.concatenate(gone) if gone else np.empty(0, np.int64)
        self.replacements += 1
        if self.on_read:
            return self._make_room(keys, lists)
        self.ranked, lengths, chunks = VERTEX_BYTES * self._keys, self._lengths(lists), self.chunks
        self.uses.choose(lists, lengths, chunks.held, chunks.chunk, self.capacity, chunks.wanted)
        return chunks.replace(lengths, self.uses.heat, keys)

    def _make_room(self, changed: Array, lists: Sequence[Lists]) -> Array:
        """Drop the coldest lists, so many that what some periods read finds room; changed ones that outgrow their
        places get others.
        """
        chunks, spare = self.chunks, min(self.capacity // MOST_SPARE, max(self.capacity // LEAST_SPARE, self._read))
        self._longest, self._read = chunks.chunk, 0
        full = int((chunks.used - chunks.lost).sum()) > self.capacity - spare
        self.ranked = MEMBER_BYTES * sum(members.size for members in chunks.members) if full else 0
        left = self.capacity - min(AT_ONCE * spare, self.capacity // MOST_SPARE)
        cold = self.uses.coldest(chunks.members, chunks.sizes, left) if full else changed[:0]
        chunks.wanted[cold] = 0
        stays = (chunks.wanted[changed] != 0) & (chunks.held[changed] != 0)
        gone, changed = changed[(chunks.wanted[changed] != 0) & ~stays], changed[stays]
        sides = changed // self.room
        lengths = np.zeros(changed.size, np.int64)
        for k, each in enumerate(lists):
            own = changed[sides == k] - k * self.room
            lengths[sides == k] = each.ends[own] - each.begins[own]
        fits = (lengths > 0) & (lengths <= chunks.sizes[changed])
        outgrew = ~fits & (lengths > 0) & (lengths <= chunks.chunk)
        gone = np.concatenate([cold, gone, changed[~fits & ~outgrew]])
        chunks.wanted[gone] = 0
        chunks.drop(gone)
        return np.concatenate([changed[fits], chunks.move(changed[outgrew], self._with_slack(lengths[outgrew]))])

    def fill(self, lists: Sequence[Lists]) -> Array:
        """Give the shortest lists that are not held places, as far as there is room besides what some periods read;
        returns their keys.
        """
        lengths, chunks = self._lengths(lists).astype(np.int64), self.chunks
        keys = np.flatnonzero((chunks.begins < 0) & (lengths > 0) & (lengths <= chunks.chunk))
        keys = keys[np.argsort(lengths[keys], kind="stable")]
        room = self.capacity - AT_ONCE * (self.capacity // LEAST_SPARE) - int(chunks.used.sum())
        keys = keys[np.cumsum(self._with_slack(lengths[keys])) <= room]
        return chunks.admit(keys, self._with_slack(lengths[keys]))

    def _with_slack(self, lengths: Array) -> Array:
        """Sizes of places in which lists can grow a little, so that most changes leave them where they are."""
        return np.asarray(np.minimum(lengths + np.where(lengths >= SHORT, 1 + lengths // SLACK, 0), self.chunks.chunk))

    def _lengths(self, lists: Sequence[Lists]) -> Array:
        lengths = np.zeros(self._keys, np.uint32)
        for k, each in enumerate(lists):
            np.subtract(
                each.ends, each.begins, out=lengths[k * self.room : k * self.room + len(each)], casting="unsafe"
            )
        return lengths

    # Filling

    def keep(self, delivery: Delivery) -> None:
        side = delivery.task.side
        if side.name not in self.names or not self.capacity or isinstance(delivery.task.engine, Held):
            return
        if self._interval is None and not self.on_read:
            return
        if delivery.weights is None and self.chunks.weights is not None:
            return  # a program that reads no weights did not bring them
        for rows in pieces(delivery):
            if self.on_read:
                whole = rows[3] == side.lists.ends[rows[0]] - side.lists.begins[rows[0]]
                self.admit(side.name, rows[0][whole], rows[3][whole])
            self.chunks.keep(rows, self.offset(side.name), side.lists.arrays, delivery.targets, delivery.weights)

    def admit(self, name: str, rows: Array, lengths: Array) -> Array:
        """Give the lists of these vertices, which are read whole, places if there is room; returns the keys that have
        got one.
        """
        keys = rows.astype(np.int64) + self.offset(name)
        with self._lock:
            chosen = (self.chunks.begins[keys] < 0) & (lengths > 0) & (lengths <= self._longest)
            keys, lengths = keys[chosen], lengths[chosen]
            if self.replacements:  # before that, everything is read once
                self._read += int(lengths.sum())
            return self.chunks.admit(keys, self._with_slack(lengths))

    def forget(self) -> None:
        self.chunks.forget()

    def grow(self, vertices: int, entry_bytes: int | None = None) -> None:
        """Make room for so many vertices. Lists may take `entry_bytes` from now on, if that is less than before; None:
        as before.
        """
        old, count = self.room, len(self.names)
        if entry_bytes is not None:
            self.chunks.limit(entry_bytes)
        self.uses.grow(count, old, vertices, self._memory[self.chunks.end :])  # first, as it may find no memory
        self.chunks.grow(old, vertices, count)
        self.room, self._keys = vertices, count * vertices
        self._misses = np.zeros(-(-vertices // 8) * 8, np.uint8)
        self.bytes = VERTEX_BYTES * self._keys + self.capacity * self.chunks.entry

    def renumber(self, movers: Array, holes: Array, vertices: int) -> None:
        """Vertex movers[i] has the number holes[i] now, and so many vertices are left. All lists must have been
        forgotten.
        """
        for k in range(len(self.names)):
            self.uses.renumber(k * self.room, self.room, movers, holes, vertices)

    def facts(self) -> dict[str, Any]:
        return {"refreshes": self.replacements}


def fitting(degrees: Sequence[Array], capacity: int) -> int:
    """The length up to which all lists together have at most `capacity` entries."""
    if not capacity:
        return 0
    lengths = np.concatenate(degrees)
    counts = np.bincount(lengths[lengths <= capacity])  # by length, of which the longest may be far below the capacity
    entries = np.cumsum(counts * np.arange(counts.size))
    return int(np.searchsorted(entries, capacity, "right")) - 1
