"""Widest paths from one source: a path is as wide as its narrowest edge, and every vertex keeps the widest.

Also called bottleneck or maximum-capacity paths (SSWP in Grus and Subway). Max-min over weights of any sign, so
nothing overflows and any order of propagation ends at the same widths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.programs.algorithm import Answer, Live, Runner, Vertex, algorithm
from isthmus.programs.best_first import MonotoneBestFirst
from isthmus.programs.column import Column
from isthmus.programs.declaration import monotone
from isthmus.programs.program import Array, State
from isthmus.programs.weights import note_unweighted


@monotone(initial=-np.inf, combine="max", start=np.inf, column="width")
def narrowest(width, weight):  # type: ignore[no-untyped-def]
    return min(width, weight)


class WidestPath(MonotoneBestFirst):
    """The width of the widest path from `source`. Unreached vertices have none, nor has the source: no edge limits
    it.
    """

    columns = (Column("width"),)

    def __init__(self, source: Any) -> None:
        program = narrowest
        super().__init__(
            program.message, program.initial, program.combine, program.start_value, program.column, program.sides
        )
        self.name, self.sources = "widest_path", [source]

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        widths = columns["width"]
        reached = widths != (np.iinfo(np.int64).min if widths.dtype.kind == "i" else -np.inf)
        return {"reached": int(reached.sum()), "narrowest": widths[reached].min().item()}


@algorithm(live=Live("WidestPath", lambda graph, source: WidestPath(source)))
def widest_path(run: Runner, source: Vertex) -> Answer:
    """Widths of the widest paths from a source.

    A path is as wide as its least weight. Without weights every edge counts as 1, with a note.
    """
    answer = run(WidestPath(source))
    note_unweighted(run)
    return answer
