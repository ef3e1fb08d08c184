"""Which lists programs read to stay current, and what that moves: every read of a list by a maintained program comes
through here.

A read is a use of a list: lists in the hot subgraph are hits, others cross the link, by requests or by pages as the
stream's recipe says. The loops that correct answers read the host's memory either way; the loop of every run, which
follows improvements, reads hits from the hot subgraph itself. When the edges have changed, lists in the hot subgraph
are brought up to date (`committed`). On a GPU (`devices/cuda/residency.py`) the same is counted, and kernels read all
lists where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.cache.list_cache import ListCache
from isthmus.cache.ranking import USES
from isthmus.devices.model import costs
from isthmus.devices.model.figures import GpuFigures
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.lru_pages import LruPagedLink, LruPages
from isthmus.devices.residency import Residency, Transfer
from isthmus.engines.engine import Side
from isthmus.graph.changing.change import Change
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.changing.packed_lists import SideChanges
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.kernels.compile.compile_clock import clock
from isthmus.link.link import Moved
from isthmus.link.requests import ListSpans
from isthmus.policies.stream_recipes import StreamRecipe

Array = np.ndarray[Any, Any]
SPARE = 8  # memory for an eighth more vertices than exist
FLAG_BYTES = 4  # that the host reads after a kernel, to know whether to go on


class ModelResidency(Residency):
    """Edges are in the memory of a modelled device's host. Not thread-safe."""

    adopts = False  # as published; it would read long lists once more
    settles = False  # the loop of every run reads hits from the hot subgraph

    def __init__(
        self,
        graph: ChangingGraph,
        device: GpuFigures,
        recipe: StreamRecipe,
        sides: list[str],
        weights: bool,
        near_bytes: int,
        room_left: Callable[[int], int | None] = lambda index: None,
    ) -> None:
        """`near_bytes` hold lists or pages; the hot subgraph's index comes on top. `weights`: some program reads them.

        `room_left`: bytes for lists or pages beside an index of that size, asked when vertices were added; None: as
        before.
        """
        self._graph, self._device, self._recipe, self._weights = graph, device, recipe, weights
        self._room, self._room_left = graph.vertices, room_left
        self.recomputes, self.resends = recipe.recomputes, recipe.resends
        self._sides: list[str] = [side for side in ("out", "in") if side in {self._stored(side) for side in sides}]
        self.hot = self._hot_subgraph(near_bytes) if recipe.hot else None
        self.pages = LruPages(near_bytes) if recipe.pages else None
        self.transfer = Transfer()
        self._link = self.link(self._names(), [])  # counts what correction reads
        self._seen = self._positions()

    def _stored(self, side: str) -> str:
        return self._graph.snapshot.stored(side)

    def _names(self) -> list[str]:
        return [f"{side}.{kind}" for side in self._sides for kind in ("targets", "weights")]

    @property
    def near_bytes(self) -> int:
        """Near memory for lists or pages, and the index of the hot subgraph."""
        if self.hot is not None:
            return self.hot.bytes
        return 0 if self.pages is None else self.pages.room * 4096

    def _hot_subgraph(self, near_bytes: int) -> ListCache:
        snapshot = self._graph.snapshot
        memory = aligned_empty(near_bytes + USES.index_bytes * len(self._sides) * snapshot.vertices, np.uint8)
        kinds = (snapshot.target_dtype, snapshot.weight_dtype if self._weights else None)
        lists, team = self._lists(), self._graph.team
        return ListCache(self._sides, lists, memory, kinds, team, USES, None, self._recipe.on_read)

    # For the loop of every run

    def link(self, names: list[str], arrays: list[Array]) -> ModelLink:
        return (
            ModelLink(arrays, self._device)
            if self.pages is None
            else LruPagedLink(arrays, names, self._device, self.pages)
        )

    def cache(self, sides: list[Side]) -> Cache:
        """The hot subgraph, for programs that follow one side: the loop serves a vertex on all of its sides or on
        none.
        """
        return self.hot if self.hot is not None and len(sides) == 1 else Cache()

    def shared(self, array: Array) -> Any:
        return None

    def positions(self, lists: Lists) -> tuple[Array, Array] | None:
        return None

    def ran(self, run: Any) -> None:
        trace, found = run.trace, self.transfer
        hits = int(trace.total("hit_edges"))
        found.add(
            Transfer(
                int(trace.total("bytes")),
                int(trace.total("requests")),
                hits,
                int(trace.total("active_edges")) - hits,
                modelled=run.seconds["modelled"],
            )
        )

    # For correction

    def read(self, side: str, rows: Array, weights: bool) -> None:
        if not rows.size:
            return
        side = self._stored(side)
        begins, ends, _, _ = self._graph.sides[side].arrays()
        begins = begins[rows]
        lengths = ends[rows] - begins
        far = np.ones(rows.size, np.bool_)
        if self.hot is not None:
            self.hot.use(side, rows)
            far = self.hot.chunks.held[self.hot.offset(side) + rows.astype(np.int64)] == 0
            if self.hot.on_read and (not self._weights or weights):
                self._load(self.hot, side, self.hot.admit(side, rows[far], lengths[far]))
        edges, missed = int(lengths.sum()), int(lengths[far].sum())
        moved = self._link.reads(self._spans(side, begins[far], lengths[far], weights)) if missed else Moved()
        self._count(moved, edges, missed)

    def _spans(self, side: str, begins: Array, lengths: Array, weights: bool) -> ListSpans:
        return ListSpans(begins, begins + lengths, self._widths(weights), 2 * self._sides.index(side))

    def _widths(self, weights: bool) -> tuple[int, ...]:
        snapshot = self._graph.snapshot
        return (
            (snapshot.target_bytes, snapshot.weight_bytes)
            if weights and snapshot.weighted
            else (snapshot.target_bytes,)
        )

    def _count(self, moved: Moved, edges: int, missed: int) -> None:
        """Count a launch. Its kernel fetches its edges itself; a fault stops it until the page has come."""
        kernel = float(costs.kernel(self._device, edges, sum(self._widths(self._weights))))
        seconds = moved.link_seconds + kernel if moved.faults else max(moved.link_seconds, kernel)
        seconds += float(costs.copy_back(self._device, FLAG_BYTES))
        self.transfer.add(Transfer(moved.bytes, moved.requests, edges - missed, missed, modelled=seconds))

    def _sent(self, edges: int) -> None:
        """The changed edges of a batch are copied to the device: both ends, and weights."""
        size = edges * (self._graph.snapshot.target_bytes + sum(self._widths(self._weights)))
        if size and not self.recomputes:
            seconds = float(costs.bulk(self._device, size)) + float(
                costs.kernel(self._device, edges, sum(self._widths(self._weights)))
            )
            self.transfer.add(Transfer(batch_bytes=size, modelled=seconds))

    # When the snapshot advances

    def opened(self) -> Transfer:
        """All programs have their first answers: what that moved. The hot subgraph takes up what was used most, or the
        shortest lists.
        """
        if self.hot is not None:
            start = clock()
            self._replace(self.hot, [], {})
            if self.hot.on_read:
                self._bring(self.hot, self.hot.fill(self._lists()), {})
            self.transfer.upkeep_seconds += clock() - start
        return self.end_batch()

    def _lists(self) -> list[Lists]:
        return [self._graph.snapshot.lists(side) for side in self._sides]

    def committed(self, change: Change) -> None:
        """The edges have changed: bring what is near up to date."""
        if self._graph.vertices > self._room:
            self._grow()
        arcs = int(change.out.vertices.size)
        self._sent(arcs if self._graph.directed else -(-arcs // 2))
        start = clock()
        changes = {"out": change.out, "in": change.into}
        changed = {side: groups(each) for side, each in changes.items()}
        if self.hot is not None:
            self._replace(self.hot, [changed[side] for side in self._sides], changes if self.hot.on_read else {})
            self.transfer.upkeep_seconds += clock() - start
        if self.pages is not None:
            self._written(self.pages, changed)

    def _grow(self) -> None:
        """Take memory for more vertices. If they share a budget with lists or pages, some of these are evicted."""
        room = self._graph.vertices + self._graph.vertices // SPARE + 64
        left = self._room_left(USES.index_bytes * len(self._sides) * room if self.hot is not None else 0)
        if self.hot is not None:
            self.hot.grow(room, left)
        if self.pages is not None and left is not None:
            self.pages.limit(left)
        self._room = room

    def _replace(self, hot: ListCache, changed: list[Array], changes: dict[str, SideChanges]) -> None:
        """Refresh lists that have changed, and go over to the hottest ones; they are read by zero-copy, unless
        `changes` suffice.
        """
        self._bring(hot, hot.replace(self._lists(), changed), changes, moves=not hot.on_read)

    def _bring(self, hot: ListCache, fresh: Array, changes: dict[str, SideChanges], moves: bool = True) -> None:
        """Fill the places of these keys; `moves`: their lists have to cross the link. `changes`: only these have, if
        there are any.
        """
        brought = Moved()
        for side in self._sides:
            keys = fresh[(fresh >= hot.offset(side)) & (fresh < hot.offset(side) + hot.side_keys)]
            if changes:
                self._refresh(hot, side, keys, changes[side])
            else:
                self._load(hot, side, keys)
            if keys.size and moves:
                (begins, ends, _, _), rows = self._graph.sides[side].arrays(), keys - hot.offset(side)
                brought.add(self._link.reads(self._spans(side, begins[rows], ends[rows] - begins[rows], self._weights)))
        near = 2 * hot.chunks.moved * sum(self._widths(self._weights)) + hot.ranked
        launches = 6 if hot.ranked else 3  # compaction, places, copies; before them ranks, a prefix sum and marks
        seconds = max(brought.link_seconds, float(costs.scan(self._device, near, launches)))
        self.transfer.add(
            Transfer(
                brought.bytes, brought.requests, upkeep_bytes=brought.bytes, upkeep_modelled=seconds, modelled=seconds
            )
        )

    def _load(self, hot: ListCache, side: str, keys: Array) -> None:
        begins, ends, targets, weights = self._graph.sides[side].arrays()
        hot.chunks.load(keys, hot.offset(side), (begins, ends), targets, weights)

    def _refresh(self, hot: ListCache, side: str, keys: Array, changes: SideChanges) -> None:
        begins, ends, targets, weights = self._graph.sides[side].arrays()
        theirs = np.searchsorted(groups(changes), keys - hot.offset(side))
        hot.chunks.refresh(keys, theirs, changes, hot.offset(side), (begins, ends), targets, weights)

    def _positions(self) -> dict[str, tuple[Array, Array, Array]]:
        """Where lists lie, for pages: a list that moves is written."""
        if self.pages is None:
            return {}
        arrays = {side: self._graph.sides[side].arrays() for side in self._sides}
        return {side: (begins.copy(), ends.copy(), targets) for side, (begins, ends, targets, _) in arrays.items()}

    def _written(self, pages: LruPages, changed: dict[str, Array]) -> None:
        widths = dict(zip(("targets", "weights"), self._widths(True), strict=False))
        for side, (begins, ends, targets, _) in ((side, self._graph.sides[side].arrays()) for side in self._sides):
            old_begins, old_ends, old_targets = self._seen[side]
            if targets is not old_targets:
                for kind in widths:
                    pages.forget(f"{side}.{kind}")
                continue
            same = min(old_begins.size, begins.size, self._graph.vertices)
            moved = (begins[:same] != old_begins[:same]) | (ends[:same] != old_ends[:same])
            rows = np.union1d(np.flatnonzero(moved), changed[side])
            rows = rows[ends[rows] > begins[rows]]
            for kind, width in widths.items():
                pages.written(f"{side}.{kind}", begins[rows] * width, (ends[rows] - begins[rows]) * width)
        self._seen = self._positions()

    def renumbered(self, change: Change) -> None:
        """Vertices have left, and others have their numbers: nothing near is what it was."""
        if change.removed.size:
            self.forget()
            if self.hot is not None:
                self.hot.renumber(change.movers, change.holes, self._graph.vertices)

    def forget(self) -> None:
        """Let go of all that is near: it is not what the snapshot has."""
        if self.hot is not None:
            self.hot.forget()
        if self.pages is not None:
            for name in self._names():
                self.pages.forget(name)
            self._seen = self._positions()

    def end_batch(self) -> Transfer:
        """What the batch moved; the next one begins."""
        start = clock()
        if self.hot is not None:
            self.hot.end_period()
            self.transfer.upkeep_seconds += clock() - start
        found, self.transfer = self.transfer, Transfer()
        return found


def groups(changes: Any) -> Array:
    """The vertices whose lists change, each once."""
    return np.asarray(changes.vertices[changes.cuts[:-1]])
