"""A graph at one moment: the only view of a graph that the parts above `graph/` use.

A stored graph, on disk or in memory, is one snapshot with the number 0. A changing graph has a new snapshot after every
batch. A snapshot has the counts of vertices and edges, their types, the position of each vertex's list, and the far
arrays that a link is opened to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.far import FarArray, bounds_of_targets, bounds_of_weights
from isthmus.graph.ids import Ids
from isthmus.graph.lists import Lists
from isthmus.graph.order import counted_in_degrees, degrees_of, whole_order
from isthmus.graph.store.files import Array
from isthmus.graph.store.store import CHECKSUMS, MemoryStore, Store


class Snapshot(ABC):
    """Counts, types, ids, lists and far arrays of a graph. `number`: how many batches were applied before."""

    number: int = 0
    path: Path | None = None  # of the store, if there is one
    vertices: int
    edges: int  # an undirected edge counts once
    arcs: int  # stored directions of edges
    directed: bool
    weighted: bool
    has_in_edges: bool  # an undirected graph's out-edges are its in-edges
    order: str  # natural or hub
    self_loops: int
    negative_weights: bool
    target_dtype: Any
    weight_dtype: Any  # None: unweighted
    ids: Ids

    @property
    def target_bytes(self) -> int:
        return int(np.dtype(self.target_dtype).itemsize)

    @property
    def weight_bytes(self) -> int:
        return int(np.dtype(self.weight_dtype).itemsize) if self.weighted else 0

    @property
    def edge_bytes(self) -> int:
        """Bytes of all arcs of one side: targets, and weights if there are any."""
        return self.arcs * (self.target_bytes + self.weight_bytes)

    @property
    def on_disk(self) -> bool:
        """Whether its edges are in files."""
        return self.path is not None

    @property
    def staging_bytes(self) -> int:
        """Near memory that a link to its edges takes beside its buffers."""
        return 0

    def stored(self, side: str) -> str:
        """The side that stores these edges: always "out" for an undirected graph."""
        return side if self.directed else "out"

    @abstractmethod
    def slots(self, side: str) -> int:
        """Entries of a side's far arrays, those in gaps included."""

    def list_bytes(self, side: str) -> int:
        """Bytes of near memory for a side's lists."""
        return 16 * self.vertices

    @abstractmethod
    def lists(self, side: str, verify: bool = True) -> Lists:
        """The positions of each vertex's edges in a side's far arrays. `verify`: compare blocks with their
        checksums.
        """

    @abstractmethod
    def far(self, side: str, weights: bool) -> list[FarArray]:
        """A side's targets, followed by its weights if requested."""

    @abstractmethod
    def whole(self, array: FarArray, verify: bool = True) -> Array:
        """All of a far array, in memory."""

    @abstractmethod
    def naturals(self) -> Array | None:
        """Each vertex's place in natural order; None if that is its number."""

    @abstractmethod
    def from_naturals(self) -> Array | None:
        """The vertex at each place in natural order; None if that is its number."""

    @abstractmethod
    def out_degrees(self) -> Array:
        """Out-degrees as uint32, computed with little extra memory."""

    @abstractmethod
    def in_degrees(self) -> Array:
        """The same for in-degrees. They are counted where in-edges are not stored."""

    @abstractmethod
    def identity(self) -> str:
        """A text that is equal for snapshots with the same contents and different for others."""

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        where = f" at {self.path}" if self.path else " in memory"
        return (
            f"<Graph: {self.vertices} vertices, {self.edges} {kind} "
            f"edges{', weighted' if self.weighted else ''}{where}>"
        )


class StoredSnapshot(Snapshot):
    """A graph as a store holds it, on disk or in memory: its lists have no gaps."""

    def __init__(self, store: Store | MemoryStore) -> None:
        manifest = store.manifest
        self._store = store
        self.path = store.path
        self.vertices, self.edges, self.arcs = manifest.vertices, manifest.edges, manifest.arcs
        self.directed, self.weighted, self.order = manifest.directed, manifest.weighted, manifest.order
        self.has_in_edges = not manifest.directed or manifest.in_edges
        self.self_loops, self.negative_weights = manifest.self_loops, manifest.negative_weights
        self.target_dtype = np.dtype(manifest.sections["out.targets"].dtype)
        self.weight_dtype = np.dtype(manifest.sections["out.weights"].dtype) if manifest.weighted else None
        self.ids = Ids(store.only("ids.", "order."))

    def list_bytes(self, side: str) -> int:
        return 8 * (self.vertices + 1)

    def slots(self, side: str) -> int:
        return self.arcs

    def lists(self, side: str, verify: bool = True) -> Lists:
        return Lists.of(self.offsets(side, verify))

    def offsets(self, side: str, verify: bool = True) -> Array:
        """Where each list begins, and where the last one ends."""
        name = f"{self.stored(side)}.offsets"
        offsets = np.ascontiguousarray(self._store.read(name, verify=verify), np.int64)
        if offsets[0] != 0 or offsets[-1] != self.arcs or (offsets[1:] < offsets[:-1]).any():
            raise StoreError(f"{self._store}: section {name} does not ascend from 0 to {self.arcs}; run isthmus verify")
        return offsets

    def far(self, side: str, weights: bool) -> list[FarArray]:
        kinds = ("targets", "weights") if weights and self.weighted else ("targets",)
        return [self._far(f"{self.stored(side)}.{kind}") for kind in kinds]

    def _far(self, name: str) -> FarArray:
        section = self._store.manifest.sections[name]
        if isinstance(self._store, Store):
            file, sums = self._store.file(name), self._store.file(name + CHECKSUMS)
            weights = name.endswith("weights")
            bounds = (
                bounds_of_weights(section.dtype, self.negative_weights)
                if weights
                else bounds_of_targets(section.dtype, self.vertices)
            )
            return FarArray(name, np.dtype(section.dtype), section.count, None, file, sums, section.checksums, bounds)
        return FarArray(name, np.dtype(section.dtype), section.count, memory=self._store.read(name))

    def whole(self, array: FarArray, verify: bool = True) -> Array:
        if array.memory is not None:
            return array.memory
        from isthmus.graph.store.block_checks import read_whole  # late: opening a graph loads no compiled code

        return read_whole(array, verify)

    def naturals(self) -> Array | None:
        return whole_order(self._store, "order.to_natural") if self.order == "hub" else None

    def from_naturals(self) -> Array | None:
        return whole_order(self._store, "order.from_natural") if self.order == "hub" else None

    def out_degrees(self) -> Array:
        return self._degrees("out")

    def in_degrees(self) -> Array:
        return self._degrees(self.stored("in")) if self.has_in_edges else counted_in_degrees(self._store)

    def _degrees(self, side: str) -> Array:
        degrees, at_once = np.empty(self.vertices, np.uint32), sizes.now.degree_vertices
        for first in range(0, self.vertices, at_once):
            last = min(first + at_once, self.vertices)
            degrees[first:last] = degrees_of(self._store, side, first, last)
        return degrees

    def identity(self) -> str:
        return self._store.identity()
