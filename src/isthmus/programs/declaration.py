"""Programs that are data alone: an ordinary Python function, and a few facts about it.

    @monotone(initial=inf, combine="min")
    def sssp(dist, weight):
        return dist + weight

    @accumulative(threshold=1e-9)
    def pagerank(delta, degree, alpha=0.85):
        return alpha * delta / degree

The first argument is the value (or delta) of the vertex at the edge's tail. `weight` is the edge's weight,
`degree` the tail's out-degree, `vertex` its number; every other argument is a parameter with a default, passed
to the compiled code at run time, so that a new value never recompiles. A `Program` of neither shape
has an edge function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from isthmus.checks import is_real
from isthmus.errors import OptionError, ProgramError
from isthmus.kernels.compile.atomics import atomic_add, atomic_max, atomic_min
from isthmus.kernels.loops import vertices
from isthmus.programs.checkpoint_checks import finite
from isthmus.programs.column import Column
from isthmus.programs.functions import Functions, Scalar
from isthmus.programs.message import INT_MAX, INT_MIN, Message
from isthmus.programs.program import Array, Facts, Program, State

COMBINE = ("min", "max")
SIDES = ("out", "in")
CHECKED = 64  # iterations after which values are checked for having grown without end


class Monotone(Program):
    """value[v] = combine(value[v], message(value[u], weight)) until nothing improves.

    With `start` (0 where `initial` is infinite), one or several sources start with that value and all other vertices
    with `initial`. Without it all vertices start active, with `initial` or, for initial="vertex", with their place in
    natural order.
    """

    spread_array = 0
    weights_from_0 = False  # whether it needs weights of at least 0

    def __init__(
        self, message: Message, initial: Any, combine: str, start: Any, column: str, sides: tuple[str, ...]
    ) -> None:
        if combine not in COMBINE:
            raise rule(message, f"combine: expected one of {', '.join(COMBINE)}, got {combine!r}")
        if initial != "vertex" and not is_number(initial):
            raise rule(message, f"initial: expected a number or 'vertex', got {initial!r}")
        if start is None and initial != "vertex" and np.isinf(initial):
            start = 0  # an unreached vertex sends no messages, so only sources start active
        if start is not None and not is_number(start):
            raise rule(message, f"start: expected a number, got {start!r}")
        check_column(message, column, initial == "vertex")
        if not isinstance(sides, tuple) or not sides or not set(sides) <= set(SIDES):
            raise rule(message, f"sides: expected ('out',), ('in',) or both, got {sides!r}")
        self.name, self.message, self.initial, self.combine = message.name, message, initial, combine
        self.start_value, self.column, self.sides = start, column, sides
        self.settles = 1 if combine == "min" else -1
        self.reruns = True
        # The worst value.
        self.columns = self.columns or (Column(column, none=("high" if combine == "min" else "low", "nan")),)
        self.state_bytes = 8 + vertex_bytes(message)
        self.values_given = dict(message.defaults)
        self.sources: list[Any] = []

    def __call__(self, source: Any = None, **parameters: Any) -> Monotone:
        """The program with its source (or list of sources) and parameters set."""
        fresh = Monotone(self.message, self.initial, self.combine, self.start_value, self.column, self.sides)
        fresh.values_given = self.message.parameters(parameters)
        fresh.sources = as_sources(source)
        fresh.given = fresh.given[0], {"source": source, **fresh.values_given}
        if fresh.sources and self.start_value is None:
            raise OptionError(f"{self.name} starts at every vertex; declare it with start= to give it a source")
        return fresh

    def reads_weights(self) -> bool:
        return "weight" in self.message.arguments

    def dtype(self, facts: Facts) -> Any:
        """int64 where all inputs are integers and the message keeps them so, else float64."""
        weight = sample_weight(facts, self.reads_weights())
        finite = [v for v in (self.initial, self.start_value) if v is not None and v != "vertex" and not np.isinf(v)]
        inputs = [*finite, *self.values_given.values(), weight]
        kind = np.int64 if self.message.whole and all(isinstance(v, int | np.integer) for v in inputs) else np.float64
        self.message.check_result(kind(1), weight, self.values_given)
        return kind

    def functions(self, facts: Facts) -> Functions:
        return improving(self.message, self.combine, self.dtype(facts), vertex_number(self.message, facts, 1))

    def begin(self, facts: Facts) -> State:
        return self.first_state(facts)

    def first_state(self, facts: Facts) -> State:
        """The values at the start, and the vertices that start active."""
        kind = self.dtype(facts)
        params = tuple(self.values_given[name] for name in self.message.defaults)
        if self.initial == "vertex":
            naturals = facts.naturals()
            values = np.arange(facts.vertices, dtype=kind) if naturals is None else naturals.astype(kind)
        else:
            values = np.full(facts.vertices, bound(self.initial, kind), kind)
        arrays = {"values": values, **natural_numbers(self.message, facts)}
        if self.start_value is None:
            return State(arrays, None, params)
        if not self.sources:
            raise OptionError(f"{self.name} needs a source vertex")
        sources = np.array([facts.number(source) for source in self.sources], np.int64)
        values[sources] = bound(self.start_value, kind)
        return State(arrays, sources, params)

    def remember(self, state: State) -> dict[str, Any]:
        """The values; nothing else changes. A subclass that changes more must remember that too."""
        return {"values": state["values"]}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        state["values"] = kept["values"]

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {self.column: state.given("values")}

    def explain(self, reason: str) -> str:
        return self.message.explain(reason)


def is_number(value: Any) -> bool:
    """A number that a value of 64 bits can hold, or an infinity."""
    return is_real(value) and (isinstance(value, float | np.floating) or INT_MIN <= value <= INT_MAX)


def rule(message: Message, complaint: str) -> ProgramError:
    """An error about what was declared around a message, with its line and text."""
    return ProgramError(f"{message.where}: {message.name}: {complaint}\n{message.quoted}")


def check_column(message: Message, column: Any, of_vertices: bool) -> None:
    """Refuse names that results treat specially: columns `labels` and `predecessor` hold vertices."""
    taken = ("vertex", "predecessor") if of_vertices else ("vertex", "predecessor", "labels")
    if not isinstance(column, str) or not column or column in taken:
        raise rule(message, f"column: expected a name other than {', '.join(taken)}, got {column!r}")


def as_sources(source: Any) -> list[Any]:
    if source is None:
        return []
    if isinstance(source, np.ndarray) and not source.ndim:
        return [source.item()]
    return list(source) if isinstance(source, Iterable) and not isinstance(source, str | bytes) else [source]


def vertex_bytes(message: Message) -> int:
    """Bytes per vertex for a message that asks for `vertex`: its place in natural order, whatever the store's order."""
    return 8 if "vertex" in message.arguments else 0


