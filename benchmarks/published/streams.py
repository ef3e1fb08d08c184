"""Streams on modelled devices for Grapin's experiments: each done once and checked, whatever number of experiments look
at it.

Workload. As in the paper: edges in random order, of which the last are inserted and the first deleted, in ten batches,
half and half. Its batches of 1,000, 10,000 and 100,000 are 0.00026, 0.0026 and 0.026 % of the edges, on average over
its five graphs; ours are the same shares, at least one insert and one delete. Near memory for lists: 10 % of the edges
(`CACHE`), where no experiment varies it.

The card is Grapin's A5000, with fixed times shrunk as the graph is against the mean of the paper's, 1.68 billion edges.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
from windows import Window, window

import isthmus as ist
from isthmus.cache.list_cache import ListCache
from isthmus.devices.model.residency import ModelResidency
from isthmus.devices.residency import Transfer
from isthmus.memory import give_memory_back
from isthmus.runtime.loop import Loop
from published.cases import Case
from published.lab import Lab

Array = np.ndarray[Any, Any]
PAPER_EDGES = 1.68e9
SHARES = {"1K": 2.6e-6, "10K": 2.6e-5, "100K": 2.6e-4}  # of the edges, of the paper's batches
BATCH, BATCHES, CACHE = SHARES["100K"], 10, 10.0  # a share of the edges; percent of the edges
FEW = 2  # batches from scratch: all take the same, to a hundredth
FIFTH = 0.2
NOTHING = np.zeros(0)
HELD = 0.006  # of the edges, that wait to be inserted, or more where batches are larger


class Uses:
    """What batches read, as edges: `again`, in the same batch; `before`, that an earlier batch had read. `missed_`: of
    lists not near.

    Keys are vertices, those of the in-side behind those of the out-side. Only sums are kept when a stream is done:
    there are many.
    """

    def __init__(self, keys: int) -> None:
        self.read = self.again = self.before = 0.0
        self.missed = self.missed_again = self.missed_before = 0.0
        self.top = 0.0  # read of the fifth of the vertices that are used most
        self._known, self._often, self._edges = (
            np.zeros(keys, np.bool_),
            np.zeros(keys, np.int64),
            np.zeros(keys, np.float64),
        )

    def add(self, read: Array, missed: Array, degrees: Array) -> None:
        """A batch: how often it read each list, how often it was not near, and how long it is."""
        self.read += float((read * degrees).sum())
        self.again += float((np.maximum(read - 1, 0) * degrees).sum())
        self.before += float(degrees[self._known & (read > 0)].sum())
        self.missed += float((missed * degrees).sum())
        self.missed_again += float((np.maximum(missed - 1, 0) * degrees).sum())
        self.missed_before += float(degrees[self._known & (missed > 0)].sum())
        self._known |= read > 0
        self._often += read
        self._edges += read * degrees

    def end(self) -> None:
        """No more batches."""
        top = np.argsort(-self._often, kind="stable")[: int(FIFTH * self._often.size / 2)]  # keys are two a vertex
        self.top = float(self._edges[top].sum())
        self._known, self._often, self._edges = NOTHING, NOTHING, NOTHING


@dataclass
class Streamed:
    """What the batches of a stream took."""

    arcs: int
    edge_bytes: int
    size: int  # changes of a batch
    opening: Transfer
    batches: list[Transfer] = field(default_factory=list)
    update_seconds: float = 0.0  # of this machine
    uses: Uses | None = None  # if it was watched
    changed_edges: int = 0  # in lists that any batch changed, added up

    @property
    def total(self) -> Transfer:
        found = Transfer()
        for each in self.batches:
            found.add(each)
        return found

    @property
    def bytes(self) -> int:
        return self.total.bytes

    @property
    def seconds(self) -> float:
        """Modelled, of ten batches."""
        return self.total.modelled * BATCHES / max(1, len(self.batches))

    @property
    def read(self) -> int:
        return self.total.hit_edges + self.total.miss_edges

    def per_batch(self, amount: float) -> float:
        """An amount of all batches, for one of them, over the bytes of all edges."""
        return amount / max(1, len(self.batches)) / self.edge_bytes


class Streams:
    """Workloads and streams of a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._cuts: dict[tuple[str, bool], Window] = {}
        self._graphs: dict[tuple[str, bool, int], ist.Graph] = {}  # at the beginning
        self._runs: dict[tuple[Any, ...], Streamed] = {}
        self._answers: dict[tuple[Any, ...], str] = {}  # digests

    @staticmethod
    def of(lab: Lab) -> Streams:
        found: Streams = lab.__dict__.setdefault("streams", Streams(lab))
        return found

    @property
    def cases(self) -> list[Case]:
        """Graphs like the paper's; grids are not."""
        return [case for case in self.lab.cases if case.kind != "grid"]

    @property
    def some(self) -> list[Case]:
        """A web graph, a social graph and the RMAT graph of sweeps, as far as they are at hand. The first stands for
        UK.
        """
        return [*(case for case in self.cases if case.name in ("cnr-2000", "soc-slashdot0902")), self.lab.sweep()]

    def of_any(self, case: Case, recipe: str, program: str = "SSSP", size: float = BATCH) -> Streamed:
        """A stream with ten batches of this size, or with few if they are computed from scratch."""
        return self.run(case, recipe, program, size, batches=FEW if recipe == "grapin-recompute" else BATCHES)

    def run(
        self,
        case: Case,
        recipe: str,
        program: str = "SSSP",
        share: float = BATCH,
        cache: float = CACHE,
        ratio: float = 0.5,
        watch: bool = False,
        batches: int = BATCHES,
        remembered: int = 3,
    ) -> Streamed:
        """A stream, or the same one from before. `ratio`: of inserts; `remembered`: batches that hotness counts."""
        work = (case.name, program, share, ratio, batches)
        key = (work, recipe, cache, watch, remembered)
        if key not in self._runs:
            cut = self.cut(case, program == "CC", max(HELD, 1.01 * share * batches * ratio))
            with remembering(remembered):
                self._runs[key] = self._do(
                    cut, case, recipe, program, share, f"{cache:g}%", ratio, watch, batches, work
                )
            free()
        return self._runs[key]

    def cut(self, case: Case, both_ways: bool = False, held: float = HELD) -> Window:
        """The edges in random order, of which a share waits to be inserted; `both_ways`: undirected, as components need
        it.
        """
        if (case.name, both_ways) not in self._cuts:
            self._cuts[case.name, both_ways] = window(case.both_ways if both_ways else case.graph, 0)
        every = self._cuts[case.name, both_ways]
        return replace(every, kept=every.sources.size - max(2 * BATCHES, int(held * every.sources.size)))

    def graph(self, case: Case, both_ways: bool, cut: Window) -> ist.Graph:
        """The graph at the beginning; only usual ones are kept, as there are many."""
        key = (case.name, both_ways, cut.kept)
        if cut.kept < (1 - 2 * HELD) * cut.sources.size:
            return cut.graph()
        if key not in self._graphs:
            self._graphs[key] = cut.graph()
        return self._graphs[key]

    def card(self, cut: Window) -> str:
        return self.lab.scaled("a5000", cut.sources.size, PAPER_EDGES)

    def source(self, case: Case) -> int:
        return int(case.graph.ids.number(case.source))

    def _do(
        self,
        cut: Window,
        case: Case,
        recipe: str,
        program: str,
        share: float,
        memory: str,
        ratio: float,
        watch: bool,
        batches: int,
        work: tuple[Any, ...],
    ) -> Streamed:
        size = max(2, round(share * cut.sources.size))
        wanted = {"SSSP": ist.SSSP, "BFS": ist.BFS}.get(program)
        asked: Any = ist.WeaklyConnectedComponents() if wanted is None else wanted(source=self.source(case))
        with contextlib.ExitStack() as stack:
            graph = self.graph(case, program == "CC", cut)
            live = stack.enter_context(ist.stream(graph, [asked], device=self.card(cut), policy=recipe, memory=memory))
            seen = stack.enter_context(watched(live)) if watch else None
            assert live.opened is not None
            found = Streamed(live.graph.arcs, live.graph.edge_bytes, size, live.opened)
            for number in range(batches):
                inserts, deletes = changes(cut, number, size, ratio)
                found.changed_edges += touched(live, inserts, deletes) if watch else 0
                report = live.apply(inserts=inserts, deletes=deletes)
                assert report.transfer is not None
                found.batches.append(report.transfer)
                found.update_seconds += report.seconds["update"] - report.transfer.upkeep_seconds
                if seen is not None:
                    seen.end_batch()
            self._check(work, recipe, np.ma.filled(live[asked.name or program_name(program)].values, -1))
            if seen is not None:
                seen.uses.end()
                found.uses = seen.uses
        return found

    def _check(self, work: tuple[Any, ...], recipe: str, values: Array) -> None:
        digest = hashlib.blake2b(np.ascontiguousarray(values)).hexdigest()
        if self._answers.setdefault(work, digest) != digest:
            raise SystemExit(f"{work} {recipe}: the answer is wrong")


