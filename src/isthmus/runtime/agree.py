"""Whether two answers to one question agree: exactly, or within the errors that both admit to.

| values | agree when |
|---|---|
| integers, vertices, labels, edges | equal |
| predecessors | missing for the same vertices; any shortest-path tree will do |
| PageRank, PHP, currents | their L1 distance is at most the two error bounds together |
| voltages | no entry is further apart than that |
| Katz | every entry within both relative bounds, and what normalizing adds to them |
| other floating-point values | every entry within `tolerance` of the smaller: sums may differ by rounding |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.runtime.edge_result import ENDS, EdgeResult
from isthmus.runtime.result import NO_VERTEX, Array, Result

TOLERANCE = 1e-9
ROUNDING = 1e-12  # of the largest entry; the bounds that programs state leave it out
TOTAL, EACH, RELATIVE = range(3)  # what a bound holds for: the sum of errors, every error, every error relative to its entry
BOUNDS = {
    "pagerank": (TOTAL, "error_bound"),
    "php": (TOTAL, "error_bound"),
    "katz_centrality": (RELATIVE, "error_bound"),
    "voltage": (EACH, "error_bound"),
    "current": (TOTAL, "current_bound"),
}  # columns, what their bound holds for, and where the summary states it


def difference(first: Result, second: Result, tolerance: float = TOLERANCE) -> str | None:
    """Where two results differ by more than they may, in words; None: they agree."""
    if len(first) != len(second) or first.columns != second.columns:
        return f"{len(first):,} rows of {', '.join(first.columns)} against {len(second):,} of {', '.join(second.columns)}"
    for name in first.columns:
        a, b = first._columns[name], second._columns[name]
        off = excess(name, a, b, (first.summary()["result"], second.summary()["result"]), tolerance)
        if off.any():
            at = int(np.argmax(off))
            return f"{name} of {whose(first, at)} is {plain(a[at])} against {plain(b[at])}"
    return None


def excess(name: str, a: Array, b: Array, stated: tuple[dict[str, Any], dict[str, Any]], tolerance: float) -> Array:
    """How far each pair of entries is apart where the columns disagree, and 0 where they do not."""
    if name == "predecessor":
        a, b = a == NO_VERTEX, b == NO_VERTEX
    if a.dtype.kind != "f":
        return np.asarray(a != b, np.float64)
    off = apart(a, b)
    finite = np.abs(a[np.isfinite(a)])
    rounding = ROUNDING * float(finite.max(initial=0.0))
    kind, fact = BOUNDS.get(name) or BOUNDS.get(name.split("_")[0]) or (None, "")
    bounds = [float(facts[fact]) for facts in stated if fact in facts]
    smaller: Any = np.fmin(np.abs(a), np.abs(b))
    if len(bounds) < 2:
        allowed: Any = tolerance * smaller
    elif kind == TOTAL:
        return off if off.sum() > sum(bounds) + rounding * a.size else np.zeros_like(off)
    else:
        allowed = sum(bounds) if kind == EACH else stretch(*bounds) * smaller
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


def whose(result: Result, at: int) -> str:
    """'vertex 7', 'edge 7 - 9' or, of an answer by something else, 'row 3'; vertices by user ids."""
    ids = result.graph.ids
    if isinstance(result, EdgeResult):
        return "edge " + " - ".join(str(ids.users_of_natural(result._columns[end][at : at + 1])[0]) for end in ENDS)
    return f"vertex {ids.users(np.array([at]))[0]}" if len(result) == result.graph.vertices else f"row {at}"


def plain(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
