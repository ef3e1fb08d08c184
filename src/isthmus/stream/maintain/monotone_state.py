"""The state of a maintained monotone program: values, what each depends on, and which vertices a batch has changed.

Its arrays have spare entries for new vertices. They may lie in memory that a device uses as well, from batch to batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.stream import correction
from isthmus.programs.declaration import Monotone
from isthmus.programs.dependencies import NOBODY, Memoised, first_values, has_levels, with_room, worst
from isthmus.programs.program import Facts, State
from isthmus.stream.maintain.maintained import Array, Differences, with_spare

NO_INITIALS = np.empty(0, np.int64)


class MonotoneState:
    """Values and parents by vertex, and the list of vertices that have changed."""

    def __init__(self, program: Monotone, facts: Facts) -> None:
        """The values that a run from scratch begins with."""
        self.program, self.has_labels = program, has_levels(program)
        self.capacity = with_spare(facts.vertices)
        self._state, self._parents_at = first_values(program, facts, self.capacity)
        self.silent = worst(program, facts)  # the value that no vertex sends; None: every value is sent
        self._set_initial(facts)

    def _set_initial(self, facts: Facts) -> None:
        """What a vertex has that nothing has reached: `initials` by vertex, or, if that is empty, `initial`."""
        if self.program.initial == "vertex":
            self.initial, self.initials = 0, self._own_values(facts)
        elif self.silent is not None:
            self.initial, self.initials = self.silent, NO_INITIALS
        else:
            self.initial, self.initials = self.values.dtype.type(self.program.initial), NO_INITIALS

    def _own_values(self, facts: Facts) -> Array:
        if self.has_labels:
            return np.arange(self.capacity, dtype=self.values.dtype)
        naturals = facts.naturals()
        own = np.arange(facts.vertices) if naturals is None else naturals
        return with_room(own.astype(self.values.dtype), facts.vertices, self.capacity)

    # Arrays

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self._state.arrays

    @property
    def params(self) -> tuple[Any, ...]:
        return self._state.params

    @property
    def start(self) -> Array | None:
        """The vertices that a run from scratch starts with; None: all."""
        return self._state.start

    @property
    def values(self) -> Array:
        return self._state.arrays[0]

    @property
    def parents(self) -> Array:
        return self._state.arrays[self._parents_at]

    @property
    def levels(self) -> Array | None:
        """Of programs whose values name vertices: how far each vertex is from the one it names, along parents."""
        return self._state.arrays[1] if self.has_labels else None

    @property
    def changes(self) -> tuple[Array, Array, Array]:
        """A byte for each vertex that has changed, the list of these, and its length."""
        changed, changes, count = self._state.arrays[self._parents_at + 1 :]
        return changed, changes, count

    @property
    def silent_value(self) -> tuple[bool, Any]:
        """`silent` as kernels take it: whether there is such a value, and which."""
        return self.silent is not None, self.values.dtype.type(0 if self.silent is None else self.silent)

    def place(self, placed: Callable[[tuple[Array, ...]], tuple[Array, ...]]) -> None:
        """Let the arrays lie where `placed` puts them."""
        self._state.arrays = placed(self.arrays)

    def memoised(self, sides: tuple[str, ...], start: Array | None = None) -> Memoised:
        """A program that goes on with this state, at the vertices in `start` (None: all)."""
        return memoised(self.program, sides, self._state.like(self._state.arrays, start), self._parents_at)

    def sending(self, vertices: Array) -> Array:
        """Those of these vertices whose value is sent."""
        return vertices if self.silent is None else vertices[self.values[vertices] != self.silent]

    # Changes

    @property
    def changed_count(self) -> int:
        return int(self.changes[2][0])

    def note_all(self, vertices: int) -> None:
        """Note all vertices as changed."""
        changed, changes, count = self.changes
        changes[:vertices], changed[:vertices], count[0] = np.arange(vertices), 1, vertices

    def forget_changes(self) -> None:
        changed, changes, count = self.changes
        changed[changes[: int(count[0])]] = 0
        count[0] = 0

    def take_changes(self, published: Array) -> Differences:
        """Values that differ from the published ones; no vertex is noted as changed afterwards."""
        (changed, changes, _), count, kind = self.changes, self.changed_count, self.values.dtype
        vertices, old, new = np.empty(count, np.uint32), np.empty(count, kind), np.empty(count, kind)
        found = correction.take_changes(changes, count, changed, self.values, published, vertices, old, new)
        self.changes[2][0] = 0
        return Differences(vertices[:found], old[:found], new[:found])

    # Vertices that come and go

    def enlarge(self, facts: Facts, used: int) -> None:
        """Have entries for all vertices and spare ones; the first `used` stay as they are."""
        self.capacity = facts.vertices + facts.vertices // 4 + 64
        arrays = [with_room(array, used, self.capacity) if array.size > 1 else array for array in self.arrays]
        _, changes, count = self.changes
        changed = arrays[self._parents_at + 1] = np.zeros(self.capacity, np.uint8)
        changed[changes[: int(count[0])]] = 1
        self._state = self._state.like(tuple(arrays))
        self._set_initial(facts)

    def initialise(self, first: int, last: int) -> None:
        """Give vertices first:last, which are new, their initial values."""
        self.values[first:last] = self.initial_values(first, last)
        self.parents[first:last] = NOBODY
        if self.levels is not None:
            self.levels[first:last] = 0

    def initial_values(self, first: int, last: int) -> Any:
        return self.initials[first:last] if self.initials.size else self.initial

    def renumber(self, change: Change, vertices: int) -> None:
        """The last vertices have the numbers of removed ones now; parents are not renamed yet."""
        movers, holes, count = change.movers, change.holes, vertices + change.removed.size
        if self.has_labels and movers.size:
            to = np.arange(self.capacity, dtype=self.values.dtype)
            to[movers] = holes
            self.values[:count] = to[self.values[:count]]
        for array in self.arrays[: self._parents_at + 1]:
            array[holes] = array[movers]
        self.values[vertices:count] = 0

    def answer(self, arrays: tuple[Array, ...], facts: Facts) -> tuple[dict[str, Array], dict[str, Any]]:
        """Columns and figures of the program with these arrays."""
        state = self._state.like(arrays)
        state.over = True
        columns = self.program.result(state, facts)
        return columns, self.program.summary(columns, state)


def memoised(program: Monotone, sides: tuple[str, ...], state: State, parents_at: int) -> Memoised:
    """A monotone program that goes on with a state and follows these sides. Its parents are at that place in it."""
    found = Memoised(program, state, parents_at)
    found.sides = sides
    return found
