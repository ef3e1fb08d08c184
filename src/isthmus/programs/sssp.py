"""Single-source shortest paths: a neighbour is as far as I am, plus the edge.

Whole-number weights give int64 distances that saturate instead of wrapping; others give float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.programs.program import INT_MAX, Array, Facts, Monotone, State, monotone


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def whole(distance, weight, cutoff=INT_MAX):  # type: ignore[no-untyped-def]
    # Compared before it is added: the compiler takes for granted that whole numbers do not wrap.
    return distance + weight if weight <= cutoff - distance else INT_MAX


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def real(distance, weight, cutoff=np.inf):  # type: ignore[no-untyped-def]
    total = distance + weight
    return total if total <= cutoff else inf  # type: ignore[name-defined]  # noqa: F821


class SSSP(Monotone):
    """Distances by weight from `source`; paths longer than `cutoff` do not count."""

    def __init__(self, source: Any, cutoff: float | None = None) -> None:
        super().__init__(real.message, real.initial, real.combine, real.start_value, real.column, real.sides)
        if cutoff is not None and not cutoff >= 0:
            raise OptionError(f"cutoff: expected at least 0, got {cutoff}")
        self.name, self.sources, self.cutoff = "sssp", [source], cutoff

    def dtype(self, facts: Facts) -> Any:
        """Also settles which of the two messages this graph needs."""
        integral = facts.weight_dtype is None or np.issubdtype(facts.weight_dtype, np.integer)
        self.message = (whole if integral else real).message
        limit = np.inf if self.cutoff is None else float(self.cutoff)
        self.values_given = {"cutoff": float(limit) if not integral else INT_MAX if limit >= 2.0**63 else math.floor(limit)}
        return np.int64 if integral else np.float64

    def begin(self, facts: Facts) -> State:
        self.dtype(facts)
        return super().begin(facts)

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        distance = columns["distance"]
        reached = distance != INT_MAX if distance.dtype.kind == "i" else np.isfinite(distance)
        return {"reached": int(reached.sum()), "farthest": distance[reached].max().item() if reached.any() else 0}
