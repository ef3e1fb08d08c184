"""A stream: a graph that changes by batches, and programs whose answers stay current.

    live = isthmus.stream("web.isthmus", [isthmus.SSSP(source=7), isthmus.PageRank()])
    live.apply(inserts=edges, deletes=edges)
    live["sssp"].values

A batch is applied whole or not at all. Results name the batch they belong to, and stay as they are while later batches are applied,
also for readers in other threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from isthmus.errors import OptionError
from isthmus.graph.change import Change, Edits
from isthmus.graph.changing import ChangingGraph
from isthmus.graph.graph import Graph, open_graph
from isthmus.runtime.session import Session, check_graph
from isthmus.stream.batch import edits_of
from isthmus.stream.live_result import LiveResult
from isthmus.stream.maintained import Maintained
from isthmus.stream.publication import Publication
from isthmus.stream.wanted import maintained


@dataclass
class BatchReport:
    """What a batch did, and how long it took."""

    number: int
    counts: dict[str, int]
    seconds: dict[str, float]  # update, correction, computation, total
    programs: dict[str, dict[str, int]] = field(default_factory=dict)  # vertices affected and edges read, by program

    def as_dict(self) -> dict[str, Any]:
        return {"batch": self.number, **self.counts, "seconds": self.seconds, "programs": self.programs}


class Live:
    """A changing graph with programs that are kept current. Use it as a context manager, or close it."""

    def __init__(self, graph: Graph, programs: Iterable[Any], *, threads: int | None = None, align: bool | None = None) -> None:
        self.graph = ChangingGraph(graph, threads, align)
        self.session = Session(self.graph, threads=threads)
        self._lock = threading.RLock()  # of batches
        self._published = threading.Lock()  # of what readers see
        self._publications: dict[str, Publication] = {}
        self._programs: dict[str, Maintained] = {}
        try:
            for wanted in programs:
                self._add(maintained(wanted, self.session))
        except BaseException:
            self.close()
            raise

    def _add(self, program: Maintained) -> None:
        if program.name in self._programs:
            raise OptionError(f"two programs are called {program.name}; give one of them a name: name='...'")
        with self.graph.reading():
            program.begin()
        self._programs[program.name] = program
        self._publications[program.name] = Publication(program)

    @property
    def number(self) -> int:
        """How many batches were applied."""
        return self.graph.number

    def __getitem__(self, name: str) -> LiveResult:
        """The result of a program after the last batch."""
        if name not in self._programs:
            raise KeyError(f"the stream maintains no {name!r}; it has {', '.join(self._programs) or 'no program'}")
        with self._published:
            return self._publications[name].current

    def __iter__(self) -> Any:
        return iter(self._programs)

    def apply(
        self, inserts: Any = None, deletes: Any = None, updates: Any = None, *, add_vertices: Any = None, remove_vertices: Any = None,
        strict: bool = False,
    ) -> BatchReport:  # fmt: skip
        """Apply a batch: deletes first, then inserts, then updates (new weights of existing edges).

        Edges are arrays (sources, targets[, weights]), pairs, or any Arrow-speaking table. Inserting an edge that exists gives it
        the new weight; deleting one that does not exist does nothing; both are counted. `strict`: they are errors, and nothing is
        applied.
        """
        edits = edits_of(self.graph.changing_ids.kind, self.graph.weighted, inserts, deletes, updates, add_vertices, remove_vertices)
        return self.apply_edits(edits, strict)

    def apply_edits(self, edits: Edits, strict: bool = False) -> BatchReport:
        """Apply a batch whose rows are in order of arrival."""
        with self._lock, self.graph.lock:
            start = time.perf_counter()
            change = self.graph.prepare(edits, strict)
            for program in self._programs.values():
                program.refuse(change)
            prepared = time.perf_counter()
            for program in self._programs.values():
                program.correct(change)
            corrected = time.perf_counter()
            self.graph.commit(change)
            committed = time.perf_counter()
            for program in self._programs.values():
                program.compute(change)
            computed = time.perf_counter()
            self._publish(change)
            now = time.perf_counter()
        seconds = {
            "update": prepared - start + committed - corrected, "correction": corrected - prepared,
            "computation": computed - committed, "publication": now - computed, "total": now - start,
        }  # fmt: skip
        efforts = {
            name: {"affected": each.effort.affected, "edges_read": each.effort.edges_read} for name, each in self._programs.items()
        }
        return BatchReport(change.number, change.counts, seconds, efforts)

    def _publish(self, change: Change) -> None:
        with self._published:
            for publication in self._publications.values():
                publication.take(change)
            self.graph.renumber(change)
            if change.removed.size:
                for program in self._programs.values():
                    program.renumber(change)
            for publication in self._publications.values():
                publication.present(change)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the graph as it is now into a store."""
        with self.graph.reading():
            self.graph.save(path, overwrite)

    def close(self) -> None:
        self.session.close()
        self.graph.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def stream(graph: Graph | str | Path, programs: Iterable[Any] = (), **options: Any) -> Live:
    """Open a stream on a graph, or on the store at a path. The graph is copied into memory, and does not change itself."""
    if isinstance(graph, str | Path):
        with open_graph(graph) as opened:
            return Live(opened, programs, **options)
    check_graph("stream", graph)
    return Live(graph, programs, **options)


