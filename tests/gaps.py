"""Graphs in memory whose lists have gaps behind them, filled with what must not be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isthmus.graph.far import FarArray
from isthmus.graph.graph import Graph
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import StoredSnapshot
from isthmus.graph.store.store import MemoryStore

BLOCKS = 3000  # slots: a gap of whole blocks of 4 KB


class GappedSnapshot(StoredSnapshot):
    """A graph in memory whose far arrays have gaps. Its store has no offsets, so that nobody reads them past
    `lists`.
    """

    def __init__(self, store: MemoryStore, sides: dict[str, Lists]) -> None:
        super().__init__(store)
        self._sides = sides

    def list_bytes(self, side: str) -> int:
        return 16 * self.vertices

    def slots(self, side: str) -> int:
        return self._sides[self.stored(side)].slots

    def lists(self, side: str, verify: bool = False) -> Lists:
        return self._sides[self.stored(side)]

    def far(self, side: str, weights: bool) -> list[FarArray]:
        return [replace(array, count=self.slots(side)) for array in super().far(side, weights)]

    def out_degrees(self) -> Any:
        return self._sides["out"].degrees(np.uint32)


def gapped(graph: Graph, seed: int = 1) -> Graph:
    """The same graph, its lists spread over longer arrays; the original stays as it is."""
    read, names = graph.store.read, graph.store.manifest.sections
    sides = {side: spread(read(f"{side}.offsets"), seed) for side in ("out", "in") if f"{side}.offsets" in names}
    arrays = {name: read(name) for name in names if name.split(".")[0] not in sides}
    for side, lists in sides.items():
        for kind in ("targets", "weights"):
            if f"{side}.{kind}" in names:
                arrays[f"{side}.{kind}"] = moved(read(f"{side}.{kind}"), lists)
    found = Graph(MemoryStore(graph.store.manifest, arrays))
    found.snapshot = GappedSnapshot(found.store, sides)
    return found


def spread(offsets: Any, seed: int) -> Lists:
    """A gap behind every other list or so, some of whole blocks, and one at the very end."""
    draw = np.random.default_rng(seed)
    degrees = np.diff(offsets)
    gaps = draw.integers(-4, 6, degrees.size).clip(0)
    gaps[draw.random(degrees.size) < 4 / (degrees.size + 1)] += BLOCKS
    gaps[-1:] += 7
    ends_of_gaps = np.cumsum(degrees + gaps)
    begins = np.append(0, ends_of_gaps[:-1])[: degrees.size].astype(np.int64)
    return Lists(begins, begins + degrees, int(ends_of_gaps[-1]) if degrees.size else 0)


def moved(entries: Any, lists: Lists) -> Any:
    """The entries of gap-free lists where `lists` has them; elsewhere the worst there is."""
    worst = {"f": lambda: np.nan, "i": lambda: np.iinfo(entries.dtype).min, "u": lambda: np.iinfo(entries.dtype).max}
    found = np.full(lists.slots, worst[entries.dtype.kind](), entries.dtype)
    places = np.repeat(lists.begins - lists.arcs_before(), lists.degrees()) + np.arange(entries.size)
    found[places] = entries
    return found
