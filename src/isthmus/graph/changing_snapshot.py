"""A changing graph at one moment, as the parts above `graph/` see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.far import FarArray
from isthmus.graph.files import Array
from isthmus.graph.ids import Ids
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot

if TYPE_CHECKING:
    from isthmus.graph.changing import ChangingGraph


class ChangingSnapshot(Snapshot):
    """A changing graph after some number of batches; valid until the next one."""

    def __init__(self, graph: ChangingGraph) -> None:
        out, into = graph.sides["out"], graph.sides["in"]
        self._sides = graph.sides
        self.number, self.path = graph.number, None
        self.vertices, self.edges, self.arcs = out.vertices, graph.edges, out.arcs
        self.directed, self.weighted, self.has_in_edges = graph.directed, graph.weighted, True
        self.self_loops, self.negative_weights = graph.self_loops, graph.negative_arcs > 0
        self.target_dtype = out.targets.dtype
        self.weight_dtype = out.weights.dtype if graph.weighted else None
        self._naming = graph.changing_ids.naming
        assert into.vertices == out.vertices

    @property
    def ids(self) -> Ids:  # type: ignore[override]
        return self._naming.map()

    @property
    def order(self) -> str:  # type: ignore[override]
        return "natural" if self.ids.is_natural else "hub"

    def slots(self, side: str) -> int:
        return self._sides[side].slots

    def lists(self, side: str, verify: bool = True) -> Lists:
        return self._sides[side].lists()

    def far(self, side: str, weights: bool) -> list[FarArray]:
        lists, name = self._sides[side], self.stored(side)
        found = [FarArray(f"{name}.targets", self.target_dtype, lists.slots, memory=lists.targets)]
        if weights and self.weighted:
            found.append(FarArray(f"{name}.weights", self.weight_dtype, lists.slots, memory=lists.weights))
        return found

    def whole(self, array: FarArray, verify: bool = True) -> Array:
        assert array.memory is not None
        return array.memory

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
