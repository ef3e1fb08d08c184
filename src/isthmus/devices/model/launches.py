"""What a launch reads: on a modelled device, the values as they stood when it began.

On a card many thousand threads run a kernel at once, and hardly any of them sees what another has just written. A few
threads of a host walk through the vertices in order and see nearly everything, so that one iteration would carry a
label across a whole grid, and how far would depend on the threads' speed. So a launch works from a copy: when it
begins, the values of its active vertices are set aside, and `source` reads those. `edge` reads and writes the live
values, which the next launch reads; whether a minimum or a maximum improves a vertex in the end does not depend on the
order of its edges.

A launch is what the modelled clock charges as one: a task whose kernel fetches its edges itself, otherwise a delivery,
and each further run of a delivery. Launches run one after the other. Only active vertices are copied, as `source` reads
no others. The copy is the host's, no part of near memory.
"""

from __future__ import annotations

import numpy as np

from isthmus.devices.worker import LiveValues
from isthmus.engines.engine import Delivery, Ranges, Rows, Task
from isthmus.engines.zero_copy import stretches
from isthmus.frontier import Frontier
from isthmus.link.link import Array
from isthmus.programs.program import Program, State


class Launches(LiveValues):
    """Sets aside what each launch of a program reads. Not thread-safe."""

    def __init__(self, program: Program, state: State) -> None:
        super().__init__(state)
        self._spread = program.spread_array
        self._found = None if self._spread is None else np.empty_like(state.arrays[self._spread])
        self._task: Task | None = None  # of the last launch, if its kernel fetches its edges itself

    def begin(self, delivery: Delivery, edges: Ranges | Rows, frontier: Frontier) -> None:
        """Begin the launch that runs a delivery's edges, or go on with the launch of its task."""
        task = delivery.task
        if self._spread is None or task is self._task:
            return
        self._task = task if task.engine.streams else None
        if task.engine.streams:
            parts = task.side.partitions
            for begin, end in stretches(task.partitions):
                self._take_range(int(parts.first[begin]), int(parts.last[end - 1]), frontier)
        elif isinstance(edges, Rows):
            self._take(edges.vertices)
        else:
            for first, last in zip(edges.first.tolist(), edges.last.tolist(), strict=True):
                self._take_range(first, last, frontier)

    def again(self, rows: Rows) -> None:
        """Begin a further run of these rows."""
        self._take(rows.vertices)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The state as the launch found it, at its active vertices."""
        arrays, k = self._state.arrays, self._spread
        return arrays if k is None or self._found is None else (*arrays[:k], self._found, *arrays[k + 1 :])

    def _take_range(self, first: int, last: int, frontier: Frontier) -> None:
        self._take(slice(first, last) if frontier.list is None else frontier.rows(first, last))

    def _take(self, which: Array | slice) -> None:
        if self._spread is not None and self._found is not None:
            self._found[which] = self._state.arrays[self._spread][which]