def natural_numbers(message: Message, facts: Facts) -> dict[str, Array]:
    """Every vertex's place in natural order, if a message asks for it and it differs from the vertex's number."""
    numbers = facts.naturals() if "vertex" in message.arguments else None
    return {} if numbers is None else {"naturals": numbers}


def vertex_number(message: Message, facts: Facts, position: int) -> Scalar:
    """How a kernel finds the number of a vertex; natural numbers are the state's array at `position`."""

    def natural(u: Any, state: Any) -> Any:
        return np.int64(state[position][u])

    return natural if natural_numbers(message, facts) else itself


def itself(u: Any, state: Any) -> Any:
    return u


def below(a: Any, b: Any) -> Any:
    return a < b


def above(a: Any, b: Any) -> Any:
    return a > b


def improving(message: Message, combine: str, kind: Any, number: Scalar) -> Functions:
    """The functions of a monotone program whose values are of `kind`."""
    better, atomic = (below, atomic_min) if combine == "min" else (above, atomic_max)

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        return state[0][u], degree

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        value, degree = x
        values = state[0]
        y = kind(message(value, w, degree, number(u, state), params))
        if better(y, values[v]):
            return better(y, atomic(values, v, y))
        return False

    return Functions(source, edge)


def spreading_by_weight(message: Message, number: Scalar, threshold: int) -> Functions:
    """The functions of an accumulative program that computes its message for each edge; its threshold is
    params[threshold].
    """

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        return state[2][u], degree

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        delta, degree = x
        more = np.float64(message(delta, w, degree, number(u, state), params))
        return abs(atomic_add(state[1], v, more) + more) > params[threshold]

    return Functions(source, edge)


