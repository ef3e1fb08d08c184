"""An Isthmus store as input: to reorder or clean it, or to drop sections. Ids are copied.

Every block is compared with its checksum, so that damage is not copied into a new store with valid checksums.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import Blocks, EdgeBlock, EdgeSource, Waiting
from isthmus.graph.ingest.numbering import in_pool, number_dtype
from isthmus.graph.order import check_numbers, hub_order, whole_order
from isthmus.graph.reading.binary_lists import ListSource
from isthmus.graph.reading.format import Format
from isthmus.graph.store.files import Array
from isthmus.graph.store.store import MemoryStore, Store
from isthmus.graph.store.writer import Writer
from isthmus.memory import Budget
from isthmus.threads import Pool


def open_path(path: Path, options: ReadOptions) -> EdgeSource:
    return StoreSource(Store(path))


ISTHMUS = Format("isthmus", open_path, endings=(".isthmus",), words="a store", uses=("allow_negative",), place=7)


class StoreSource(ListSource):
    """The out-edges of a store, renumbered into natural or hub order."""

    def __init__(self, store: Store | MemoryStore, order: str = "natural") -> None:
        self.name, self.order = str(store.path or "the graph"), order
        self.store = store
        manifest = self.store.manifest
        self.vertices, self.edges, self.total = manifest.vertices, manifest.arcs, manifest.arcs
        self.directed, self.weighted = manifest.directed, manifest.weighted
        self.both_ways = not manifest.directed
        if self.weighted:
            self.weight_dtype = manifest.sections["out.weights"].dtype

    def offsets(self, first: int, count: int) -> Array:
        return self.store.read("out.offsets", first, first + count, verify=True)

    def arcs(self, first: int, count: int) -> tuple[Array, Array | None]:
        targets = self.store.read("out.targets", first, first + count, verify=True)
        check_numbers(self.store, "out.targets", targets)
        return targets, self.store.read("out.weights", first, first + count, verify=True) if self.weighted else None

    def origin(self) -> dict[str, Any]:
        """The origin recorded in the store: reordering does not change it."""
        return self.store.manifest.origin

    def numbering(self, budget: Budget) -> Any:
        return Renumbered(self.store, self.order, budget)

    def report(self) -> dict[str, Any]:
        return {"format": "isthmus"}


class Renumbered:
    """A numbering of the vertices of a store in another order."""

    def __init__(self, store: Store | MemoryStore, order: str, budget: Budget) -> None:
        self._store, self.order = store, order
        self.vertices, self.kind = store.manifest.vertices, store.manifest.ids
        self._budget, self._held = budget, 0
        self._map: Array | None = None  # stored number -> new number
        if store.manifest.order == order:
            self._to_natural = whole_order(store, "order.to_natural") if order == "hub" else None
            return
        width = np.dtype(number_dtype(self.vertices)).itemsize
        self._held = self.vertices * (2 * width + 16)
        with budget.holding(self._held, "renumbering the vertices"):
            if order == "hub":
                self._to_natural = hub_order(store).astype(number_dtype(self.vertices))
                self._map = np.empty_like(self._to_natural)
                self._map[self._to_natural] = np.arange(self.vertices, dtype=self._map.dtype)
            else:
                self._to_natural = None
                self._map = whole_order(store, "order.to_natural")
        self._held = self.vertices * 2 * width
        budget.take(self._held)

    def write(self, writer: Writer) -> None:
        for name, section in self._store.manifest.sections.items():
            if name.startswith("ids."):
                writer.section(name, section.dtype, section.count)
                for at in range(0, section.count, sizes.now.copied_entries):
                    writer.append(
                        name, self._store.read(name, at, min(at + sizes.now.copied_entries, section.count), verify=True)
                    )
        if self._to_natural is not None:
            inverse = np.empty_like(self._to_natural)
            inverse[self._to_natural] = np.arange(self.vertices, dtype=inverse.dtype)
            for name, array in (("order.to_natural", self._to_natural), ("order.from_natural", inverse)):
                writer.section(name, array.dtype, array.size)
                writer.append(name, array)

    def number(self, block: EdgeBlock) -> EdgeBlock:
        if self._map is None:
            return block
        return EdgeBlock(self._map[block.sources], self._map[block.targets], block.weights, None, block.done)

    def numbered(self, edges: Waiting, pool: Pool) -> Blocks:
        return in_pool(edges, pool, self.number)

    def close(self) -> None:
        self._budget.give_back(self._held)
        self._held = 0
