"""Programs: what an algorithm is, apart from how its edges are reached.

Two shapes are data alone, an ordinary Python function and a few facts about it:

    @monotone(initial=inf, combine="min")
    def sssp(dist, weight):
        return dist + weight

    @accumulative(threshold=1e-9)
    def pagerank(delta, degree, alpha=0.85):
        return alpha * delta / degree

The first argument is the value (or delta) of the vertex at the edge's tail. `weight` is the edge's weight,
`degree` the tail's out-degree, `vertex` its number; every other argument is a parameter with a default, passed
to the compiled code at run time, so that a new value never recompiles. The third shape, `Program` itself, writes
its edge function by hand.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus.errors import OptionError, ProgramError
from isthmus.kernels import vertices

Array = np.ndarray[Any, Any]
INT_MAX = np.iinfo(np.int64).max
INT_MIN = np.iinfo(np.int64).min
GIVEN = ("weight", "degree", "vertex")  # arguments that every message may ask for
COMBINE = {"min": ("<", "atomic_min"), "max": (">", "atomic_max")}


@dataclass
class Facts:
    """What a program may know of the graph it runs on."""

    vertices: int
    offsets: Array
    weight_dtype: Any  # None: unweighted
    number: Callable[[Any], int]  # a user's vertex id to a vertex number
    naturals: Callable[[], Array | None]  # each vertex's place in natural order; None: that is its number
    directed: bool
    team: Any
    degrees: Callable[[], Array]  # out-degrees, as uint32 where they fit


@dataclass
class State:
    """The arrays a kernel works on, and who starts active (None: everyone)."""

    arrays: tuple[Array, ...]
    start: Array | None
    params: tuple[Any, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class Program(ABC):
    """An algorithm. `sides` are the edges it follows; `order_free` says that any order of propagation will do."""

    name: str = "program"
    sides: tuple[str, ...] = ("out",)
    order_free: bool = True
    everyone: bool = False  # every vertex is active in every iteration
    pulls: bool = False  # follows the edges backwards, summing up what arrives; needs `everyone`
    max_iter: int | None = None
    state_bytes: int = 8  # near memory per vertex

    @abstractmethod
    def reads_weights(self) -> bool: ...

    @abstractmethod
    def functions(self, facts: Facts) -> str:
        """Text of `source(u, degree, state, params)` and `edge(x, u, v, w, state, params)`."""

    @abstractmethod
    def begin(self, facts: Facts) -> State: ...

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Called before the edges of an iteration move."""

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Called when an iteration's edges are done; False stops the run."""
        return True

    @abstractmethod
    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        """Columns of the answer, by vertex number."""

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        """A few numbers for people."""
        return {}

    def explain(self, reason: str) -> str:
        """Words for an error of the compiler."""
        return f"{self.name} does not compile: {reason}"


