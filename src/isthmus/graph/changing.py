"""A graph that changes by batches, in memory: packed lists of out-edges and, if it is directed, of in-edges.

A batch is applied in two steps. `prepare` finds out what it changes and touches nothing, so a batch that is refused leaves no trace.
`commit` changes the lists. Between the two, programs that keep their answers current correct them on the old edges.

The graph stays simple: an edge that exists is not inserted twice. Removed vertices leave no hole: the last vertices take their numbers.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BatchError, GraphFormatError
from isthmus.graph.change import Change, Edits, sorted_pairs
from isthmus.graph.changing_ids import ChangingIds
from isthmus.graph.changing_snapshot import ChangingSnapshot
from isthmus.graph.files import Array
from isthmus.graph.freezing import frozen_store
from isthmus.graph.graph import Graph
from isthmus.graph.ids import Ids
from isthmus.graph.lists import Lists
from isthmus.graph.packed_lists import PackedLists
from isthmus.graph.preparing import prepared
from isthmus.graph.search import Search
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels import finding, packed
from isthmus.kernels.packed import DELETE, INSERT, NOTHING, REWEIGH
from isthmus.threads import Team

NOBODY = np.empty(0, np.int64)
FEW_WEIGHTS = np.empty(0, np.int32)
UNDONE_BY = np.array([NOTHING, DELETE, INSERT, REWEIGH], np.uint8)  # by action


@dataclass
class Undo:
    """What a graph was before a batch, beside its edges."""

    edges: int
    self_loops: int
    negative_arcs: int
    ids: Any


class ChangingGraph(Graph):
    """A graph in memory that takes batches. It is opened from any graph, and is one itself."""

    def __init__(self, graph: Graph, threads: int | None = None, align: bool | None = None, number: int = 0) -> None:
        base = graph.snapshot
        self.team = Team(threads)
        weakref.finalize(self, self.team.dismiss)  # of a graph that nobody closed
        self.lock = threading.RLock()  # held while a batch is applied, and while an algorithm runs
        self.number = number  # of the last batch
        self.before_reading: Callable[[], None] | None = None  # waits until all batches are acknowledged
        self.edges, self.directed, self.weighted = base.edges, base.directed, base.weighted
        self.self_loops = base.self_loops
        self.has_in_edges, self.report, self.parallel = True, None, False
        self.changing_ids = ChangingIds(base.ids.loaded(), base.vertices)
        if graph.parallel:
            self._refuse_parallel(graph)
        out = self._packed(base, "out", align)
        self.sides = {"out": out, "in": self._packed(base, "in", align) if base.directed else out}
        weights = self.sides_of(base, "out")[2] if base.negative_weights else None
        self.negative_arcs = 0 if weights is None else int(np.count_nonzero(weights < 0))
        self._take_snapshot()

    def _refuse_parallel(self, graph: Graph) -> None:
        lists, targets, _ = self.sides_of(graph.snapshot, "out")
        found = self.team.split(lambda a, b: packed.has_parallel(*lists.arrays, targets, a, b), len(lists))
        for v in [v for v in found if v >= 0][:1]:
            self.team.close()
            user = graph.ids.users(np.array([v])).tolist()[0]
            remedy = "ingest it with parallel='min', 'sum' or 'drop'"
            raise GraphFormatError(f"{graph} has parallel edges, for example at vertex {user!r}; a changing graph has none: {remedy}")

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

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.changing_ids.map()

    @property
    def order(self) -> str:  # type: ignore[override]
        return self.snapshot.order

    @property
    def path(self) -> Path | None:
        return None

    def reading(self) -> AbstractContextManager[Any]:
        """Held while something is read: no batch is applied meanwhile."""
        return self.lock if self.before_reading is None else self._settled(self.before_reading)

    @contextmanager
    def _settled(self, settle: Callable[[], None]) -> Iterator[None]:
        with self.lock:
            settle()
            yield

    # One vertex at a time

    def _row(self, v: int, side: str = "out") -> tuple[int, int]:
        return self.sides[side].row(v)

    def _read(self, section: str, begin: int, end: int) -> Array:
        side, _, kind = section.partition(".")
        return self.sides[side].targets[begin:end] if kind == "targets" else self.sides[side].weights[begin:end]

    def _arcs_between(self, u: int, v: int) -> tuple[int, int]:
        begin, end = self._row(u)
        at = np.flatnonzero(self.sides["out"].targets[begin:end] == v)
        return (begin + int(at[0]), begin + int(at[0]) + 1) if at.size else (begin, begin)

    # Batches

    def apply(self, edits: Edits, strict: bool = False) -> Change:
        """Apply a batch."""
        with self.lock:
            change = self.prepare(edits, strict)
            self.commit(change)
            self.renumber(change)
            return change

    def prepare(self, edits: Edits, strict: bool = False) -> Change:
        """Find out what a batch changes. Raises BatchError; nothing is changed yet.

        `strict`: inserting an edge that exists, or deleting or reweighing one that does not, is an error.
        """
        return prepared(self, edits, strict)

    def edges_of(self, chosen: Array) -> tuple[Array, Array]:
        """All edges that begin or end at some of these vertices, each once."""
        found: list[tuple[Array, Array]] = []
        for name in ("out", "in") if self.directed else ("out",):
            lists = self.sides[name]
            for v in chosen.tolist():
                begin, end = lists.row(v)
                others = lists.targets[begin:end].astype(np.int64)
                here = np.full(others.size, v, np.int64)
                found.append((here, others) if name == "out" else (others, here))
        us, vs = (np.concatenate(column) for column in zip(*found, strict=True))
        if not self.directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        order = sorted_pairs(us, vs, self.vertices)
        us, vs = us[order], vs[order]
        fresh = np.ones(us.size, np.bool_)
        fresh[1:] = (us[1:] != us[:-1]) | (vs[1:] != vs[:-1])
        return us[fresh], vs[fresh]

    def search(self, tails: Array, heads: Array) -> Search:
        """A search for distinct edges by vertex numbers, sorted by tail and then head."""
        return Search(self.sides, self.directed, tails, heads, self.team)

    def joined(self, us: Array, vs: Array) -> Array:
        """Whether there is an edge u -> v now, for each pair of vertex numbers; numbers beyond all vertices have none."""
        out, into = self.sides["out"].arrays()[:3], self.sides["in"].arrays()[:3]
        us, vs = us.astype(out[2].dtype), vs.astype(out[2].dtype)
        exists = np.empty(us.size, np.uint8)

        def part(first: int, last: int) -> None:
            finding.find_edges(us, vs, first, last, self.vertices, *out, *into, exists)

        if us.size <= sizes.now.few_changes:
            part(0, us.size)
        else:
            pieces = np.linspace(0, us.size, 8 * self.team.size + 1).astype(np.int64).tolist()
            self.team.each(lambda k: part(pieces[k], pieces[k + 1]), len(pieces) - 1)
        return exists.astype(np.bool_)

    def commit(self, change: Change) -> Undo:
        """Apply a prepared batch; returns what `revert` needs."""
        if change.number != self.number + 1:
            raise BatchError(f"this change was prepared for snapshot {change.number - 1}, and the graph is at {self.number}")
        undo = Undo(self.edges, self.self_loops, self.negative_arcs, self.changing_ids.kept())
        self._vertices_added(change)
        self.sides["out"].apply(change.out)
        if self.directed:
            self.sides["in"].apply(change.into)
        self.edges, self.self_loops, self.negative_arcs = change.edges, change.self_loops, change.negative_arcs
        self.number = change.number
        self._take_snapshot()
        return undo

    def revert(self, change: Change, undo: Undo) -> None:
        """Undo a batch that was committed and not renumbered yet. Edges may lie elsewhere in their lists afterwards."""
        out = change.out
        rows = np.flatnonzero(out.vertices <= out.others) if not self.directed else np.arange(out.vertices.size)  # each edge once
        search = self.search(out.vertices[rows], out.others[rows])
        search.find(np.zeros(rows.size, np.uint8))
        actions, weights = UNDONE_BY[out.actions[rows]], change.old_weights[rows] if self.weighted else search.old
        changes = [(name, search.changes(name, actions, weights)[0]) for name in search.sides]
        for name, each in changes:
            self.sides[name].apply(each)
        for lists in self._both:
            lists.drop_vertices(int(change.added.size))
        self.changing_ids.restore(undo.ids, change.added)
        self.edges, self.self_loops, self.negative_arcs = undo.edges, undo.self_loops, undo.negative_arcs
        self.number = change.number - 1
        self._take_snapshot()

    def _vertices_added(self, change: Change) -> None:
        if change.added.size:
            self.changing_ids.add(change.added)
            for lists in self._both:
                lists.add_vertices(int(change.added.size))

    def renumber(self, change: Change) -> None:
        """Give the last vertices the numbers of those that the change has removed."""
        if not change.removed.size:
            return
        if change.movers.size:
            self._rename(change.movers, change.holes)
        for lists in self._both:
            lists.drop_vertices(int(change.removed.size))
        self.changing_ids.remove(change.removed, change.movers, change.holes)
        self._take_snapshot()

    def _rename(self, movers: Array, holes: Array) -> None:
        """Replace all arcs at the movers by arcs at the holes."""
        us, vs = self.edges_of(movers)
        if not us.size:
            return
        kind = self.sides["out"].targets.dtype
        old = self.search(us.astype(kind), vs.astype(kind))
        old.find(np.zeros(us.size, np.uint8))
        to = np.arange(self.vertices)
        to[movers] = holes
        us, vs = to[us], to[vs]
        if not self.directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        order = sorted_pairs(us, vs, self.vertices)
        new = self.search(us[order].astype(kind), vs[order].astype(kind))
        for search, action, weights in ((old, DELETE, old.old), (new, INSERT, old.old[order] if self.weighted else old.old)):
            actions = np.full(us.size, action, np.uint8)
            for name in ("out", "in") if self.directed else ("out",):
                self.sides[name].apply(search.changes(name, actions, weights)[0])

    # As a whole

    def frozen(self) -> Graph:
        """The graph as it is now, in memory, with sorted lists; later batches do not change it."""
        with self.lock:
            store = frozen_store(self.snapshot, self.sides, self.team)
        return Graph(store)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store."""
        from isthmus.graph.build import store_again  # late: it imports graphs

        store_again(self.frozen(), path, overwrite).close()

    def busiest(self) -> Any:
        return self.frozen().busiest() if not self.vertices else self.ids.users(np.array([self.snapshot.out_degrees().argmax()]))[0]

    def info(self) -> dict[str, Any]:
        return {
            "path": None, "batch": self.number, "vertices": self.vertices, "edges": self.edges, "arcs": self.arcs,
            "directed": self.directed, "weighted": self.weighted,
            "weight_type": str(self.snapshot.weight_dtype) if self.weighted else None, "edge_bytes": self.edge_bytes,
            "ids": self.changing_ids.kind, "order": self.order, "self_loops": self.self_loops, "in_edges": True,
            "store_bytes": sum(lists.bytes for lists in self._both), "origin": {}, "sections": {},
        }  # fmt: skip

    def __reduce__(self) -> Any:
        """How it is pickled: as it is now, and it changes no more."""
        return self.frozen().__reduce__()

    @property
    def _both(self) -> list[PackedLists]:
        return [self.sides["out"], self.sides["in"]] if self.directed else [self.sides["out"]]

    def close(self) -> None:
        self.team.close()


def transposed(side: tuple[Lists, Array, Array | None]) -> tuple[Lists, Array, Array | None]:
    """The in-edges of lists without gaps."""
    lists, targets, weights = side
    order = np.argsort(targets, kind="stable")
    sources = np.repeat(np.arange(len(lists), dtype=targets.dtype), lists.degrees())
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.bincount(targets.astype(np.int64), minlength=len(lists)), out=offsets[1:])
    return Lists.of(offsets), sources[order], None if weights is None else weights[order]
