"""What programs share that are kept current by values and residuals: x = values + the effect of the residuals.

Rounding: every value that is added to loses up to half a unit in its last place, and the residuals no longer say
exactly what the values lack. `_lost` counts what this may come to since residuals were last computed from the values.
When it could matter, they are computed anew, in one pass over all edges, so that answers do not drift however many
batches come.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from isthmus import sizes
from isthmus.errors import ProgramError
from isthmus.graph.changing.change import Change
from isthmus.kernels.loops import skeleton
from isthmus.programs.declaration import ByDeltas
from isthmus.programs.dependencies import with_room
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.stream.maintain.maintained import DIFFERENCE, Array, Differences, Maintained, with_spare

NO_WEIGHTS = np.empty(0, np.int32)
VERTEX_BYTES = 1 + 4  # a mark, an entry in a queue
# of a value, lost in an iteration: the value, its message and its residual are rounded.
ROUNDING = 4 * np.finfo(np.float64).eps


class MaintainedResiduals(Maintained):
    """Values, residuals and deltas, in the first three arrays of a state with room for new vertices."""

    program: ByDeltas
    state: State
    more_bytes = 0  # per vertex, beside the program's state
    bounds_each = True  # whether the error is bounded at every vertex, and not in sum

    @property
    def sides(self) -> tuple[str, ...]:
        return ("out",)

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    @abstractmethod
    def _start(self) -> None:
        """Compute values and residuals from scratch."""

    def begin(self) -> None:
        self._start()
        self._published: Array = self._scores()

    def restore(self) -> None:
        self._start()

    def _make_room(self, state: State) -> None:
        n = self.graph.vertices
        self._room = with_spare(n)
        self.state = state
        state.place(lambda array: with_room(array, n, self._room))
        self._marks = np.zeros(self._room, np.uint8)
        self._queue = np.empty(0, np.uint32)
        self._lost = 0.0

    def _grow(self, before: int, residual: float, threshold: float) -> None:
        """Make room for the vertices that are new since there were `before`, each with this residual."""
        n = self.graph.vertices
        if n > self._room:
            self._room = n + n // 4 + 64
            self.state.place(lambda array: with_room(array, before, self._room))
            self._marks = np.append(self._marks, np.zeros(self._room - self._marks.size, np.uint8))
        if n > before:
            self.state["values"][before:n] = self.state["deltas"][before:n] = 0.0
            self.state["residual"][before:n] = residual
            self._marks[before:n] = abs(residual) > threshold

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        self.refuse_removal(getattr(self.program, "sources", ()), change)

    def _build(self, facts: Facts) -> None:
        """Compile the loops that bring answers up to date."""
        self._weighted = self.reads_weights() and self.graph.weighted
        text = self.program.text(facts)
        self._module = skeleton.build(
            self.program.name, text, self._weighted, False, self.program.prefetched_array, True
        )

    def _follow(self, starts: Array) -> bool:
        """Let one thread follow these vertices and all that become active; False: there were too many, and the others
        are marked.
        """
        if not self.graph.lists_are_near:
            self._marks[starts] = 1
            return False
        begins, ends, targets, weights = self.graph.sides["out"].arrays()
        given = (begins, ends, targets, weights if self._weighted else NO_WEIGHTS, self.state.arrays, self.state.params)
        if self._queue.size < self.graph.vertices:
            self._queue = np.empty(self._room, np.uint32)
        most = sizes.now.settled_alone
        vertices, edges, rounds, total = self._module.drain(starts, most, *given, self._marks, self._queue)
        self.effort.edges_read += int(edges)
        self.effort.affected += int(vertices)
        self._lost += ROUNDING * (int(rounds) * self._largest() if self.bounds_each else float(total))
        self._check_growth()
        return int(edges) < most

    def _execute(self, start: Array | None) -> tuple[ByDeltas, State]:
        """Let the loop of every run go on from these vertices (None: all); returns the program and the state as it left
        them.
        """
        state = self.state.like(self.state.arrays, start)
        program = self.program.resumed(state)
        self.session.near_memory.follow(self.graph.snapshot)
        run = execute(program, self.session, quiet, None, None)
        self.effort.edges_read += int(run.trace.total("active_edges"))
        active = [iteration.active_vertices for iteration in run.trace]
        self.effort.affected += int(sum(active))
        largest, total = self._largest(), float(np.abs(self.state["values"][: self.graph.vertices]).sum())
        self._lost += ROUNDING * sum(largest if self.bounds_each else min(count * largest, total) for count in active)
        self._check_growth()
        return program, state

    def _check_growth(self) -> None:
        """Raise ProgramError if values have grown without end."""
        if not np.isfinite(self._lost):
            raise ProgramError(f"{self.name} does not converge on this graph: {self.program.explain_growth()}")

    def _largest(self) -> float:
        return float(np.abs(self.state["values"][: self.graph.vertices]).max(initial=0.0))

    def _take_marked(self) -> Array:
        chosen = np.flatnonzero(self._marks[: self.graph.vertices])
        self._marks[chosen] = 0
        return chosen

    def _scores(self) -> Array:
        n = self.graph.vertices
        scores: Array = self.state["values"][:n] + self.state["residual"][:n]
        return scores

    def near_bytes(self, vertices: int) -> int:
        """When it is published: differences of this batch and the last, scores before and after, three temporary
        arrays.
        """
        arrays = self.program.state_bytes + VERTEX_BYTES + self.more_bytes
        return arrays * with_spare(vertices) + vertices * (2 * DIFFERENCE + 5 * 8 + 1)

    def publishing_bytes(self, vertices: int) -> int:
        """Differences of this batch, scores after it, and temporary arrays; of these, passes may need two as well."""
        return vertices * (DIFFERENCE + 8 + 8 + 1)

    def running(self) -> Program:
        return self.program

    def published(self) -> tuple[Array, ...]:
        return (self._published,)

    def unpublished(self) -> tuple[Differences, ...]:
        n, values, residuals = self.graph.vertices, self.state["values"], self.state["residual"]
        if n > self._published.size:
            self._published = np.append(self._published, np.zeros(n - self._published.size))

        def part(first: int, last: int) -> tuple[Array, Array, Array]:
            before, now = self._published[first:last], values[first:last] + residuals[first:last]
            changed = np.flatnonzero(now != before)
            return (changed + first).astype(np.uint32), before[changed], now[changed]

        parts = self.team.split(part, n) or [part(0, 0)]
        return (
            Differences(
                *(np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*parts, strict=True))
            ),
        )
