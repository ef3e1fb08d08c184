"""How a list cache lays out its memory: the interface, and what both layouts share.

The ranking chooses lists; a layout gives them places, keeps those that stay, and fills the places of the others when
their lists are delivered. HyTGraph lays lists out one after the other (`contiguous.py`), Grapin in chunks
(`chunks.py`): a refresh moves different lists, and which of them find space differs too, so both are as published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from isthmus.cache.mover import Attached, Index, Mover
from isthmus.engines.engine import Delivery, Rows
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

# Vertices of a range that are looked up at once; a range of vertices without edges can be as long as the graph.
AT_ONCE = 1 << 16


class Layout:
    """Near memory for lists, and an index by key. Lists move only while it is attached."""

    places: Any = None  # of deliveries on a GPU, where they have no begins: where all lists begin, by vertex
    attached: Attached | None = None
    capacity: int  # entries
    longest: int  # entries of the longest list that it can hold
    chosen: Array  # marks by key: the list is held, or will be once it has crossed the link
    held: Array  # marks by key: the list's place has been filled
    begins: Array  # by key, where the list's place begins

    def __init__(self, memory: Array, dtypes: tuple[Any, Any]) -> None:
        """`dtypes`: of targets, and of weights (None: there are none)."""
        target, weight = np.dtype(dtypes[0]), None if dtypes[1] is None else np.dtype(dtypes[1])
        self.entry = entry = target.itemsize + (0 if weight is None else weight.itemsize)  # bytes
        self.capacity = memory.size // entry // 8 * 8  # so that weights are aligned
        self._weights_at = self.capacity * target.itemsize
        self.targets = memory[: self._weights_at].view(target)
        self.weights = None if weight is None else memory[self._weights_at : self.capacity * entry].view(weight)

    @property
    def mover(self) -> Mover:
        assert self.attached is not None, "lists move only while a run or a stream is attached"
        return self.attached.mover

    @property
    def near(self) -> list[Array]:
        """Targets and, if there are any, weights."""
        return [self.targets] if self.weights is None else [self.targets, self.weights]

    def attach(self, attached: Attached | None) -> None:
        """A run or a stream begins; None: it ends."""
        self.attached = attached

    def replace(self, found: Array, lists: Sequence[Lists], heat: Callable[[Array], Array], changed: Array) -> Array:
        """Go over to the lists that were found; returns the keys of those that have a place now and have yet to be
        filled, if the layout knows them.

        `lists` of each side; `heat` tells how often the lists of some keys were used; `changed`: keys of lists that are
        not as they were when they were filled.
        """
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the content of all lists."""
        raise NotImplementedError

    def begins_of(self, keys: Array) -> Array:
        return np.asarray(self.begins[keys], np.int64)

    def keep(self, delivery: Delivery, offset: int) -> None:
        """Fill the places of lists that have just been delivered whole, of a side whose keys begin at `offset`."""
        lists, weights = delivery.task.side.lists.arrays, delivery.weights
        own = slice(offset, offset + lists[0].size)
        index = Index(self.chosen[own], self.held[own], self.begins[own])
        pairs = [(delivery.targets, self.targets)]
        if self.weights is not None and weights is not None:
            pairs.append((weights, self.weights))
        for rows in pieces(delivery):
            self.mover.keep(rows, lists, index, pairs)


def pieces(delivery: Delivery) -> Iterator[tuple[Array, Array, Array, Array]]:
    """The rows of a delivery; for ranges, all vertices in them, a bounded number at a time."""
    edges = delivery.edges
    if delivery.whole is None:
        assert isinstance(edges, Rows)
        yield edges.vertices, edges.begins, edges.weight_begins, edges.lengths
        return
    ranges, lists = delivery.whole, delivery.task.side.lists
    for k in range(ranges.first.size):
        for first in range(int(ranges.first[k]), int(ranges.last[k]), AT_ONCE):
            last = min(first + AT_ONCE, int(ranges.last[k]))
            low = np.maximum(lists.begins[first:last], ranges.begin[k])
            high = np.minimum(lists.ends[first:last], ranges.end[k])
            yield np.arange(first, last), low - ranges.base[k], low - ranges.weight_base[k], high - low
