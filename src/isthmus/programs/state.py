"""The state of a run: all arrays that a program computes with, in one arena that a device can move.

Kernels get `state.arrays`, a tuple in the order in which `begin` named the arrays. A program asks by name:
`state["values"]`. It asks again whenever it needs an array, and holds none: not in its attributes, not in `extra`, not
in objects of its own. So a device moves the whole state by replacing the arrays in the arena (`place`), and nothing
else has to be searched. Arrays that a program was given as arguments are its inputs: `begin` may put them into the
state, and nothing writes into them.

A result gets arrays out of the arena in three ways, which copy while the run goes on and need no memory once it is
over:

- `given`: to read. The array stays in the arena; nobody may write into it, since a GPU may hold the same values and
  hand those over.
- `take`: to write into. The array leaves the arena: asking for it again is an error.
- `memory_like`: as `take`, for a result that overwrites every entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from isthmus.errors import ProgramError

Array = np.ndarray[Any, Any]


class State:
    """The arrays a kernel works on, and the vertices that start active."""

    def __init__(
        self,
        arrays: Mapping[str, Array] | tuple[Array, ...],
        start: Array | None,
        params: tuple[Any, ...] = (),
        extra: dict[str, Any] | None = None,
    ) -> None:
        """`arrays`: by name, or without names. `start`: the vertices that start active, as numbers or as a mask of all
        vertices; None: all.
        """
        self.names = tuple(arrays) if isinstance(arrays, Mapping) else ()
        # An entry for each vertex number; `state` of the program's functions.
        self.arrays: tuple[Array, ...] = tuple(arrays.values() if isinstance(arrays, Mapping) else arrays)
        self.start = start
        self.params = params  # numbers; `params` of the program's functions
        self.extra = {} if extra is None else extra  # anything else that the program needs between iterations
        self.over = False  # the run has ended: `result` may use the arrays
        self.taken: list[Array] = []  # arrays that have left the arena

    def __getitem__(self, name: str) -> Array:
        """The array of this name."""
        return self._there(self.arrays[self._position(name)])

    def __setitem__(self, name: str, array: Array) -> None:
        """Replace the array of this name by another."""
        k = self._position(name)
        self.arrays = (*self.arrays[:k], array, *self.arrays[k + 1 :])

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise ProgramError(f"state: expected one of {', '.join(self.names) or 'no names'}, got {name!r}")
        return self.names.index(name)

    def _there(self, array: Any) -> Array:
        """An array of the arena; an error if it has left it."""
        if array is TAKEN or any(array is each for each in self.taken):
            raise ProgramError(ALREADY_TAKEN)
        found: Array = array
        return found

    def add(self, name: str, array: Array) -> None:
        """Put one more array into the arena, behind the others."""
        self.names, self.arrays = (*self.names, name), (*self.arrays, array)

    def like(self, arrays: tuple[Array, ...], start: Array | None = None, params: Any = None) -> State:
        """A state of other arrays with the names of these, in order; further arrays have no names."""
        fresh = State(arrays, start, self.params if params is None else params, self.extra)
        fresh.names = self.names
        return fresh

    def place(self, move: Callable[[Array], Array]) -> None:
        """Replace every array in the arena by `move` of it."""
        self.arrays = tuple(map(move, self.arrays))

    def given(self, array: str | Array) -> Array:
        """An array for a result that only reads it: itself when the run is over, else a copy."""
        found = self._found(array)
        return found if self.over else found.copy()

    def take(self, array: str | Array) -> Array:
        """An array for a result that writes into it: taken out of the arena when the run is over, else a copy."""
        found = self._found(array)
        return self._taken(found) if self.over else found.copy()

    def memory_like(self, array: str | Array) -> Array:
        """Memory for a result of the shape and type of `array`: that array, taken, when the run is over, else fresh."""
        found = self._found(array)
        return self._taken(found) if self.over else np.empty_like(found)

    room = memory_like  # the name in the guide for programs

    def _found(self, array: str | Array) -> Array:
        return self[array] if isinstance(array, str) else self._there(array)

    def _taken(self, array: Array) -> Array:
        """Let the arena no longer offer this array, nor one of which it is a part."""
        there = [each for each in self.arrays if each is not TAKEN]
        left = [each for each in there if each is array or np.may_share_memory(each, array)]
        self.taken += left or [array]
        self.arrays = tuple(TAKEN if any(each is one for one in left) else each for each in self.arrays)
        return array


ALREADY_TAKEN = "state: this array was taken for the result, which may have overwritten it; read it before"


class Taken:
    """Stands in `State.arrays` where an array was taken; reading it is an error."""

    def __getattr__(self, name: str) -> Any:
        raise ProgramError(ALREADY_TAKEN)

    def __getitem__(self, key: Any) -> Any:
        raise ProgramError(ALREADY_TAKEN)


TAKEN: Any = Taken()
