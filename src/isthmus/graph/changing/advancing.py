"""A graph that takes batches, wherever its edges lie: what changing graphs in memory and larger ones have in common.

A batch is applied in two steps. `prepare` finds out what it changes and touches nothing, so a batch that is refused
leaves no trace. `commit` changes the lists. Between the two, maintained programs correct their answers on the old
edges.

The graph stays simple: an edge that exists is not inserted twice. Removed vertices leave no hole: the last vertices
take their numbers.
"""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from isthmus.errors import BatchError, UnknownVertexError
from isthmus.graph.changing.change import Change, Edits, grouped_pairs, sorted_pairs
from isthmus.graph.changing.changing_ids import ChangingIds
from isthmus.graph.changing.edge_lookup import Search
from isthmus.graph.changing.packed_lists import SideChanges
from isthmus.graph.changing.prepared_batch import prepared
from isthmus.graph.graph import Graph
from isthmus.graph.ids import Ids
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import Array
from isthmus.kernels.changing.packed_array import DELETE, INSERT, NOTHING, REWEIGH
from isthmus.threads import Team

UNDONE_BY = np.array([NOTHING, DELETE, INSERT, REWEIGH], np.uint8)  # by action
Gathered = tuple[Array, Array, Array, Array]  # begins and ends by vertex number; targets and weights there


class Side(Protocol):
    """The lists of one side, which batches change."""

    vertices: int
    arcs: int

    @property
    def bytes(self) -> int:
        """Near memory that it takes."""

    def row(self, v: int) -> tuple[int, int]: ...
    def apply(self, changes: SideChanges) -> None: ...
    def add_vertices(self, count: int) -> None: ...
    def drop_vertices(self, count: int) -> None: ...


@dataclass
class Undo:
    """What a graph was before a batch, beside its edges."""

    edges: int
    self_loops: int
    negative_arcs: int
    ids: Any


