"""A changing graph in memory: packed lists of out-edges and, if it is directed, of in-edges.

Lists are not sorted: a new edge goes to the end of its list, and the last edge takes the place of a deleted one. Before
vertices are removed for the first time, the two sides are compared (`mirror.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, StoreError
from isthmus.graph.changing import mirror
from isthmus.graph.changing.advancing import AdvancingGraph, Gathered, Undo
from isthmus.graph.changing.change import Change, Edits
from isthmus.graph.changing.changing_snapshot import ChangingSnapshot
from isthmus.graph.changing.edge_lookup import Search
from isthmus.graph.changing.frozen_store import frozen_store
from isthmus.graph.changing.packed_lists import PackedLists
from isthmus.graph.graph import Graph
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import Array
from isthmus.kernels.changing import edge_search, packed_array

__all__ = ["ChangingGraph", "Undo"]


class ChangingGraph(AdvancingGraph):
    """A graph in memory that takes batches. It is opened from any graph, and is one itself."""

    lists_are_near = True
    sides: dict[str, PackedLists]

    def __init__(self, graph: Graph, threads: int | None = None, align: bool | None = None, number: int = 0) -> None:
        base = graph.snapshot
        self._begin(base, threads, number)
        self._origin, self._is_mirrored = str(graph.path or graph), False
        if graph.parallel:
            self._refuse_parallel(graph)
        out = self._packed(base, "out", align)
        self.sides = {"out": out, "in": self._packed(base, "in", align) if base.directed else out}
        weights = self.sides_of(base, "out")[2] if base.negative_weights else None
        self.negative_arcs = 0 if weights is None else int(np.count_nonzero(weights < 0))
        self._take_snapshot()

    def _refuse_parallel(self, graph: Graph) -> None:
        lists, targets, _ = self.sides_of(graph.snapshot, "out")
        found = self.team.split(lambda a, b: packed_array.has_parallel(*lists.arrays, targets, a, b), len(lists))
        for v in [v for v in found if v >= 0][:1]:
            self.team.close()
            user = graph.ids.users(np.array([v])).tolist()[0]
            remedy = "ingest it with parallel='min', 'sum' or 'drop'"
            raise GraphFormatError(
                f"{graph} has parallel edges, for example at vertex {user!r}; a changing graph has none: {remedy}"
            )

    def _packed(self, base: Snapshot, side: str, align: bool | None) -> PackedLists:
        if not base.has_in_edges and side == "in":
            lists, targets, weights = transposed(self.sides_of(base, "out"))
        else:
            lists, targets, weights = self.sides_of(base, side)
        return PackedLists(lists, targets, weights, self.team, align)

    def sides_of(self, base: Snapshot, side: str) -> tuple[Lists, Array, Array | None]:
        arrays = [base.whole(array) for array in base.far(side, True)]
        return base.lists(side), arrays[0], arrays[1] if base.weighted else None

    def _take_snapshot(self) -> None:
        self.snapshot = ChangingSnapshot(self)
        self.vertices, self.arcs = self.snapshot.vertices, self.snapshot.arcs

    # Batches

    def prepare(self, edits: Edits, strict: bool = False) -> Change:
        if edits.removed is not None and edits.removed.size:
            self._check_mirrored()
        return super().prepare(edits, strict)

    def _check_mirrored(self) -> None:
        """Before vertices are first removed: both sides have the same arcs, as otherwise some would lead to vertices
        that are gone.
        """
        if self._is_mirrored:
            return
        fault = mirror.fault(self.sides["out"], self.sides["in"], self.team)
        if fault:
            raise StoreError(f"{self._origin}: vertices cannot be removed: {fault}; run isthmus verify")
        self._is_mirrored = True

    # Lists

    def gathered(self, side: str, rows: Array, weights: bool) -> Gathered:
        """All lists: they are near."""
        return self.sides[side].arrays()

    def pieces(self, side: str, rows: Array, weights: bool) -> Iterator[tuple[Array, Gathered]]:
        yield rows, self.sides[side].arrays()

    def _read(self, section: str, begin: int, end: int) -> Array:
        side, _, kind = section.partition(".")
        return self.sides[side].targets[begin:end] if kind == "targets" else self.sides[side].weights[begin:end]

    def _arcs_between(self, u: int, v: int) -> tuple[int, int]:
        begin, end = self._row(u)
        at = np.flatnonzero(self.sides["out"].targets[begin:end] == v)
        return (begin + int(at[0]), begin + int(at[0]) + 1) if at.size else (begin, begin)

    def search(self, tails: Array, heads: Array) -> Search:
        """A search for distinct edges by vertex numbers, sorted by tail and then head."""
        return Search(self.sides, self.directed, tails, heads, self.team)

    def joined(self, us: Array, vs: Array) -> Array:
        """Whether there is an edge u -> v now, for each pair of vertex numbers; numbers beyond all vertices have
        none.
        """
        out, into = self.sides["out"].arrays()[:3], self.sides["in"].arrays()[:3]
        us, vs = us.astype(out[2].dtype), vs.astype(out[2].dtype)
        exists = np.empty(us.size, np.uint8)

        def part(first: int, last: int) -> None:
            edge_search.find_edges(us, vs, first, last, self.vertices, *out, *into, exists)

        if us.size <= sizes.now.few_changes:
            part(0, us.size)
        else:
            pieces = np.linspace(0, us.size, 8 * self.team.size + 1).astype(np.int64).tolist()
            self.team.each(lambda k: part(pieces[k], pieces[k + 1]), len(pieces) - 1)
        return exists.astype(np.bool_)

    def frozen(self) -> Graph:
        """The graph as it is now, in memory, with sorted lists; later batches do not change it."""
        with self.reading():
            store = frozen_store(self.snapshot, self.sides, self.team)
        return Graph(store)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store."""
        from isthmus.graph.ingest.build import store_again  # late: it imports graphs

        store_again(self.frozen(), path, overwrite).close()


def transposed(side: tuple[Lists, Array, Array | None]) -> tuple[Lists, Array, Array | None]:
    """The in-edges of lists without gaps."""
    lists, targets, weights = side
    order = np.argsort(targets, kind="stable")
    sources = np.repeat(np.arange(len(lists), dtype=targets.dtype), lists.degrees())
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.bincount(targets.astype(np.int64), minlength=len(lists)), out=offsets[1:])
    return Lists.of(offsets), sources[order], None if weights is None else weights[order]
