"""Monotone programs that remember what each value depends on (dependency memoisation; Grapin, section 4).

The parent of a vertex is the neighbour whose message gave it its value. When an edge is deleted, only values that
depend on it are wrong. Value and parent must agree, and the published update (an atomic minimum, then compare-and-swap
of the parent) can lose a parent: between the two steps of one thread, another may write a better value and its parent,
which the first then overwrites. Here the parent's word is a lock: a thread takes it, compares once more, writes both,
and gives the word back with the new parent. Only an improvement takes it, and these are few beside the edges that are
looked at.

Parents never form a cycle, as messages are never better than the values they come from, and a value is only replaced by
a better one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add, atomic_cas, atomic_exchange, atomic_load, fence
from isthmus.programs.declaration import Monotone, above, below, bound, vertex_number
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State

NOBODY, LOCKED = 0xFFFFFFFF, 0xFFFFFFFE  # as in kernels.correction: no parent; a value is being written
STATE_BYTES = 13  # a parent, a byte for having changed, an entry in the list of those that have


def taken(parents: Any, v: Any) -> Any:
    """The parent of v, after its word was locked."""
    while True:
        # a plain read need not be repeated while the word is locked, and the loop would never end.
        parent = atomic_load(parents, v)
        if np.int64(parent) != LOCKED and atomic_cas(parents, v, parent, np.uint32(LOCKED)) == parent:
            return parent


def noted(v: Any, changed: Any, changes: Any, count: Any) -> Any:
    """Add v, whose word is locked, to the list of vertices that have changed, once."""
    if changed[v] == 0:
        changed[v] = 1
        changes[atomic_add(count, 0, np.int64(1))] = v
    return True


def level_of(u: Any, state: Any) -> Any:
    fence()  # the value of u was read before; a level is written before its value
    return state[1][u]


def go_below(v: Any, level: Any, state: Any) -> Any:
    state[1][v] = level + 1
    fence()


def no_level(u: Any, state: Any) -> Any:
    return 0


def stay(v: Any, level: Any, state: Any) -> Any:
    return 0


def remembering(program: Monotone, facts: Facts, position: int) -> Functions:
    """The functions of a monotone program, which also write parents: the state's array at `position`.

    Where the message is the value itself (`labels_are_vertices`), all values that depend on each other are equal. So
    vertices also have levels, in the state's second array: one more than the parent's when the value was written.
    Values only improve, so a final value comes from a final one, and then every level is larger than the parent's.
    """
    better = below if program.combine == "min" else above
    message, kind, number = program.message, program.dtype(facts), vertex_number(program.message, facts, 1)
    changed_at, changes_at, count_at = position + 1, position + 2, position + 3
    level, sink = (level_of, go_below) if has_levels(program) else (no_level, stay)

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        value = state[0][u]
        return value, degree, level(u, state)

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        value, degree, above_v = x
        values = state[0]
        y = kind(message(value, w, degree, number(u, state), params))
        if not better(y, values[v]):
            return False
        parents = state[position]
        parent = taken(parents, v)
        fence()
        improved = better(y, values[v])
        if improved:
            sink(v, above_v, state)
            values[v] = y
            parent = np.uint32(u)
            noted(v, state[changed_at], state[changes_at], state[count_at])
        fence()
        atomic_exchange(parents, v, parent)
        return improved

    def gives(u: Any, degree: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        """The same value, from a vertex that comes before v: a better one, which cannot depend on v."""
        value, own = state[0][u], state[0][v]
        return better(value, own) and kind(message(value, w, degree, number(u, state), params)) == own

    def gives_label(u: Any, degree: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        return state[0][u] == state[0][v] and state[1][u] < state[1][v]

    return Functions(source, edge, gives=gives_label if has_levels(program) else gives)


def has_levels(program: Monotone) -> bool:
    return getattr(program, "labels_are_vertices", False)


class Memoised(Program):
    """A monotone program in the middle of its work: it goes on from given values and parents, at the vertices in
    `start`.
    """

    order_free = True
    reruns = True
    live = True
    spread_array = 0  # values; a level is read when its value is, and belongs to it once both are final

    def __init__(self, program: Monotone, state: State, position: int) -> None:
        self.program, self._state, self._position = program, state, position
        self.name, self.sides, self.settles = program.name, program.sides, program.settles
        self.state_bytes = program.state_bytes + STATE_BYTES

    def reads_weights(self) -> bool:
        return self.program.reads_weights()

    def functions(self, facts: Facts) -> Functions:
        return remembering(self.program, facts, self._position)

    def begin(self, facts: Facts) -> State:
        return self._state

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {}

    def explain(self, reason: str) -> str:
        return self.program.explain(reason)


def first_values(program: Monotone, facts: Facts, room: int) -> tuple[State, int]:
    """The state in which a program starts, with room for `room` vertices; and where its parents are among the
    arrays.
    """
    begun = program.first_state(facts)
    n, position = facts.vertices, len(begun.arrays)
    begun.place(lambda array: with_room(array, n, room))
    begun.add("parents", np.full(room, NOBODY, np.uint32))
    begun.add("changed", np.zeros(room, np.uint8))
    begun.add("changes", np.empty(room, np.uint32))
    begun.add("count", np.zeros(1, np.int64))
    return begun, position


def with_room(array: Array, used: int, room: int) -> Array:
    larger = np.empty(room, array.dtype)
    larger[:used] = array[:used]
    return larger


def worst(program: Monotone, facts: Facts) -> Any:
    """The value of a vertex that nothing has reached; it is not sent. None: every vertex has a value from the start."""
    return None if program.start_value is None else bound(program.initial, program.dtype(facts))
