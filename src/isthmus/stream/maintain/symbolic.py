"""Proofs about messages with Z3, an extra: `pip install isthmus[z3]`.

A message is run as plain Python on symbols instead of numbers. Wherever it compares (also inside min, max and abs),
both outcomes are followed, one run each, so that it becomes a case distinction over arithmetic. Messages that do more
than that (loops over symbols, calls of libraries, whole-number division) raise `NotArithmetic`, and only samples tell
about them.

Arithmetic is exact here: rounding and overflow are not considered.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

z3: Any = None  # once `installed` has found it
MOST_CASES = 64
MILLISECONDS = 2000  # for a question


def installed() -> bool:
    """Whether Z3 is installed; the first call loads it."""
    global z3
    try:
        z3 = z3 or importlib.import_module("z3")
    except ImportError:
        return False
    return True


class NotArithmetic(Exception):
    """The message cannot be run on symbols."""


class Case:
    """One way through a message: the outcome of each comparison, and the conditions that follow."""

    def __init__(self, outcomes: list[bool]) -> None:
        self.outcomes, self.conditions = outcomes, list[Any]()

    def decide(self, condition: Any) -> bool:
        at = len(self.conditions)
        if at == len(self.outcomes):
            self.outcomes.append(True)
        if at >= MOST_CASES:
            raise NotArithmetic
        taken = self.outcomes[at]
        self.conditions.append(condition if taken else z3.Not(condition))
        return taken


class Truth:
    """A comparison of symbols. Its truth value is followed both ways, one after the other."""

    def __init__(self, case: Case, condition: Any) -> None:
        self._case, self._condition = case, condition

    def __bool__(self) -> bool:
        return self._case.decide(self._condition)


class Symbol:
    """A number that is not known."""

    __array_ufunc__ = None  # NumPy leaves its operators to this class

    def __init__(self, case: Case, term: Any) -> None:
        self.case, self.term = case, term

    def _with(self, other: Any, work: Callable[[Any, Any], Any]) -> Symbol:
        return Symbol(self.case, work(self.term, term_of(other)))

    def __add__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: real(a) / real(b))

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._with(other, lambda a, b: real(b) / real(a))

    def __neg__(self) -> Symbol:
        return Symbol(self.case, -self.term)

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return self if self >= 0 else -self

    def _compared(self, other: Any, work: Callable[[Any, Any], Any]) -> Truth:
        return Truth(self.case, work(self.term, term_of(other)))

    def __lt__(self, other: Any) -> Truth:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Truth:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Truth:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Truth:
        return self._compared(other, lambda a, b: a >= b)

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a != b)

    __hash__ = None  # type: ignore[assignment]


def real(term: Any) -> Any:
    return z3.ToReal(term) if z3.is_int(term) else term


def term_of(value: Any) -> Any:
    """A symbol's term, or a number as one."""
    if isinstance(value, Symbol):
        return value.term
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (isinstance(value, float) and not math.isfinite(value))
    ):
        raise NotArithmetic
    return z3.IntVal(value) if isinstance(value, int) else z3.Q(*value.as_integer_ratio())


def as_term(message: Callable[..., Any], *terms: Any) -> Any:
    """What the message returns for these terms, as one term over all its cases."""
    found: list[tuple[Any, Any]] = []
    outcomes: list[bool] | None = []
    while outcomes is not None:
        case = Case(outcomes)
        try:
            result = term_of(message(*(Symbol(case, term) for term in terms)))
        except NotArithmetic:
            raise
        except Exception as error:  # whatever a message does with a symbol that symbols cannot do
            raise NotArithmetic from error
        found.append((z3.And(case.conditions), result))
        if len(found) > MOST_CASES:
            raise NotArithmetic
        outcomes = following(case.outcomes[: len(case.conditions)])
    term = found[-1][1]
    for condition, result in reversed(found[:-1]):
        term = z3.If(condition, result, term)
    return term


def following(outcomes: list[bool]) -> list[bool] | None:
    """The next outcomes to try; None: all were."""
    while outcomes and not outcomes[-1]:
        outcomes = outcomes[:-1]
    return [*outcomes[:-1], False] if outcomes else None


def satisfying(conditions: list[Any], requested: list[Any]) -> list[float] | bool | None:
    """Values of the given terms that satisfy all conditions; False: none do; None: not known."""
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*conditions)
    answer = solver.check()
    if answer != z3.sat:
        return False if answer == z3.unsat else None
    model = solver.model()
    return [number_of(model.eval(term, model_completion=True)) for term in requested]


def number_of(value: Any) -> float | int:
    if z3.is_int_value(value):
        return int(value.as_long())
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return float(value.as_fraction())