def free() -> None:
    """Give memory back: streams are cycles, and glibc keeps what their threads freed, gigabytes after some dozens of
    them.
    """
    gc.collect()
    give_memory_back()


def program_name(program: str) -> str:
    return {"SSSP": "sssp", "BFS": "bfs", "CC": "weakly_connected_components"}[program]


def changes(cut: Window, number: int, size: int, ratio: float) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Inserts and deletes of a batch."""
    inserted = round(size * ratio)
    new = slice(cut.kept + number * inserted, cut.kept + (number + 1) * inserted)
    old = slice(number * (size - inserted), (number + 1) * (size - inserted))
    columns = (cut.sources, cut.targets) if cut.weights is None else (cut.sources, cut.targets, cut.weights)
    return tuple(column[new] for column in columns), (cut.sources[old], cut.targets[old])


def touched(live: Any, inserts: tuple[Array, ...], deletes: tuple[Array, ...]) -> int:
    """Edges in the out-lists that a batch changes: what it makes invalid in a cache of lists."""
    tails = [inserts[0], deletes[0]] if live.graph.directed else [*inserts[:2], *deletes[:2]]
    degrees = live.graph.snapshot.lists("out").degrees()
    return int(degrees[np.unique(np.concatenate(tails))].sum())


class Watch:
    """Counts reads of lists, batch by batch."""

    def __init__(self, live: Any) -> None:
        self._graph, self._counts = live.graph, np.zeros((2, 2 * live.graph.vertices), np.int64)
        self.uses = Uses(2 * live.graph.vertices)

    def note(self, side: str, rows: Array, held: Array | None) -> None:
        """`held`: which of these lists were near."""
        offset = self._graph.vertices if side == "in" and self._graph.snapshot.stored("in") != "out" else 0
        for kind, chosen in ((0, rows), (1, rows if held is None else rows[held == 0])):
            self._counts[kind] += np.bincount(chosen.astype(np.int64) + offset, minlength=self._counts.shape[1])

    def end_batch(self) -> None:
        sides = [self._graph.snapshot.lists(side).degrees() for side in ("out", "in")]
        self.uses.add(*self._counts, np.concatenate(sides))
        self._counts[:] = 0


@contextlib.contextmanager
def watched(live: Any) -> Iterator[Watch]:
    """What a stream reads from now on: for corrections, and in the loop of every run."""
    seen, step, read = Watch(live), Loop.step, ModelResidency.read

    def spy(self: Loop, record: Any) -> bool:
        cache, side, rows = (
            self.pipeline.cache,
            self.pipeline.sides[0].name,
            self.frontier.rows(0, self.frontier.vertices).copy(),
        )
        seen.note(
            side, rows, cache.marks_of(side, self.frontier.vertices)[rows] if isinstance(cache, ListCache) else None
        )
        return step(self, record)

    def reading(self: ModelResidency, side: str, rows: Array, weights: bool) -> None:
        stored = self._graph.snapshot.stored(side)
        seen.note(stored, rows, None if self.hot is None else self.hot.marks_of(stored, self._graph.vertices)[rows])
        read(self, side, rows, weights)

    with mock.patch.object(Loop, "step", spy), mock.patch.object(ModelResidency, "read", reading):
        yield seen


@contextlib.contextmanager
def remembering(count: int) -> Iterator[None]:
    """Hot subgraphs inside remember so many batches before the current one, 1 to 3."""
    end_period = ListCache.end_period
    kept = np.uint32(sum(0xFF << (8 * (2 - k)) for k in range(count)))

    def forgetting(self: ListCache) -> None:
        end_period(self)
        self.counts.words &= kept

    with mock.patch.object(ListCache, "end_period", forgetting if count < 3 else end_period):
        yield


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def cut_of(before: float, after: float) -> float:
    """Percent that are saved."""
    return 100 * (1 - after / before) if before else 0.0


def percent(value: float) -> str:
    return f"{value:.0f} %"