@dataclass(frozen=True)
class Message:
    """A user's message function, read but not yet compiled."""

    name: str
    text: str  # its source, without decorators
    where: str  # file:line
    arguments: tuple[str, ...]
    defaults: dict[str, float]
    function: Callable[..., Any]  # as plain Python

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Message:
        """Read `function`'s source; complain, with its line, about what cannot be compiled."""
        name = function.__name__
        try:
            lines, first = inspect.getsourcelines(function)
            path = inspect.getsourcefile(function) or "?"
        except (OSError, TypeError):
            raise ProgramError(f"{name}: the message must be a `def` in a file or notebook cell, so that its source can be kept") from None
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise ProgramError(f"{path}:{first}: expected a `def`, got {lines[0].strip()!r}")
        where = f"{path}:{first + tree.lineno - 1}"
        if function.__code__.co_freevars:
            raise ProgramError(f"{where}: {name} uses {', '.join(function.__code__.co_freevars)} from around it; make it a parameter with a default")
        known = {"math", "np", "inf", "min", "max", "abs", "float", "int", "bool", "round", "INT_MAX", "INT_MIN", "range", "len"}
        names = [node for statement in tree.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
        loads = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        stores = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        arguments = tuple(argument.arg for argument in tree.args.args)
        for unknown in sorted(loads - stores - set(arguments) - known):
            line = next(node.lineno for node in names if node.id == unknown)
            raise ProgramError(f"{path}:{first + line - 1}: {name} uses the name {unknown!r}, which kernels do not have; make it a parameter with a default\n    {lines[line - 1].strip()}")
        signature = inspect.signature(function)
        defaults: dict[str, float] = {}
        for argument in arguments[1:]:
            default = signature.parameters[argument].default
            if argument in GIVEN:
                continue
            if not isinstance(default, int | float) or isinstance(default, bool):
                raise ProgramError(f"{where}: {name}: parameter {argument!r} needs a number as default (known without one: {', '.join(GIVEN)})\n    {lines[tree.lineno - 1].strip()}")
            defaults[argument] = default
        if not arguments:
            raise ProgramError(f"{where}: {name} needs at least one argument, the value of the vertex")
        tree.decorator_list = []
        tree.returns = None
        for argument_node in tree.args.args:
            argument_node.annotation = None
        tree.args.defaults = []
        if ast.get_docstring(tree):
            tree.body = tree.body[1:]
        tree.name = "message"
        return cls(name, f"@compiled\n{ast.unparse(tree)}\n", where, arguments, defaults, function)

    def call(self, value: str, weight: str = "w", degree: str = "degree", vertex: str = "u") -> str:
        """The text of a call, with parameters taken from `params` in order."""
        given = {"weight": weight, "degree": degree, "vertex": vertex}
        numbers = {name: f"params[{i}]" for i, name in enumerate(self.defaults)}
        return f"message({', '.join([value, *(given.get(a) or numbers[a] for a in self.arguments[1:])])})"

    def result_type(self, value: Any, weight: Any) -> Any:
        """The type it returns for such arguments, found by calling it as plain Python."""
        samples = {"weight": weight, "degree": np.int64(1), "vertex": np.int64(0)}
        try:
            result = type(self.function(value, *(samples.get(a, self.defaults.get(a)) for a in self.arguments[1:])))
        except ArithmeticError:
            return np.float64
        except Exception as error:
            raise ProgramError(f"{self.where}: the message of {self.name} fails: {type(error).__name__}: {error}\n{self.quoted()}") from error
        if not np.issubdtype(result, np.number) or np.issubdtype(result, np.complexfloating):
            raise ProgramError(f"{self.where}: the message of {self.name} returns {result.__name__}, expected a number\n{self.quoted()}")
        return result

    def explain(self, reason: str) -> str:
        return f"{self.where}: the message of {self.name} does not compile: {reason}\n{self.quoted()}"

    def quoted(self) -> str:
        return textwrap.indent(self.text.split("\n", 1)[1].rstrip(), "    ")


def check_parameters(name: str, message: Message, given: dict[str, Any]) -> dict[str, float]:
    unknown = set(given) - set(message.defaults)
    if unknown:
        raise OptionError(f"{name}: unknown parameter {', '.join(sorted(unknown))}; it has {', '.join(message.defaults) or 'none'}")
    return {**message.defaults, **given}


class Monotone(Program):
    """value[v] = combine(value[v], message(value[u], weight)) until nothing improves.

    With `start` given, one or several sources start with that value and everybody else with `initial`; without
    it everyone is active at first, with `initial` or, for initial="vertex", with its own number.
    """

    def __init__(self, message: Message, initial: Any, combine: str, start: Any, column: str, sides: tuple[str, ...]) -> None:
        if combine not in COMBINE:
            raise ProgramError(f"{message.where}: combine: expected one of {', '.join(COMBINE)}, got {combine!r}")
        self.name, self.message, self.initial, self.combine = message.name, message, initial, combine
        self.start_value, self.column, self.sides = start, column, sides
        self.values_given = dict(message.defaults)
        self.sources: list[Any] = []

    def __call__(self, source: Any = None, **parameters: Any) -> Monotone:
        """The program with its source (or list of sources) and parameters set."""
        fresh = Monotone(self.message, self.initial, self.combine, self.start_value, self.column, self.sides)
        fresh.values_given = check_parameters(self.name, self.message, parameters)
        fresh.sources = list(source) if isinstance(source, list | tuple | set | np.ndarray) else [] if source is None else [source]
        return fresh

    def reads_weights(self) -> bool:
        return "weight" in self.message.arguments

    def dtype(self, facts: Facts) -> Any:
        """int64 where the message keeps whole numbers whole, else float64."""
        whole = [v for v in (self.initial, self.start_value) if v is not None and v != "vertex" and not np.isinf(v)]
        weight = np.ones(1, facts.weight_dtype if facts.weight_dtype is not None and self.reads_weights() else np.int32)[0]
        integral = all(float(v).is_integer() for v in whole) and not any(isinstance(v, float) for v in whole)
        if integral and np.issubdtype(self.message.result_type(np.int64(1), weight), np.integer):
            return np.int64
        self.message.result_type(np.float64(1), weight)
        return np.float64

    def functions(self, facts: Facts) -> str:
        sign, atomic = COMBINE[self.combine]
        kind = np.dtype(self.dtype(facts)).name
        return f"""{self.message.text}

@compiled
def source(u, degree, state, params):
    return state[0][u], degree


@compiled
def edge(x, u, v, w, state, params):
    value, degree = x
    values = state[0]
    y = np.{kind}({self.message.call("value")})
    if y {sign} values[v]:
        return y {sign} {atomic}(values, v, y)
    return False
"""

    def begin(self, facts: Facts) -> State:
        kind = self.dtype(facts)
        params = tuple(self.values_given[name] for name in self.message.defaults)
        if self.initial == "vertex":
            naturals = facts.naturals()
            values = np.arange(facts.vertices, dtype=kind) if naturals is None else naturals.astype(kind)
        else:
            values = np.full(facts.vertices, bound(self.initial, kind), kind)
        if self.start_value is None:
            return State((values,), None, params)
        if not self.sources:
            raise OptionError(f"{self.name} needs a source vertex")
        sources = np.array([facts.number(source) for source in self.sources], np.int64)
        values[sources] = self.start_value
        return State((values,), sources, params)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {self.column: state.arrays[0]}

    def explain(self, reason: str) -> str:
        return self.message.explain(reason)


def bound(value: Any, kind: Any) -> Any:
    """`value` as `kind`; an infinity becomes the largest or smallest integer."""
    if np.issubdtype(kind, np.integer) and np.isinf(value):
        return INT_MAX if value > 0 else INT_MIN
    return value


class Accumulative(Program):
    """A delta is taken from a vertex, added to its value, and message(delta) is summed into its neighbours.

    Active while |delta| exceeds the threshold. The default start is a residual of `initial` everywhere.
    """

    state_bytes = 24

    def __init__(self, message: Message, initial: float, threshold: float, column: str) -> None:
        self.name, self.message, self.initial, self.threshold, self.column = message.name, message, initial, threshold, column
        self.values_given = dict(message.defaults)
        self.sources: list[Any] = []

    def __call__(self, source: Any = None, threshold: float | None = None, **parameters: Any) -> Accumulative:
        """The program with parameters set; with a source, only that vertex starts with a residual."""
        fresh = Accumulative(self.message, self.initial, self.threshold if threshold is None else threshold, self.column)
        fresh.values_given = check_parameters(self.name, self.message, parameters)
        fresh.sources = list(source) if isinstance(source, list | tuple | set | np.ndarray) else [] if source is None else [source]
        return fresh

    def reads_weights(self) -> bool:
        return "weight" in self.message.arguments

    def functions(self, facts: Facts) -> str:
        last = len(self.message.defaults)
        weight = np.ones(1, facts.weight_dtype if facts.weight_dtype is not None else np.int32)[0]
        self.message.result_type(np.float64(1), weight)
        if self.reads_weights():
            source, spread = "state[2][u], degree", self.message.call("x[0]", degree="x[1]")
        else:
            source, spread = self.message.call("state[2][u]"), "x"
        return f"""{self.message.text}

@compiled
def source(u, degree, state, params):
    return {source}


@compiled
def edge(x, u, v, w, state, params):
    more = np.float64({spread})
    return abs(atomic_add(state[1], v, more) + more) > params[{last}]
"""

    def residual(self, facts: Facts) -> Array:
        """Where mass starts."""
        if not self.sources:
            return np.full(facts.vertices, float(self.initial))
        residual = np.zeros(facts.vertices)
        for source in self.sources:
            residual[facts.number(source)] += self.initial
        return residual

    def begin(self, facts: Facts) -> State:
        residual = self.residual(facts)
        params = (*(self.values_given[name] for name in self.message.defaults), float(self.threshold))
        active = np.flatnonzero(np.abs(residual) > self.threshold)
        start = None if active.size == facts.vertices else active
        return State((np.zeros(facts.vertices), residual, np.zeros(facts.vertices)), start, params)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Take the deltas of the active vertices, once per iteration however many pieces their edges come in."""
        take(state, frontier, facts)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        values, residual = state.arrays[:2]
        values += residual
        return {self.column: values}

    def explain(self, reason: str) -> str:
        return self.message.explain(reason)


def take(state: State, frontier: Any, facts: Facts) -> None:
    values, residual, deltas = state.arrays
    if frontier.list is not None:
        vertices.take_rows(frontier.list, values, residual, deltas)
        return
    step = -(-facts.vertices // facts.team.size)

    def part(index: int) -> None:
        first, last = index * step, min((index + 1) * step, facts.vertices)
        vertices.take_range(first, last, frontier.marks, frontier.everyone, values, residual, deltas)

    facts.team.each(part, facts.team.size)


def monotone(
    *, initial: Any, combine: str = "min", start: Any = None, column: str = "value", sides: tuple[str, ...] = ("out",)
) -> Callable[[Callable[..., Any]], Monotone]:
    """Turn a message function into a monotone program; see the module's text."""
    return lambda function: Monotone(Message.of(function), initial, combine, start, column, sides)


def accumulative(*, initial: float = 1.0, threshold: float = 1e-9, column: str = "value") -> Callable[[Callable[..., Any]], Accumulative]:
    """Turn a message function into an accumulative program; see the module's text."""
    return lambda function: Accumulative(Message.of(function), initial, threshold, column)
