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
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.ingest.arc_sides import ArcSides
from isthmus.graph.ingest.cleaning import Cleaning, Report
from isthmus.graph.ingest.edges import Blocks, EdgeBlock, EdgeSource, Waiting
from isthmus.graph.ingest.generators import Generator
from isthmus.graph.ingest.names import HashCollision, Names
from isthmus.graph.ingest.numbering import SAMPLE, Dense, Numbering, number_integers
from isthmus.graph.ingest.weight_types import WeightTypes
from isthmus.graph.store.list_writer import ListWriter
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.store import MemoryStore, Store
from isthmus.graph.store.writer import Writer
from isthmus.kernels.compile.compile_clock import COMPILING
from isthmus.kernels.store import arc_keys
from isthmus.memory import Budget
from isthmus.messages import option
from isthmus.progress import SILENT, Progress
from isthmus.threads import Pool

SALTS = 3  # tries; repeated hash collisions are a fault, not chance
MOST_VERTICES = 1 << 32


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
        self.source.block_memory = max(self.budget.left // 4, sizes.now.least_block_memory)
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
        """Distribute the arcs into buckets, sort them, and write the lists."""
        symmetrise = not self.directed and not self.both_ways
        ways = {"out": arc_keys.BOTH if symmetrise else arc_keys.FORWARD}
        if self.directed and self.cleaning.in_edges:
            ways["in"] = arc_keys.BACKWARD
        few = sample()
        weights = WeightTypes(self.source, self.cleaning, self.report.warnings)
        sides = ArcSides(ways, numbering.vertices, self.cleaning, weights)
        self._open.callback(sides.close)
        sides.open(few, most, self.budget, self.folder, self.pool.threads)
        self.report.spilled |= sides.spilled
        doubles = symmetrise and self.cleaning.parallel in ("keep", "sum") and not isinstance(self.source, Generator)
        found = sides.scatter(blocks, self.pool, balance=doubles)
        self._lap("scatter")
        if doubles and found.imbalance % (1 << 64) == 0 and self.report.edges_read > found.self_loops:
            self.report.warnings.append(self._doubled())
        self._count(found.self_loops)
        self.progress.stage("sorting", sides.arcs, "arcs")
        out = sides.write(self.writer, self.pool, self.progress)["out"]
        merged_loops = found.self_loops - self.report.self_loops_dropped - out.self_loops
        self.report.parallel_merged = out.merged if self.directed else (out.merged + merged_loops) // 2
        return self._manifest(numbering, out, weights.stored is not None, "in" in ways, found.negative)

    def _count(self, loops: int) -> None:
        if self.both_ways:  # each edge was read from both ends, a self loop once
            self.report.edges_read = (self.report.edges_read + loops) // 2
        self.report.self_loops_seen = loops
        self.report.self_loops_dropped = loops if self.cleaning.self_loops == "drop" else 0

    def _manifest(
        self, numbering: Numbering, out: ListWriter, weighted: bool, in_edges: bool, negative: bool
    ) -> Manifest:
        return Manifest(
            vertices=numbering.vertices,
            edges=out.arcs if self.directed else (out.arcs + out.self_loops) // 2,
            arcs=out.arcs,
            directed=self.directed,
            weighted=weighted,
            ids=numbering.kind,
            order=getattr(numbering, "order", "natural"),
            self_loops=out.self_loops,
            parallel=self.cleaning.parallel == "keep",
            in_edges=in_edges,
            origin=self._origin(),
            negative_weights=negative,
        )

    def _origin(self) -> dict[str, Any]:
        """The origin of the edges, and how they were cleaned: now, or else when their store was made."""
        done = {"self_loops": self.cleaning.self_loops, "parallel": self.cleaning.parallel}
        return {**done, **self.source.origin(), **{name: choice for name, choice in done.items() if choice != "keep"}}

    def _doubled(self) -> str:
        """The note about an input that lists every edge twice, once from each end."""
        what = "adds its weight twice" if self.cleaning.parallel == "sum" else "stores it twice"
        return (
            f"{self.source.name}: every edge is listed in both directions, and {option('directed', False)} {what}; "
            f"give {option('parallel', 'drop')} to keep one edge per pair"
        )


def extreme(block: EdgeBlock, pick: Any) -> tuple[int, int]:
    """The lowest or highest id of a block, as a signed and as an unsigned number."""
    columns = [column for column in (block.sources, block.targets) if column.size]
    signed = [column.view(np.int64) if column.itemsize == 8 else column for column in columns]
    choose = min if pick is np.min else max
    return choose(int(pick(column)) for column in signed), choose(int(pick(column)) for column in columns)
