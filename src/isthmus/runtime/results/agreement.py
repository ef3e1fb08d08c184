"""Whether two answers agree: exactly, or within the error bounds that both state.

| values | agree when |
|---|---|
| integers, vertices, labels, edges | equal |
| columns that are not unique | missing for the same vertices; any shortest-path tree is valid |
| values with a bound on the sum of errors | their L1 distance is at most the two error bounds together |
| values with a bound on every error | no entry differs by more than the two bounds together |
| values with a bound on every relative error | every entry is within both bounds and the error that normalizing adds |
| other floating-point values | every entry within `tolerance` of the smaller: sums may differ by rounding |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.programs.column import Column, Within
from isthmus.runtime.results.result import Array, Result

TOLERANCE = 1e-9
ROUNDING = 1e-12  # of the largest entry; the error bounds of programs do not include rounding


def difference(first: Result, second: Result, tolerance: float = TOLERANCE) -> str | None:
    """The first place where two results differ by more than is allowed, as text; None: they agree."""
    if len(first) != len(second) or first.columns != second.columns:
        return (
            f"{len(first):,} rows of {', '.join(first.columns)} against {len(second):,} of {', '.join(second.columns)}"
        )
    for name in first.columns:
        a, b = first.raw(name), second.raw(name)
        off = excess(first.declared(name), a, b, (first.summary()["result"], second.summary()["result"]), tolerance)
        if off.any():
            at = int(np.argmax(off))
            return f"{name} of {first.whose(at)} is {plain(a[at])} against {plain(b[at])}"
    return None


def excess(
    column: Column, a: Array, b: Array, stated: tuple[dict[str, Any], dict[str, Any]], tolerance: float
) -> Array:
    """The difference of each pair of entries that disagree, and 0 for pairs that agree."""
    if not column.unique:
        a, b = column.missing(a), column.missing(b)
    if a.dtype.kind != "f":
        # The same answer may be computed in narrower integers.
        return np.asarray(column.shown(a) != column.shown(b), np.float64)
    off = apart(a, b)
    finite = np.abs(a[np.isfinite(a)])
    rounding = ROUNDING * float(finite.max(initial=0.0))
    bounds = [
        float(figures[column.figure]) for figures in stated if column.within is not None and column.figure in figures
    ]
    smaller: Any = np.fmin(np.abs(a), np.abs(b))
    if len(bounds) < 2:
        allowed: Any = tolerance * smaller
    elif column.within is Within.TOTAL:
        return off if off.sum() > sum(bounds) + rounding * a.size else np.zeros_like(off)
    else:
        allowed = sum(bounds) if column.within is Within.EACH else stretch(*bounds) * smaller
    return np.where(np.isinf(off) | (off > allowed + rounding), off, 0.0)


def apart(a: Array, b: Array) -> Array:
    """Distances between entries; infinite between a number and NaN."""
    with np.errstate(invalid="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    off[np.isnan(off)] = np.inf
    return off


def stretch(bound_a: float, bound_b: float) -> float:
    """The largest relative difference of two entries when each entry, and the norm it was divided by, is off by its
    bound.
    """
    if max(bound_a, bound_b) >= 1:
        return np.inf
    return (1 + bound_a) / (1 - bound_a) * (1 + bound_b) / (1 - bound_b) - 1


def plain(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
