"""A user's message function: read from its source, checked, and turned into text that kernels are compiled with.

The first argument is the value (or delta) of the vertex at the edge's tail. Arguments named `weight`, `degree` and
`vertex` are filled in; every other argument is a parameter, a number known at run time. Errors quote the file, the
line and the text that is wrong.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from isthmus.errors import OptionError, ProgramError

INT_MAX = np.iinfo(np.int64).max
INT_MIN = np.iinfo(np.int64).min
GIVEN = ("weight", "degree", "vertex")  # arguments that every message may ask for
NAMES = {"math": math, "np": np, "inf": np.inf, "INT_MAX": INT_MAX, "INT_MIN": INT_MIN}
KNOWN = {*NAMES, "min", "max", "abs", "float", "int", "bool", "round", "range", "len"}


@dataclass(frozen=True)
class Message:
    """A message function, read but not yet compiled."""

    name: str
    text: str  # as kernels have it
    quoted: str  # as the user wrote it
    where: str  # file:line
    arguments: tuple[str, ...]
    defaults: dict[str, int | float]
    whole: bool  # whole numbers in, a whole number out
    function: Callable[..., Any]  # as plain Python

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Message:
        """Read `function`'s source; complain, with its line, about what cannot be compiled."""
        source = Source.of(function)
        source.check_arguments()
        source.check_names()
        source.check_constants()
        defaults = source.defaults()
        plain = FunctionType(
            function.__code__, {**function.__globals__, **NAMES}, function.__name__, function.__defaults__
        )
        whole = keeps_whole(source.tree)
        return cls(source.name, source.text(), source.quoted(), source.where, source.arguments, defaults, whole, plain)

    def __call__(self, value: Any, weight: Any, degree: Any, vertex: Any, params: Any) -> Any:
        """What is sent along an edge, as kernels call it; see `ordered`."""
        given = {"weight": weight, "degree": degree, "vertex": vertex, **dict(zip(self.defaults, params, strict=False))}
        return self.function(value, *(given[argument] for argument in self.arguments[1:]))

    def ordered(self, arguments: list[ast.expr]) -> list[ast.expr]:
        """The arguments that the function itself takes, out of a kernel's (value, weight, degree, vertex, params)."""
        value, weight, degree, vertex, params = arguments
        given = {"weight": weight, "degree": degree, "vertex": vertex}
        numbers = {name: ast.Subscript(params, ast.Constant(i), ast.Load()) for i, name in enumerate(self.defaults)}
        return [value, *(given.get(argument) or numbers[argument] for argument in self.arguments[1:])]

    def parameters(self, given: dict[str, Any]) -> dict[str, int | float]:
        """Every parameter's value. It has the type of the default where it can, so that nothing recompiles."""
        unknown = set(given) - set(self.defaults)
        if unknown:
            raise OptionError(
                f"{self.name}: unknown parameter {', '.join(sorted(unknown))}; it has "
                f"{', '.join(self.defaults) or 'none'}"
            )
        return {name: self._number(name, given.get(name, default), default) for name, default in self.defaults.items()}

    def _number(self, name: str, value: Any, default: int | float) -> int | float:
        if isinstance(value, str | bool) or not hasattr(value, "__float__"):
            raise OptionError(f"{self.name}: parameter {name}: expected a number, got {value!r}")
        if isinstance(default, float) or not hasattr(value, "__index__"):
            return float(value)
        whole = operator.index(value)
        if not INT_MIN <= whole <= INT_MAX:
            raise OptionError(f"{self.name}: parameter {name}: expected a number of 64 bits, got {value}")
        return whole

    def check_result(self, value: Any, weight: Any, parameters: dict[str, int | float]) -> None:
        """Call the message once as plain Python: it must not fail, and must return a number."""
        try:
            with np.errstate(all="ignore"):
                result = self(value, weight, np.int64(1), np.int64(0), [parameters[name] for name in self.defaults])
        except ArithmeticError:
            return  # kernels divide by zero as NumPy does
        except Exception as error:
            raise self.wrong(f"fails: {type(error).__name__}: {error}") from error
        if isinstance(result, bool | np.bool_ | complex | np.complexfloating) or not isinstance(
            result, int | float | np.number
        ):
            raise self.wrong(f"returns {type(result).__name__}, expected a number")

    def wrong(self, complaint: str) -> ProgramError:
        """An error about the whole message, with its line and text."""
        return ProgramError(f"{self.where}: the message of {self.name} {complaint}\n{self.quoted}")

    def explain(self, reason: str) -> str:
        return str(self.wrong(f"does not compile: {reason}"))


