"""The rows of a result that come first when they are ordered by value, found piece by piece; and the sizes of its
groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels.loops import vertices
from isthmus.programs.column import Column

Array = np.ndarray[Any, Any]


def first_rows(part: Callable[[int, int], Array], rows: int, column: Column, count: int, ascending: bool) -> Array:
    """The rows with the `count` largest values (`ascending`: smallest), in that order. Among equals the first; none
    without a value.

    `part(begin, end)` are the values of some rows.
    """
    found, values = np.empty(0, np.int64), part(0, 0)
    for begin in range(0, rows if count else 0, sizes.now.result_rows):
        more = part(begin, min(begin + sizes.now.result_rows, rows))
        known = ~column.missing(more)
        if found.size == count:  # an equal one comes later, so it is not among the first
            known &= more < values[-1] if ascending else more > values[-1]
        places = np.flatnonzero(known)
        found, values = np.concatenate([found, places + begin]), np.concatenate([values, more[places]])
        order = sorted_stably(values, ascending)[:count]
        found, values = found[order], values[order]
    return found


def sorted_stably(values: Array, ascending: bool) -> Array:
    """The order of values; equal ones stay as they are."""
    if ascending:
        return np.argsort(values, kind="stable")
    return (values.size - 1 - np.argsort(values[::-1], kind="stable"))[::-1]


def group_sizes(labels: Array) -> Array:
    """How many rows have each label, by label."""
    counts = np.empty(labels.size, np.uint32 if labels.size < 1 << 32 else np.uint64)
    if labels.size:
        vertices.count_labels(labels, counts)
    return counts
