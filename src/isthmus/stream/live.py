"""A stream: a graph that changes by batches, and programs whose answers stay current.

    live = isthmus.stream("web.isthmus", [isthmus.SSSP(source=7), isthmus.PageRank()])
    live.apply(inserts=edges, deletes=edges)
    live["sssp"].values

A batch is applied whole or not at all. Results name the batch they belong to, and stay as they are while later batches
are applied, also for readers in other threads.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

from isthmus.checks import finite_above_0, whole
from isthmus.devices.residency import Transfer
from isthmus.errors import OptionError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Edits
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.kernels.compile.compile_clock import clock
from isthmus.memory import give_memory_back
from isthmus.messages import option
from isthmus.stream.batch_application import BatchApplication, refuse_half_applied
from isthmus.stream.batch_report import BatchReport
from isthmus.stream.context import StreamContext, StreamOptions
from isthmus.stream.input.arriving_batches import arriving_batches
from isthmus.stream.input.batch import edits_in_order, edits_of
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.input.sources import open_updates
from isthmus.stream.input.update_tables import edits_of_table
from isthmus.stream.log.records import Place
from isthmus.stream.log.unlogged import Unlogged
from isthmus.stream.results.answer_check import differences
from isthmus.stream.results.live_result import LiveResult
from isthmus.threads import uninterrupted


class Live:
    """A changing graph with programs that are kept current, opened by `isthmus.stream`. Use it as a context manager, or
    close it.

    `live["sssp"]` is the result of a program after the last batch, `live.graph` the graph as it is now, on which any
    algorithm runs, and `live.number` the number of the last batch. Iterating gives the names of the programs. Other
    threads may read results while batches are applied.
    """

    def __init__(
        self, graph: Graph | None, programs: Any = (), log: Unlogged | None = None, **options: Unpack[StreamOptions]
    ) -> None:
        self.log = log or Unlogged()
        weakref.finalize(self, self.log.close)  # of a stream that nobody closed
        self.context = StreamContext(graph, programs, self.log, **options)
        self.graph, self.session, self.budget = self.context.graph, self.context.session, self.context.budget
        self._lock = threading.RLock()  # of batches
        try:
            self.batches = BatchApplication(self.context, self.log)
            self.batches.begin(self.context.requested)
            if self.on_disk:
                give_memory_back()
            # Without the stream, which may be forgotten.
            self.graph.before_reading = partial(before_reading, self.graph, self.log)
        except BaseException:
            self.close()
            raise

    @property
    def number(self) -> int:
        """The number of the last batch that was acknowledged."""
        return self.batches.number

    @property
    def requested(self) -> dict[str, Any]:
        """The programs as they were given, by name."""
        return self.batches.requested

    @property
    def opened(self) -> Transfer | None:
        """What the first answers moved to a device; None on this machine."""
        return self.batches.opened

    @property
    def graph_bytes(self) -> int:
        """Memory that the graph takes."""
        return self.graph.near_bytes

    @property
    def notes(self) -> list[str]:
        """Notes for the user about the stream."""
        merger = self.context.merger
        return [*self.context.notes, *self.log.notes, *(merger.notes if merger is not None else ())]

    @property
    def merges(self) -> int:
        """How often changes were merged into a new store."""
        return 0 if self.context.merger is None else self.context.merger.merges

    @property
    def on_disk(self) -> bool:
        """Whether the edges are in a store, and only changes in memory."""
        return not self.graph.lists_are_near

    @property
    def device(self) -> str:
        """The device: this machine's processor, a modelled device or a GPU."""
        return self.session.device.name

    @property
    def policy(self) -> str | None:
        """The recipe of a stream whose edges are not near."""
        return self.session.recipe_name

    @property
    def near_peak(self) -> int:
        """The most near memory of a modelled device or a GPU that the stream took: programs, buffers, and lists that
        stay near.
        """
        return self.session.near_peak

    def __getitem__(self, name: str) -> LiveResult:
        """The result of a program after the last batch that was acknowledged."""
        if name not in self.batches.programs:
            raise KeyError(
                f"the stream maintains no {name!r}; it has {', '.join(self.batches.programs) or 'no program'}"
            )
        return self.batches.result(name)

    def __iter__(self) -> Any:
        return iter(self.batches.programs)

    def apply(
        self,
        inserts: Any = None,
        deletes: Any = None,
        updates: Any = None,
        *,
        batch: Any = None,
        add_vertices: Any = None,
        remove_vertices: Any = None,
        strict: bool = False,
        id: str | None = None,
    ) -> BatchReport:
        """Apply a batch: deletes first, then inserts, then updates (new weights of existing edges).

        Each is (sources, targets[, weights]), a list of pairs or triples, a table with columns source, target and
        weight, or a file of one. Or `batch`, a table or file that has a column op as well: insert, delete, update,
        add_vertex or remove_vertex; its rows are applied in order. Inserting an edge that exists gives it the new
        weight; deleting one that does not exist does nothing; both are counted. `strict`: they are errors. After an
        error nothing was applied. With a log, the batch is on disk when this returns. `id` names the batch: applied
        again with the same id, it changes nothing.
        """
        start = clock()
        kinds = self.kinds()
        if batch is None:
            edits = edits_of(kinds, add_vertices, remove_vertices, inserts=inserts, deletes=deletes, updates=updates)
        elif any(each is not None for each in (inserts, deletes, updates, add_vertices, remove_vertices)):
            raise OptionError("give a batch as a whole, or inserts, deletes, updates and vertices, not both")
        else:
            edits = edits_in_order(batch, kinds)
        return self.apply_edits(edits, strict, clock() - start, id)

    def follow(
        self,
        updates: Any,
        *,
        batch: int | None = None,
        window: float | None = None,
        format: str | None = None,
        strict: bool = False,
    ) -> Iterator[BatchReport]:
        """Apply updates batch by batch, and report each: `for report in live.follow("changes.csv"): ...`.

        `updates` is a file, a table, an Arrow reader, or "-" for standard input, with the columns of
        `apply(batch=...)`. A column time tells when rows arrived. `batch`: rows per batch (100,000). `window`: seconds
        of arrival per batch instead; from a pipe a batch is applied after one second at the latest, without it.
        `format`: csv, jsonl, parquet or arrow, if the name does not tell.
        """
        if batch is not None:
            whole("batch", batch, 1)
        if window is not None:
            finite_above_0("window", window)
        source = open_updates(updates, self.kinds(), format)
        try:
            progress = self.log.progress(source, updates, Kinds.of(self.graph))
            for arrival in arriving_batches(source, batch, window):
                start, rows = clock(), arrival.rows
                edits = edits_of_table(rows.table(), self.kinds(), rows.name, rows.where)
                place = None if progress is None else progress.take(edits)
                report = self.apply_edits(edits, strict, clock() - start, place=place)
                report.arrival = arrival.seconds
                yield report
        finally:
            source.close()

    def kinds(self) -> Kinds:
        """What batches must hold to be applied."""
        careful = [name for name, program in self.batches.programs.items() if program.needs_weights_from_0()]
        return Kinds.of(self.graph, careful[0] if careful else None)

    def check(self) -> dict[str, str]:
        """Compute every answer from scratch, and compare: names of programs whose answer differs, with the first
        difference.

        Whole numbers must be equal, scores within the bounds on their errors; of your own accumulative programs no
        vertex may lack more than their threshold. Empty: all is well.
        """
        with self._lock, self.graph.reading():
            self.batches.acknowledge(self.graph.number)  # by now it is
            found = {
                name: (program, self[name].result(), self.requested[name])
                for name, program in self.batches.programs.items()
            }
            settings = self.session.settings
            return differences(
                self.graph, found, {"memory": settings.memory, "policy": settings.policy} if self.on_disk else None
            )

    def apply_edits(
        self, edits: Edits, strict: bool = False, read: float = 0.0, id: str | None = None, place: Place | None = None
    ) -> BatchReport:
        """Apply a batch whose rows are in order of arrival. `read`: seconds of reading them; `place`: where they end in
        a file.
        """
        with self._lock:
            refuse_half_applied(self.graph)  # also if the log has the batch: this stream does not show it
            repeated = self.log.repeats(edits, id)
            if repeated is None:
                report = self.batches.apply(edits, strict, read, id, place)
            else:
                report = BatchReport.of_repeated(repeated)
        start = clock()
        self.log.wait(report.number)
        self.batches.acknowledge(report.number)
        waited = clock() - start
        report.seconds["log"] += waited
        report.seconds["total"] += waited
        if self.log.is_long(self.graph):
            with self._lock, self.graph.lock:
                if not self.graph.half_applied:
                    self.log.shorten(self.graph)
        return report

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store."""
        with self.graph.reading():
            self.graph.save(path, overwrite)

    def checkpoint(self) -> None:
        """Write the graph into the stream's folder, and cut its log. Otherwise that is done when the log has become
        long.
        """
        with self._lock, self.graph.lock:
            refuse_half_applied(self.graph)
            self.log.checkpoint(self.graph)

    def merge(self) -> None:
        """Merge all changes of a stream on disk into a new store, from which it goes on. It also happens by itself when
        there are many.
        """
        if not isinstance(self.graph, OverlayGraph) or self.context.merger is None:
            raise OptionError(
                f"merge: the edges of this stream are in memory; give {option('on_disk', True)} to leave them on disk"
            )
        with self._lock, self.graph.lock:
            refuse_half_applied(self.graph)
            self.context.merger.finish()
            self.graph.merge()

    def close(self) -> None:
        """End the stream: release threads, memory and the log. Results stay valid."""
        try:
            self.context.close()
        finally:  # after Ctrl-C too: the next stream on this folder needs its lock
            uninterrupted(self.log.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def before_reading(graph: AdvancingGraph, log: Unlogged) -> None:
    """The graph is read when no batch is half applied, and all are acknowledged."""
    refuse_half_applied(graph)
    if log.path is not None:
        log.settle()
