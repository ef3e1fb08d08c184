"""Resident: all edges are near already; nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from isthmus.engines.engine import Delivery, Engine, GetBuffer, Ranges, Resources, Side, Task
from isthmus.engines.filter import as_rows
from isthmus.frontier import Frontier
from isthmus.link.link import Array, Link


class Resident(Engine):
    """Delivers the near arrays themselves."""

    name = "resident"
    code = 3
    colour = "#888899"

    @classmethod
    def make(cls, resources: Resources) -> Self:
        return cls({side.name: resources.load(side) for side in resources.sides})

    def __init__(self, arrays: dict[str, tuple[Array, Array | None]]) -> None:
        self.arrays = arrays  # side name: targets, weights

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        targets, weights = self.arrays[task.side.name]
        zero = np.zeros(1, np.int64)
        everything = Ranges(zero, zero + frontier.vertices, zero, zero + task.side.lists.slots, zero, zero)
        edges = everything if frontier.list is None else as_rows(everything, frontier, task.side)
        yield Delivery(task, targets, weights, edges)
