"""One side of a changing graph on disk: stored arrays, and the overlay of what has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isthmus.graph.changing.packed_lists import SideChanges
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.overlay.overlay import Overlay, patched
from isthmus.graph.store.files import Array
from isthmus.threads import Team


@dataclass
class Base:
    """Stored arrays of a side: targets, weights if there are any, and the first target of each block."""

    arrays: list[FarArray]
    sections: list[int]  # their numbers for the graph's reader
    fences: Array


class OverlaySide:
    """The lists of one side, which batches change. Every batch makes a new overlay; the old one stays valid."""

    def __init__(self, base: Base, overlay: Overlay, team: Team) -> None:
        self.base, self.overlay, self.team = base, overlay, team

    @property
    def vertices(self) -> int:
        return self.overlay.vertices

    @property
    def arcs(self) -> int:
        return self.overlay.arcs

    @property
    def weighted(self) -> bool:
        return self.overlay.weighted

    @property
    def weight_dtype(self) -> Any:
        return self.overlay.added_weights.dtype

    @property
    def bytes(self) -> int:
        return self.overlay.bytes + self.base.fences.nbytes

    def lists(self) -> Lists:
        return self.overlay.lists

    def row(self, v: int) -> tuple[int, int]:
        return int(self.overlay.begins[v]), int(self.overlay.begins[v + 1])

    def far(self) -> list[FarArray]:
        """Targets, and weights if there are any, as they are now."""
        added = (self.overlay.added_heads, self.overlay.added_weights)
        return [patched(base, self.overlay, entries) for base, entries in zip(self.base.arrays, added, strict=False)]

    def apply(self, changes: SideChanges) -> None:
        """Change the lists. Edges to delete or reweigh must exist, edges to insert must not."""
        self.overlay = self.overlay.changed(changes, self.team)

    def add_vertices(self, count: int) -> None:
        self.overlay = self.overlay.with_vertices(self.vertices + count)

    def drop_vertices(self, count: int) -> None:
        self.overlay = self.overlay.with_vertices(self.vertices - count)
