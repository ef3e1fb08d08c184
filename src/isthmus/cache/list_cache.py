"""The list cache: it holds the lists that a ranking chooses (`ranking.py`), in a layout (`contiguous.py`, `chunks.py`).

HyTGraph's vertex-centric cache and Grapin's hot subgraph are both such caches; their rankings say how they differ. A
use is one read of a vertex's list. When a period ends, the hottest lists that fit become the chosen ones, and the
layout goes over to them. In a run on one snapshot a period ends with the iteration in which a tenth of the vertices
were processed since the last. New lists are copied when they next cross the link for the work itself.

Where the graph changes, a period is a batch: the stream ends it (`end_period`), and says which lists have changed.
There Grapin's hot subgraph is used, in one of two ways:
- As published, lists are loaded when the snapshot advances (`replace`).
- Lists are kept when they are read (`on_read`). Then a list that is read several times in one batch crosses once, and a
  period's end only drops the coldest lists, to free space for the next ones. Lists that have changed are patched: the
  changed arcs cross in any case. Those that outgrow their places move to larger ones with their content. Before
  anything is hot, the shortest lists are kept.

Lists of both sides may share one cache: the key of vertex v's list is v plus a multiple of `side_keys`, the number of
keys of a side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Cache, Held
from isthmus.cache.chunks import Chunked, lengths_of
from isthmus.cache.contiguous import Contiguous
from isthmus.cache.layout import Layout, pieces
from isthmus.cache.mover import Attached, HostMover, Mover
from isthmus.cache.ranking import INTERVAL, Counts, Ranking
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

LEAST_SPARE, MOST_SPARE = 32, 2  # parts of the memory that are free for lists that the next period reads
AT_ONCE = 4  # periods for which space is freed at once, as it takes a pass over all lists
SLACK, SHORT = 8, 3  # a list kept on reading, of at least SHORT entries, has a place with 1 + 1/SLACK of them more
MEMBER_BYTES = 4 + 4 + 4  # of a list that is held, to rank it: key, uses and length


@dataclass(frozen=True)
class Place:
    """Where a list cache lies: how its parts are made. `home`: what it is attached to from the beginning, if not to
    runs.
    """

    counts: Callable[..., Counts] = Counts
    contiguous: Callable[..., Layout] = Contiguous
    chunked: Callable[..., Layout] = Chunked
    home: Callable[[Any], Attached] | None = lambda team: Attached(HostMover(team), lambda lists: lists.arrays)


HERE = Place()  # in the memory of this machine


class ListCache(Cache):
    """Lists of some sides. `interval`: a period ends by itself when more than this share of the vertices was processed;
    None: by `end_period`.

    `on_read`: lists are kept when they are read, as long as there is space; a period's end only frees space.
    """

    def __init__(
        self,
        names: Sequence[str],
        lists: Sequence[Lists],
        memory: Array,
        dtypes: tuple[Any, Any],
        team: Any,
        ranking: Ranking,
        interval: float | None = INTERVAL,
        on_read: bool = False,
        place: Place = HERE,
    ) -> None:
        """`memory` has the lists and the index of all keys. `dtypes`: of targets and of weights, or None."""
        self.names, self.ranking, self._team = list(names), ranking, team
        self._interval, self.on_read = interval, on_read
        self.side_keys = len(lists[0])
        self._keys = keys = len(self.names) * self.side_keys
        degrees = [each.degrees() for each in lists] if ranking.chunked else []
        longest = max((int(each.max()) for each in degrees if each.size), default=0)  # of the lists
        entries = memory[: max(0, memory.size - ranking.index_bytes * keys) // 8 * 8]
        index = memory[entries.size :]
        layout = place.chunked if ranking.chunked else place.contiguous
        self.layout = layout(entries, keys, dtypes, longest, team, index)
        self.counts = place.counts(ranking, keys, team, index)
        self._misses = np.zeros(-(-self.side_keys // 8) * 8, np.uint8)  # whole words, as marks are
        self._processed = self.refreshes = 0
        self.ranked = 0  # bytes of the index that the last refresh had to rank
        self._engine = Held()
        self._side: Side | None = None  # that was served last
        self._lock = threading.Lock()
        self._longest = fitting(degrees, self.capacity) if on_read else 0  # of lists that are kept on reading
        self._read = 0  # entries of lists that were to be kept in this period
        # A run on a device does not attach a cache that can hold nothing; a stream accounts for the index.
        attaches = self.capacity > 0 or ranking.chunked or place.home is not None
        self._memory, self.bytes = memory, memory.size if attaches else 0
        self._home: Attached | None = None
        self._run: Attached | None = None
        self._first: Sequence[Lists] | None = lists  # until it is first attached
        if place.home is not None:
            self.stay(place.home(team))

    @property
    def capacity(self) -> int:
        return int(self.layout.capacity)

    @property
    def chunks(self) -> Chunked:
        """The layout of Grapin's hot subgraph."""
        assert isinstance(self.layout, Chunked)
        return self.layout

    def offset(self, name: str) -> int:
        """The key of a side's first list."""
        return self.names.index(name) * self.side_keys

    # Attaching

    def stay(self, home: Attached) -> None:
        """Be attached between runs as well."""
        self._home = home
        self._attach(home)

    def attach(self, mover: Mover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self._run = Attached(mover, lists)
        if self._home is None:
            self._attach(self._run)

    def detach(self) -> None:
        self._run = None
        if self._home is None:
            self.layout.attach(None)
            self.counts.attach(None)

    def _attach(self, attached: Attached) -> None:
        self.layout.attach(attached)
        self.counts.attach(attached)
        if self._first is not None:
            lists, self._first = self._first, None
            self._begin(lists)

    def _begin(self, lists: Sequence[Lists]) -> None:
        """Choose the first lists, if the ranking knows some before anything was used."""
        if self.ranking.begins_full and self.capacity:
            self.counts.fill(1)
            self.layout.replace(self._hottest(lists), lists, self.counts.heat, np.empty(0, np.int64))
        self.counts.fill(0)

    # Serving

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        self._side = side
        if not self.capacity:
            return frontier, iter(())
        held = self.marks_of(side.name, frontier.vertices)
        return frontier.without(held, self._misses, self._team), self._hits(frontier, side, held)

    def marks_of(self, name: str, vertices: int) -> Array:
        """A byte for each of a side's first vertices: whether its list is held."""
        held, first = self.layout.held, self.offset(name)
        return held if vertices == held.size else held[first : first + vertices]  # a frontier may know the whole array

    def _hits(self, frontier: Frontier, side: Side, held: Array) -> Iterator[Delivery]:
        """The active vertices whose lists are held, a bounded number at a time."""
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
        begins = self.layout.begins_of(vertices + self.offset(side.name))
        rows = Rows(vertices, begins, begins, side.lists.ends[vertices] - side.lists.begins[vertices])
        weights = self.layout.weights if side.weight_width else None
        task = Task(self._engine, side, np.empty(0, np.int64))
        return Delivery(task, self.layout.targets, weights, rows, places=self.layout.places)

    # Counting uses

    def refresh(self, frontier: Frontier) -> None:
        """Count the uses of an iteration; a period may end by itself."""
        side = self._side
        if side is None or not self.capacity or self.ranking.by_degree:
            return
        self.counts.use_active(frontier, self.offset(side.name), self._run)
        self._processed += frontier.count
        if self._interval is not None and self._processed > self._interval * frontier.vertices:
            self._processed = 0
            self.replace([side.lists])
            self.end_period()

    def use(self, name: str, rows: Array) -> None:
        """Count one use of the lists of these vertices."""
        self.counts.use(rows, self.offset(name))

    def end_period(self) -> None:
        self.counts.end_period()

    # Replacing lists

    def replace(self, lists: Sequence[Lists], changed: Sequence[Array] = ()) -> Array:
        """Go over to the hottest lists; returns the keys of those that have yet to be filled.

        `lists` of each side as they are now; `changed`: vertices of each side whose lists have changed since they were
        filled.
        """
        gone = [vertices.astype(np.int64) + k * self.side_keys for k, vertices in enumerate(changed)]
        keys = np.concatenate(gone) if gone else np.empty(0, np.int64)
        if self.on_read:
            self.refreshes += 1
            return self._free_space(keys, lists)
        self.ranked = self.ranking.index_bytes * self._keys
        found = self._hottest(lists)
        if not self.counts.differs(found, self.layout.chosen, lists):
            return keys[:0]
        self.refreshes += 1
        return self.layout.replace(found, lists, self.counts.heat, keys)

    def _hottest(self, lists: Sequence[Lists]) -> Array:
        return self.counts.choose(lists, self.layout.held, self.layout.longest, self.capacity)

    def _free_space(self, changed: Array, lists: Sequence[Lists]) -> Array:
        """Drop the coldest lists if the next period may read more than there is space for. Of the lists that have
        changed, those that outgrow their places move; returns the keys of those that stay.
        """
        chunks, cold = self.chunks, self._coldest()
        chunks.chosen[cold] = 0
        left = changed[chunks.chosen[changed] != 0]
        unfilled, staying = left[chunks.held[left] == 0], left[chunks.held[left] != 0]
        lengths = lengths_of(staying, lists, self.side_keys)
        can_stay, fits = (lengths > 0) & (lengths <= chunks.chunk), lengths <= chunks.sizes[staying]
        still_fit, outgrew = can_stay & fits, can_stay & ~fits
        gone = np.concatenate([cold, unfilled, staying[~can_stay]])
        chunks.chosen[gone] = 0
        chunks.drop(gone)
        return np.concatenate([staying[still_fit], chunks.move(staying[outgrew], self._with_slack(lengths[outgrew]))])

    def _coldest(self) -> Array:
        """Keys of lists to drop, so that lists find space that the next periods read; none while there is enough."""
        chunks, spare = self.chunks, min(self.capacity // MOST_SPARE, max(self.capacity // LEAST_SPARE, self._read))
        self._longest, self._read = chunks.chunk, 0
        full = int((chunks.used - chunks.lost).sum()) > self.capacity - spare
        self.ranked = MEMBER_BYTES * sum(members.size for members in chunks.members) if full else 0
        left = self.capacity - min(AT_ONCE * spare, self.capacity // MOST_SPARE)
        return self.counts.coldest(chunks.members, chunks.sizes, left) if full else np.empty(0, np.int64)

    def fill(self, lists: Sequence[Lists]) -> Array:
        """Give the shortest lists that are not held places, as far as there is space besides that for the next periods;
        returns their keys.
        """
        chunks = self.chunks
        keys = np.flatnonzero(chunks.begins < 0)
        lengths = lengths_of(keys, lists, self.side_keys)
        fits = (lengths > 0) & (lengths <= chunks.chunk)
        keys, lengths = keys[fits], lengths[fits]
        order = np.argsort(lengths, kind="stable")
        keys, with_slack = keys[order], self._with_slack(lengths[order])
        space = self.capacity - AT_ONCE * (self.capacity // LEAST_SPARE) - int(chunks.used.sum())
        fits = np.cumsum(with_slack) <= space
        return chunks.admit(keys[fits], with_slack[fits])

    def _with_slack(self, lengths: Array) -> Array:
        """Sizes of places in which lists can grow a little, so that most changes leave them where they are."""
        return np.asarray(np.minimum(lengths + np.where(lengths >= SHORT, 1 + lengths // SLACK, 0), self.chunks.chunk))

    # Filling

    def keep(self, delivery: Delivery) -> None:
        side = delivery.task.side
        if side.name not in self.names or not self.capacity or isinstance(delivery.task.engine, Held):
            return
        if self._interval is None and not self.on_read:
            return
        if delivery.weights is None and self.layout.weights is not None:
            return  # a program that reads no weights did not bring them
        if self.on_read:
            for vertices, _, _, lengths in pieces(delivery):
                whole = lengths == side.lists.ends[vertices] - side.lists.begins[vertices]
                self.admit(side.name, vertices[whole], lengths[whole])
        self.layout.keep(delivery, self.offset(side.name))

    def admit(self, name: str, rows: Array, lengths: Array) -> Array:
        """Give the lists of these vertices, which are read whole, places if there is space; returns the keys that have
        got one.
        """
        keys = rows.astype(np.int64) + self.offset(name)
        with self._lock:
            fits = (self.chunks.begins[keys] < 0) & (lengths > 0) & (lengths <= self._longest)
            keys, lengths = keys[fits], lengths[fits]
            if self.refreshes:  # before that, everything is read once
                self._read += int(lengths.sum())
            return self.chunks.admit(keys, self._with_slack(lengths))

    def forget(self) -> None:
        self.layout.forget()

    # When vertices come and go

    def grow(self, vertices: int, entry_bytes: int | None = None) -> None:
        """Index this many vertices. Lists may take `entry_bytes` from now on, if that is less than before; None: as
        before.
        """
        old, count, chunks = self.side_keys, len(self.names), self.chunks
        if entry_bytes is not None:
            chunks.limit(entry_bytes)
        self.counts.grow(count, old, vertices, self._memory[chunks.end :])  # first, as it may find no memory
        chunks.grow(old, vertices, count)
        self.side_keys, self._keys = vertices, count * vertices
        self._misses = np.zeros(-(-vertices // 8) * 8, np.uint8)
        self.bytes = self.ranking.index_bytes * self._keys + self.capacity * chunks.entry

    def renumber(self, movers: Array, holes: Array, vertices: int) -> None:
        """Vertex movers[i] has the number holes[i] now, and `vertices` are left. All lists must have been forgotten."""
        for k in range(len(self.names)):
            self.counts.renumber(k * self.side_keys, self.side_keys, movers, holes, vertices)

    def facts(self) -> dict[str, Any]:
        return {"refreshes": self.refreshes}


def fitting(degrees: Sequence[Array], capacity: int) -> int:
    """The length up to which all lists together have at most `capacity` entries."""
    if not capacity:
        return 0
    lengths = np.concatenate(degrees)
    counts = np.bincount(lengths[lengths <= capacity])  # by length, of which the longest may be far below the capacity
    entries = np.cumsum(counts * np.arange(counts.size))
    return int(np.searchsorted(entries, capacity, "right")) - 1
