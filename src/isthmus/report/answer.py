"""The answer of a run on its page: the vertices that come first, and how the values are distributed.

Bins suit the values: a bar for each of few whole numbers (hops, core numbers), bins of equal ratio for values over
several orders of magnitude (scores, sizes of components), bins of equal width for the rest. All is counted piece by
piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.programs.column import Column
from isthmus.runtime.results.result import Result, shown

Array = np.ndarray[Any, Any]
FIRST = 10  # vertices, or groups
FEW = 48  # whole numbers that get a bar each
BINS = 40
WIDE = 100  # if the largest value exceeds this many times the mean, bins have equal ratios
AT_ONCE = 1 << 20  # values


@dataclass
class Distribution:
    """Counts of values between each two of `edges`. A logarithmic axis has no `zeros`; `missing` have no value."""

    edges: Array
    counts: Array
    logarithmic: bool
    each: bool = False  # a bin is one whole number
    zeros: int = 0
    missing: int = 0


def pieces(values: Array, column: Column) -> Iterator[tuple[Array, int]]:
    """Known values, some at a time, and how many are missing beside them."""
    for begin in range(0, values.size, AT_ONCE):
        part = values[begin : begin + AT_ONCE]
        unknown = column.missing(part)
        yield part[~unknown], int(np.count_nonzero(unknown))


def distribution(values: Array, column: Column) -> Distribution | None:
    """The distribution of a column; None if no value is known."""
    low, high, least, total, count = np.inf, -np.inf, np.inf, 0.0, 0  # `least` is the smallest above zero
    zeros = missing = 0
    for known, unknown in pieces(values, column):
        missing += unknown
        if known.size:
            low, high = min(low, float(known.min())), max(high, float(known.max()))
            above = known[known > 0]
            least = min(least, float(above.min())) if above.size else least
            total, count = total + float(known.sum(dtype=np.float64)), count + known.size
            zeros += int(np.count_nonzero(known == 0))
    if not count:
        return None
    edges, logarithmic, each = binned(values.dtype.kind in "iub", low, high, least, total / count)
    counts = np.zeros(edges.size - 1, np.int64)
    for known, _ in pieces(values, column):
        counts += np.histogram(known, edges)[0]
    return Distribution(edges, counts, logarithmic, each, zeros if logarithmic else 0, missing)


def binned(whole: bool, low: float, high: float, least: float, mean: float) -> tuple[Array, bool, bool]:
    """(Bounds of the bins, whether they are of equal ratio, whether each is one whole number)."""
    if whole and high - low < FEW:
        return np.arange(low, high + 2) - 0.5, False, True
    if low >= 0 and high > WIDE * mean and least < high:
        edges = np.geomspace(least, high, BINS + 1)
        if whole:
            edges = np.unique(np.append(np.floor(edges[:-1]), high + 1))
        edges[-1] = max(edges[-1], high)
        return edges, True, False
    return np.linspace(low, high if high > low else low + 1, BINS + 1), False, False


def of_groups(result: Result) -> Distribution | None:
    """The distribution of the sizes of components or communities."""
    sizes = result.sizes()
    found = np.array(list(sizes), np.int64)
    if not found.size:
        return None
    edges, logarithmic, each = binned(True, float(found.min()), float(found.max()), float(found.min()), 1.0)
    counts = np.histogram(found, edges, weights=np.array(list(sizes.values())))[0]
    return Distribution(edges, counts.astype(np.int64), logarithmic, each)


def first(result: Result) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """The head of a table and its rows: the vertices with the largest values, or the largest groups."""
    if result.has_groups:
        head, rows = (result.group_words[0], "vertices"), result.largest(FIRST)
    else:
        head, rows = ("vertex", result.main.replace("_", " ")), result.top(FIRST)
    return head, [(str(key), shown(value)) for key, value in rows]
