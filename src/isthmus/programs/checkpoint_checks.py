"""Checks of what a checkpoint brings back. Each raises ValueError or TypeError, which becomes an error about the
checkpoint.

The checksums of a checkpoint can be forged. So whatever a program uses as an index is compared with its bounds, and
numbers with the type that kernels expect: no kernel can be led outside its arrays. Checks need no memory that grows
with the graph.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from isthmus.programs.program import Array

LARGEST = 2**62  # of whole numbers: sums of two still fit 64 bits
AT_ONCE = 1 << 18  # entries


def alike(kept: Any, fresh: Any) -> None:
    """Check that `kept` has the structure of `fresh`. It may have more members, and anything where `fresh` has None or
    a list.
    """
    if isinstance(fresh, np.ndarray):
        if not isinstance(kept, np.ndarray) or (kept.dtype, kept.shape) != (fresh.dtype, fresh.shape):
            raise TypeError(f"expected an array {fresh.dtype}{list(fresh.shape)}")
    elif isinstance(fresh, dict):
        for name, value in fresh.items():
            alike(kept[name], value)
    elif isinstance(fresh, tuple):
        if not isinstance(kept, tuple) or len(kept) != len(fresh):
            raise TypeError(f"expected {len(fresh)} values")
        for one, other in zip(kept, fresh, strict=True):
            alike(one, other)


def integer(value: Any, least: int = -LARGEST, most: int = LARGEST) -> int:
    """A whole number from `least` to `most`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"expected a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"expected a number from {least} to {most}, got {value}")
    return int(value)


def real(value: Any) -> float:
    """A number, which may be infinite, but not NaN."""
    if not isinstance(value, Real) or isinstance(value, bool) or math.isnan(value):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)


def truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"expected true or false, got {value!r}")
    return bool(value)


def within(numbers: Array, most: int, least: int = 0) -> None:
    """Check that all numbers are from `least` to `most`."""
    if numbers.size and not (numbers.min() >= least and numbers.max() <= most):
        raise ValueError(f"expected numbers from {least} to {most}, got some from {numbers.min()} to {numbers.max()}")


def finite(*arrays: Array) -> None:
    """Check that all numbers are finite: others would never fall below a threshold."""
    for numbers in arrays:
        for first in range(0, numbers.size, AT_ONCE):
            if not np.isfinite(numbers[first : first + AT_ONCE]).all():
                raise ValueError("expected finite numbers")


def bits(words: Array, count: int) -> None:
    """Check that only the lowest `count` bits of all words are set."""
    if int(np.bitwise_or.reduce(words, initial=0)) >> count:
        raise ValueError(f"expected words of {count} bits")


def roots(parents: Array) -> None:
    """Check that every vertex points at a root, directly."""
    within(parents, parents.size - 1)
    for first in range(0, parents.size, AT_ONCE):
        mine = parents[first : first + AT_ONCE]
        if (parents[mine] != mine).any():
            raise ValueError("expected every vertex to point at the root of its tree")


def exactly(frontier: Any, first: int, last: int) -> None:
    """Check that the vertices first:last are active, and no others."""
    if frontier.count != last - first or not (frontier.all_active or frontier.marks[first:last].all()):
        raise ValueError(f"expected the active vertices to be {first} to {last - 1}")
