"""A changing graph on disk at one moment, as the parts above `graph/` see it. Valid also after later batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.arrivals import read_whole
from isthmus.graph.extent_reader import DEPTH, ExtentReader
from isthmus.graph.far import FarArray
from isthmus.graph.files import Array
from isthmus.graph.ids import Ids
from isthmus.graph.lists import Lists
from isthmus.graph.patched_reader import PatchedReader
from isthmus.graph.snapshot import Snapshot

if TYPE_CHECKING:
    from isthmus.graph.overlay_graph import OverlayGraph

CHANNELS = 3  # of a link


class OverlaySnapshot(Snapshot):
    """The stored graph with the overlay of some batch."""

    def __init__(self, graph: OverlayGraph) -> None:
        self._far = {name: side.far() for name, side in graph.sides.items()}
        self._lists = {name: side.lists() for name, side in graph.sides.items()}
        self.number, self.path = graph.number, None
        self.vertices, self.edges, self.arcs = graph.sides["out"].vertices, graph.edges, graph.sides["out"].arcs
        self.directed, self.weighted, self.has_in_edges = graph.directed, graph.weighted, True
        self.self_loops, self.negative_weights = graph.self_loops, graph.negative_arcs > 0
        self.target_dtype, self.weight_dtype = graph.target_dtype, graph.weight_dtype
        self._naming = graph.changing_ids.naming

    @property
    def on_disk(self) -> bool:
        return True

    @property
    def staging_bytes(self) -> int:
        return CHANNELS * sizes.now.staging

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        return self._naming.map()

    @property
    def order(self) -> str:  # type: ignore[override]
        return "natural" if self.ids.is_natural else "hub"

    def list_bytes(self, side: str) -> int:
        return 8 * (self.vertices + 1)

    def slots(self, side: str) -> int:
        return self.arcs

    def lists(self, side: str, verify: bool = True) -> Lists:
        return self._lists[side]

    def far(self, side: str, weights: bool) -> list[FarArray]:
        return self._far[side] if weights else self._far[side][:1]

    def whole(self, array: FarArray, verify: bool = True) -> Array:
        """All of a far array in memory; for modelled devices, whose host has the edges."""
        assert array.patch is not None
        if not array.patch.overlay.changes:
            return read_whole(array.patch.base, verify)
        reader = ExtentReader([array.patch.base], DEPTH, 1, verify)
        try:
            return PatchedReader(reader, [array], [0]).entries(0, 0, array.count)
        finally:
            reader.close()

    def naturals(self) -> Array | None:
        return None if self.ids.is_natural else np.asarray(self.ids.places(np.arange(self.vertices)))

    def from_naturals(self) -> Array | None:
        return None if self.ids.is_natural else np.asarray(self.ids.numbers(0, self.vertices))

    def out_degrees(self) -> Array:
        return self.lists("out").degrees(np.uint32)

    def identity(self) -> str:
        raise StoreError("a changing graph has no fixed contents; save it, and use the store")

    def __repr__(self) -> str:
        return super().__repr__().replace(" in memory>", " on disk>")
