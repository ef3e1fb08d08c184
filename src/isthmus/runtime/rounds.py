"""Scaph's k-level queue at work: whole partitions come, stay, and run again while others are still on their way.

`schedule/rounds.py` decides; this file brings, runs and evicts. Which transfers are pending is what the modelled clock says on
a modelled device, and what the reader threads really have under way on a disk. A partition that stayed from an iteration
before runs where it is, whatever its value is now.
"""

from __future__ import annotations

import queue
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Held
from isthmus.cache.partitions import KeptPartitions
from isthmus.engines.engine import Delivery, Engine, Rows, Runs, Side, Task
from isthmus.engines.filter import as_rows
from isthmus.frontier import Activity, Frontier
from isthmus.link.clock import Job
from isthmus.link.link import Array, Link, Moved
from isthmus.policies.policy import CACHE, FILTER
from isthmus.runtime.modelled import Modelled, followed
from isthmus.runtime.trace import Iteration
from isthmus.runtime.worker import Worker
from isthmus.schedule import rounds
from isthmus.schedule.rounds import NONE, Rounds

LEVELS = 20  # Scaph: near bandwidth / link bandwidth, where neither is known
UNDER_WAY = 2  # transfers at once: one more than moves, so that the link never waits; others would only take places
LEAST_ROOM = 2  # partitions; with one place nothing can run while another comes


class Transfers(Protocol):
    """Partitions on their way."""

    def send(self, partition: int) -> None: ...

    def arrived(self, waiting: bool) -> list[int]:
        """Partitions that have come since the last time; `waiting`: at least one."""
        ...

    def run(self, partition: int, delivery: Delivery, edges: int) -> None:
        """A near partition has been run."""
        ...

    def moved(self, partition: int) -> tuple[int, int]:
        """Bytes and requests of a transfer that is over."""
        ...

    def close(self) -> None: ...


class RealTransfers:
    """By reader threads."""

    def __init__(self, kept: KeptPartitions, link: Link) -> None:
        self._kept = kept
        self._readers = ThreadPoolExecutor(link.readers, thread_name_prefix="isthmus-reader")
        self._channels: queue.SimpleQueue[int] = queue.SimpleQueue()
        for channel in range(link.readers):
            self._channels.put(channel)
        self._under_way: dict[Future[tuple[int, int]], int] = {}
        self._moved: dict[int, tuple[int, int]] = {}

    def send(self, partition: int) -> None:
        self._under_way[self._readers.submit(self._read, partition)] = partition

    def _read(self, partition: int) -> tuple[int, int]:
        channel = self._channels.get()
        try:
            return self._kept.read(partition, channel)
        finally:
            self._channels.put(channel)

    def arrived(self, waiting: bool) -> list[int]:
        over = wait(self._under_way, None if waiting else 0, FIRST_COMPLETED).done
        found = []
        for future in over:
            partition = self._under_way.pop(future)
            self._moved[partition] = future.result()
            found.append(partition)
        return sorted(found)

    def run(self, partition: int, delivery: Delivery, edges: int) -> None:
        pass

    def moved(self, partition: int) -> tuple[int, int]:
        return self._moved.pop(partition)

    def close(self) -> None:
        self._readers.shutdown(cancel_futures=True)


class ModelledTransfers:
    """By the modelled clock: bytes are copied at once, and count as pending until the clock has passed their arrival."""

    def __init__(self, kept: KeptPartitions, modelled: Modelled) -> None:
        self._kept, self._modelled, self._clock = kept, modelled, modelled.clock
        self._jobs: dict[int, Job] = {}
        self._moved: dict[int, Moved] = {}

    def send(self, partition: int) -> None:
        self._kept.read(partition, 0)
        moved = self._modelled.link.take(0)
        self._moved[partition] = moved
        self._jobs[partition] = self._clock.submit(link=moved.link_seconds, buffered=False, what=partition)

    def arrived(self, waiting: bool) -> list[int]:
        """At most one at a time: the next is asked for when it has run."""
        while True:
            job = self._clock.ready() or (self._clock.wait() if waiting else None)
            if job is None or job.what is not None:
                return [] if job is None else [int(job.what)]
            self._clock.run(job)  # packed lists, which run once

    def run(self, partition: int, delivery: Delivery, edges: int) -> None:
        self._clock.run(self._jobs.pop(partition, None), self._modelled.kernel(delivery, edges))

    def moved(self, partition: int) -> tuple[int, int]:
        moved = self._moved.pop(partition)
        return moved.bytes, moved.requests

    def close(self) -> None:
        """There is nothing to stop."""


