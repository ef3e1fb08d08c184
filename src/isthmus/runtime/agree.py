"""Whether two answers to one question agree: exactly, or within the errors that both admit to.

| values | agree when |
|---|---|
| integers, vertices, labels, edges | equal |
| predecessors | missing for the same vertices; any shortest-path tree will do |
| PageRank, PHP | their L1 distance is at most the two error bounds together |
| Katz | every entry within both relative bounds, and what normalizing adds to them |
| other floating-point values | every entry within `tolerance` of the larger, as sums may differ by rounding |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.runtime.edge_result import ENDS, EdgeResult
from isthmus.runtime.result import NO_VERTEX, Array, Result

TOLERANCE = 1e-9
ROUNDING = 1e-12  # beyond the bounds that programs state, which leave it out
RELATIVE = ("katz_centrality",)  # columns whose bound holds for every entry, relative to it


def difference(first: Result, second: Result, tolerance: float = TOLERANCE) -> str | None:
    """Where two results differ by more than they may, in words; None: they agree."""
    if len(first) != len(second) or first.columns != second.columns:
        return f"{len(first):,} rows of {', '.join(first.columns)} against {len(second):,} of {', '.join(second.columns)}"
    for name in first.columns:
        a, b = first._columns[name], second._columns[name]
        off = too_far(name, a, b, bound(first), bound(second), tolerance)
        if off.any():
            at = int(np.argmax(off))
            return f"{name} of {whose(first, at)} is {plain(a[at])} against {plain(b[at])}"
    return None


def bound(result: Result) -> float | None:
    """The error that a result admits to."""
    stated = result.summary()["result"].get("error_bound")
    return None if stated is None else float(stated)


def too_far(name: str, a: Array, b: Array, bound_a: float | None, bound_b: float | None, tolerance: float) -> Array:
    """By how much each entry is off where the columns disagree; nothing but zeros where they agree."""
    if name == "predecessor":
        a, b = a == NO_VERTEX, b == NO_VERTEX
    if a.dtype.kind != "f":
        return np.asarray(a != b, np.float64)
    with np.errstate(invalid="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    off[np.isnan(off)] = np.inf  # a number against none
    if bound_a is None or bound_b is None:
        return np.where(off > tolerance * np.maximum(np.abs(a), np.abs(b)), off, 0.0)
    if name in RELATIVE:
        return np.where(off > stretch(bound_a, bound_b) * np.minimum(np.abs(a), np.abs(b)), off, 0.0)
    return off if off.sum() > (bound_a + bound_b) + ROUNDING * np.abs(a).sum() else np.zeros_like(off)


def stretch(bound_a: float, bound_b: float) -> float:
    """How far apart two entries may be, relative to the smaller, when each is off by its bound and so is what it was scaled by."""
    if max(bound_a, bound_b) >= 1:
        return np.inf
    return (1 + bound_a) / (1 - bound_a) * (1 + bound_b) / (1 - bound_b) - 1 + ROUNDING


def whose(result: Result, at: int) -> str:
    """'vertex 7', or 'edge 7 - 9', by user ids."""
    ids = result.graph.ids
    if isinstance(result, EdgeResult):
        return "edge " + " - ".join(str(ids.users_of_natural(result._columns[end][at : at + 1])[0]) for end in ENDS)
    return f"vertex {ids.users(np.array([at]))[0]}"


def plain(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float | np.floating) else str(value)
