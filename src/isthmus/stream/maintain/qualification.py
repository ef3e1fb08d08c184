"""Whether a user's program can be kept current, and if not, an example of why.

- Monotone: messages keep the order of values, and a message is never better than the value it comes from. Otherwise
  answers would depend on the order of propagation, and values could depend on themselves, along a cycle.
- Accumulative: messages are linear in the delta: message(a + b) = message(a) + message(b). Otherwise what a vertex has
  sent in many deltas could not be taken back at once.

Samples are tried first: values that messages lead to from the start, with weights that the graph has. If Z3 is
installed, it then looks at all values between those (`symbolic.py`). A program that neither samples nor Z3 refute is
accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Change
from isthmus.kernels.changing.packed_array import DELETE
from isthmus.programs.declaration import Accumulative, Monotone, rule
from isthmus.stream.maintain import symbolic
from isthmus.stream.maintain.maintained import Array, Maintained

PIECE = 1 << 16  # vertices whose weights are looked at together
STEPS, WIDTH = 8, 16  # messages that samples are reached by, at most, and values that each step goes on from
DELTAS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.25, 1e-6, 1e6)
ROUNDED = 1e-9  # relative differences below this are rounding
Given = tuple[Any, int, int]  # weight, degree, vertex


class Qualification:
    """What a program was checked with. Batches may bring other weights, and are checked again."""

    def __init__(self, maintained: Maintained, program: Monotone | Accumulative) -> None:
        self.program, self._graph = program, maintained.graph
        facts = maintained.facts()
        self._vertices, self._largest_degree = facts.vertices, int(facts.lists.degrees(np.int64).max(initial=1))
        self._whole = isinstance(program, Monotone) and program.dtype(facts) is np.int64
        self.weights = self._some_weights(maintained)
        counter = self.counterexample(self.weights)
        if counter:
            raise rule(program.message, f"cannot be kept current: {counter}")

    def _some_weights(self, maintained: Maintained) -> list[Any]:
        """The least and the largest weight, and some between."""
        if not self.program.reads_weights() or not self._graph.weighted:
            return [1]
        parts = []
        for begin, end, (begins, ends, _, weights) in maintained.all_pieces("out"):
            for first in range(begin, end, PIECE):
                low, high = (array[first : min(first + PIECE, end)] for array in (begins, ends))
                lengths = high - low
                at = np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
                if at.size:
                    parts.append(extremes(weights[at], WIDTH))
        return few(np.unique(np.concatenate(parts))) if parts else [1, 2]

    def refuse(self, change: Change) -> None:
        """Raise BatchError if the message fails with weights that a batch brings."""
        fresh = (
            change.out.weights[change.out.actions != DELETE]
            if change.out.weights.size and self.program.reads_weights()
            else None
        )
        if fresh is None or not fresh.size or (fresh.min() >= min(self.weights) and fresh.max() <= max(self.weights)):
            return
        weights = sorted({*self.weights, *few(np.unique(fresh))})
        counter = self.counterexample(weights)
        if counter:
            raise BatchError(f"{self.program.name} cannot be kept current with these weights: {counter}")
        self.weights = weights

    def counterexample(self, weights: list[Any]) -> str | None:
        """Why the program does not qualify, by an example; None: it does, as far as is known."""
        degrees = sorted({1, 2, 3, self._largest_degree})
        given = list(
            product(weights, degrees if self._asks("degree") else [1], self._places() if self._asks("vertex") else [0])
        )
        if isinstance(self.program, Accumulative):
            return self._not_linear(given) or self._symbolically(weights, [])
        values = self._values(given)
        return (
            self._improving(values, given) or self._out_of_order(values, given) or self._symbolically(weights, values)
        )

    def _asks(self, argument: str) -> bool:
        return argument in self.program.message.arguments

    def _places(self) -> list[int]:
        n = self._vertices
        return sorted({0, 1, n // 2, max(n - 1, 0)})

    def _message(self, value: Any, given: Given) -> Any:
        """What is sent, or NaN."""
        weight, degree, vertex = given
        params = [self.program.values_given[name] for name in self.program.message.defaults]
        try:
            return self.program.message(value, weight, degree, vertex, params)
        except ArithmeticError:
            return math.nan

    def _call(self, value: Any, given: Given) -> str:
        """The call as its author would write it."""
        named = dict(zip(("weight", "degree", "vertex"), given, strict=True)) | self.program.values_given
        arguments = [f"{name}={plain(named[name])}" for name in self.program.message.arguments[1:]]
        return f"{self.program.name}({', '.join([plain(value), *arguments])})"

    # Monotone programs

    def _start(self) -> list[Any]:
        program = self.program
        assert isinstance(program, Monotone)
        if program.initial == "vertex":
            return self._places() if self._whole else [float(place) for place in self._places()]
        first = program.initial if program.start_value is None else program.start_value
        return [first if math.isinf(first) else int(first) if self._whole else float(first)]

    def _values(self, given: list[Given]) -> list[Any]:
        """Values that messages lead to from the start, ascending."""
        found = set(self._start())
        layer = found
        for _ in range(STEPS):
            sent = {self._message(value, each) for value in layer for each in spread_out(given, WIDTH)}
            layer = set(spread_out(sorted(value for value in sent - found if math.isfinite(value)), WIDTH))
            found = found | layer
        return sorted(found)

    @property
    def _better(self) -> Callable[[Any, Any], bool]:
        assert isinstance(self.program, Monotone)
        return (lambda a, b: a < b) if self.program.combine == "min" else (lambda a, b: a > b)

    def _improving(self, values: Iterable[Any], given: Iterable[Given]) -> str | None:
        for value, each in product(sorted(values, key=abs), given):
            sent = self._message(value, each)
            if self._better(sent, value):
                example = f"{self._call(value, each)} = {plain(sent)} is better than {plain(value)}"
                return f"{example}; messages must never be better than the value they come from"
        return None

    def _out_of_order(self, values: list[Any], given: Iterable[Given]) -> str | None:
        for each, (low, high) in product(given, pairwise(values)):
            a, b = self._message(low, each), self._message(high, each)
            if a > b and not math.isclose(a, b, rel_tol=ROUNDED):
                example = f"{self._call(low, each)} = {plain(a)} and {self._call(high, each)} = {plain(b)}"
                return f"{example}: messages must keep the order of values"
        return None

    # Accumulative programs

    def _not_linear(self, given: Iterable[Given]) -> str | None:
        for each in given:
            nothing = self._message(0.0, each)
            if nothing != 0 and not math.isnan(nothing):
                return f"{self._call(0.0, each)} = {plain(nothing)}, expected 0: messages must be linear in the delta"
            for a, b in product(DELTAS, DELTAS):
                found = self._not_sum(a, b, each)
                if found:
                    return found
        return None

    def _not_sum(self, a: float, b: float, each: Given) -> str | None:
        parts, whole = (self._message(a, each), self._message(b, each)), self._message(a + b, each)
        size = max(abs(parts[0]), abs(parts[1]), abs(whole))
        if not abs(parts[0] + parts[1] - whole) > ROUNDED * size:
            return None
        example = (
            f"{self._call(a + b, each)} = {plain(whole)}, but {self._call(a, each)} + {self._call(b, each)} = "
            f"{plain(sum(parts))}"
        )
        return f"{example}: messages must be linear in the delta"

    # All values, by Z3

    def _symbolically(self, weights: list[Any], values: list[Any]) -> str | None:
        if not symbolic.installed():
            return None
        try:
            return self._solved(weights, values)
        except symbolic.NotArithmetic:
            return None

    def _solved(self, weights: list[Any], values: list[Any]) -> str | None:
        z3, whole = symbolic.z3, bool(values) and all(isinstance(value, int) for value in values)
        number = z3.Int if whole else z3.Real
        a, b, weight = number("a"), number("b"), (z3.Int if isinstance(weights[0], int) else z3.Real)("weight")
        degree, vertex = z3.Int("degree"), z3.Int("vertex")
        known = [
            weight >= symbolic.term_of(min(weights)),
            weight <= symbolic.term_of(max(weights)),
            degree >= 1,
            vertex >= 0,
        ]
        known.append(vertex < max(self._vertices, 1))
        params = [self.program.values_given[name] for name in self.program.message.defaults]

        def sent(value: Any) -> Any:
            return symbolic.as_term(
                lambda v, w, d, p: self.program.message(v, w, d, p, params), value, weight, degree, vertex
            )

        rest = [weight, degree, vertex]
        if isinstance(self.program, Accumulative):
            found = symbolic.satisfying([*known, sent(a + b) != sent(a) + sent(b)], [a, b, *rest])
            return (
                self._not_sum(found[0], found[1], (found[2], int(found[3]), int(found[4])))
                if isinstance(found, list)
                else None
            )
        first, second = sent(a), sent(b)
        better = first < a if self.program.combine == "min" else first > a
        reason = None
        for low, high in self._ranges(values):
            inside = [self._within(term, low, high) for term in (a, b, first)]
            if symbolic.satisfying([*known, inside[0], z3.Not(inside[2])], [a]) is not False:
                continue  # values may leave this range
            improves = symbolic.satisfying([*known, inside[0], better], [a, *rest])
            crosses = symbolic.satisfying([*known, inside[0], inside[1], a < b, first > second], [a, b, *rest])
            if improves is False and crosses is False:
                return None
            if isinstance(improves, list):
                reason = self._improving([improves[0]], [(improves[1], int(improves[2]), int(improves[3]))])
            elif isinstance(crosses, list):
                reason = self._out_of_order(crosses[:2], [(crosses[2], int(crosses[3]), int(crosses[4]))])
        return reason

    def _ranges(self, values: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Ranges that all values may stay in: no better than the start, also not below 0, between the samples. None: no
        limit.
        """
        finite = [value for value in values if math.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (None, None)
        assert isinstance(self.program, Monotone)
        yield (low, None) if self.program.combine == "min" else (None, high)
        if finite and min(finite) >= 0:
            yield (0, None) if self.program.combine == "min" else (0, high)
        yield low, high

    def _within(self, term: Any, low: Any, high: Any) -> Any:
        limits = [] if low is None else [term >= symbolic.term_of(low)]
        return symbolic.z3.And([*limits, *([] if high is None else [term <= symbolic.term_of(high)])])


def plain(value: Any) -> str:
    """A number as its author would write it."""
    return str(value.item() if isinstance(value, np.generic) else value)


def extremes(values: Array, between: int) -> Array:
    """The least and the largest of these, and some others."""
    at = np.linspace(0, values.size - 1, between).astype(np.int64)
    return np.concatenate([values[at], [values.min(), values.max()]])


def few(ascending: Array) -> list[Any]:
    return list(spread_out(ascending.tolist(), WIDTH))


def spread_out(items: list[Any], count: int) -> list[Any]:
    """At most `count` of these, the first and the last among them."""
    if len(items) <= count:
        return items
    return [items[round(k * (len(items) - 1) / (count - 1))] for k in range(count)]


def qualified(maintained: Maintained, program: Any) -> Qualification | None:
    """Check a user's program; None: it is of a kind that needs no check."""
    return Qualification(maintained, program) if isinstance(program, Monotone | Accumulative) else None
