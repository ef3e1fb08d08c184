"""Deliveries from a cache: traces and drawings show them as an engine of their own, though nothing moves."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.engines.engine import Delivery, Engine, GetBuffer, Side, Task
from isthmus.frontier import Frontier
from isthmus.link.link import Array, Link


class Held(Engine):
    """Deliveries from a cache are counted for this engine; it reads nothing itself."""

    name = "cache"
    code = 6
    colour = "#8877ff"

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        yield from ()
