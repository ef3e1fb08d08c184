"""A shortest-path tree from finished distances: walk the edges that are tight, once each.

An edge u -> v is tight when dist[u] + weight = dist[v]. Walking tight edges from the source and keeping the
first way into each vertex gives a tree even where weights are zero, which choosing any tight edge would not.
Every reached vertex's edges move once.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_cas
from isthmus.programs.algorithm import Answer, Option, Runner
from isthmus.programs.checkpoint_checks import within
from isthmus.programs.column import Column, Holds
from isthmus.programs.functions import Functions
from isthmus.programs.message import INT_MAX
from isthmus.programs.program import Array, Facts, Program, State

NONE = -1
LONGEST = {"i": INT_MAX - 1, "f": float(np.finfo(np.float64).max)}  # the largest distance of each kind of number


def distance_here(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return state[0][u]


def first_way_in(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    distances, parents = state
    # Compare before adding: the compiler assumes that whole numbers do not overflow. A sum of reals may be infinite.
    total = min(x + w, params[1]) if w <= params[0] - x else params[1]
    if total != distances[v] or parents[v] != NONE:
        return False
    return atomic_cas(parents, v, np.int64(NONE), u) == NONE


class Predecessors(Program):
    """The tree below `source` for given distances; -1 where there is no predecessor.

    `until`: a vertex. When its predecessor is known, so are all on the way to it, and those of others may be left out.
    """

    name = "predecessors"
    columns = (Column("predecessor", Holds.VERTICES, unique=False),)
    state_bytes = 16  # parents, and the distances of the run before

    def __init__(self, source: Any, distances: Array, weighted: bool, until: Any = None) -> None:
        self._source, self._distances, self._weighted, self._until = source, distances, weighted, until

    def reads_weights(self) -> bool:
        return self._weighted

    def functions(self, facts: Facts) -> Functions:
        return Functions(distance_here, first_way_in)

    def begin(self, facts: Facts) -> State:
        root = facts.number(self._source)
        parents = np.full(facts.vertices, NONE, np.int64)
        parents[root] = root  # no vertex may become the source's predecessor
        longest = LONGEST[self._distances.dtype.kind]  # shorter than the distance of an unreached vertex
        room = np.inf if self._distances.dtype.kind == "f" else longest
        return State(
            {"distances": self._distances, "parents": parents}, np.array([root]), (room, longest), {"root": root}
        )

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        return self._until is None or int(state["parents"][facts.number(self._until)]) == NONE

    def remember(self, state: State) -> dict[str, Any]:
        return {"parents": state["parents"]}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        within(kept["parents"], kept["parents"].size - 1, NONE)
        state["parents"] = kept["parents"]

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        parents = state.take("parents")
        parents[state.extra["root"]] = NONE
        return {"predecessor": parents}


FindTree = Annotated[bool, Option("Also find a shortest-path tree (a second pass).")]


def with_predecessors(run: Runner, answer: Answer, source: Any, weighted: bool, until: Any = None) -> Answer:
    """Add the column `predecessor` to an answer, by a second pass over the edges of shortest paths."""
    tree = run(Predecessors(source, answer.columns["distance"], weighted, until))
    answer.columns = {**answer.columns, **tree.columns}
    answer.declared = (*answer.declared, *tree.declared)
    return answer
