"""Partitions that stay near as units of a schedule: for Scaph's k-level queue, which runs them several times.

On a modelled device its clock decides which transfers are pending; on a disk they are those that readers have under
way. A partition that stayed from an earlier iteration runs where it is, whatever its value is now. If the answer
depends on the order of propagation, every partition runs once in an iteration (k = 1); they stay near all the same.

Scaph's two engines work at the same time. On a modelled device the host packs low-value lists while high-value
partitions cross the link, both share the link, and what arrives first runs first. On a disk, packed lists run before
whole partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.cache.cache import Held
from isthmus.cache.partition_places import KeptPartitions
from isthmus.devices.model.modelled_clock import ModelledClock
from isthmus.devices.model.resource_clock import Clock, Job
from isthmus.devices.run_clock import RunClock, followed
from isthmus.devices.worker import Piece, Worker
from isthmus.engines.engine import BUFFERS, Delivery, Engine, Ranges, Rows, Side, Task
from isthmus.engines.filter import as_rows
from isthmus.frontier import Activity, Frontier
from isthmus.link.link import Array, Link, Moved
from isthmus.runtime.executor.clocked_executor import ClockedExecutor, Transfers
from isthmus.runtime.executor.executor import Executor
from isthmus.runtime.executor.readers import Readers
from isthmus.runtime.executor.task_work import TaskWork
from isthmus.runtime.executor.work import StayingWork
from isthmus.runtime.trace.iteration import Iteration
from isthmus.schedule.levels import LEVELS, Levels
from isthmus.schedule.schedule import NONE, Schedule, UnitStates
from isthmus.threads import Team

LEAST_ROOM = 2  # partitions; with a single place none can run while another arrives


class StayingPartitions(StayingWork):
    """Whole partitions of one side, kept in `memory`. `stays`: they are also kept from one iteration to the next."""

    def __init__(
        self,
        side: Side,
        link: Link,
        memory: Array,
        worker: Worker,
        engine: Engine,
        stays: bool,
        clock: RunClock,
        reruns: bool = True,
    ) -> None:
        self._side, self.worker, self._engine, self._held, self._stays = side, worker, engine, Held(), stays
        self._kept = KeptPartitions(side, link, memory)
        self._k = clock.rerun_levels(LEVELS) if reruns else 1
        self.moved: dict[int, Moved] = {}  # of transfers whose partition has not run yet
        self.arrivals: dict[int, Any] = {}  # on a GPU: the events behind them
        self._idle = NONE  # the partition whose last further run found no work
        self._transfers = clock.transfers(lambda modelled: ClockedTransfers(self, modelled))
        self._lock = threading.Lock()
        self.reruns = 0

    @property
    def works(self) -> bool:
        """Whether the memory holds two partitions: one to run while another arrives."""
        return self._kept.room >= LEAST_ROOM

    @property
    def near_ones(self) -> Array:
        """Which partitions are near, as a mask."""
        marks = np.zeros(len(self._side.partitions), np.bool_)
        marks[list(self._kept)] = True
        return marks

    def run(
        self,
        high_value: Array,
        frontier: Frontier,
        activity: Activity,
        record: Iteration,
        readers: Readers,
        team: Team,
        packed: TaskWork | None = None,
    ) -> None:
        """Run every partition of high value, some of them several times; on a modelled device `packed` lists run
        meanwhile.
        """
        self.frontier, self._record = frontier, record
        units = self._units = UnitStates(high_value.size, self.near_ones)
        units.free, units.pending = self._kept.free, activity.vertices.astype(np.float64)
        parts = Levels(high_value, self._k), self, self, units, readers
        if self._transfers is not None:
            self._transfers.begin(packed)
            ClockedExecutor(self._transfers, *parts).run(team)
            self._transfers.end()
        else:
            waited, worked = Executor(*parts).run(team)
            record.wait += waited
            record.kernel += worked
        if not self._stays:
            for p in list(self._kept):
                self._kept.evict(p)

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        size, requests = self._kept.read(unit, channel)
        self.moved[unit] = Moved(size, 0, requests)
        return iter(())

    def reserve(self, unit: int) -> None:
        self._kept.reserve(unit, set(), np.empty(0))

    def evict(self, unit: int) -> None:
        self._kept.evict(unit)

    def update_pending(self, schedule: Schedule, units: UnitStates) -> None:
        """Count the marked vertices of each partition that has run; needed only when no partition waits for its first
        run.
        """
        assert isinstance(schedule, Levels)
        if not schedule.first_run_waits(units):
            for p in self._kept:
                if units.runs[p]:
                    units.pending[p] = np.count_nonzero(self.frontier.next_marks[self._whole(p)])

    def _whole(self, p: int) -> slice:
        """The vertices whose whole lists a partition holds: only these can run again."""
        parts, lists = self._side.partitions, self._side.lists
        first, last = int(parts.first[p]), int(parts.last[p])
        return slice(
            first + int(lists.begins[first] < parts.cuts[p]), last - int(lists.ends[last - 1] > parts.cuts[p + 1])
        )

    def near_delivery(self, unit: int) -> Delivery:
        """The delivery of a near partition. It is counted for the engine that brought it, or for the cache."""
        parts, place, side = self._side.partitions, self._kept.place(unit), self._side
        at = np.array([unit])
        ranges = Ranges(
            parts.first[at],
            parts.last[at],
            parts.cuts[at],
            parts.cuts[at + 1],
            np.array([place.base]),
            np.array([place.weight_base if side.weight_width else place.base]),
        )
        again = self._units.runs[unit] > 0  # for any vertex that was marked, not only those that were active
        edges: Ranges | Rows = ranges if again or self.frontier.list is None else as_rows(ranges, self.frontier, side)
        came = unit in self.moved
        delivery = Delivery(
            Task(self._engine if came else self._held, side, at), place.targets, place.weights, edges, whole=ranges
        )
        if came:
            moved = self.moved.pop(unit)
            delivery.bytes, delivery.requests = moved.bytes, moved.requests
            delivery.arrival = self.arrivals.pop(unit, None)
        return delivery

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        """The pieces of a first run, or of one for the vertices that were marked since the last run."""
        unit = int(delivery.task.partitions[0])
        if self._units.runs[unit]:
            marked = self.worker.marked(delivery, frontier)
            if marked is None:
                self._idle = unit
                return []
            delivery.edges = marked
            self.reruns += 1
        return self.worker.pieces(delivery, frontier)

    def finished(self, unit: int, delivery: Delivery) -> None:
        first = not self._units.runs[unit]
        if unit == self._idle:
            self._idle = NONE
            return
        edges = followed(delivery, self.frontier)
        name = delivery.task.engine.name
        with self._lock:
            self._record.delivered(delivery)
            self._record.engines[name]["tasks"] += 1
            if first and name == self._held.name:
                self._record.hit_edges += edges
            if self._transfers is not None:
                self._transfers.ran(unit, delivery, edges)


class ClockedTransfers(Transfers):
    """Transfers by the modelled clock: a copy begins at once, and is pending until the clock has passed its arrival.

    On a GPU, the first run of a partition waits for the copy itself.
    """

    def __init__(self, work: StayingPartitions, modelled: ModelledClock) -> None:
        self._work, self._modelled, self._clock = work, modelled, modelled.clock
        self._jobs: dict[int, Job] = {}
        self._packed: PackedLists | None = None

    def begin(self, packed: TaskWork | None) -> None:
        """Start to pack low-value lists, beside the partitions that will be sent."""
        self._modelled.submit()
        self._packed = PackedLists(packed, self._work.worker, self._modelled) if packed is not None else None

    def end(self) -> None:
        """Run the packed lists that are left when every partition has run."""
        while self._packed is not None and self._packed.under_way:
            self._run(self._clock.ready() or self._clock.wait())

    def send(self, unit: int) -> None:
        link = self._modelled.link
        with link.lend() as channel:
            self._work.fetch(unit, channel)
            self._work.arrivals[unit] = link.arrival(channel)  # the copy goes on while other partitions run
            moved = link.take(channel)
        self._work.moved[unit] = moved
        self._jobs[unit] = self._clock.submit(link=moved.link_seconds, buffered=False, what=unit)

    def arrived(self, waiting: bool) -> int | None:
        """The next unit that has arrived. At most one at a time: the next is asked for when this one has run.

        Packed lists that arrived before it are run. None after that, too: they may have given near partitions new work.
        """
        while (job := self._clock.ready()) is not None or waiting:
            job = job or self._clock.wait()
            if isinstance(job.what, int):
                return job.what
            self._run(job)
            waiting = False
        return None

    def _run(self, job: Job) -> None:
        if job.what is None or self._packed is None:
            self._clock.run(job)  # it ran before, and only its time is charged here
        else:
            self._packed.run(job)

    def ran(self, unit: int, delivery: Delivery, edges: int) -> None:
        """Charge the run of a near partition to the clock."""
        self._clock.run(self._jobs.pop(unit, None), self._modelled.kernel(delivery, edges))


class PackedLists:
    """Lists that the modelled host packs: each buffer crosses the link and runs once, at the time the clock says."""

    def __init__(self, work: TaskWork, worker: Worker, modelled: ModelledClock) -> None:
        self._work, self._worker, self._modelled = work, worker, modelled
        self._clock: Clock = modelled.clock
        self._deliveries = self._fetched()
        self.under_way = 0
        for _ in range(BUFFERS):
            self._submit()

    def _fetched(self) -> Iterator[tuple[int, Delivery]]:
        for unit in range(len(self._work.tasks)):
            with self._modelled.link.lend() as channel:
                for delivery in self._work.fetch(unit, channel):
                    yield unit, delivery

    def _submit(self) -> None:
        """Let the host pack the next buffer."""
        unit, delivery = next(self._deliveries, (0, None))
        if delivery is not None:
            moved = delivery.moved or Moved()
            seconds = self._modelled.kernel(delivery, followed(delivery, self._work.frontier))
            self._clock.submit(moved.host_seconds, moved.link_seconds, seconds, what=(unit, delivery))
            self.under_way += 1

    def run(self, job: Job) -> None:
        """Run lists that have arrived. No partition runs meanwhile, so one member does all of it."""
        unit, delivery = job.what
        for piece in self._worker.pieces(delivery, self._work.frontier):
            piece(0)
        self._clock.run(job)
        self._work.finished(unit, delivery)
        self.under_way -= 1
        self._submit()
