"""Arcs on their way from blocks of edges to lists: one set of buckets for out-edges, one for in-edges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.graph.ingest.buckets import Buckets
from isthmus.graph.ingest.cleaning import PARALLEL, Cleaning
from isthmus.graph.ingest.edges import Blocks, EdgeBlock
from isthmus.graph.ingest.numbering import number_dtype
from isthmus.graph.ingest.weight_types import WeightTypes
from isthmus.graph.store.files import Array
from isthmus.graph.store.list_writer import ListWriter, combined, write_lists
from isthmus.graph.store.writer import Writer
from isthmus.kernels.store import arc_keys
from isthmus.memory import Budget
from isthmus.progress import Progress
from isthmus.threads import Pool


@dataclass
class EdgeCounts:
    """Counts over all edges that were scattered."""

    self_loops: int = 0
    negative: bool = False  # whether a weight is negative
    imbalance: int = 0  # the sum of `imbalance` of all blocks


class ArcSides:
    """`ways` has the direction of each side: forward, backward, or both for an undirected graph."""

    def __init__(self, ways: dict[str, int], vertices: int, cleaning: Cleaning, weights: WeightTypes) -> None:
        self._ways, self._vertices, self._weights = ways, vertices, weights
        self._bits = max(1, (vertices - 1).bit_length())
        self._parallel, self._drop = PARALLEL[cleaning.parallel], cleaning.self_loops == "drop"
        self._buckets: dict[str, Buckets] = {}

    @property
    def spilled(self) -> bool:
        return any(buckets.spilled for buckets in self._buckets.values())

    @property
    def arcs(self) -> int:
        """The arcs in the buckets."""
        return sum(buckets.keys for buckets in self._buckets.values())

    def open(self, sample: EdgeBlock, most: int, budget: Budget, folder: Path, threads: int) -> None:
        """Make buckets for at most `most` edges, divided as a sample of them is."""
        for side, way in self._ways.items():
            keys, _, _ = packed(sample, self._bits, way, self._drop, None)
            arcs = most * (2 if way == arc_keys.BOTH else 1)
            high = (1 << 2 * self._bits) - 1
            self._buckets[side] = Buckets(
                keys, arcs, high, self._weights.sorted, self._parallel, budget, folder, threads
            )

    def scatter(self, blocks: Blocks, pool: Pool, balance: bool) -> EdgeCounts:
        """Put all edges into the buckets; `balance`: also sum up their imbalance."""
        total = EdgeCounts(negative=self._weights.negative)
        for found in pool.map(lambda item: self._scatter_block(*item, balance), enumerate(blocks)):
            total.self_loops += found.self_loops
            total.negative |= found.negative
            total.imbalance += found.imbalance
        return total

    def _scatter_block(self, index: int, block: EdgeBlock, balance: bool) -> EdgeCounts:
        dtype = self._weights.sorted
        if dtype is not None:
            block.weights = self._weights.converted(block.weights, dtype)
        found = EdgeCounts(imbalance=imbalance(block) if balance else 0)
        for side, way in self._ways.items():
            keys, weights, found.self_loops = packed(block, self._bits, way, self._drop, dtype)
            self._buckets[side].add(index, keys, weights)
        found.negative = block.weights is not None and bool((block.weights < 0).any())
        return found

    def write(self, writer: Writer, pool: Pool, progress: Progress) -> dict[str, ListWriter]:
        """Sort the arcs of each side and write them as lists."""
        written, targets = {}, number_dtype(self._vertices)
        for side, buckets in self._buckets.items():
            written[side] = ListWriter(writer, side, self._vertices, buckets.keys, targets, self._weights.stored)
            finish = self._weights.finished(combined(self._bits, targets, self._parallel), side == "in")
            write_lists(written[side], buckets, pool, finish, progress)
            buckets.close()
        return written

    def close(self) -> None:
        for buckets in self._buckets.values():
            buckets.close()


def packed(block: EdgeBlock, bits: int, way: int, drop: bool, dtype: Any) -> tuple[Array, Array | None, int]:
    """(Keys, weights or None, self loops) of a block's arcs."""
    most = block.sources.size * (2 if way == arc_keys.BOTH else 1)
    keys = np.empty(most, np.uint64)
    weights = None if dtype is None else block.weights
    packed_weights = None if dtype is None else np.empty(most, dtype)
    count, loops = arc_keys.pack(block.sources, block.targets, weights, bits, way, drop, keys, packed_weights)
    return keys[:count], None if packed_weights is None else packed_weights[:count], loops


def imbalance(block: EdgeBlock) -> int:
    """A hash; over all edges it sums to 0 modulo 2**64 if each is there in both directions, with the same weight."""
    weights = None
    if block.weights is not None:
        weights = block.weights.view(f"i{block.weights.itemsize}").astype(np.int64, copy=False)
    return int(arc_keys.imbalance(block.sources, block.targets, weights))
