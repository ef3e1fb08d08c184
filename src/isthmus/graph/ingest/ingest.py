"""Ingest: any edge source into a graph, within a memory budget.

1. Read the source into blocks. If vertex numbers are not known from the start, the blocks wait (in memory, then on
   disk) until all ids have been read.
2. Number the vertices.
3. Distribute the arcs into buckets by source, in-arcs by target.
4. Sort each bucket, merge parallel arcs, write the lists.

Every step asks the same budget for memory, and uses the disk when it refuses.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.checks import flag
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.ingest.buckets import Buckets
from isthmus.graph.ingest.edges import Blocks, EdgeBlock, EdgeSource, Waiting
from isthmus.graph.ingest.generators import Generator
from isthmus.graph.ingest.names import HashCollision, Names
from isthmus.graph.ingest.numbering import SAMPLE, Dense, Numbering, number_dtype, number_integers
from isthmus.graph.store.files import Array
from isthmus.graph.store.list_writer import ListWriter, SortedLists, combined, write_lists
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.store import MemoryStore, Store
from isthmus.graph.store.writer import Writer
from isthmus.kernels.compile.compile_clock import COMPILING
from isthmus.kernels.store import arc_keys
from isthmus.memory import Budget
from isthmus.messages import option
from isthmus.progress import SILENT, Progress
from isthmus.threads import Pool

PARALLEL = {
    "keep": arc_keys.KEEP,
    "drop": arc_keys.FIRST,
    "first": arc_keys.FIRST,
    "min": arc_keys.MIN,
    "sum": arc_keys.SUM,
}
SALTS = 3  # tries; repeated hash collisions are a fault, not chance
MOST_VERTICES = 1 << 32
INT32 = np.iinfo(np.int32)
Finish = Callable[[Array, "Array | None"], SortedLists]


@dataclass(frozen=True)
class Cleaning:
    """What ingest does with the edges. Nothing is dropped unless requested."""

    directed: bool | None = None  # None: as the input declares, else directed
    self_loops: str = "keep"  # edges from a vertex to itself: keep or drop
    parallel: str = "keep"  # of parallel edges: keep all, drop all but the first, or take their min or sum
    in_edges: bool = True  # store a directed graph's edges by target as well, which some algorithms need
    weight_dtype: str | None = None  # int32, int64, float32 or float64; None: what the weights need

    def __post_init__(self) -> None:
        if self.directed is not None:
            object.__setattr__(self, "directed", flag("directed", self.directed))
        flag("in_edges", self.in_edges)
        if self.self_loops not in ("keep", "drop"):
            raise OptionError(f"self_loops: expected keep or drop, got {self.self_loops!r}")
        if self.parallel not in PARALLEL:
            raise OptionError(f"parallel: expected one of {', '.join(PARALLEL)}, got {self.parallel!r}")
        if self.weight_dtype not in (None, "int32", "int64", "float32", "float64"):
            raise OptionError(f"weight_dtype: expected int32, int64, float32 or float64, got {self.weight_dtype!r}")


@dataclass
class Report:
    """Counts of what was read, dropped and merged."""

    edges_read: int = 0  # edges of the input
    self_loops_seen: int = 0  # edges from a vertex to itself
    self_loops_dropped: int = 0  # of these, left out
    parallel_merged: int = 0  # edges left out because another one joins the same vertices
    spilled: bool = False  # a temporary file was needed, as the edges did not fit in memory
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    warnings: list[str] = field(default_factory=list)  # notes about the input
    reader: dict[str, Any] = field(default_factory=dict)  # what the format has counted besides

    def as_dict(self) -> dict[str, Any]:
        """All counts, as `isthmus ingest --json` prints them."""
        return asdict(self)


class Ingest:
    """One run of the four steps."""

    def __init__(
        self,
        source: EdgeSource,
        writer: Writer,
        cleaning: Cleaning,
        budget: Budget,
        pool: Pool,
        progress: Progress = SILENT,
    ) -> None:
        self.source, self.writer, self.cleaning = source, writer, cleaning
        self.budget, self.pool, self.progress = budget, pool, progress
        self.report = Report()
        said = source.directed if source.directed is not None else True
        self.directed = said if cleaning.directed is None else cleaning.directed
        if source.both_ways and self.directed:
            raise OptionError(
                f"{source.name} is undirected and holds each edge in both directions; it cannot become directed"
            )
        self.both_ways = source.both_ways or (source.symmetric and not self.directed)
        self._open = ExitStack()
        self._clock, self._compiled = time.perf_counter(), COMPILING.seconds

    def _lap(self, name: str) -> None:
        now, compiled = time.perf_counter(), COMPILING.seconds
        for part, seconds in (
            (name, now - self._clock - (compiled - self._compiled)),
            ("compile", compiled - self._compiled),
        ):
            self.report.seconds[part] = self.report.seconds.get(part, 0.0) + seconds
        self._clock, self._compiled = now, compiled

    def run(self) -> Store | MemoryStore:
        with self._open:
            if self.writer.folder is None:
                self.folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="isthmus-")))
            else:
                self.folder = self.writer.folder
            numbering, blocks, sample, most = self._numbered()
            self._open.callback(numbering.close)
            if numbering.vertices > MOST_VERTICES:
                raise GraphFormatError(
                    f"{self.source.name}: {numbering.vertices} vertices; ingest handles at most {MOST_VERTICES}"
                )
            numbering.write(self.writer)
            self._open.callback(blocks.close)  # before the files that its threads read
            manifest = self._lists(numbering, blocks, sample, most)
            numbering.close()
            self._lap("sort and write")
            store = self.writer.commit(manifest)
            self._lap("commit")
            return store

    def _numbered(self) -> tuple[Numbering, Blocks, Callable[[], EdgeBlock], int]:
        """(The numbering, the edges as vertex numbers, a sample of them, an upper bound of their number)."""
        source = self.source
        given = source.numbering(self.budget)
        if given is None and source.vertices is not None:
            given = Dense(source.vertices, source.name)
        if given is not None and source.replayable and source.edges is not None:
            return given, self._read(given.number), lambda: given.number(source.sample(SAMPLE)), source.edges
        waiting, declared = Waiting(self.budget, self.folder), Waiting(self.budget, self.folder)
        self._open.callback(waiting.close)
        self._open.callback(declared.close)
        if given is None and source.ids == "string":
            given = self._number_strings(waiting)
        else:
            extent = self._collect(waiting, declared)
            self._lap("read")
            if given is None:
                given = number_integers(source, waiting, declared, extent, self.budget, self.folder, self.pool)
            else:
                given.check(extent)
            self.report.spilled |= declared.spilled
            declared.close()
        self._lap("number vertices")
        self.report.spilled |= waiting.spilled

        def sample() -> EdgeBlock:
            one = Waiting(self.budget, self.folder)
            try:
                one.add(waiting.sample(SAMPLE))
                few: EdgeBlock = next(given.numbered(one, self.pool))
                return few
            finally:
                one.close()

        return given, given.numbered(waiting, self.pool), sample, waiting.edges

    def _read(self, check: Callable[[EdgeBlock], EdgeBlock]) -> Blocks:
        """Read blocks of the source, count edges and report progress; at the end run the source's own check."""
        self.progress.stage("reading", self.source.total, self.source.unit)
        self.source.room = max(self.budget.left // 4, sizes.now.least_room)
        self.report.edges_read = 0
        for block in self.source.blocks(self.pool):
            self.report.edges_read += block.sources.size
            self.progress.advance(block.done)
            yield check(block)
        self.source.check()
        self.report.reader = self.source.report()
        if self.report.edges_read == 0:
            self.report.warnings.append(f"{self.source.name}: no edges")
        else:
            self.report.warnings += [note for note in self.source.notes if note not in self.report.warnings]

    def _collect(self, waiting: Waiting, declared: Waiting) -> tuple[int, int]:
        """Read everything; returns the lowest and the highest id."""
        low, high = [], []

        def keep(block: EdgeBlock, where: Waiting) -> None:
            if block.sources.size:
                where.add(block)
                low.append(extreme(block, np.min))
                high.append(extreme(block, np.max))

        for block in self._read(lambda block: block):
            keep(block, waiting)
        for block in self.source.vertex_blocks():
            keep(block, declared)
        if not low:
            return 0, -1
        pick = 0 if self.source.signed else 1
        return min(pair[pick] for pair in low), max(pair[pick] for pair in high)

    def _number_strings(self, waiting: Waiting) -> Numbering:
        for salt in range(SALTS):
            self.source.salt = salt
            names = Names(self.budget, self.folder)
            try:
                for block in self._read(lambda block: block):
                    names.add(block.names)
                    waiting.add(EdgeBlock(block.sources, block.targets, block.weights))
                for block in self.source.vertex_blocks():
                    names.add(block.names)
                self._lap("read")
                # Another salt changes the hashes and not the ids, so the ids are written once.
                return names.write(self.writer if salt == 0 else None, salt, self.source.name, self.pool)
            except HashCollision:
                if salt == SALTS - 1 or not self.source.replayable:
                    raise GraphFormatError(f"{self.source.name}: two ids share a hash; read it again") from None
                waiting.close()
            finally:
                names.close()
        raise AssertionError("unreachable")

    def _lists(self, numbering: Numbering, blocks: Blocks, sample: Callable[[], EdgeBlock], most: int) -> Manifest:
        n = numbering.vertices
        bits = max(1, (n - 1).bit_length())
        computed = self.source.range if isinstance(self.source, Generator) else None
        symmetrise = not self.directed and not self.both_ways
        ways = {"out": arc_keys.BOTH if symmetrise else arc_keys.FORWARD}
        if self.directed and self.cleaning.in_edges:
            ways["in"] = arc_keys.BACKWARD
        parallel = PARALLEL[self.cleaning.parallel]
        drop = self.cleaning.self_loops == "drop"
        few = sample()
        stored = self._weight_dtype() if self.source.weighted else None
        travels = self._summed_dtype() if stored and parallel == arc_keys.SUM else stored
        doubles = symmetrise and self.cleaning.parallel in ("keep", "sum") and not isinstance(self.source, Generator)
        sides: dict[str, Buckets] = {}
        for side, way in ways.items():
            keys, _, _ = packed(few, bits, way, drop, None)
            twice = most * (2 if way == arc_keys.BOTH else 1)
            buckets = Buckets(
                keys, twice, (1 << 2 * bits) - 1, travels, parallel, self.budget, self.folder, self.pool.threads
            )
            self._open.callback(buckets.close)
            sides[side] = buckets
        self.report.spilled |= any(buckets.spilled for buckets in sides.values())

        def scatter(item: tuple[int, EdgeBlock]) -> tuple[int, bool, int]:
            index, block = item
            loops = 0
            if travels is not None:
                block.weights = self._converted(block.weights, travels)
            unequal = imbalance(block) if doubles else 0
            for side, way in ways.items():
                keys, weights, loops = packed(block, bits, way, drop, travels)
                sides[side].add(index, keys, weights)
            return loops, block.weights is not None and bool((block.weights < 0).any()), unequal

        loops, negative, unequal = 0, computed is not None and computed.low < 0, 0
        for more, below, other in self.pool.map(scatter, enumerate(blocks)):
            loops += more
            negative |= below
            unequal += other
        self._lap("scatter")
        if doubles and unequal % (1 << 64) == 0 and self.report.edges_read > loops:
            self.report.warnings.append(self._doubled())
        if self.both_ways:  # each edge was read from both ends, a self loop once
            self.report.edges_read = (self.report.edges_read + loops) // 2
        self.report.self_loops_seen = loops
        self.report.self_loops_dropped = loops if drop else 0
        targets = number_dtype(n)
        dtype = computed.dtype if computed else stored
        self.progress.stage("sorting", sum(buckets.keys for buckets in sides.values()), "arcs")
        written: dict[str, ListWriter] = {}
        for side, buckets in sides.items():
            written[side] = ListWriter(self.writer, side, n, buckets.keys, targets, dtype)
            finish = combined(bits, targets, parallel)
            if computed:
                finish = self._weighed(finish, side == "in")
            elif stored is not None and parallel == arc_keys.SUM:
                finish = self._narrowed(finish, stored)
            write_lists(written[side], buckets, self.pool, finish, self.progress)
            buckets.close()
        out = written["out"]
        merged_loops = loops - self.report.self_loops_dropped - out.self_loops
        self.report.parallel_merged = out.merged if self.directed else (out.merged + merged_loops) // 2
        return Manifest(
            vertices=n,
            edges=out.arcs if self.directed else (out.arcs + out.self_loops) // 2,
            arcs=out.arcs,
            directed=self.directed,
            weighted=dtype is not None,
            ids=numbering.kind,
            order=getattr(numbering, "order", "natural"),
            self_loops=out.self_loops,
            parallel=parallel == arc_keys.KEEP,
            in_edges="in" in written,
            origin=self._origin(),
            negative_weights=negative,
        )

    def _origin(self) -> dict[str, Any]:
        """Where the edges came from and how they were cleaned; the earlier cleaning of a store is kept unless it is
        cleaned again.
        """
        done = {"self_loops": self.cleaning.self_loops, "parallel": self.cleaning.parallel}
        return {**done, **self.source.origin(), **{name: choice for name, choice in done.items() if choice != "keep"}}

    def _doubled(self) -> str:
        """The note about an input that lists every edge twice, once from each end."""
        what = "adds its weight twice" if self.cleaning.parallel == "sum" else "stores it twice"
        return (
            f"{self.source.name}: every edge is listed in both directions, and {option('directed', False)} {what}; "
            f"give {option('parallel', 'drop')} to keep one edge per pair"
        )

    def _weight_dtype(self) -> str:
        """The stored type of weights: as requested, else the narrowest that holds all of them, and their sums,
        exactly.
        """
        found, asked = self.source.weight_dtype, self.cleaning.weight_dtype
        if asked in ("int32", "int64") and found not in ("int32", asked):
            raise OptionError(
                f"{self.source.name}: some weights are not {asked[3:]}-bit whole numbers; {asked} cannot hold them"
            )
        if self.cleaning.parallel != "sum" or asked not in (None, "int64"):
            return asked or found
        if found == "int64" and asked is None:
            self.report.warnings.append(
                f"{self.source.name}: sums of whole weights beyond 32 bits are stored as float64"
            )
        elif found == "int64":
            instead = option("weight_dtype", "float64")
            raise OptionError(
                f"{self.source.name}: sums of whole weights beyond 32 bits may not fit int64; give {instead}"
            )
        return self._summed_dtype()

    def _summed_dtype(self) -> str:
        """The type that adds weights: int64 holds the sum of up to 2**32 weights of 32 bits."""
        return "int64" if self.source.weight_dtype == "int32" else "float64"

    def _converted(self, weights: Array | None, dtype: str) -> Array:
        """Weights converted to another type; an error if one does not fit."""
        assert weights is not None
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.asarray(weights, dtype)
        bad = ~np.isfinite(found)
        if dtype == "int32":  # a sum may exceed it
            bad = (weights < INT32.min) | (weights > INT32.max) | (weights != np.rint(weights))
        if bad.any():
            raise GraphFormatError(f"{self.source.name}: a weight of {weights[bad.argmax()]} does not fit {dtype}")
        return found

    def _narrowed(self, finish: Finish, dtype: Any) -> Finish:
        """A `finish` that stores 64-bit sums of weights as `dtype`."""

        def narrowed(keys: Array, weights: Array | None) -> SortedLists:
            lists = finish(keys, weights)
            lists.weights = self._converted(lists.weights, dtype)
            return lists

        return narrowed

    def _weighed(self, finish: Finish, backward: bool) -> Finish:
        source = self.source
        assert isinstance(source, Generator)

        def weighed(keys: Array, weights: Array | None) -> SortedLists:
            lists = finish(keys, weights)
            lists.weights = source.weigh(lists, backward)
            return lists

        return weighed


def packed(block: EdgeBlock, bits: int, way: int, drop: bool, dtype: Any) -> tuple[Array, Array | None, int]:
    """(Keys, weights or None, self loops) of a block's arcs."""
    most = block.sources.size * (2 if way == arc_keys.BOTH else 1)
    keys = np.empty(most, np.uint64)
    weights = None if dtype is None else block.weights
    kept = None if dtype is None else np.empty(most, dtype)
    count, loops = arc_keys.pack(block.sources, block.targets, weights, bits, way, drop, keys, kept)
    return keys[:count], None if kept is None else kept[:count], loops


def imbalance(block: EdgeBlock) -> int:
    """A hash sum that is 0 modulo 2**64 over all edges if every one is there in both directions, with the same
    weight.
    """
    weights = None
    if block.weights is not None:
        weights = block.weights.view(f"i{block.weights.itemsize}").astype(np.int64, copy=False)
    return int(arc_keys.imbalance(block.sources, block.targets, weights))


def extreme(block: EdgeBlock, pick: Any) -> tuple[int, int]:
    """The lowest or highest id of a block, as a signed and as an unsigned number."""
    columns = [column for column in (block.sources, block.targets) if column.size]
    signed = [column.view(np.int64) if column.itemsize == 8 else column for column in columns]
    choose = min if pick is np.min else max
    return choose(int(pick(column)) for column in signed), choose(int(pick(column)) for column in columns)
