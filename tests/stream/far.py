"""A changing graph that says its lists are far: a program gets some lists at a time, and what it did not ask for is
wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.graph.changing.advancing import Gathered
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.changing.packed_lists import PackedLists
from isthmus.stream.context import StreamContext
from isthmus.stream.live import Live
from isthmus.stream.log.unlogged import Unlogged

WITHHELD = {"arrays", "lists", "targets", "weights", "slots", "bits", "weighted"}
NOWHERE = 0xFFFFFFFF  # a target of no list


class FarLists(PackedLists):
    """Lists whose arrays no program of a stream may touch."""

    def __getattribute__(self, name: str) -> Any:
        if name in WITHHELD:
            asking = sys._getframe(1).f_globals["__name__"]
            assert not asking.startswith("isthmus.stream"), f"{asking} asks for {name} of lists that are far"
        return super().__getattribute__(name)


class FarGraph(ChangingGraph):
    """`most`: edges of a piece, unless a single list has more."""

    lists_are_near = False
    most = 50

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for side in self.sides.values():
            side.__class__ = FarLists
        self.draw, self.edges_gathered, self.largest = np.random.default_rng(1), 0, 0
        self._given: dict[str, Gathered] = {}

    def gathered(self, side: str, rows: Any, weights: bool) -> Gathered:
        """Fresh arrays. Lists that were not asked for have random edges; between lists are targets of no vertex."""
        side = self.snapshot.stored(side)
        rows = np.asarray(rows).astype(np.int64)
        assert np.unique(rows).size == rows.size and (rows < self.vertices).all()
        self._spoil(side)
        begins, ends, targets, weights_there = self.sides[side].arrays()
        lengths = ends[rows] - begins[rows]
        fresh_begins, fresh_ends = self._wrong_lists(self.vertices + 1)
        fresh_begins[rows] = 7 + np.cumsum(lengths + 3) - lengths
        fresh_ends[rows] = fresh_begins[rows] + lengths
        room = 20 + int((lengths + 3).sum())
        fresh_targets = np.full(room, NOWHERE, targets.dtype)
        fresh_targets[:7] = self._wrong_targets(7)
        has_weights = weights and self.weighted
        fresh_weights = np.full(room, np.nan if weights_there.dtype.kind == "f" else 99, weights_there.dtype)
        for v, at in zip(rows.tolist(), fresh_begins[rows].tolist(), strict=True):
            fresh_targets[at : at + ends[v] - begins[v]] = targets[begins[v] : ends[v]]
            if has_weights:
                fresh_weights[at : at + ends[v] - begins[v]] = weights_there[begins[v] : ends[v]]
        self._given[side] = found = fresh_begins, fresh_ends, fresh_targets, fresh_weights
        self.edges_gathered += int(lengths.sum())
        self.largest = max(self.largest, int(lengths.sum()))
        return found

    def pieces(self, side: str, rows: Any, weights: bool) -> Iterator[tuple[Any, Gathered]]:
        begins, ends, _, _ = self.sides[side].arrays()
        first = 0
        while first < rows.size:
            before = np.cumsum(ends[rows[first : first + self.most]] - begins[rows[first : first + self.most]])
            last = first + max(1, int(np.searchsorted(before, self.most, side="right")))
            yield rows[first:last], self.gathered(side, rows[first:last], weights)
            first = last
        self._spoil(self.snapshot.stored(side))

    def commit(self, change: Any) -> Any:
        for side in list(self._given):
            self._spoil(side)
        return super().commit(change)

    def _wrong_targets(self, count: int) -> Any:
        return self.draw.integers(0, self.vertices, count)

    def _wrong_lists(self, size: int) -> tuple[Any, Any]:
        begins = self.draw.integers(0, 4, size)
        return begins, begins + self.draw.integers(0, 4, size)

    def _spoil(self, side: str) -> None:
        """What was given before is wrong from now on."""
        if side in self._given:
            begins, ends, targets, weights = self._given.pop(side)
            begins[:], ends[:] = self._wrong_lists(begins.size)
            targets[:7], targets[7:], weights[:] = self._wrong_targets(7), NOWHERE, 99


class Far(Unlogged):
    """A log that opens streams on far lists."""

    def __init__(self, most: int = 50) -> None:
        super().__init__()
        self._most = most

    def changing(self, graph: Any, context: StreamContext) -> FarGraph:
        found = FarGraph(graph, context.threads, context.align)
        found.most = self._most
        return found


def far_stream(graph: Any, programs: Any, most: int = 50, **options: Any) -> Live:
    """A stream whose lists are far. `most`: edges of a piece."""
    return Live(graph, programs, log=Far(most), **options)
