"""The tasks of an iteration as units of a schedule: an engine fetches each one, buffer by buffer."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from isthmus.devices.run_clock import RunClock
from isthmus.engines.engine import Delivery, Task
from isthmus.frontier import Frontier
from isthmus.runtime.executor.work import Work
from isthmus.runtime.trace.iteration import Iteration

if TYPE_CHECKING:
    from isthmus.runtime.near.near_memory import Pipeline


class TaskWork(Work):
    """Unit k is tasks[k]; the units after the tasks are the deliveries in `held`, which are near already.

    A delivery that has run is offered to the cache, and counted in `record` and by the clock of a modelled device.
    Deliveries that were fetched but not needed go to `unused`.
    """

    def __init__(
        self,
        tasks: list[Task],
        held: list[Delivery],
        frontier: Frontier,
        pipeline: Pipeline,
        record: Iteration,
        unused: list[Delivery],
        clock: RunClock | None = None,
    ) -> None:
        self.tasks, self.near, self.frontier = tasks, list(enumerate(held, len(tasks))), frontier
        self._link, self._buffers, self._cache = pipeline.link, pipeline.buffers, pipeline.cache
        self._record, self._unused, self._clock = record, unused, clock or RunClock()
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # for the record, which several members write

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        task = self.tasks[unit]
        for delivery in task.engine.deliver(task, self.frontier, self._link, self._buffers.take, channel):
            delivery.arrival = self._link.arrival(channel)
            moved = self._link.take(channel)
            if moved is not None:
                delivery.moved, delivery.bytes, delivery.requests = moved, moved.bytes, moved.requests
            delivery.number = next(self._numbers)
            yield delivery

    def finished(self, unit: int, delivery: Delivery) -> None:
        self._cache.keep(delivery)
        with self._lock:
            self._record.delivered(delivery)
            self._clock.worked(delivery, self.frontier)
        self._buffers.give_back(delivery.buffer)

    def dropped(self, delivery: Delivery) -> None:
        self._unused.append(delivery)
        self._buffers.give_back(delivery.buffer)

    def same_as(self, other: Work) -> bool:
        if not isinstance(other, TaskWork) or len(self.near) != len(other.near):  # units have the same numbers
            return False
        return [signature(task) for task in self.tasks] == [signature(task) for task in other.tasks]


def signature(task: Task) -> tuple[object, str, list[int]]:
    """What a task fetches. It does not depend on the frontier if all vertices are active."""
    return task.engine, task.side.name, task.partitions.tolist()


class HeldWork(TaskWork):
    """A single unit: deliveries from a cache, made one by one on demand, without a transfer."""

    def __init__(self, deliveries: Iterator[Delivery], frontier: Frontier, pipeline: Pipeline, *given: Any) -> None:
        super().__init__([], [], frontier, pipeline, *given)
        self._deliveries = deliveries

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        return self._deliveries
