"""A changing graph on disk at one moment; valid also after later batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus import sizes
from isthmus.graph.changing.advancing_snapshot import AdvancingSnapshot
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.overlay.patched_reader import PatchedReader
from isthmus.graph.store.block_checks import read_whole
from isthmus.graph.store.extent_reader import DEPTH, ExtentReader
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.overlay.overlay_graph import OverlayGraph

CHANNELS = 3  # of a link


class OverlaySnapshot(AdvancingSnapshot):
    """The stored graph with the overlay of some batch: lists without gaps, and far arrays that are patched when they
    are read.
    """

    def __init__(self, graph: OverlayGraph) -> None:
        super().__init__(graph)
        self._far = {name: side.far() for name, side in graph.sides.items()}
        self._lists = {name: side.lists() for name, side in graph.sides.items()}

    @property
    def on_disk(self) -> bool:
        return True

    @property
    def staging_bytes(self) -> int:
        return CHANNELS * sizes.now.staging

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

    def __repr__(self) -> str:
        return super().__repr__().replace(" in memory>", " on disk>")
