"""Maintained whole numbers: an array with spare entries for new vertices, and the list of those that a batch has
changed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.stream import correction
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import DIFFERENCE, Array, Differences, Maintained, with_spare
from isthmus.stream.maintain.neighbours import Neighbours


class MaintainedCounts(Maintained):
    """A whole number for each vertex, 0 for a new one, whatever the edges' direction."""

    @property
    def more_bytes(self) -> int:
        """Per vertex, beside the numbers and the list of those that have changed."""
        return 0

    def __init__(self, program: Program, session: Session, name: str | None = None) -> None:
        super().__init__(session)
        self.program, self.name, self.columns = program, name or program.name, program.columns
        self._neighbours = Neighbours(self)

    @property
    def sides(self) -> tuple[str, ...]:
        return ("out", "in") if self.graph.directed else ("out",)

    def reads_weights(self) -> bool:
        return False

    @abstractmethod
    def _from_scratch(self) -> Program:
        """The program that computes the numbers on the current snapshot."""

    def begin(self) -> None:
        self.restore()
        self._published = self._values[: self.graph.vertices].copy()

    def restore(self) -> None:
        n = self.graph.vertices
        self.session.near_memory.follow(self.graph.snapshot)
        run = execute(self._from_scratch(), self.session, quiet, None, None)
        self._values = run.columns[self.main].astype(np.int64)
        self._changes, self._count = np.empty(0, np.uint32), np.zeros(1, np.int64)
        self._resize(n, with_spare(n))

    def _resize(self, used: int, capacity: int) -> None:
        noted = self._changes[: int(self._count[0])]
        self._values = with_room(self._values, used, capacity)
        self._changed, self._changes = np.zeros(capacity, np.uint8), np.empty(capacity, np.uint32)
        self._changed[noted], self._changes[: noted.size] = 1, noted

    def _grow(self) -> None:
        """Have entries for new vertices."""
        n, before = self.graph.vertices, self._published.size
        if n > self._values.size:
            self._resize(before, n + n // 4 + 64)
        self._values[before:n] = 0

    @property
    def _noted(self) -> tuple[Array, Array, Array]:
        """Marks of the vertices that have changed, their list and its length."""
        return self._changed, self._changes, self._count

    def near_bytes(self, vertices: int) -> int:
        """Also differences of this batch and the last, the published numbers, and those of a run from scratch."""
        arrays = (8 + 1 + 4 + self.more_bytes) * with_spare(vertices) + vertices * (2 * DIFFERENCE + 8 + 8)
        return arrays + self._neighbours.near_bytes(vertices)

    def running(self) -> Program:
        return self._from_scratch()

    def renumber(self, change: Change) -> None:
        self._values[change.holes] = self._values[change.movers]
        self._published = self._values[: self.graph.vertices].copy()

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def unpublished(self) -> tuple[Differences, ...]:
        n, count = self.graph.vertices, int(self._count[0])
        if n > self._published.size:
            self._published = np.append(self._published, np.zeros(n - self._published.size, np.int64))
        vertices, old, new = np.empty(count, np.uint32), np.empty(count, np.int64), np.empty(count, np.int64)
        found = correction.take_changes(
            self._changes, count, self._changed, self._values, self._published, vertices, old, new
        )
        self._count[0] = 0
        return (Differences(vertices[:found], old[:found], new[:found]),)

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        columns = {self.main: arrays[0]}
        return columns, self.program.summary(columns, State(arrays, None))