class Queue:
    """Whole partitions of one side, kept in `memory`. `stays`: also from one iteration to the next."""

    def __init__(
        self, side: Side, link: Link, memory: Array, worker: Worker, engine: Engine, stays: bool, modelled: Modelled | None
    ) -> None:
        self._side, self._worker, self._engine, self._held, self._stays = side, worker, engine, Held(), stays
        self._kept = KeptPartitions(side, link, memory)
        self._modelled = modelled
        self._transfers: Transfers = RealTransfers(self._kept, link) if modelled is None else ModelledTransfers(self._kept, modelled)
        device = modelled.device if modelled is not None else None
        self._k = LEVELS if device is None else rounds.levels(device.near.bandwidth, device.link.bandwidth)
        self._wanted = np.zeros(len(side.partitions), np.bool_)
        self.reruns = 0

    @property
    def works(self) -> bool:
        """Whether there is room to run one partition while another comes."""
        return self._kept.room >= LEAST_ROOM

    @property
    def near(self) -> Array:
        """Marks of the partitions that are near."""
        marks = np.zeros(len(self._side.partitions), np.bool_)
        marks[list(self._kept)] = True
        return marks

    def take(self, choice: Array, activity: Activity) -> Array:
        """Note the partitions that come whole or are near; returns the choice with CACHE for the latter."""
        choice = np.where(self.near & (activity.edges > 0), CACHE, choice)
        self._wanted = (choice == CACHE) | (choice == FILTER)
        return choice

    def run(self, frontier: Frontier, activity: Activity, record: Iteration) -> None:
        """Run every partition that was noted, some several times."""
        if self._modelled is not None:
            self._modelled.submit()
        state = rounds.begin(self._wanted, self.near)
        active = activity.vertices.copy()
        while not state.over:
            state = self._send(state)
            state = self._receive(state, False)
            p = rounds.next_run(state, self._active(state, active, frontier), self._k)
            if p == NONE:
                state = self._receive(state, True)
                continue
            self._run(p, int(state.runs[p]), frontier, record)
            state = rounds.finished(rounds.started(state, p), p)
        if not self._stays:
            for p in list(self._kept):
                self._kept.evict(p)

    def _active(self, state: Rounds, active: Array, frontier: Frontier) -> Array:
        """How many vertices of each near partition have something to send: at first, and now."""
        parts = self._side.partitions
        if not ((state.places == rounds.QUEUED) & (state.runs == 0) & state.wanted).any():  # it only matters then
            for p in self._kept:
                if state.runs[p]:
                    active[p] = np.count_nonzero(frontier.next_marks[parts.first[p] : parts.last[p]])
        return active

    def _send(self, state: Rounds) -> Rounds:
        """Begin transfers while there is room, or while some may be made."""
        while np.count_nonzero(state.places == rounds.COMING) < UNDER_WAY and (p := rounds.next_transfer(state)) != NONE:
            if not self._kept.free:
                gone = rounds.next_evicted(state)
                if gone == NONE:
                    break
                self._kept.evict(gone)
                state = rounds.evicted(state, gone)
            self._kept.reserve(p, set(), state.wanted)
            self._transfers.send(p)
            state = rounds.sent_for(state, p)
        return state

    def _receive(self, state: Rounds, waiting: bool) -> Rounds:
        for p in self._transfers.arrived(waiting):
            if state.places[p] == rounds.COMING:
                state = rounds.arrived(state, p)
        return state

    def _run(self, p: int, before: int, frontier: Frontier, record: Iteration) -> None:
        """Run a partition for the first time in this iteration, or again for who was marked since."""
        moved = self._came(p) if not before else None
        engine = self._held if moved is None else self._engine
        delivery = self._delivery(p, engine, frontier)
        if moved is not None:
            delivery.bytes, delivery.requests = moved
        if before:
            marked = self._worker.marked(delivery, frontier)
            if marked is None:
                return
            delivery.edges = marked
            self.reruns += 1
        edges = followed(delivery, frontier)
        waited, worked = self._worker.relax(iter([delivery]), frontier, lambda done: None, edges <= sizes.now.alone)
        record.wait += waited
        record.kernel += worked
        record.delivered(delivery)
        record.engines[engine.name]["tasks"] += 1
        if not before and moved is None:
            record.hit_edges += edges
        self._transfers.run(p, delivery, edges)

    def _came(self, p: int) -> tuple[int, int] | None:
        """Bytes and requests of the transfer that brought a partition in this iteration; None: it was near."""
        try:
            return self._transfers.moved(p)
        except KeyError:
            return None

    def _delivery(self, p: int, engine: Engine, frontier: Frontier) -> Delivery:
        parts, place, side = self._side.partitions, self._kept.place(p), self._side
        at = np.array([p])
        runs = Runs(
            parts.first[at], parts.last[at], parts.cuts[at], parts.cuts[at + 1], np.array([place.base]),
            np.array([place.weight_base if side.weight_width else place.base]),
        )  # fmt: skip
        edges: Runs | Rows = runs if frontier.list is None else as_rows(runs, frontier, side)
        return Delivery(Task(engine, side, at), place.targets, place.weights, edges, runs=runs)

    def close(self) -> None:
        self._transfers.close()
