"""Core numbers by peeling: the largest k such that a vertex is in a subgraph where all degrees are at least k.

For k = 0, 1, ... the vertices with at most k edges left get core number k and are removed with their edges, until none
is left (Matula and Beck 1983; in parallel rounds as in ParK, Dasari et al. 2014). Each edge moves once per direction
altogether. A degree counts in-edges, out-edges and every parallel edge, but no self loops. If the graph has self
loops, a first pass finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.programs import peel
from isthmus.programs.algorithm import Answer, Live, Runner, algorithm
from isthmus.programs.checkpoint_checks import integer
from isthmus.programs.column import Column
from isthmus.programs.functions import Functions
from isthmus.programs.message import INT_MAX
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.vertex_choice import as_mask, chosen

LOOPS, PEELING = 0, 1


def nothing_sent(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return 0


def take_out(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Remove the edge from v's degree; v becomes active when k edges are left. The first pass removes self loops."""
    degrees, cores = state
    if params[0] == LOOPS:
        if u == v:
            atomic_add(degrees, u, -1)
        return False
    if cores[v] >= 0:
        return False
    return atomic_add(degrees, v, -1) == params[1] + 1


class CoreNumber(Program):
    """Core numbers. `loops`: whether the graph has self loops."""

    name = "core_number"
    columns = (Column("core_number"),)
    order_free = False  # each edge counts once
    state_bytes = 17  # degrees, core numbers, a mask of those that start

    def __init__(self, directed: bool, loops: bool) -> None:
        self.sides = ("out", "in") if directed else ("out",)
        self._loops = loops

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing_sent, take_out)

    def begin(self, facts: Facts) -> State:
        degrees = np.zeros(facts.vertices, np.int64)
        for lists in facts.lists_of_sides:
            degrees += lists.ends
            degrees -= lists.begins
        arrays = {"degrees": degrees, "cores": np.full(facts.vertices, -1, np.int64)}
        if self._loops:
            return State(arrays, None, (LOOPS, 0))
        state = State(arrays, None, (PEELING, 0))
        state.start = as_mask(self._next(state, facts), facts.vertices)
        return state

    def _next(self, state: State, facts: Facts) -> Iterable[Array]:
        """Raise k to the smallest degree that is left; returns the vertices that have it in pieces, none at the end."""
        n = facts.vertices
        least = min(facts.team.split(lambda a, b: peel.least_left(a, b, *state.arrays, INT_MAX), n), default=INT_MAX)
        if least == INT_MAX:
            return ()
        # Below zero only if a store holds an edge in one direction; -1 means that a vertex is not removed yet.
        least = max(least, 0)
        state.params = (PEELING, int(least))
        return chosen(n, lambda first, last, out: peel.list_left(first, last, *state.arrays, least, out))

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Remove the active vertices: k is their core number."""
        if state.params[0] == LOOPS:
            return
        k, cores = state.params[1], state["cores"]
        if frontier.list is not None:
            peel.remove_rows(frontier.list, k, cores)
            return
        facts.team.split(
            lambda a, b: peel.remove_range(a, b, frontier.marks, frontier.all_active, k, cores), facts.vertices
        )

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if frontier.none_next():
            for piece in self._next(state, facts):
                frontier.wake_all(piece)
        return True

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays, "params": state.params}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        phase, k = kept["params"]
        state.arrays, state.params = kept["arrays"], (integer(phase, LOOPS, PEELING), integer(k, 0))

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"core_number": state.given("cores")}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        cores = columns["core_number"]
        return {
            "largest": int(cores.max()) if cores.size else 0,
            "in_largest": int((cores == cores.max()).sum()) if cores.size else 0,
        }


@algorithm(live=Live("CoreNumber", lambda graph: CoreNumber(graph.directed, graph.self_loops > 0)))
def core_number(run: Runner) -> Answer:
    """The largest k for which a vertex is in the k-core; edge directions and self loops are ignored."""
    return run(CoreNumber(run.graph.directed, run.graph.self_loops > 0))
