"""Whether two answers to one question agree: exactly, or within the errors that both admit to.

| values | agree when |
|---|---|
| integers, vertices, labels, edges | equal |
| columns that are not unique | missing for the same vertices, as any shortest-path tree will do |
| values with a bound on the sum of errors | their L1 distance is at most the two error bounds together |
| values with a bound on every error | no entry is further apart than that |
| values with a bound on every relative error | every entry within both bounds, and what normalizing adds to them |
| other floating-point values | every entry within `tolerance` of the smaller: sums may differ by rounding |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.programs.column import Column, Within
from isthmus.runtime.result import Array, Result

TOLERANCE = 1e-9
ROUNDING = 1e-12  # of the largest entry; the bounds that programs state leave it out


def difference(first: Result, second: Result, tolerance: float = TOLERANCE) -> str | None:
    """Where two results differ by more than they may, in words; None: they agree."""
    if len(first) != len(second) or first.columns != second.columns:
        return f"{len(first):,} rows of {', '.join(first.columns)} against {len(second):,} of {', '.join(second.columns)}"
    for name in first.columns:
        a, b = first.raw(name), second.raw(name)
        off = excess(first.declared(name), a, b, (first.summary()["result"], second.summary()["result"]), tolerance)
        if off.any():
            at = int(np.argmax(off))
            return f"{name} of {first.whose(at)} is {plain(a[at])} against {plain(b[at])}"
    return None


def excess(column: Column, a: Array, b: Array, stated: tuple[dict[str, Any], dict[str, Any]], tolerance: float) -> Array:
    """How far each pair of entries is apart where the columns disagree, and 0 where they do not."""
    if not column.unique:
        a, b = column.missing(a), column.missing(b)
    if a.dtype.kind != "f":
        return np.asarray(a != b, np.float64)
    off = apart(a, b)
    finite = np.abs(a[np.isfinite(a)])
    rounding = ROUNDING * float(finite.max(initial=0.0))
    bounds = [float(figures[column.figure]) for figures in stated if column.within is not None and column.figure in figures]
    smaller: Any = np.fmin(np.abs(a), np.abs(b))
    if len(bounds) < 2:
        allowed: Any = tolerance * smaller
    elif column.within is Within.TOTAL:
        return off if off.sum() > sum(bounds) + rounding * a.size else np.zeros_like(off)
    else:
        allowed = sum(bounds) if column.within is Within.EACH else stretch(*bounds) * smaller
    return np.where(np.isinf(off) | (off > allowed + rounding), off, 0.0)


def apart(a: Array, b: Array) -> Array:
    """Distances between entries; infinite between a number and none."""
    with np.errstate(invalid="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    off[np.isnan(off)] = np.inf
    return off


def stretch(bound_a: float, bound_b: float) -> float:
    """How far apart two entries may be, relative to the smaller, when each is off by its bound and so is what scaled it."""
    if max(bound_a, bound_b) >= 1:
        return np.inf
    return (1 + bound_a) / (1 - bound_a) * (1 + bound_b) / (1 - bound_b) - 1


def plain(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
