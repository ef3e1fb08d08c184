"""The graph object for users: counts, vertex ids, neighbours. Edges stay where they are stored."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isthmus import sizes
from isthmus.checks import flag, path_of
from isthmus.errors import OptionError, StoreError, UnknownVertexError
from isthmus.graph.lists import Lists
from isthmus.graph.order import check_numbers, degrees_of
from isthmus.graph.snapshot import Snapshot, StoredSnapshot
from isthmus.graph.store.files import Array
from isthmus.graph.store.store import MemoryStore, Store
from isthmus.messages import option

ENTRIES_AT_ONCE = 1024  # a binary search reads the remaining entries when they are this few

if TYPE_CHECKING:
    from isthmus.graph.ingest.cleaning import Report


class Graph:
    """An open graph, made by `isthmus.open`, `read`, `ingest` or `generate`. Vertices are named by the ids of the
    input.

    - `vertices` and `edges` are counts; `arcs` counts stored directions, so an undirected edge twice.
    - `directed`, `weighted`, `has_in_edges` and `parallel` (whether parallel edges were kept) say what kind of graph it
      is; `order` is "natural" or "hub".
    - `report` says what `ingest` or `read` has read, dropped and merged; it is None for a graph that was opened.
    - `len(graph)` is the number of vertices, `v in graph` says whether there is a vertex. A graph is a context manager
      that closes it, and offers its edges as an Arrow stream, so pandas, polars, pyarrow and DuckDB read it as a table.
    """

    def __init__(self, store: Store | MemoryStore) -> None:
        if not isinstance(store, Store | MemoryStore):
            raise OptionError(
                "Graph: graphs are made by isthmus.open (of a store), isthmus.read and isthmus.ingest (of edges)"
            )
        self.store = store
        self.snapshot: Snapshot = StoredSnapshot(store)
        self.vertices, self.edges, self.arcs = self.snapshot.vertices, self.snapshot.edges, self.snapshot.arcs
        self.directed, self.weighted, self.order = self.snapshot.directed, self.snapshot.weighted, self.snapshot.order
        self.has_in_edges, self.parallel = self.snapshot.has_in_edges, store.manifest.parallel
        self.ids = self.snapshot.ids
        self.report: Report | None = None  # what ingest read, dropped and merged, if this graph was just ingested

    @property
    def path(self) -> Path | None:
        """The store's folder; None for a graph in memory."""
        return self.store.path

    @property
    def target_bytes(self) -> int:
        return self.snapshot.target_bytes

    @property
    def weight_bytes(self) -> int:
        return self.snapshot.weight_bytes

    @property
    def edge_bytes(self) -> int:
        """Bytes of all stored arcs: targets, and weights if there are any."""
        return self.snapshot.edge_bytes

    def __len__(self) -> int:
        return self.vertices

    def __contains__(self, v: Any) -> bool:
        try:
            self.ids.number(v)
        except UnknownVertexError:
            return False
        return True

    def __repr__(self) -> str:
        return repr(self.snapshot)

    def __reduce__(self) -> Any:
        """How it is pickled: a stored graph is opened again by its path, one in memory takes its arrays along."""
        self.store.read("out.offsets", 0, 0)  # an error if it is closed
        return Graph, (self.store,), {"report": self.report}

    def reading(self) -> AbstractContextManager[Any]:
        """Held while something is read, by a run for example, so that a changing graph does not change meanwhile."""
        return nullcontext()

    def _read(self, section: str, begin: int, end: int) -> Array:
        entries = self.store.read(section, begin, end)
        if section.endswith("targets"):
            check_numbers(self.store, section, entries)
        return entries

    def entries(self, section: str, begin: int, end: int) -> Array:
        """A part of a section such as out.targets, checked."""
        return self._read(section, begin, end)

    def near_lists(self, side: str) -> Lists | None:
        """The positions of all lists of a side if they are in memory with gaps between them; None: they are in a
        section.
        """
        return None

    def _row(self, v: int, side: str = "out") -> tuple[int, int]:
        begin, end = (int(at) for at in self.store.read(f"{side}.offsets", v, v + 2))
        if not 0 <= begin <= end <= self.arcs:
            raise StoreError(
                f"{self.store}: {side}.offsets of vertex {v} are {begin}:{end}, outside 0:{self.arcs}; run "
                f"isthmus verify"
            )
        return begin, end

    def out_degree(self, v: Any) -> int:
        """Arcs that leave `v`; an undirected self loop is one arc."""
        with self.reading():
            begin, end = self._row(self.ids.number(v))
        return end - begin

    def in_degree(self, v: Any) -> int:
        """Arcs that enter `v`."""
        if not self.directed:
            return self.out_degree(v)
        self.need_in_edges("in_degree")
        with self.reading():
            begin, end = self._row(self.ids.number(v), "in")
        return end - begin

    def degree(self, v: Any) -> int:
        """Edges at `v`: in plus out for a directed graph. An undirected self loop counts once."""
        with self.reading():
            return self.out_degree(v) + (self.in_degree(v) if self.directed else 0)

    def busiest(self) -> Any:
        """The vertex with the largest out-degree; among equals, the first in the order of the store."""
        best, most = -1, -1
        at_once = sizes.now.degree_vertices
        for first in range(0, self.vertices, at_once):
            degrees = degrees_of(self.store, "out", first, min(first + at_once, self.vertices))
            at = int(degrees.argmax())
            if degrees[at] > most:
                best, most = first + at, int(degrees[at])
        if best < 0:
            raise UnknownVertexError("the graph has no vertex")
        return self.ids.users(np.array([best]))[0]

    def neighbors(self, v: Any) -> Array:
        """The vertices that `v` has an edge to, ascending; one for each parallel edge."""
        return self._list(v, "out")

    def predecessors(self, v: Any) -> Array:
        """The vertices that have an edge to `v`, ascending; one for each parallel edge."""
        if not self.directed:
            return self._list(v, "out")
        self.need_in_edges("predecessors")
        return self._list(v, "in")

    def _list(self, v: Any, side: str) -> Array:
        with self.reading():
            begin, end = self._row(self.ids.number(v), side)
            targets = self._read(f"{side}.targets", begin, end)
            return np.sort(self.ids.users(targets))

    def edge_weights(self, u: Any, v: Any) -> Array:
        """Weights of the edges from `u` to `v`, one for each parallel edge; ones for an unweighted graph."""
        with self.reading():
            low, high = self._arcs_between(self.ids.number(u), self.ids.number(v))
            if not self.weighted:
                return np.ones(high - low, np.int32)
            return np.array(self._read("out.weights", low, high))

    def has_edge(self, u: Any, v: Any) -> bool:
        """Whether there is an edge from `u` to `v`; False if the graph lacks one of them."""
        try:
            with self.reading():
                low, high = self._arcs_between(self.ids.number(u), self.ids.number(v))
        except UnknownVertexError:
            return False
        return low < high

    def _arcs_between(self, u: int, v: int) -> tuple[int, int]:
        """The range of arcs from number `u` to number `v`; empty if there are none."""
        begin, end = self._row(u)
        low, high = self._first(begin, end, v), self._first(begin, end, v + 1)
        if low > high:
            raise StoreError(f"{self.store}: the list of vertex {u} in out.targets is not sorted; run isthmus verify")
        return low, high

    def _first(self, begin: int, end: int, target: int) -> int:
        """The first arc of a sorted list whose target is at least `target`, by binary search: a hub's list is not read
        whole.
        """
        while end - begin > ENTRIES_AT_ONCE:
            middle = (begin + end) // 2
            if int(self.store.read("out.targets", middle, middle + 1)[0]) < target:
                begin = middle + 1
            else:
                end = middle
        targets = self.store.read("out.targets", begin, end)
        return begin + int(np.count_nonzero(targets < np.uint64(target)))

    def need_in_edges(self, what: str) -> None:
        """Raise StoreError if the graph was stored without in-edges."""
        if not self.has_in_edges:
            again = f"ingest it again without {option('in_edges', False)}"
            raise StoreError(f"{what} needs in-edges, and {self} was stored without them; {again}")

    def info(self) -> dict[str, Any]:
        """What `isthmus info --json` prints: counts, types, sizes in bytes, where the graph came from, and its
        sections.
        """
        manifest = self.store.manifest
        return {
            "path": str(self.path) if self.path else None,
            "vertices": self.vertices,
            "edges": self.edges,
            "arcs": self.arcs,
            "directed": self.directed,
            "weighted": self.weighted,
            "weight_type": manifest.sections["out.weights"].dtype if self.weighted else None,
            "edge_bytes": self.edge_bytes,
            "ids": manifest.ids,
            "order": self.order,
            "self_loops": manifest.self_loops,
            "in_edges": self.has_in_edges,
            "store_bytes": self._stored_bytes(),
            "origin": manifest.origin,
            "sections": {
                name: {"type": s.dtype, "count": s.count, "bytes": s.bytes} for name, s in manifest.sections.items()
            },
        }

    def _stored_bytes(self) -> int:
        """Size of the graph's files, or of its arrays in memory."""
        if self.path is None:
            return sum(section.bytes for section in self.store.manifest.sections.values())
        return sum(file.stat().st_size for file in self.path.iterdir())

    def session(self, **options: Any) -> Any:
        """A session on this graph: what it loads stays in memory from one algorithm to the next. See
        `isthmus.session`.
        """
        # Late: runtime imports graph.
        return importlib.import_module("isthmus.runtime.session").session(self, **options)

    def degrees(self, memory: str | int | None = None) -> Any:
        """The degrees of all vertices, as a result: `degree`, and for a directed graph `in_degree` and `out_degree`."""
        return importlib.import_module("isthmus.runtime.results.degrees").degrees(self, memory)

    def subgraph(self, vertices: Any, memory: str | int | None = None) -> Graph:
        """The graph of some vertices and all edges between them, in memory."""
        return importlib.import_module("isthmus.graph.export.subgraph").subgraph(self, vertices, memory)  # type: ignore[no-any-return]

    def edge_batches(self, memory: str | int | None = None) -> Any:
        """The edges as an Arrow reader of batches, each read when it is taken: source, target and weight, with the
        users' ids.
        """
        return converting().edge_batches(self, memory)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The edges as an Arrow stream, by which pyarrow, pandas, polars, DuckDB and others read them."""
        return self.edge_batches().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """All edges as an Arrow table: source, target and, of a weighted graph, weight; an undirected edge once."""
        return self.edge_batches().read_all()

    def to_scipy(self) -> Any:
        """The adjacency matrix as a SciPy CSR array; row and column i belong to the i-th smallest id. Entries are
        weights, or True.
        """
        return converting().to_scipy(self)

    def to_networkx(self) -> Any:
        """A NetworkX graph, with weights as the attribute `weight`; a multigraph if there are parallel edges."""
        return converting().to_networkx(self)

    def export(self, path: Any, format: str | None = None, **options: Any) -> None:
        """Write the edges to a file: text, Parquet, Arrow, Matrix Market and others by the ending of its name. See
        `isthmus.export`.
        """
        from isthmus.graph.export.export import export  # late: it imports graphs

        export(self, path, format, **options)

    def close(self) -> None:
        """Close the files. The graph cannot be used afterwards; results stay valid."""
        self.store.close()
        self.ids.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def converting() -> Any:
    """The module that converts graphs. It imports graphs, so it is loaded when it is used."""
    return importlib.import_module("isthmus.graph.export.conversion")


def open_graph(path: str | Path, verify: bool = True) -> Graph:
    """Open a store. The sizes in its manifest are checked against its files; edges stay on disk.

    All that is read later is compared with its checksums; `verify=False` trusts the disk. Raises StoreError if there is
    no store, or if it is damaged.
    """
    if isinstance(path, Graph):
        raise OptionError(f"open: expected a path, got {path}, which is open already")
    return Graph(Store(path_of("open", path), flag("verify", verify)))
