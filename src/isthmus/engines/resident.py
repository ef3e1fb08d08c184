"""Resident: all edges are near already; nothing moves."""

from __future__ import annotations

from collections.abc import Iterator



from isthmus.engines.engine import Delivery, Engine, GetBuffer, Side, Task
from isthmus.engines.filter import as_rows
from isthmus.frontier import Frontier
from isthmus.link.link import Array, Link


class Resident(Engine):
    """Hands out the arrays themselves."""

    name = "resident"

    def __init__(self, arrays: dict[str, tuple[Array, Array | None]]) -> None:
        self._arrays = arrays  # side name: targets, weights

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int) -> Iterator[Delivery]:
        targets, weights = self._arrays[task.side.name]
        arcs = int(task.side.offsets[-1])
        delivery = Delivery(task, targets, weights, first=0, last=frontier.vertices, begin=0, end=arcs)
        if frontier.list is not None:
            as_rows(delivery, frontier.list, task.side)
        yield delivery


