"""Reading ahead: reader threads bring the next tasks near while the kernel works on this one.

Buffers are few and fixed, so readers wait when they are too far ahead. An error in a reader is raised where the
deliveries are consumed; closing stops the readers at their next buffer.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator

from isthmus import sizes
from isthmus.engines.engine import Buffer, Delivery, Task
from isthmus.frontier import Frontier
from isthmus.link.link import Link
from isthmus.schedule.plain import Schedule

OWN_CHANNEL = 2  # of the link, for what the caller reads itself


class Stopped(Exception):
    """The consumer has gone."""


class Job:
    """The tasks of one iteration, shared by the readers."""

    def __init__(self, tasks: list[Task], schedule: Schedule, frontier: Frontier, readers: int, behind: Job | None = None) -> None:
        self.frontier, self.behind = frontier, behind
        self.read = threading.Event()  # everything has been brought near
        self.ready: queue.SimpleQueue[Delivery | BaseException | None] = queue.SimpleQueue()
        self._tasks, self._schedule = tasks, schedule
        self._lock = threading.Lock()
        self._readers = readers

    def next(self) -> Task | None:
        """The task to bring near next, as the schedule says."""
        with self._lock:
            return self._tasks.pop(self._schedule.next(self._tasks)) if self._tasks else None

    def cancel(self) -> None:
        """Begin no more of them."""
        with self._lock:
            self._tasks.clear()

    def left(self) -> bool:
        """A reader has nothing more to do; whether it was the last."""
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self.read.set()
            return self._readers == 0

    def deliveries(self) -> Iterator[Delivery]:
        while (delivery_or_error := self.ready.get()) is not None:
            if isinstance(delivery_or_error, BaseException):
                raise delivery_or_error
            yield delivery_or_error


class Pipeline:
    """Delivers tasks in the order a schedule gives."""

    def __init__(self, link: Link, buffers: list[Buffer]) -> None:
        self._link = link
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        for buffer in buffers:
            self._free.put(buffer)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ahead: tuple[list[Task], Job] | None = None  # read for the next iteration already
        self._stop = False
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count()
        self.unused: list[Delivery] = []  # read ahead, and then not needed

    def fetch(self, tasks: list[Task], schedule: Schedule, frontier: Frontier, edges: int, ahead: bool = False) -> Iterator[Delivery]:
        """Deliveries of all tasks, whose reads begin now. Whoever is done with one calls `give_back`.

        `ahead`: the next iteration will want the same, so begin with that before this one ends.
        """
        job = self._taken_from_ahead(tasks)
        if not tasks:
            return iter(())
        if job is None and len(tasks) == 1 and (edges <= sizes.now.few_edges or tasks[0].engine.name == "resident"):
            return self._deliver(tasks[0], frontier, OWN_CHANNEL)
        job = job or self._begin(Job(list(tasks), schedule, frontier, self._link.readers))
        if ahead:
            self._ahead = tasks, self._begin(Job(list(tasks), schedule, frontier, self._link.readers, job))
        return job.deliveries()

    def _deliver(self, task: Task, frontier: Frontier, channel: int) -> Iterator[Delivery]:
        for delivery in task.engine.deliver(task, frontier, self._link, self._get_buffer, channel):
            moved = self._link.take(channel)
            if moved is not None:
                delivery.moved, delivery.bytes, delivery.requests = moved, moved.bytes, moved.requests
            delivery.number = next(self._numbers)
            yield delivery

    def _begin(self, job: Job) -> Job:
        while len(self._threads) < self._link.readers:
            number = len(self._threads)
            self._threads.append(threading.Thread(target=self._serve, args=(number,), name=f"isthmus-reader-{number}", daemon=True))
            self._threads[-1].start()
        for _ in self._threads:
            self._jobs.put(job)
        return job

    def _taken_from_ahead(self, tasks: list[Task]) -> Job | None:
        """What was read ahead, if it is what is wanted now."""
        if self._ahead is None:
            return None
        (expected, job), self._ahead = self._ahead, None
        if [(t.engine, t.side.name, t.partitions.tolist()) for t in expected] == [
            (t.engine, t.side.name, t.partitions.tolist()) for t in tasks
        ]:
            return job
        self._drop(job)
        return None

    def _drop(self, job: Job) -> None:
        job.cancel()
        for delivery in job.deliveries():
            self.unused.append(delivery)
            self.give_back(delivery)

    def drop_ahead(self) -> None:
        """There is no next iteration."""
        if self._ahead is not None:
            (_, job), self._ahead = self._ahead, None
            self._drop(job)

    def give_back(self, delivery: Delivery) -> None:
        """The delivery's buffer may be filled again."""
        if delivery.buffer is not None:
            self._free.put(delivery.buffer)

    def _get_buffer(self) -> Buffer:
        buffer = self._free.get()
        if buffer is None or self._stop:
            raise Stopped
        return buffer

    def _serve(self, channel: int) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._wait_for(job.behind)
                job.behind = None
                while (task := job.next()) is not None:
                    for delivery in self._deliver(task, job.frontier, channel):
                        job.ready.put(delivery)
                if job.left():
                    job.ready.put(None)
            except Stopped:
                return
            except BaseException as error:
                job.ready.put(error)
                return

    def _wait_for(self, job: Job | None) -> None:
        """Let a job have all the buffers it needs before another one is begun ahead of time."""
        while job is not None and not job.read.wait(0.05):
            if self._stop:
                raise Stopped

    def close(self) -> None:
        """Stop the readers; returns when they have."""
        self._stop = True
        for _ in self._threads:
            self._jobs.put(None)
            self._free.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
