"""A program's scalar functions: plain `def`s, which become the text that kernels are compiled with.

`source`, `edge` and `found`, or `nothing`, `sent` and `received`, are what the loops of `kernels/loops/skeleton.py`
call; that module says what each of them means. They are functions of a module, static methods, or functions inside a
function. Names from outside are resolved when a function is read, so a function inside another is specialised by the
values around it.

- A number becomes a literal, so one that changes from run to run belongs in `params`.
- A function is read the same way and is placed before those that call it.
- The atomics of `kernels/compile/atomics.py`, `np`, `math`, types such as np.int64 and Python's min, max, abs, ... stay
  as they are.
- A `Message` is called with (value, weight, degree, vertex, params), whichever of these it asks for.
- A loop over `unrolled(N)` is unrolled.

Anything else is an error that quotes file, line and text.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import FunctionType
from typing import Any

import numpy as np

from isthmus.errors import ProgramError
from isthmus.kernels.compile import atomics
from isthmus.programs.message import INT_MIN, Message, Source
from isthmus.programs.syntax_tree import Rewriting, literal, unrolled

Scalar = Callable[..., Any]
UINT_MAX = np.iinfo(np.uint64).max
ARGUMENTS = {
    "source": "u, degree, state, params",
    "edge": "x, u, v, w, state, params",
    "found": "u, v, state, params",
    "gives": "u, degree, v, w, state, params",
    "nothing": "params",
    "sent": "total, u, w, state, params",
    "received": "v, total, state, params",
}
ATOMIC_NAMES = (
    "atomic_add",
    "atomic_cas",
    "atomic_exchange",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "fence",
    "lowest_bit",
    "prefetch",
)
BUILTIN_NAMES = ("min", "max", "abs", "float", "int", "bool", "round", "range", "len")
# Names that every module of loops has.
THERE = {id(getattr(atomics, name)): name for name in ATOMIC_NAMES} | {
    id(getattr(builtins, name)): name for name in BUILTIN_NAMES
}
THERE |= {id(np): "np", id(math): "math"}
__all__ = ["Functions", "unrolled"]


@dataclass(frozen=True)
class Functions:
    """What a program does along edges: `source` and `edge`, with `found` if it seeks; or `nothing`, `sent`, `received`
    if it pulls.

    `gives` is for programs that streams keep current, see kernels.incremental.
    """

    source: Scalar | None = None
    edge: Scalar | None = None
    found: Scalar | None = None
    gives: Scalar | None = None
    nothing: Scalar | None = None
    sent: Scalar | None = None
    received: Scalar | None = None

    def text(self) -> str:
        """The text of all functions, as kernels are compiled with. Programs of equal text share their machine code."""
        given = {
            field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) is not None
        }
        needed = ("source", "edge") if {"source", "edge"} & set(given) else ("nothing", "sent", "received")
        missing = [role for role in needed if role not in given]
        if missing:
            raise ProgramError(
                f"functions: expected source and edge, or nothing, sent and received; {', '.join(missing)} missing"
            )
        text = Text()
        for role, function in given.items():
            text.add(role, function)
        return "\n\n".join(text.parts)


class Text:
    """The functions that were written so far, each after those it calls."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._names: dict[Scalar, str] = {}  # of helpers
        self._taken = {
            *ARGUMENTS,
            *THERE.values(),
            "njit",
            "compiled",
            "called",
            "inf",
            "INT_MAX",
            "INT_MIN",
            "AHEAD",
            "message",
        }
        self._message: Message | None = None

    def add(self, role: str, function: Scalar) -> None:
        """Write `function` under the name of its role."""
        source = plain(function, role)
        count, expected = len(source.arguments), ARGUMENTS[role]
        if count != expected.count(",") + 1:
            raise source.wrong(source.tree.lineno, f"has {count} arguments; expected {role}({expected})")
        self._write(role, source)

    def _write(self, name: str, source: Source) -> None:
        source.check_arguments(least=0)
        outside = visible(source)
        rewriting = Rewriting(source, outside, lambda node: self._resolved(node, outside[node.id], source))
        self.parts.append(f"@called\n{ast.unparse(rewriting.function(name))}\n")

    def _resolved(self, node: ast.Name, value: Any, source: Source) -> ast.expr:
        """The expression that replaces a name from outside."""
        if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
            if isinstance(value, int) and not INT_MIN <= value <= UINT_MAX:
                raise source.wrong(node.lineno, f"uses {node.id!r}, which is {value} and does not fit 64 bits")
            return literal(value)
        if id(value) in THERE:
            return ast.Name(THERE[id(value)])
        if isinstance(value, type) and issubclass(value, np.number):
            return ast.Attribute(ast.Name("np"), value.__name__)
        if isinstance(value, Message):
            return self._the_message(value)
        if isinstance(value, FunctionType) and value is not unrolled:
            return ast.Name(self._helper(value))
        raise source.wrong(
            node.lineno,
            f"uses {node.id!r}, which is {type(value).__name__} {value!r:.60}; expected a number, a function, an "
            f"atomic of "
            "isthmus.kernels.compile.atomics, np or math",
        )

    def _the_message(self, message: Message) -> ast.expr:
        if self._message is None:
            self._message = message
            self.parts.append(message.text)
        if self._message is not message:
            raise message.wrong(f"is in the same functions as that of {self._message.name}; expected one message")
        return ast.Name("message")

    def _helper(self, function: FunctionType) -> str:
        """The name of a function that others call; the first call of it adds its text."""
        if function not in self._names:
            name = wanted = function.__name__
            while name in self._taken:
                name = f"{wanted}_{len(self._taken)}"
            self._names[function] = name
            self._taken.add(name)
            self._write(name, plain(function, wanted))
        return self._names[function]


def plain(function: Any, role: str) -> Source:
    """The source of a function that is not bound to an object."""
    if isinstance(function, staticmethod):
        function = function.__func__
    if not isinstance(function, FunctionType):
        raise ProgramError(
            f"functions: expected a plain function as {role}, got {type(function).__name__} {function!r:.60}"
        )
    return Source.of(function, "a program's function")


def visible(source: Source) -> Mapping[str, Any]:
    """The names from outside that a function can use: of the functions around it, of its module, of Python."""
    function = source.function
    around = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    return ChainMap(around, function.__globals__, vars(builtins))
