"""Breadth-first search: how many edges from the source.

A level is one more than its neighbour's. Levels beyond the limit are never sent, so the same program serves
with and without one, whatever the order of propagation.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.programs.program import INT_MAX, Array, Facts, Monotone, State, monotone


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def level(distance, limit=INT_MAX):  # type: ignore[no-untyped-def]
    return distance + 1 if distance < limit else INT_MAX


class BFS(Monotone):
    """Distances in edges from `source`, up to `depth_limit`; unreached: the largest int64."""

    def __init__(self, source: Any, depth_limit: int | None = None) -> None:
        program = level
        super().__init__(program.message, program.initial, program.combine, program.start_value, program.column, program.sides)
        if depth_limit is not None and (not hasattr(depth_limit, "__index__") or depth_limit < 0):
            raise OptionError(f"depth_limit: expected a whole number of at least 0, got {depth_limit}")
        self.name = "bfs"
        self.sources = [source]
        self.values_given = {"limit": INT_MAX if depth_limit is None else min(operator.index(depth_limit), INT_MAX)}

    def dtype(self, facts: Facts) -> Any:
        return np.int64

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        reached = columns["distance"] != INT_MAX
        depth = int(columns["distance"][reached].max()) if reached.any() else 0
        return {"reached": int(reached.sum()), "depth": depth}
