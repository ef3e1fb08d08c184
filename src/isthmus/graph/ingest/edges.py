"""Input edges: blocks of arrays, the sources they come from, and the place where they wait.

A source may be a file, a table, arrays or a generator. Ids travel as 64-bit keys (32-bit where they fit): an
integer id is its own key, a string id is represented by a 64-bit hash, and the block also has the strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isthmus.graph.store.files import Array, Scratch, aligned_empty
from isthmus.memory import Budget
from isthmus.threads import Pool

Spilled = tuple[int, int, Any]  # a column in the scratch file: its start, size and type


@dataclass
class EdgeBlock:
    """Some edges in input order. `names` are the distinct string ids among them, where ids are strings."""

    sources: Array
    targets: Array
    weights: Array | None = None
    names: Any = None
    done: int = 0  # progress of this block, in the source's unit

    @property
    def nbytes(self) -> int:
        return self.sources.nbytes + self.targets.nbytes + (0 if self.weights is None else self.weights.nbytes)


Blocks = Generator[EdgeBlock, None, None]  # closing it stops the threads that work on it


class EdgeSource(ABC):
    """A source of edges. A new format is a file with a subclass and a `Format`."""

    name: str = "edges"  # for messages
    directed: bool | None = None  # as the input declares; None: it does not
    both_ways: bool = False  # undirected, and every edge arrives in both directions already
    symmetric: bool = False  # every edge arrives in both directions, which are one edge if the graph becomes undirected
    weighted: bool = False
    ids: Literal["int", "string"] = "int"
    vertices: int | None = None  # if given, the vertices are 0 .. vertices - 1, with or without edges
    edges: int | None = None  # number of edges, if known before reading
    declares_vertices: bool = False  # vertex_blocks() lists every vertex
    replayable: bool = False  # blocks() can be called again at low cost
    signed: bool = False  # keys are two's complement: set while reading
    weight_dtype: str = "float64"  # narrowest type that holds every weight: known after reading
    salt: int = 0  # of the hash that represents string ids
    notes: tuple[str, ...] = ()  # notes to the user about this input
    block_memory: int | None = None  # most bytes for one block and for reading it; None: no limit
    total: int | None = None
    unit: str = "edges"

    @abstractmethod
    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        """The edges in order. Parsing may run in the pool; an error names file and place."""

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        """Ids of vertices that exist even without an edge, in `sources`."""
        yield from ()

    def sample(self, count: int) -> EdgeBlock:
        """About `count` edges drawn evenly; for replayable sources with a known number of edges."""
        raise AssertionError(f"{self.name} has no sample")

    def numbering(self, budget: Budget) -> Any:
        """The source's own Numbering, or None."""
        return None

    def check(self) -> None:  # noqa: B027 - most sources promise nothing
        """Called after the last block: compare the counts with those of a header."""

    def report(self) -> dict[str, Any]:
        """The reader's findings, for the ingest report."""
        return {}

    def origin(self) -> dict[str, Any]:
        """The origin of the edges, for the manifest."""
        return {"input": self.name}


class Waiting:
    """Edges read once and stored for later passes: in memory while the budget allows, then on disk."""

    def __init__(self, budget: Budget, folder: Path) -> None:
        self._budget = budget
        self._quota = budget.left // 2  # later passes need memory, too
        self._folder = folder
        self._scratch: Scratch | None = None
        self._blocks: list[EdgeBlock | list[Spilled | None]] = []
        self.edges = 0

    def add(self, block: EdgeBlock) -> None:
        self.edges += block.sources.size
        if block.nbytes <= self._quota and self._budget.take(block.nbytes):
            self._quota -= block.nbytes
            self._blocks.append(block)
            return
        if self._scratch is None:
            self._scratch = Scratch(self._folder)
        self._blocks.append([self._spill(column) for column in (block.sources, block.targets, block.weights)])

    def _spill(self, column: Array | None) -> Spilled | None:
        """Write a column to the scratch file; columns of a block may differ in size and type."""
        if column is None:
            return None
        assert self._scratch is not None
        aligned = aligned_empty(column.size, column.dtype)
        aligned[:] = column
        return self._scratch.append(aligned), column.size, column.dtype

    @property
    def spilled(self) -> bool:
        return self._scratch is not None

    def __len__(self) -> int:
        return len(self._blocks)

    def size(self, index: int) -> int:
        """Edges in block `index`, without loading it."""
        entry = self._blocks[index]
        if isinstance(entry, EdgeBlock):
            return int(entry.sources.size)
        return entry[0][1] if entry and entry[0] is not None else 0

    def load(self, index: int) -> EdgeBlock:
        """Block `index`, in the order they were added. Safe from several threads."""
        entry = self._blocks[index]
        if isinstance(entry, EdgeBlock):
            return entry
        assert self._scratch is not None
        sources, targets, weights = (None if column is None else self._scratch.read(*column) for column in entry)
        assert sources is not None and targets is not None
        return EdgeBlock(sources, targets, weights)

    def release(self, index: int) -> None:
        """Forget a block that no later pass needs."""
        entry = self._blocks[index]
        if isinstance(entry, EdgeBlock):
            self._budget.give_back(entry.nbytes)
            self._quota += entry.nbytes
        self._blocks[index] = []

    def sample(self, count: int) -> EdgeBlock:
        """About `count` edges, evenly over all blocks; one block is held at a time."""
        step = max(1, self.edges // max(count, 1))
        sources, targets = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        start = 0
        for index in range(len(self)):
            block = self.load(index)
            sources.append(block.sources[start::step].astype(np.uint64))
            targets.append(block.targets[start::step].astype(np.uint64))
            start = (start - block.sources.size) % step
        return EdgeBlock(np.concatenate(sources), np.concatenate(targets))

    def close(self) -> None:
        for index in range(len(self._blocks)):
            self.release(index)
        self._blocks.clear()
        self.edges = 0
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
