"""A parameter of an algorithm or an option of a run, as it is declared: its help, and how the shell reads it.

It imports nothing of weight: the shell reads declarations before it knows which command runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

if TYPE_CHECKING:
    from isthmus.graph.snapshot import Snapshot


class Kind(Enum):
    """What values a parameter takes, where its type does not say. The shell parses its arguments accordingly."""

    PLAIN = "a number, a word or a flag"
    VERTEX = "a vertex id"
    VERTICES = "several vertex ids"
    BY_VERTEX = "numbers by vertex id"
    ARRAY = "an array: a .npy file on the shell"
    ARRAYS = "an array from a .npz file, which may hold arrays for other parameters as well"
    SIZES = "numbers separated by commas"
    NAMES = "names separated by commas"


@dataclass(frozen=True)
class Option:
    """How help and the shell present a parameter. `least`: its smallest value. `flag`: its name on the shell.

    `metavar` stands for the value in help; for numbers by vertex it names the number. `sample` makes a value from a
    graph, for tests of all algorithms. It is needed where there is no default, or one that does not suit every graph.
    """

    help: str
    least: float | None = None
    flag: str | None = None
    metavar: str | None = None
    kind: Kind = Kind.PLAIN
    sample: Callable[[Snapshot], Any] | None = None


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm: name, type, default (`inspect.Parameter.empty`: none) and help."""

    name: str
    type: Any
    default: Any
    option: Option

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def __str__(self) -> str:
        """As it stands in a signature."""
        return self.name if self.required else f"{self.name}={self.default!r}"


def parameter_of(name: str, hint: Any, default: Any) -> Parameter:
    option = Option("")
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        option = next((each for each in more if isinstance(each, Option)), option)
    return Parameter(name, hint, default, option)
