"""A graph that takes batches at one moment, as the parts above `graph/` see it: what those in memory and those on disk
have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.ids import Ids
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.changing.advancing import AdvancingGraph


class AdvancingSnapshot(Snapshot):
    """A graph after some number of batches."""

    def __init__(self, graph: AdvancingGraph) -> None:
        out: Any = graph.sides["out"]
        self.number, self.path = graph.number, None
        self.vertices, self.edges, self.arcs = out.vertices, graph.edges, out.arcs
        self.directed, self.weighted, self.has_in_edges = graph.directed, graph.weighted, True
        self.self_loops, self.negative_weights = graph.self_loops, graph.negative_arcs > 0
        self.target_dtype, self.weight_dtype = graph.target_dtype, graph.weight_dtype
        self._naming = graph.changing_ids.naming

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        return self._naming.map()

    @property
    def order(self) -> str:  # type: ignore[override]
        return "natural" if self.ids.is_natural else "hub"

    def naturals(self) -> Array | None:
        return None if self.ids.is_natural else np.asarray(self.ids.places(np.arange(self.vertices)))

    def from_naturals(self) -> Array | None:
        return None if self.ids.is_natural else np.asarray(self.ids.numbers(0, self.vertices))

    def out_degrees(self) -> Array:
        return self.lists("out").degrees(np.uint32)

    def in_degrees(self) -> Array:
        return self.lists("in").degrees(np.uint32)

    def identity(self) -> str:
        raise StoreError("a changing graph has no fixed contents; save it, and use the store")
