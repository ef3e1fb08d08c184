"""An algorithm: how reliable the best path from a source is, when every edge works with a chance that is its weight."""

from __future__ import annotations

from typing import Annotated

import isthmus as ist
from isthmus import Answer, Option, Runner, Vertex


@ist.monotone(initial=0.0, combine="max", start=1.0, column="reliability")
def best_chance(chance, weight, least=0.0):  # type: ignore[no-untyped-def]
    return chance * weight if chance * weight >= least else 0.0


@ist.algorithm
def reliability(
    run: Runner, source: Vertex, least: Annotated[float, Option("Chances below this do not count.", least=0)] = 0.0
) -> Answer:
    """The chance that the most reliable path from a source works; weights are chances of edges."""
    answer = run(best_chance(source, least=float(least)))
    answer.figures = {"reached": int((answer.columns["reliability"] > 0).sum())}
    return answer
