"""Minimum spanning forest by Borůvka's rounds (1926), the graph-mutation case of Scaph.

In a round every component chooses the lightest edge that leaves it, and all chosen edges join components. Two
passes choose it: the first finds each component's least weight with an atomic minimum, the second, among the edges of
that weight, the least pair of ends. So ties are broken by the ends' places in natural order, every order of the edges
gives the same forest, and weight and edge need not fit one word.

A vertex stays active only while it has an edge that leaves its component, and both ends mark each other; so edges
inside components stop moving (the mutation). State is indexed by places in natural order. Edges of a directed graph
count in both directions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_min
from isthmus.kernels.loops import vertices
from isthmus.kernels.programs import forest
from isthmus.programs.algorithm import Answer, Rows, Runner, algorithm
from isthmus.programs.checkpoint_checks import integer, roots, within
from isthmus.programs.column import Column, Holds
from isthmus.programs.declaration import itself
from isthmus.programs.functions import Functions, Scalar
from isthmus.programs.message import INT_MAX
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.weights import note_unweighted

LIGHTEST, FIRST = 0, 1  # the two passes of a round
COMPONENTS, BEST, PICKS, NATURALS = range(4)
AT_ONCE = 1 << 20  # vertices hooked by one call


def natural(u: Any, state: Any) -> Any:
    return np.int64(state[NATURALS][u])


def choosing(place: Scalar, kind: Any) -> Functions:
    """Each edge that leaves a component is a candidate of it. `place` finds a vertex in natural order; weights are of
    `kind`.
    """

    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        a = place(u, state)
        return a, np.int64(state[COMPONENTS][a])

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        a, mine = x
        b = place(v, state)
        if np.int64(state[COMPONENTS][b]) == mine:
            return False
        best, weight = state[BEST], kind(w)
        if params[0] == LIGHTEST:
            if weight < best[mine]:
                atomic_min(best, mine, weight)
        elif weight == best[mine]:
            atomic_min(state[PICKS], mine, np.uint64(min(a, b)) << np.uint64(32) | np.uint64(max(a, b)))
        return True

    return Functions(source, edge)


class SpanningForest(Program):
    """The edges of the forest: columns `source`, `target` (places in natural order) and `weight`."""

    name = "minimum_spanning_forest"
    columns = (Column("source", Holds.PLACES), Column("target", Holds.PLACES), Column("weight", none=()))
    order_free = False  # the second pass needs the first to be over
    state_bytes = 56  # 24 for the rounds, 32 for choosing, sorting and listing the edges

    def __init__(self, directed: bool) -> None:
        self.sides = ("out", "in") if directed else ("out",)

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> Functions:
        return choosing(itself if facts.naturals() is None else natural, weight_kind(facts))

    def begin(self, facts: Facts) -> State:
        n, naturals = facts.vertices, facts.naturals()
        arrays = {
            "components": np.arange(n, dtype=np.uint32),
            "best": np.empty(n, weight_kind(facts)),
            "picks": np.empty(n, np.uint64),
        }
        return State(arrays if naturals is None else {**arrays, "naturals": naturals}, None, (LIGHTEST,))

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        if state.params[0] == LIGHTEST:
            heaviest = INT_MAX if state["best"].dtype.kind == "i" else np.inf
            facts.team.split(lambda a, b: forest.forget(a, b, heaviest, *state.arrays[:NATURALS]), facts.vertices)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if state.params[0] == LIGHTEST:
            state.params = (FIRST,)
            return True
        state.params = (LIGHTEST,)
        components, picks = state["components"], state["picks"]
        for first in range(0, facts.vertices, AT_ONCE):
            forest.hook(first, min(first + AT_ONCE, facts.vertices), components, picks)
        facts.team.split(lambda a, b: vertices.compress(components, a, b), facts.vertices)
        return True

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays[:NATURALS], "params": state.params}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        state.arrays = (*kept["arrays"], *state.arrays[NATURALS:])
        state.params = (integer(kept["params"][0], *sorted((LIGHTEST, FIRST))),)

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        """An edge of the forest joins two vertices; that of a root is forgotten before the lightest ones are found."""
        components, picks = state["components"], state["picks"]
        roots(components)
        for first in range(0, facts.vertices, AT_ONCE):
            mine, edges = components[first : first + AT_ONCE], picks[first : first + AT_ONCE]
            joined = mine != np.arange(first, first + mine.size, dtype=mine.dtype)
            used = joined if state.params[0] == LIGHTEST else joined | (edges != forest.NO_EDGE)
            within(edges[used] >> np.uint64(32), facts.vertices - 1)
            within(edges[used].astype(np.uint32), facts.vertices - 1)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        components, picks = state["components"], state["picks"]
        joined = np.flatnonzero(components != np.arange(facts.vertices, dtype=np.uint32))
        joined = joined[np.argsort(picks[joined])]
        edges = picks[joined]
        return {
            "source": (edges >> np.uint64(32)).astype(np.uint32),
            "target": edges.astype(np.uint32),
            "weight": state["best"][joined],
        }

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        weights = columns["weight"]
        with np.errstate(over="ignore"):  # a sum that is too large is infinite, and noted
            total = sum(weights.tolist()) if weights.dtype.kind == "i" else float(weights.sum())
        return {
            "edges": int(weights.size),
            "trees": int(state["components"].size - weights.size),
            "total_weight": total,
        }


def weight_kind(facts: Facts) -> Any:
    return np.int64 if facts.weight_dtype is None or np.issubdtype(facts.weight_dtype, np.integer) else np.float64


@algorithm(not_live="a deleted edge of the forest needs the lightest of all edges between two parts")
def minimum_spanning_forest(run: Runner) -> Answer:
    """The edges of a minimum spanning tree of every component; ties go to the smaller vertex ids.

    Edge directions are ignored. Without weights every edge counts as 1, with a note.
    """
    answer = run(SpanningForest(run.graph.directed))
    answer.rows = Rows.EDGES
    if answer.figures["total_weight"] in (math.inf, -math.inf):  # a whole number may be too large for NumPy
        run.note("the weights of the forest add up to more than float64 holds: total_weight is infinite")
    note_unweighted(run)
    return answer
