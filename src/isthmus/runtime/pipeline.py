"""Reading ahead: a reader thread brings the next tasks near while the kernel works on this one.

Buffers are few and fixed, so the reader waits when it is too far ahead. An error in the reader is raised where
the deliveries are consumed; closing stops the reader at its next buffer.
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

FEW_EDGES = 1 << 16  # a task this small is read by the caller: a hand-over would cost more


class Stopped(Exception):
    """The consumer has gone."""


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
        self._thread: threading.Thread | None = None

    def fetch(self, tasks: list[Task], schedule: Schedule, frontier: Frontier, edges: int) -> Iterator[Delivery]:
        """Deliveries of all tasks. Whoever is done with one calls `give_back`."""
        if not tasks:
            return
        if len(tasks) == 1 and (edges <= FEW_EDGES or tasks[0].engine.name == "resident"):
            yield from tasks[0].engine.deliver(tasks[0], frontier, self._link, self._get_buffer, 1)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="isthmus-reader", daemon=True)
            self._thread.start()
        self._jobs.put((list(tasks), schedule, frontier))
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

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            tasks, schedule, frontier = job
            try:
                while tasks:
                    task = tasks.pop(schedule.next(tasks))
                    for delivery in task.engine.deliver(task, frontier, self._link, self._get_buffer, 0):
                        self._ready.put(delivery)
                self._ready.put(None)
            except Stopped:
                return
            except BaseException as error:
                self._ready.put(error)
                return

    def close(self) -> None:
        """Stop the reader; returns when it has."""
        self._stop = True
        self._jobs.put(None)
        self._free.put(None)
        if self._thread is not None:
            self._thread.join()
