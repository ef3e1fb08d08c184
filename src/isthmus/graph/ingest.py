"""Any edge source into a graph, within a memory budget.

1. Read the source into blocks; where vertex numbers are not known from the start, the blocks wait (in memory,
   then on disk) until all ids have been seen.
2. Number the vertices.
3. Part the arcs into buckets by source, in-arcs by target.
4. Sort each bucket, merge parallel arcs, write the lists.

Every step asks the same ledger for memory and takes the disk when it says no.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.buckets import Buckets
from isthmus.graph.edges import EdgeBlock, EdgeSource, Waiting
from isthmus.graph.files import Array
from isthmus.graph.generate import Generator
from isthmus.graph.lists import Lists, ListWriter, combined, write_lists
from isthmus.graph.manifest import Manifest
from isthmus.graph.names import HashCollision, Names
from isthmus.graph.numbering import SAMPLE, Dense, Numbering, number_dtype, number_integers
from isthmus.graph.store import MemoryStore, Store
from isthmus.graph.writer import Writer
from isthmus.kernels import arcs
from isthmus.memory import Budget
from isthmus.progress import SILENT, Progress
from isthmus.threads import Pool

PARALLEL = {"keep": arcs.KEEP, "drop": arcs.FIRST, "first": arcs.FIRST, "min": arcs.MIN, "sum": arcs.SUM}
SALTS = 3  # a second hash collision in a row is a fault, not bad luck
MOST_VERTICES = 1 << 32


@dataclass(frozen=True)
class Cleaning:
    """What becomes of the edges on the way in. Nothing is dropped unless asked for."""

    directed: bool | None = None  # None: as the input says of itself, else directed
    self_loops: str = "keep"
    parallel: str = "keep"
    in_edges: bool = True
    weight_dtype: str | None = None

    def __post_init__(self) -> None:
        if self.self_loops not in ("keep", "drop"):
            raise OptionError(f"self loops: expected keep or drop, got {self.self_loops!r}")
        if self.parallel not in PARALLEL:
            raise OptionError(f"parallel edges: expected one of {', '.join(PARALLEL)}, got {self.parallel!r}")
        if self.weight_dtype not in (None, "int32", "float32", "float64"):
            raise OptionError(f"weight type: expected int32, float32 or float64, got {self.weight_dtype!r}")


@dataclass
class Report:
    """What was read, dropped and merged."""

    edges_read: int = 0
    self_loops_seen: int = 0
    self_loops_dropped: int = 0
    parallel_merged: int = 0
    spilled: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    reader: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Ingest:
    """One run of the four steps."""

    def __init__(
        self, source: EdgeSource, writer: Writer, cleaning: Cleaning, budget: Budget, pool: Pool,
        progress: Progress = SILENT,
    ) -> None:  # fmt: skip
        self.source, self.writer, self.cleaning = source, writer, cleaning
        self.budget, self.pool, self.progress = budget, pool, progress
        self.report = Report()
        said = source.directed if source.directed is not None else True
        self.directed = said if cleaning.directed is None else cleaning.directed
        if source.both_ways and self.directed:
            raise OptionError(f"{source.name} is undirected and holds each edge in both directions; it cannot become directed")
        self._open = ExitStack()
        self._clock = time.perf_counter()

    def _lap(self, name: str) -> None:
        now = time.perf_counter()
        self.report.seconds[name] = self.report.seconds.get(name, 0.0) + now - self._clock
        self._clock = now

    def run(self) -> Store | MemoryStore:
        with self._open:
            if self.writer.folder is None:
                self.folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="isthmus-")))
            else:
                self.folder = self.writer.folder
            numbering, blocks, sample, most = self._numbered()
            if numbering.vertices > MOST_VERTICES:
                raise GraphFormatError(
                    f"{self.source.name}: {numbering.vertices} vertices; ingest sorts arcs of at most {MOST_VERTICES}"
                )
            numbering.write(self.writer)
            manifest = self._lists(numbering, blocks, sample, most)
            numbering.close()
            self._lap("sort and write")
            store = self.writer.commit(manifest)
            self._lap("commit")
            return store

    def _numbered(self) -> tuple[Numbering, Iterator[EdgeBlock], Callable[[], EdgeBlock], int]:
        """The numbering, the edges as vertex numbers, a sample of them, and how many there are at most."""
        source = self.source
        given = source.numbering(self.budget)
        if given is None and source.vertices is not None:
            given = Dense(source.vertices, source.name)
        if given is not None and source.replayable and source.edges is not None:
            return given, self._read(given.number), lambda: given.number(source.sample(SAMPLE)), source.edges
        waiting = Waiting(self.budget, self.folder)
        self._open.callback(waiting.close)
        if given is None and source.ids == "string":
            given = self._number_strings(waiting)
        elif given is None:
            extent = self._collect(waiting)
            self._lap("read")
            given = number_integers(source, waiting, extent, self.budget, self.folder, self.pool)
        else:
            self._collect(waiting)
        self._open.callback(given.close)
        self._lap("number vertices")
        self.report.spilled |= waiting.spilled

        def sample() -> EdgeBlock:
            one = Waiting(self.budget, self.folder)
            one.add(waiting.sample(SAMPLE))
            return next(iter(given.numbered(one, self.pool)))

        return given, given.numbered(waiting, self.pool), sample, waiting.edges

    def _read(self, check: Callable[[EdgeBlock], EdgeBlock]) -> Iterator[EdgeBlock]:
        """Blocks of the source, with progress, counted; then its own check."""
        self.progress.stage("reading", self.source.total, self.source.unit)
        for block in self.source.blocks(self.pool):
            self.report.edges_read += block.sources.size
            self.progress.advance(block.done)
            yield check(block)
        self.source.check()
        self.report.reader = self.source.report()
        if self.report.edges_read == 0:
            self.report.warnings.append(f"{self.source.name}: no edges")

    def _collect(self, waiting: Waiting) -> tuple[int, int]:
        """Read everything; returns the lowest and the highest id."""
        low, high = [], []
        for block in self._read(lambda block: block):
            if block.sources.size:
                waiting.add(block)
                low.append(extreme(block, np.min))
                high.append(extreme(block, np.max))
        for vertices in self.source.vertex_blocks():
            if vertices.sources.size:
                low.append(extreme(vertices, np.min))
                high.append(extreme(vertices, np.max))
        if not low:
            return 0, -1
        pick = 0 if self.source.signed else 1
        return min(pair[pick] for pair in low), max(pair[pick] for pair in high)

    def _number_strings(self, waiting: Waiting) -> Numbering:
        for salt in range(SALTS):
            self.source.salt = salt
            names = Names(self.budget, self.writer.folder, self.pool.threads)
            try:
                for block in self._read(lambda block: block):
                    names.add(block.names)
                    waiting.add(EdgeBlock(block.sources, block.targets, block.weights))
                for block in self.source.vertex_blocks():
                    names.add(block.names)
                self._lap("read")
                return names.write(self.writer, salt, self.source.name, self.pool)
            except HashCollision:
                if salt == SALTS - 1 or not self.source.replayable:
                    raise GraphFormatError(f"{self.source.name}: two ids share a hash; read it again") from None
                self.report.edges_read = 0
                waiting.close()
            finally:
                names.close()
        raise AssertionError("unreachable")

    def _lists(self, numbering: Numbering, blocks: Iterator[EdgeBlock], sample: Callable[[], EdgeBlock], most: int) -> Manifest:
        n = numbering.vertices
        bits = max(1, (n - 1).bit_length())
        computed = isinstance(self.source, Generator) and self.source.range is not None
        symmetrise = not self.directed and not self.source.both_ways
        ways = {"out": arcs.BOTH if symmetrise else arcs.FORWARD}
        if self.directed and self.cleaning.in_edges:
            ways["in"] = arcs.BACKWARD
        how = PARALLEL[self.cleaning.parallel]
        drop = self.cleaning.self_loops == "drop"
        few = sample()
        travels = self._weight_dtype() if self.source.weighted else None
        sides: dict[str, Buckets] = {}
        for side, way in ways.items():
            keys, _, _ = packed(few, bits, way, drop, None)
            twice = most * (2 if way == arcs.BOTH else 1)
            buckets = Buckets(
                keys, twice, (1 << 2 * bits) - 1, travels, how, self.budget, self.folder, self.pool.threads
            )
            self._open.callback(buckets.close)
            sides[side] = buckets
        self.report.spilled |= any(buckets.spilled for buckets in sides.values())

        def scatter(item: tuple[int, EdgeBlock]) -> int:
            index, block = item
            loops = 0
            for side, way in ways.items():
                keys, weights, loops = packed(block, bits, way, drop, travels)
                sides[side].add(index, keys, weights)
            return loops

        loops = sum(self.pool.map(scatter, enumerate(blocks)))
        self._lap("scatter")
        self.report.self_loops_seen = loops
        self.report.self_loops_dropped = loops if drop else 0
        targets = number_dtype(n)
        dtype = self.source.range.dtype if computed else travels
        self.progress.stage("sorting", sum(buckets.keys for buckets in sides.values()), "arcs")
        written: dict[str, ListWriter] = {}
        for side, buckets in sides.items():
            written[side] = ListWriter(self.writer, side, n, buckets.keys, targets, dtype)
            finish = combined(bits, targets, how)
            if computed:
                finish = self._weighed(finish, side == "in")
            write_lists(written[side], buckets, self.pool, finish, self.progress)
            buckets.close()
        out = written["out"]
        self.report.parallel_merged = out.merged if self.directed else out.merged // 2
        return Manifest(
            vertices=n,
            edges=out.arcs if self.directed else (out.arcs + out.self_loops) // 2,
            arcs=out.arcs,
            directed=self.directed,
            weighted=dtype is not None,
            ids=numbering.kind,
            order=getattr(numbering, "order", "natural"),
            self_loops=out.self_loops,
            parallel=how == arcs.KEEP,
            in_edges="in" in written,
        )

    def _weight_dtype(self) -> str:
        """The type weights are stored in: as asked, else the narrowest that holds all of them exactly."""
        found, asked = self.source.weight_dtype, self.cleaning.weight_dtype
        if asked == "int32" and found != "int32":
            raise OptionError(f"{self.source.name}: some weights are no whole numbers of 32 bits; int32 cannot hold them")
        if found == "int32" and asked is None and self.cleaning.parallel == "sum":
            return "float64"  # a sum of 32-bit weights may need more than 32 bits
        return asked or found

    def _weighed(self, finish: Callable[[Array, Array | None], Lists], backward: bool) -> Callable[[Array, Array | None], Lists]:
        source = self.source
        assert isinstance(source, Generator)

        def weighed(keys: Array, weights: Array | None) -> Lists:
            lists = finish(keys, weights)
            lists.weights = source.weigh(lists, backward)
            return lists

        return weighed


def packed(block: EdgeBlock, bits: int, way: int, drop: bool, dtype: Any) -> tuple[Array, Array | None, int]:
    """Keys and weights (None: none travel) of a block's arcs, and the self loops among its edges."""
    most = block.sources.size * (2 if way == arcs.BOTH else 1)
    keys = np.empty(most, np.uint64)
    weights = None if dtype is None else np.asarray(block.weights, dtype)
    kept = None if dtype is None else np.empty(most, dtype)
    count, loops = arcs.pack(block.sources, block.targets, weights, bits, way, drop, keys, kept)
    return keys[:count], None if kept is None else kept[:count], loops


def extreme(block: EdgeBlock, pick: Any) -> tuple[int, int]:
    """The lowest or highest id of a block, read as signed and as unsigned numbers."""
    columns = [column for column in (block.sources, block.targets) if column.size]
    unsigned = [int(pick(column)) for column in columns]
    signed = [int(pick(column.astype(np.uint64).view(np.int64))) for column in columns] if columns[0].itemsize == 8 else unsigned
    choose = min if pick is np.min else max
    return choose(signed), choose(unsigned)