def spreading_evenly(message: Message, number: Scalar, threshold: int) -> Functions:
    """The same for a message that does not depend on the edge: it is computed once per vertex."""

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        return message(state[2][u], 1, degree, number(u, state), params)

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        more = np.float64(x)
        return abs(atomic_add(state[1], v, more) + more) > params[threshold]

    return Functions(source, edge)


def sample_weight(facts: Facts, reads_weights: bool) -> Any:
    """A weight of the type that the message gets: a whole number on a graph without weights."""
    return np.ones(1, facts.weight_dtype if facts.weight_dtype is not None and reads_weights else np.int32)[0]


def bound(value: Any, kind: Any) -> Any:
    """`value` as `kind`; an infinity becomes the largest or smallest integer."""
    if np.issubdtype(kind, np.integer) and np.isinf(value):
        return INT_MAX if value > 0 else INT_MIN
    return value


class ByDeltas(Program):
    """What programs share whose first three arrays are values, residuals and deltas.

    A vertex's residual is taken as its delta, added to its value and sent on. Any order gives the answer, and a vertex
    may send several times in an iteration.
    """

    prefetched_array = 1  # residuals
    reruns = True

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Take the deltas of the active vertices, once per iteration however many pieces their edges come in."""
        frontier.take_deltas(state["values"], state["residual"], state["deltas"], facts.team)

    def again(self, state: State, rows: Array) -> None:
        vertices.take_again(rows, *state.arrays[:3])

    def contribution(self, state: State) -> Array | None:
        return state["deltas"]

    def explain_growth(self) -> str:
        """Why there is no answer, when values were found to grow without end."""
        return "its values grow without end"

    def remember(self, state: State) -> dict[str, Any]:
        """Values and residuals. A subclass that changes more must remember that too."""
        return {"arrays": state.arrays[:2]}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        finite(*kept["arrays"])
        state.arrays = (*kept["arrays"], *state.arrays[2:])


class Accumulative(ByDeltas):
    """A delta is taken from a vertex, added to its value, and message(delta) is summed into its neighbours.

    A vertex is active while |delta| exceeds the threshold. By default every vertex starts with a residual of `initial`.
    """

    def __init__(self, message: Message, initial: float, threshold: float, column: str) -> None:
        if not is_number(initial) or np.isinf(initial):
            raise rule(message, f"initial: expected a finite number, got {initial!r}")
        if not is_number(threshold) or threshold < 0:
            raise rule(message, f"threshold: expected a number of at least 0, got {threshold!r}")
        check_column(message, column, False)
        threshold = max(threshold, np.finfo(np.float64).tiny)  # half of a smaller delta may round back to the delta
        self.name, self.message, self.initial, self.threshold, self.column = (
            message.name,
            message,
            initial,
            threshold,
            column,
        )
        self.state_bytes = 24 + vertex_bytes(message)
        self.values_given = dict(message.defaults)
        self.sources: list[Any] = []

    def __call__(self, source: Any = None, threshold: float | None = None, **parameters: Any) -> Accumulative:
        """The program with parameters set; with a source, only that vertex starts with a residual."""
        fresh = Accumulative(
            self.message, self.initial, self.threshold if threshold is None else threshold, self.column
        )
        fresh.values_given = self.message.parameters(parameters)
        fresh.sources = as_sources(source)
        fresh.given = fresh.given[0], {"source": source, **fresh.values_given}
        return fresh

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Goes on, unless values have grown without end."""
        if iteration % CHECKED == 0 and not np.isfinite(state["residual"][: facts.vertices]).all():
            raise ProgramError(f"{self.name} does not converge on this graph: {self.explain_growth()}")
        return True

    def reads_weights(self) -> bool:
        return "weight" in self.message.arguments

    def functions(self, facts: Facts) -> Functions:
        self.message.check_result(np.float64(1), sample_weight(facts, self.reads_weights()), self.values_given)
        spreading = spreading_by_weight if self.reads_weights() else spreading_evenly
        return spreading(self.message, vertex_number(self.message, facts, 3), len(self.message.defaults))

    def residual(self, facts: Facts) -> Array:
        """The residuals at the start."""
        if not self.sources:
            return np.full(facts.vertices, float(self.initial))
        residual = np.zeros(facts.vertices)
        for source in self.sources:
            residual[facts.number(source)] += self.initial
        return residual

    def begin(self, facts: Facts) -> State:
        residual = self.residual(facts)
        params = (*(self.values_given[name] for name in self.message.defaults), float(self.threshold))
        active = (residual > self.threshold) | (residual < -self.threshold)
        start = None if active.all() else active
        numbers = natural_numbers(self.message, facts)
        values, deltas = np.zeros(facts.vertices), np.zeros(facts.vertices)
        return State({"values": values, "residual": residual, "deltas": deltas, **numbers}, start, params)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {self.column: np.add(state["values"], state["residual"], out=state.memory_like("values"))}

    def explain(self, reason: str) -> str:
        return self.message.explain(reason)


