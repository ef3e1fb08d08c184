"""A changing graph in memory at one moment; valid until the next batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.graph.changing.advancing_snapshot import AdvancingSnapshot
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import Array

if TYPE_CHECKING:
    from isthmus.graph.changing.changing_graph import ChangingGraph


class ChangingSnapshot(AdvancingSnapshot):
    """Lists with gaps, and all edges in memory."""

    def __init__(self, graph: ChangingGraph) -> None:
        super().__init__(graph)
        self._sides = graph.sides
        assert graph.sides["in"].vertices == self.vertices

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
