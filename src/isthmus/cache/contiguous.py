"""Lists one after the other (HyTGraph, journal version, section VII): the layout of its vertex-centric cache.

A refresh drops lists that are not chosen any more, moves the lists that stay to the front of the memory, in place, and
reserves space behind them for those that are still to come. So every list that was chosen has a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isthmus.cache.layout import Layout
from isthmus.graph.lists import Lists
from isthmus.kernels.cache import list_layout
from isthmus.link.link import Array


class Contiguous(Layout):
    """Lists of one side in the memory of this machine."""

    def __init__(
        self, memory: Array, keys: int, dtypes: tuple[Any, Any], longest: int, team: Any, index: Array
    ) -> None:
        """`index`: near memory of a device for an index of the keys; this machine needs none of it."""
        super().__init__(memory, dtypes)
        self.longest = self.capacity
        self.chosen, self.held = np.zeros(keys, np.uint8), np.zeros(keys, np.uint8)
        self.begins = np.zeros(keys, np.uint32 if self.capacity < 1 << 32 else np.int64)
        self.order = np.empty(min(keys, self.capacity), np.uint32)  # vertices, in the order of their lists in memory
        self.count = 0  # lists that have a place

    def replace(self, found: Array, lists: Sequence[Lists], heat: Callable[[Array], Array], changed: Array) -> Array:
        (own,), self.chosen = lists, found
        weights = self.targets[:0] if self.weights is None else self.weights
        marks, weighted = (self.chosen, self.held), self.weights is not None
        self.count = list_layout.lay_out(
            self.order, self.count, *marks, *own.arrays, self.begins, self.targets, weights, weighted
        )
        return changed[:0]

    def forget(self) -> None:
        """The lists keep their places."""
        self.held[:] = 0
