"""Applies batches to a changing graph and its programs, whole or not at all, and publishes the answers.

For every batch: prepare; each program corrects its answer on the old edges; commit; each program computes on the new
edges; publish. A batch is acknowledged when its log says so; only then do readers see it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isthmus.errors import BatchError, IsthmusError, OptionError, ProgramError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Change, Edits
from isthmus.graph.changing.changing_graph import Undo
from isthmus.kernels.compile.compile_clock import clock
from isthmus.memory import give_memory_back
from isthmus.stream.batch_report import BatchReport
from isthmus.stream.context import StreamContext
from isthmus.stream.log.records import Place
from isthmus.stream.log.unlogged import Unlogged
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.results.live_result import LiveResult
from isthmus.stream.results.publication import Publication
from isthmus.threads import uninterrupted


class BatchApplication:
    """Brings batches to the graph and the maintained programs of a stream, and their answers to readers."""

    def __init__(self, context: StreamContext, log: Unlogged) -> None:
        self.graph, self._session, self._log = context.graph, context.session, log
        self._residency, self._merger = context.residency, context.merger
        self._published = threading.Lock()  # of what readers see
        self.publications: dict[str, Publication] = {}
        self.programs: dict[str, Maintained] = {}
        self.requested: dict[str, Any] = {}
        self.number = self.graph.number  # of the last batch that was acknowledged
        self._results: dict[str, LiveResult] = {}  # of that batch
        # Batches that are applied and not acknowledged yet.
        self._waiting: deque[tuple[int, dict[str, LiveResult]]] = deque()

    def begin(self, requested: list[tuple[Maintained, Any]]) -> None:
        """Compute the first answers, and begin the log."""
        for program, given in requested:
            self._add(program)
            self.requested[program.name] = given
            self._results[program.name] = self.publications[program.name].current
        self.opened = self._residency.opened()  # what the first answers moved to a device
        self._log.begin(self.graph, self.requested)

    def _add(self, program: Maintained) -> None:
        if program.name in self.programs:
            raise OptionError(f"two programs are called {program.name}; give one of them a name: name='...'")
        if program.needs_weights_from_0() and self.graph.weighted and self.graph.snapshot.negative_weights:
            raise OptionError(f"{program.name} needs weights of at least 0, and {self.graph} has negative ones")
        with self.graph.reading():
            program.begin()
        self.programs[program.name] = program
        self.publications[program.name] = Publication(program)

    def result(self, name: str) -> LiveResult:
        """The result of a program after the last batch that was acknowledged."""
        with self._published:
            return self._results[name]

    def acknowledge(self, number: int) -> None:
        """Let readers see all batches up to this one."""
        with self._published:
            while self._waiting and self._waiting[0][0] <= number:
                self.number, self._results = self._waiting[0]
                self._waiting.popleft()  # last: after Ctrl-C in between it is done again

    def apply(self, edits: Edits, strict: bool, read: float, id: str | None, place: Place | None) -> BatchReport:
        """Apply a batch, or leave all as it was. It is not acknowledged yet."""
        with self.graph.lock:
            refuse_half_applied(self.graph)
            start = clock()
            if self._merger is not None:
                self._merger.reserve()
            change = self.graph.prepare(edits, strict)
            for program in self.programs.values():
                program.refuse(change)
            checked = clock()
            self.graph.half_applied = True  # until all is done
            late = self._logs_late()
            if not late:
                try:
                    self._log.append(change.number, edits, id, place)
                except IsthmusError:
                    self.graph.half_applied = False
                    raise
            prepared = clock()
            with self._undoing(change, None, late):
                for program in self.programs.values():
                    program.correct(change)
            corrected = clock()
            undo = self.graph.commit(change)
            with self._undoing(change, undo, late):
                self._residency.committed(change)
                committed = clock()
                for program in self.programs.values():
                    program.compute(change)
                computed = clock()
                if late:
                    self._log.append(change.number, edits, id, place)
            logged = clock() - computed
            if self._merger is not None:
                # Its memory is needed; the next batch has other edges anyway.
                uninterrupted(self._session.near_memory.close)
            self._publish(change)
            if self._merger is not None:
                self._merger.applied(edits)
                give_memory_back()
            transfer = self._residency.end_batch()
            self.graph.half_applied = False
            now = clock()
        after = sum(each.effort.correction for each in self.programs.values()) - (corrected - prepared)
        after = min(max(after, 0.0), computed - committed)  # some correct when the edges have changed
        seconds = {
            "read": read,
            "update": checked - start + committed - corrected,
            "correction": corrected - prepared + after,
            "computation": computed - committed - after,
            "publication": now - computed - logged,
            "log": prepared - checked + logged,
            "total": read + now - start,
        }
        efforts = {
            name: {"affected": each.effort.affected, "edges_read": each.effort.edges_read}
            for name, each in self.programs.items()
        }
        return BatchReport(change.number, change.counts, seconds, efforts, edits.changes, transfer=transfer)

    def _logs_late(self) -> bool:
        """Whether batches go to the log when programs have computed: if one may fail, a batch in the log might have to
        be undone.
        """
        return self._log.path is not None and any(program.may_fail for program in self.programs.values())

    @contextmanager
    def _undoing(self, change: Change, undo: Undo | None, late: bool) -> Iterator[None]:
        """If something fails meanwhile, bring the graph (by `undo`, if it has changed) and all programs back to the
        batch before.
        """
        try:
            yield
        except Exception as error:
            if self._log.path is not None and not late:  # opened again, the stream will have this batch
                raise
            if undo is not None:
                self.graph.revert(change, undo)
            self._residency.forget()
            for program in self.programs.values():
                program.restore()
            self.graph.half_applied = False
            if isinstance(error, ProgramError | OptionError):
                raise BatchError(f"batch {change.number}: {error}; nothing was applied") from error
            raise

    def _publish(self, change: Change) -> None:
        with self._published:
            for publication in self.publications.values():
                publication.take(change)
            self.graph.renumber(change)
            self._residency.renumbered(change)
            if change.removed.size:
                for program in self.programs.values():
                    program.renumber(change)
            for publication in self.publications.values():
                publication.present(change)
            self._waiting.append((change.number, {name: each.current for name, each in self.publications.items()}))


def refuse_half_applied(graph: AdvancingGraph) -> None:
    if graph.half_applied:
        raise BatchError(
            "a batch was stopped while it was applied: results stay as they were before it, and the stream has ended"
        )