@dataclass(frozen=True)
class Source:
    """The text of a function and its tree."""

    function: Callable[..., Any]
    path: str
    first: int  # line of its first decorator, or of the def
    lines: list[str]
    tree: ast.FunctionDef

    @classmethod
    def of(cls, function: Callable[..., Any], what: str = "the message") -> Source:
        name = getattr(function, "__name__", repr(function))
        try:
            code = function.__code__
            path, first, lines, tree = read(code, code.co_filename)
        except (AttributeError, OSError, TypeError):
            raise ProgramError(
                f"{name}: {what} must be a `def` in a file or notebook cell, so that its source can be kept"
            ) from None
        if not isinstance(tree, ast.FunctionDef):
            raise ProgramError(f"{path}:{first}: expected a `def`, got {lines[0].strip()!r}")
        return cls(function, path, first, lines, tree)

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def where(self) -> str:
        return f"{self.path}:{self.first + self.tree.lineno - 1}"

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(argument.arg for argument in self.tree.args.args)

    def wrong(self, line: int, complaint: str) -> ProgramError:
        """An error that quotes a line, counted from the first."""
        return ProgramError(
            f"{self.path}:{self.first + line - 1}: {self.name} {complaint}\n    {self.lines[line - 1].strip()}"
        )

    def check_arguments(self, least: int = 1) -> None:
        arguments = self.tree.args
        if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
            raise self.wrong(self.tree.lineno, "has keyword-only, positional-only or star arguments; use plain ones")
        if len(arguments.args) < least:
            raise self.wrong(self.tree.lineno, "needs at least one argument, the value of the vertex")

    def check_names(self) -> None:
        around = self.function.__code__.co_freevars
        names = [node for statement in self.tree.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(self.arguments) | KNOWN
        for node in names:
            if node.id in around:
                raise self.wrong(
                    node.lineno, f"uses {node.id!r} from the function around it; make it a parameter with a default"
                )
            if node.id not in own:
                raise self.wrong(
                    node.lineno,
                    f"uses the name {node.id!r}, which kernels do not have; make it a parameter with a default",
                )

    def check_constants(self) -> None:
        """Refuse whole numbers of more than 64 bits, which would overflow in a kernel."""
        for node in [each for each in ast.walk(ast.Module(self.tree.body, [])) if isinstance(each, ast.expr)]:
            number = constant(node)
            if number is not None and not INT_MIN <= number <= INT_MAX:
                text = ast.unparse(node)
                raise self.wrong(
                    node.lineno, f"has {text}, which does not fit 64 bits; write a float, such as 2.0 ** 70"
                )

    def defaults(self) -> dict[str, int | float]:
        parameters = inspect.signature(self.function).parameters
        found: dict[str, int | float] = {}
        for name in self.arguments[1:]:
            default = parameters[name].default
            if name in GIVEN:
                continue
            if isinstance(default, bool) or not isinstance(default, int | float | np.integer | np.floating):
                complaint = (
                    f"has a parameter {name!r} that needs a number as default (only {', '.join(GIVEN)} need none)"
                )
                raise self.wrong(self.tree.lineno, complaint)
            found[name] = default.item() if isinstance(default, np.generic) else default
        return found

    def quoted(self) -> str:
        return textwrap.indent(textwrap.dedent("".join(self.lines[self.tree.lineno - 1 :])).rstrip(), "    ")

    def text(self) -> str:
        """The function as kernels have it: named `message`, without decorators, annotations and defaults."""
        tree = ast.parse(ast.unparse(self.tree)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.decorator_list, tree.returns, tree.name, tree.args.defaults = [], None, "message", []
        for argument in tree.args.args:
            argument.annotation = None
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:] or [ast.Pass()]
        return f"@called\n{ast.unparse(tree)}\n"


@functools.lru_cache(maxsize=1024)
def read(code: CodeType, path: str) -> tuple[str, int, list[str], ast.AST]:
    """A function's file, first line, lines and tree. `path` is in the cache key because equal codes may lie in
    different files.
    """
    lines, first = inspect.getsourcelines(code)
    try:
        tree: ast.AST = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except SyntaxError:  # a lambda inside an expression
        tree = ast.Pass()
    return inspect.getsourcefile(code) or "?", first, lines, tree


def constant(node: ast.AST) -> int | None:
    """The value of a whole-number literal, or of a power or a shift of such literals; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow | ast.LShift):
        return None
    left, right = constant(node.left), constant(node.right)
    if left is None or right is None or not 0 <= right <= 1024:
        return None
    return left**right if isinstance(node.op, ast.Pow) else left << right


def keeps_whole(tree: ast.FunctionDef) -> bool:
    """Whether whole numbers surely stay whole: no division, no float constant, nothing from a library."""
    for node in ast.walk(ast.Module(tree.body, [])):
        if isinstance(node, ast.Div | ast.Pow | ast.Attribute):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return False
        if isinstance(node, ast.Name) and node.id in ("inf", "float"):
            return False
    return True
