"""A changing graph on disk, for graphs whose edges do not fit in memory: a store, and an overlay in memory of the
changes since.

The store is never written to. When the changes take too much memory, they are merged with it into a new store
(`merged_store.py`), from which the graph goes on.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import IsthmusError
from isthmus.graph.changing.advancing import AdvancingGraph, Gathered
from isthmus.graph.changing.change import grouped_pairs
from isthmus.graph.changing.edge_lookup import Search
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.base import StoredBase
from isthmus.graph.overlay.merged_store import merged, scratch_store
from isthmus.graph.overlay.overlay_lookup import OverlaySearch
from isthmus.graph.overlay.overlay_side import OverlaySide
from isthmus.graph.overlay.overlay_snapshot import OverlaySnapshot
from isthmus.graph.overlay.patched_reader import PatchedReader, Pieces, patch_of
from isthmus.graph.store.extent_reader import DEPTH, ExtentReader
from isthmus.graph.store.files import Array, aligned_empty
from isthmus.threads import uninterrupted

PARTS = 8  # of a large read, for each member of the team
ROWS = 1 << 18  # vertices whose lists are gathered at once, at most


class OverlayGraph(AdvancingGraph):
    """A graph on disk that takes batches. It is opened from a store, and is a graph itself."""

    sides: dict[str, OverlaySide]
    snapshot: OverlaySnapshot
    lists_are_near = False

    def __init__(self, graph: Graph, threads: int | None = None, number: int = 0, channels: int = 0) -> None:
        """`channels`: how many threads can read its files at once; at least as many as it has itself."""
        self._begin(graph.snapshot, threads, number)
        self._gathered: dict[str, tuple[Array, Array]] = {}  # where the lists of some vertices lie, by side
        try:
            self._adopt(StoredBase(graph, self.team, max(channels, self.team.size)))
        except BaseException:
            self.team.close()
            raise
        self.folder = graph.path.parent if graph.path is not None else None  # where new stores are written
        self.negative_arcs = self._base.negative_arcs
        self._take_snapshot()

    def _adopt(self, base: StoredBase) -> None:
        """Go on from a stored graph."""
        self._base, self.sides = base, base.sides
        self._release = weakref.finalize(self, base.reader.close)  # of a graph that nobody closed

    def _take_snapshot(self) -> None:
        self.snapshot = OverlaySnapshot(self)
        self.vertices, self.arcs = self.snapshot.vertices, self.snapshot.arcs
        sections = [section for side in self._both for section in side.base.sections]
        self._reader = PatchedReader(
            self._base.reader, [array for side in self._both for array in side.far()], sections
        )

    @property
    def changes_bytes(self) -> int:
        """Memory of the arcs that were added and removed since the graph was stored."""
        return sum(side.overlay.change_bytes for side in self._both)

    # Lists

    def gathered(self, side: str, rows: Array, weights: bool) -> Gathered:
        """The lists of these vertices, read from disk by all members of the team."""
        here, begins, ends = self.sides[side], *self._positions(side)
        rows = in_order(rows)
        if rows.size and int(rows[-1]) - int(rows[0]) + 1 == rows.size:  # all vertices of a range: one piece
            low, high = int(rows[0]), int(rows[-1]) + 1
            first, last = here.overlay.begins[[low]], here.overlay.begins[[high]]
            begins[low:high] = here.overlay.begins[low:high] - first
            ends[low:high] = here.overlay.begins[low + 1 : high + 1] - first
            places = np.array([0, int(last[0] - first[0])], np.int64)
        else:
            first, last = here.overlay.begins[rows], here.overlay.begins[rows + 1]
            places = np.zeros(rows.size + 1, np.int64)
            np.cumsum(last - first, out=places[1:])
            begins[rows], ends[rows] = places[:-1], places[1:]
        count = int(places[-1])
        entries = [aligned_empty(count, self.target_dtype)]
        if weights and self.weighted:
            entries.append(aligned_empty(count, self.weight_dtype))
        for section, out in zip(here.base.sections, entries, strict=False):
            self._read_pieces(
                Pieces(np.full(first.size, section), first, last, places[:-1] * out.itemsize), out.view(np.uint8)
            )
        return begins, ends, entries[0], entries[-1] if len(entries) > 1 else np.empty(0, self.weight_dtype or np.int32)

    def _read_pieces(self, pieces: Pieces, out: Array) -> None:
        """Read pieces that fill `out`; members of the team take parts of it, if it is large."""
        parts = min(-(-out.size // max(1, sizes.now.staging // 2)), PARTS * self.team.size)
        if parts < 2:
            self._reader.read(pieces, out)
            return
        cuts = np.append(np.linspace(0, out.size, parts + 1)[:-1].astype(np.int64) // 8 * 8, out.size)

        def part(member: int, k: int) -> None:
            self._reader.read(pieces.between(cuts[k], cuts[k + 1], self._reader.widths), out, member)

        self.team.share(part, parts)

    def pieces(self, side: str, rows: Array, weights: bool) -> Iterator[tuple[Array, Gathered]]:
        begins = self.sides[side].overlay.begins
        rows = in_order(rows)
        entry = self.snapshot.target_bytes + (self.snapshot.weight_bytes if weights else 0)
        at = 0
        while at < rows.size:
            some = rows[at : at + ROWS]
            ends = np.cumsum((begins[some + 1] - begins[some]) * entry)
            some = some[: max(1, int(np.searchsorted(ends, sizes.now.gathered, "right")))]
            yield some, self.gathered(side, some, weights)
            at += some.size

    def _positions(self, side: str) -> tuple[Array, Array]:
        """Begins and ends by vertex, for lists that are gathered; only those of the last call mean something."""
        name = side if self.directed else "out"
        if name not in self._gathered or self._gathered[name][0].size < self.vertices:
            capacity = self.vertices + self.vertices // 8 + 64
            self._gathered[name] = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        return self._gathered[name]

    def _read(self, section: str, begin: int, end: int) -> Array:
        side, _, kind = section.partition(".")
        return self._reader.entries(self.sides[side].base.sections[0 if kind == "targets" else 1], begin, end)

    def _arcs_between(self, u: int, v: int) -> tuple[int, int]:
        begin, end = self._row(u)
        at = np.flatnonzero(self._read("out.targets", begin, end) == v)
        return (begin + int(at[0]), begin + int(at[0]) + 1) if at.size else (begin, begin)

    # Batches

    def search(self, tails: Array, heads: Array) -> Search:
        return OverlaySearch(self.sides, self.directed, tails, heads, self.team, self._base.reader)

    def joined(self, us: Array, vs: Array) -> Array:
        known = (us < self.vertices) & (vs < self.vertices)
        exists = np.zeros(us.size, np.bool_)
        us, vs = us[known].astype(np.int64), vs[known].astype(np.int64)
        if not self.directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        order, first = grouped_pairs(us, vs, self.vertices)
        once = order[first]
        search = self.search(us[once].astype(self.target_dtype), vs[once].astype(self.target_dtype))
        search.find(np.ones(once.size, np.uint8))
        found = np.empty(us.size, np.bool_)
        found[order] = search.exists[np.cumsum(first) - 1] != 0
        exists[known] = found
        return exists

    # As a whole

    def frozen(self) -> Graph:
        """The graph as it is now, in a store without a name, which is gone when it is closed."""
        with self.reading():
            return scratch_store(self.snapshot, self._reader, self.folder)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store."""
        from isthmus.graph.ingest.build import store_again  # late: it imports graphs

        with self.reading():
            if self.snapshot.order == "natural":
                merged(self.snapshot, self._reader, path, overwrite).close()
                return
            beside = Path(os.path.realpath(path)).parent  # it can be written to; the folder of the graph perhaps not
            with scratch_store(self.snapshot, self._reader, beside) as frozen:
                store_again(frozen, path, overwrite).close()

    def store_into(self, path: Path) -> None:
        with self.lock:
            merged(self.snapshot, self._reader, path).close()

    def merge(self) -> None:
        """Write the graph into a new store, and go on from there, with an empty overlay."""
        with self.lock:
            if self.changes_bytes:
                with self.frozen() as stored:
                    self.go_on_with(stored)

    def go_on_with(self, stored: Graph) -> None:
        """Go on from a store that has the graph as it is now."""
        self.go_on_from(OverlayGraph(stored, 1, self.number, self.team.size))

    def go_on_from(self, other: OverlayGraph) -> None:
        """Take over the store and the overlay of another graph, which has the same edges and is not used any more."""
        with self.lock:
            if (other.number, other.vertices, other.arcs) != (self.number, self.vertices, self.arcs):
                raise IsthmusError(
                    "a merged graph differs from the graph that it was made from; this is a bug, please report it"
                )
            uninterrupted(lambda: self._take_over(other))

    def _take_over(self, other: OverlayGraph) -> None:
        release = self._release
        other._release.detach()
        self._adopt(other._base)
        for side in self._both:
            side.team = self.team
        self._take_snapshot()
        other.team.close()
        release()

    def apart(self) -> PatchedReader:
        """A reader of the current snapshot for another thread; it stays valid while batches are applied."""
        arrays = [array for side in self._both for array in side.far()]
        return PatchedReader(
            ExtentReader([patch_of(array).base for array in arrays], DEPTH, 1), arrays, list(range(len(arrays)))
        )

    def close(self) -> None:
        with self.lock:  # another thread that reads the files holds it
            super().close()
            self._release()


def in_order(rows: Array) -> Array:
    """Vertices ascending."""
    rows = rows.astype(np.int64, copy=False)
    return rows if (rows[1:] >= rows[:-1]).all() else np.sort(rows)
