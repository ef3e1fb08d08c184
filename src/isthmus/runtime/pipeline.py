"""Reading ahead: reader threads bring the next tasks near while the kernel works on this one.

Buffers are few and fixed, so readers wait when they are too far ahead. An error in a reader is raised where the
deliveries are consumed; closing stops the readers at their next buffer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from isthmus.engines.engine import Buffer, Delivery, Task
from isthmus.frontier import Frontier
from isthmus.link.link import Link
from isthmus.schedule.plain import Schedule

READERS = 2  # so that one's last reads overlap with the other's first
FEW_EDGES = 1 << 16  # a task this small is read by the caller: a hand-over would cost more


class Stopped(Exception):
    """The consumer has gone."""


class Job:
    """The tasks of one iteration, shared by the readers."""

    def __init__(self, tasks: list[Task], schedule: Schedule, frontier: Frontier) -> None:
        self.frontier = frontier
        self._tasks, self._schedule = tasks, schedule
        self._lock = threading.Lock()
        self._readers = READERS

    def next(self) -> Task | None:
        """The task to bring near next, as the schedule says."""
        with self._lock:
            return self._tasks.pop(self._schedule.next(self._tasks)) if self._tasks else None

    def left(self) -> bool:
        """A reader has nothing more to do; whether it was the last."""
        with self._lock:
            self._readers -= 1
            return self._readers == 0


class Pipeline:
    """Delivers tasks in the order a schedule gives."""

    def __init__(self, link: Link, buffers: list[Buffer]) -> None:
        self._link = link
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        for buffer in buffers:
            self._free.put(buffer)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[Delivery | BaseException | None] = queue.SimpleQueue()
        self._stop = False
        self._threads: list[threading.Thread] = []

    def fetch(self, tasks: list[Task], schedule: Schedule, frontier: Frontier, edges: int) -> Iterator[Delivery]:
        """Deliveries of all tasks. Whoever is done with one calls `give_back`."""
        if not tasks:
            return
        if len(tasks) == 1 and (edges <= FEW_EDGES or tasks[0].engine.name == "resident"):
            yield from tasks[0].engine.deliver(tasks[0], frontier, self._link, self._get_buffer, READERS)
            return
        while len(self._threads) < READERS:
            number = len(self._threads)
            self._threads.append(threading.Thread(target=self._serve, args=(number,), name=f"isthmus-reader-{number}", daemon=True))
            self._threads[-1].start()
        job = Job(list(tasks), schedule, frontier)
        for _ in self._threads:
            self._jobs.put(job)
        while (delivery_or_error := self._ready.get()) is not None:
            if isinstance(delivery_or_error, BaseException):
                raise delivery_or_error
            yield delivery_or_error

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
                while (task := job.next()) is not None:
                    for delivery in task.engine.deliver(task, job.frontier, self._link, self._get_buffer, channel):
                        self._ready.put(delivery)
                if job.left():
                    self._ready.put(None)
            except Stopped:
                return
            except BaseException as error:
                self._ready.put(error)
                return

    def close(self) -> None:
        """Stop the readers; returns when they have."""
        self._stop = True
        for _ in self._threads:
            self._jobs.put(None)
            self._free.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