class AdvancingGraph(Graph):
    """A graph whose snapshot advances by batches. `_begin` first, then `sides`, `negative_arcs` and
    `_take_snapshot`.
    """

    lists_are_near: bool  # all in memory at once: `gathered` has the lists of all vertices, and `pieces` one piece
    sides: Any  # by name; the same object twice if the graph is undirected
    negative_arcs: int
    target_dtype: Any
    weight_dtype: Any  # None: unweighted

    def _begin(self, base: Snapshot, threads: int | None, number: int) -> None:
        self.team = Team(threads)
        weakref.finalize(self, self.team.dismiss)  # of a graph that nobody closed
        self.lock = threading.RLock()  # held while a batch is applied, and while an algorithm runs
        self.number = number  # of the last batch
        self.half_applied = False  # a batch was stopped while it was applied
        self.before_reading: Callable[[], None] | None = None  # waits until all batches are acknowledged
        self.edges, self.directed, self.weighted = base.edges, base.directed, base.weighted
        self.target_dtype, self.weight_dtype = base.target_dtype, base.weight_dtype
        self.self_loops = base.self_loops
        self.has_in_edges, self.report, self.parallel = True, None, False
        self.changing_ids = ChangingIds(base.ids.loaded(), base.vertices)

    @abstractmethod
    def _take_snapshot(self) -> None:
        """Set `snapshot`, `vertices` and `arcs` to what they are now."""

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

    # Lists

    @abstractmethod
    def gathered(self, side: str, rows: Array, weights: bool) -> Gathered:
        """The lists of some vertices, near: (begins, ends, targets, weights), all indexed as in the whole graph.

        Only the lists of `rows` are valid, and only until the next call or batch. Without `weights`, theirs may be
        anything.
        """

    @abstractmethod
    def pieces(self, side: str, rows: Array, weights: bool) -> Iterator[tuple[Array, Gathered]]:
        """As `gathered`, in order, for as many of `rows` at a time as fit in memory."""

    def near_lists(self, side: str) -> Lists | None:
        return self.snapshot.lists(side)

    def _row(self, v: int, side: str = "out") -> tuple[int, int]:
        begin, end = self.sides[side].row(v)
        return int(begin), int(end)

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
            for rows, (begins, ends, targets, _) in self.pieces(name, chosen, False):
                for v in rows.tolist():
                    others = targets[begins[v] : ends[v]].astype(np.int64)
                    here = np.full(others.size, v, np.int64)
                    found.append((here, others) if name == "out" else (others, here))
        us, vs = (np.concatenate(column) for column in zip(*found, strict=True))
        if not self.directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        order, first = grouped_pairs(us, vs, self.vertices)
        return us[order[first]], vs[order[first]]

    @abstractmethod
    def search(self, tails: Array, heads: Array) -> Search:
        """A search for distinct edges by vertex numbers, sorted by tail and then head."""

    @abstractmethod
    def joined(self, us: Array, vs: Array) -> Array:
        """Whether there is an edge u -> v now, for each pair of vertex numbers; numbers beyond all vertices have
        none.
        """

    def commit(self, change: Change) -> Undo:
        """Apply a prepared batch; returns what `revert` needs."""
        if change.number != self.number + 1:
            raise BatchError(
                f"this change was prepared for snapshot {change.number - 1}, and the graph is at {self.number}"
            )
        undo = Undo(self.edges, self.self_loops, self.negative_arcs, self.changing_ids.saved())
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
        # Each edge once.
        rows = np.flatnonzero(out.vertices <= out.others) if not self.directed else np.arange(out.vertices.size)
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
        kind = self.target_dtype
        old = self.search(us.astype(kind), vs.astype(kind))
        old.find(np.zeros(us.size, np.uint8))
        to = np.arange(self.vertices)
        to[movers] = holes
        us, vs = to[us], to[vs]
        if not self.directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        order = sorted_pairs(us, vs, self.vertices)
        new = self.search(us[order].astype(kind), vs[order].astype(kind))
        for search, action, weights in (
            (old, DELETE, old.old),
            (new, INSERT, old.old[order] if self.weighted else old.old),
        ):
            actions = np.full(us.size, action, np.uint8)
            for name in ("out", "in") if self.directed else ("out",):
                self.sides[name].apply(search.changes(name, actions, weights)[0])

    # As a whole

    @abstractmethod
    def frozen(self) -> Graph:
        """The graph as it is now; later batches do not change it."""

    @abstractmethod
    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store, in natural order."""

    def store_into(self, path: Path) -> None:
        """Write the graph as it is now into a store, in any order."""
        self.save(path)

    def __contains__(self, v: Any) -> bool:
        with self.reading():
            return super().__contains__(v)

    def busiest(self) -> Any:
        with self.reading():
            if not self.vertices:
                raise UnknownVertexError("the graph has no vertex")
            return self.ids.users(np.array([self.snapshot.out_degrees().argmax()]))[0]

    def info(self) -> dict[str, Any]:
        with self.reading():
            return self._facts()

    def _facts(self) -> dict[str, Any]:
        return {
            "path": None,
            "batch": self.number,
            "vertices": self.vertices,
            "edges": self.edges,
            "arcs": self.arcs,
            "directed": self.directed,
            "weighted": self.weighted,
            "weight_type": str(self.snapshot.weight_dtype) if self.weighted else None,
            "edge_bytes": self.edge_bytes,
            "ids": self.changing_ids.kind,
            "order": self.order,
            "self_loops": self.self_loops,
            "in_edges": True,
            "store_bytes": self.near_bytes,
            "origin": {},
            "sections": {},
        }

    @property
    def near_bytes(self) -> int:
        """Memory that its edges take."""
        return sum(int(lists.bytes) for lists in self._both)

    def __reduce__(self) -> Any:
        """How it is pickled: as it is now, and it changes no more."""
        return self.frozen().__reduce__()

    @property
    def _both(self) -> list[Any]:
        return [self.sides["out"], self.sides["in"]] if self.directed else [self.sides["out"]]

    def close(self) -> None:
        self.team.close()