def monotone(
    *, initial: Any, combine: str = "min", start: Any = None, column: str = "value", sides: tuple[str, ...] = ("out",)
) -> Callable[[Callable[..., Any]], Monotone]:
    """Declare a monotone program by the message that an edge carries: values only improve, until nothing does.

    The function's first argument is the value at the edge's source; `weight`, `degree` and `vertex` are given by these
    names, and other arguments need a default: they are parameters. `combine` ("min" or "max") chooses among messages.
    With `start`, the source that is given in the call begins with that value, and all other vertices with `initial`;
    without it all begin with `initial`, which may be "vertex" for each vertex's own number. `column` names the values
    in results. `sides`: ("out",) follows edges forwards, ("in",) backwards, ("out", "in") both ways. Raises
    ProgramError, which quotes the line, if a rule is broken.

    ```python
    from math import inf

    import isthmus as ist


    @ist.monotone(initial=inf, combine="min", start=0, column="hops")
    def hops(distance):
        return distance + 1


    print(ist.run(hops(source=0), ist.generate("path", vertices=4)).values)
    #> [0 1 2 3]
    ```
    """
    return lambda function: Monotone(Message.of(function), initial, combine, start, column, sides)


def accumulative(
    *, initial: float = 1.0, threshold: float = 1e-9, column: str = "value"
) -> Callable[[Callable[..., Any]], Accumulative]:
    """Declare an accumulative program by the message that an edge carries: what arrives is added up and sent on.

    The function's first argument is the delta of the edge's source, which has been added to its value; the other
    arguments are those of a monotone message. A vertex is active while its delta exceeds `threshold`. `initial` is the
    first delta: of all vertices, or of the source if one is given in the call. A vertex must send less in total than it
    received; otherwise the values grow without end, and the run ends with an error. `column` names the values in
    results.

    ```python
    import isthmus as ist


    @ist.accumulative(initial=1.0, threshold=1e-6, column="score")
    def spread(delta, degree, share=0.5):
        return share * delta / degree


    print(ist.run(spread(source=0), ist.generate("path", vertices=3)).values.round(3))
    #> [1.167 0.667 0.167]
    ```
    """
    return lambda function: Accumulative(Message.of(function), initial, threshold, column)
