"""Best-first order: while many vertices are active, defer those whose value will probably still improve.

Near-far ordering (Davidson et al. 2014) for edges in far memory: a bound splits the frontier and doubles every
iteration. Edges are followed less often, in about as many iterations. The first bound keeps 1 / (mean degree) of the
active vertices: about those that are final already.

No published system that a recipe stands for does this, so only `auto` does: `Facts.best_first` says whether the recipe
allows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.programs.checkpoint_checks import real
from isthmus.programs.declaration import Monotone
from isthmus.programs.program import Array, Facts, State

LOOKED_AT = 1 << 16  # vertices sampled to set a bound
WORTH = 3  # below a third of all edges, another pass over the link costs more than following an edge twice


class BestFirst:
    """Splits dense frontiers of a program whose values only fall (sign 1) or only rise (sign -1)."""

    def __init__(self, sign: int) -> None:
        self._sign = sign
        self.bound: float | None = None

    def recall(self, bound: Any) -> None:
        self.bound = None if bound is None else real(bound)

    def part(self, values: Array, frontier: Any, facts: Facts) -> None:
        if frontier.list is not None or frontier.all_active:
            return
        if frontier.edges(facts.lists, facts.team) * WORTH < facts.lists.arcs:
            return
        step = max(1, facts.vertices // LOOKED_AT)
        seen = np.flatnonzero(frontier.marks[: facts.vertices : step]) * step
        if not seen.size:
            return
        degree = max(1.0, facts.lists.arcs / facts.vertices)
        least = float(np.quantile(values[seen] * self._sign, 1 / degree, method="higher"))
        self.bound = least if self.bound is None else max(least, wider(self.bound))
        frontier.defer(values, self.bound, self._sign, facts.team)


def wider(bound: float) -> float:
    return bound * 2 if bound > 0 else bound / 2


class MonotoneBestFirst(Monotone):
    """A monotone program in this order, if the recipe allows it. Its values are the first array of its state."""

    def begin(self, facts: Facts) -> State:
        self._best_first = BestFirst(self.settles)
        return super().begin(facts)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        if facts.best_first:
            self._best_first.part(state["values"], frontier, facts)

    def remember(self, state: State) -> dict[str, Any]:
        return {**super().remember(state), "bound": self._best_first.bound}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        super().recall(state, kept)
        self._best_first.recall(kept["bound"])
