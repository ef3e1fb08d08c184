"""The tasks of an iteration as units of a schedule: an engine fetches each one, buffer by buffer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from isthmus.devices.worker import Piece, Worker
from isthmus.engines.engine import Delivery, Task
from isthmus.frontier import Frontier
from isthmus.link.link import Link
from isthmus.runtime.executor.buffers import Buffers
from isthmus.runtime.executor.work import Work

Done = Callable[[Delivery], None]


class TaskWork(Work):
    """Unit k is tasks[k]; the units after the tasks are the deliveries in `held`, which are near already.

    `done` is called with every delivery that has run, `unused` with every delivery that was fetched but not needed.
    """

    def __init__(
        self,
        tasks: list[Task],
        held: list[Delivery],
        frontier: Frontier,
        link: Link,
        buffers: Buffers,
        worker: Worker,
        done: Done,
        unused: Done,
    ) -> None:
        self.tasks, self.held = tasks, held
        self.frontier, self._link, self._buffers, self._worker = frontier, link, buffers, worker
        self._done, self._unused = done, unused
        self._numbers = itertools.count()

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        task = self.tasks[unit]
        for delivery in task.engine.deliver(task, self.frontier, self._link, self._buffers.take, channel):
            delivery.arrival = self._link.arrival(channel)
            moved = self._link.take(channel)
            if moved is not None:
                delivery.moved, delivery.bytes, delivery.requests = moved, moved.bytes, moved.requests
            delivery.number = next(self._numbers)
            yield delivery

    def near(self) -> list[tuple[int, Delivery]]:
        return list(enumerate(self.held, len(self.tasks)))

    def pieces(self, unit: int, delivery: Delivery) -> list[Piece]:
        return self._worker.pieces(delivery, self.frontier)

    def again(self, unit: int, delivery: Delivery) -> list[Piece]:
        return self._worker.again(delivery, self.frontier)

    def finished(self, unit: int, delivery: Delivery) -> None:
        self._done(delivery)
        self._buffers.give_back(delivery.buffer)

    def dropped(self, delivery: Delivery) -> None:
        self._unused(delivery)
        self._buffers.give_back(delivery.buffer)

    def same_as(self, other: Work) -> bool:
        if not isinstance(other, TaskWork) or len(self.held) != len(other.held):  # units have the same numbers
            return False
        return [signature(task) for task in self.tasks] == [signature(task) for task in other.tasks]


def signature(task: Task) -> tuple[object, str, list[int]]:
    """What a task fetches. It does not depend on the frontier if all vertices are active."""
    return task.engine, task.side.name, task.partitions.tolist()


class HeldWork(Work):
    """Deliveries from a cache, made one by one on demand, without a transfer."""

    def __init__(self, deliveries: Iterator[Delivery], frontier: Frontier, worker: Worker, done: Done) -> None:
        self._deliveries, self._frontier, self._worker, self._done = deliveries, frontier, worker, done

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        return self._deliveries

    def pieces(self, unit: int, delivery: Delivery) -> list[Piece]:
        return self._worker.pieces(delivery, self._frontier)

    def finished(self, unit: int, delivery: Delivery) -> None:
        self._done(delivery)
