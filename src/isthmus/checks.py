"""Checks of options: each returns the value, or raises an OptionError that names the option."""

from __future__ import annotations

import math
import os
import sys
from numbers import Real
from pathlib import Path
from typing import Any

from isthmus.errors import OptionError


def is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and (isinstance(value, int) or not math.isnan(value))


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number of at least `least`, and at most `most`."""
    if not is_real(value) or not hasattr(value, "__index__"):
        raise OptionError(f"{name}: expected a whole number, got {value!r}")
    if value < least:
        raise OptionError(f"{name}: expected at least {least}, got {value}")
    if most is not None and value > most:
        raise OptionError(f"{name}: expected at most {most:,}, got {value:,}")
    return int(value)


def between_0_and_1(name: str, value: Any) -> float:
    if not is_real(value) or not 0 < value < 1:
        raise OptionError(f"{name}: expected a number between 0 and 1, got {value!r}")
    return float(value)


def above_0(name: str, value: Any) -> float:
    if not is_real(value) or not value > 0:
        raise OptionError(f"{name}: expected a number above 0, got {value!r}")
    return float(value)


def finite_above_0(name: str, value: Any) -> float:
    if not is_real(value) or not 0 < value < math.inf:
        raise OptionError(f"{name}: expected a finite number above 0, got {value!r}")
    return float(value)


def by_vertex(name: str, given: Any) -> dict[Any, float]:
    """Finite numbers by vertex."""
    if not hasattr(given, "items"):
        raise OptionError(f"{name}: expected a dictionary of numbers by vertex, got {given!r}")
    for vertex, value in given.items():
        if not is_real(value) or not abs(value) <= sys.float_info.max:
            raise OptionError(f"{name}: expected a finite number, got {value!r} for vertex {vertex!r}")
    return {vertex: float(value) for vertex, value in given.items()}


def flag(name: str, value: Any) -> bool:
    """True or False, also as 1 or 0 and as NumPy's. Text would always be true, "no" as well."""
    if not (isinstance(value, int) or type(value).__name__ == "bool") or value not in (0, 1):
        raise OptionError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def path_of(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes) or not os.fspath(value):
        shown = (
            repr(value)
            if isinstance(value, str | bytes | int | float | None)
            else f"an object of type {type(value).__name__}"
        )
        raise OptionError(f"{name}: expected a path, got {shown}")
    return Path(value)


def function(name: str, value: Any) -> Any:
    if not callable(value):
        raise OptionError(f"{name}: expected a function, got {value!r}")
    return value
