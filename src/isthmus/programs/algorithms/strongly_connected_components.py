"""Strongly connected components: trimming, one forward-backward search, then colouring.

Phases follow each other until every vertex has a component (Multistep, Slota et al. 2014):

1. TRIM_FORWARD: a vertex without in-edges is a component of its own. It is removed with its out-edges, again and again.
   The phase starts with the components that phase 4 found, whose out-edges are removed as well.
2. TRIM_BACKWARD: the same for vertices without out-edges.
3. FORWARD: the largest colour spreads along edges. The first time only one vertex, the one with the most in-edges and
   out-edges, has a colour, which finds the giant component. Later every vertex starts with its own (Orzan 2004).
4. BACKWARD: a search against the edges, from every vertex that kept its own colour and within that colour, finds its
   component. The edges into the component are removed from their tails' out-degrees.

A vertex that phase 1 removes has no in-neighbours left, so no out-degree changes; phase 2 likewise. Each phase follows
one side, so an iteration never moves edges that it does not need. Self loops are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.kernels.compile.atomics import atomic_add, atomic_cas, atomic_max
from isthmus.kernels.loops import vertices
from isthmus.kernels.programs import strong
from isthmus.programs.algorithm import Answer, Runner, algorithm
from isthmus.programs.algorithms.weakly_connected_components import Components
from isthmus.programs.checkpoint_checks import AT_ONCE, integer, truth, within
from isthmus.programs.column import Column, Holds
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.vertex_choice import as_mask, chosen, label_counts, replace_by

LOOPS, TRIM_FORWARD, TRIM_BACKWARD, FORWARD, BACKWARD = range(5)
NEXT = {
    LOOPS: TRIM_FORWARD,
    TRIM_FORWARD: TRIM_BACKWARD,
    TRIM_BACKWARD: FORWARD,
    FORWARD: BACKWARD,
    BACKWARD: TRIM_FORWARD,
}
COLORS = 3  # where kernels find the colours
NONE, MINUS_ONE = np.uint32(strong.NONE), np.uint32(2**32 - 1)


def color(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return state[COLORS][u]


def follow(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Remove an edge, or pass a colour on."""
    arriving, leaving, components, colors = state
    phase = params[0]
    if u == v:
        if phase == LOOPS:
            atomic_add(arriving, v, MINUS_ONE)
            atomic_add(leaving, v, MINUS_ONE)
        return False
    if phase == TRIM_FORWARD:
        return atomic_add(arriving, v, MINUS_ONE) == 1 and components[v] == NONE
    if phase == TRIM_BACKWARD:
        return atomic_add(leaving, v, MINUS_ONE) == 1 and components[v] == NONE
    if phase == FORWARD:
        return components[v] == NONE and colors[v] < x and atomic_max(colors, v, x) < x
    if phase == BACKWARD:
        atomic_add(leaving, v, MINUS_ONE)
        if components[v] == NONE and colors[v] == x:
            return atomic_cas(components, v, NONE, np.uint32(x - np.uint32(1))) == NONE
    return False


class StrongComponents(Program):
    """labels[v] = the place in natural order of the smallest vertex of v's component. `loops`: there are self loops."""

    name = "strongly_connected_components"
    sides = ("out", "in")
    columns = (Column("labels", Holds.PLACES),)
    order_free = False  # each edge is taken out once
    spread_array = COLORS
    state_bytes = 24  # four arrays, the mask of the first vertices, natural numbers at the end

    def __init__(self, loops: bool) -> None:
        self._loops, self._pivoted = loops, False

    def reads_weights(self) -> bool:
        return False

    def following(self, state: State) -> tuple[str, ...]:
        return ("in",) if state.params[0] in (TRIM_BACKWARD, BACKWARD) else ("out",)

    def functions(self, facts: Facts) -> Functions:
        return Functions(color, follow)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        leaving, arriving = (lists.degrees(np.uint32) for lists in facts.lists_of_sides)
        arrays = {
            "arriving": arriving,  # remaining in-degrees
            "leaving": leaving,
            "components": np.full(n, strong.NONE, np.uint32),
            "colors": np.zeros(n, np.uint32),
        }
        state = State(arrays, None, (LOOPS,))
        if not self._loops:
            state.start = as_mask(self._turn(state, facts), facts.vertices)
        return state

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """While trimming, settle the active vertices."""
        if state.params[0] not in (TRIM_FORWARD, TRIM_BACKWARD):
            return
        settled = state["components"], state["colors"]
        if frontier.list is not None:
            strong.settle_rows(frontier.list, *settled)
            return
        facts.team.split(
            lambda a, b: strong.settle_range(a, b, frontier.marks, frontier.all_active, *settled), facts.vertices
        )

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if frontier.none_next():
            for piece in self._turn(state, facts):
                frontier.wake_all(piece)
        return True

    def _turn(self, state: State, facts: Facts) -> Iterator[Array]:
        """Go on to the next phase that has anything to do; yields the vertices that start it in pieces, none at the
        end.
        """
        while True:
            state.params = (NEXT[state.params[0]],)
            started = False
            for piece in self._start(state, facts):
                started = True
                yield piece
            if started or state.params[0] == FORWARD:  # no vertex is left to spread a colour: all are settled
                return

    def _start(self, state: State, facts: Facts) -> Iterable[Array]:
        arriving, leaving, components, colors = state.arrays
        phase = state.params[0]
        if phase == TRIM_FORWARD:
            return chosen(
                facts.vertices, lambda a, b, out: strong.list_ends(a, b, arriving, components, colors, True, out)
            )
        if phase == TRIM_BACKWARD:
            return chosen(
                facts.vertices, lambda a, b, out: strong.list_ends(a, b, leaving, components, colors, False, out)
            )
        if phase == BACKWARD:
            return chosen(facts.vertices, lambda a, b, out: strong.list_roots(a, b, components, colors, out))
        # All edges of settled vertices were removed: those that remain count once at each end.
        if sum(facts.team.split(lambda a, b: strong.surplus(a, b, arriving, leaving, components), facts.vertices)):
            raise StoreError(
                "the in-edges and out-edges of the graph are not the same edges; run isthmus verify on the store"
            )
        if self._pivoted:
            return chosen(facts.vertices, lambda a, b, out: strong.list_own_colors(a, b, components, colors, out))
        self._pivoted = True
        parts = facts.team.split(lambda a, b: strong.busiest(a, b, arriving, leaving, components), facts.vertices)
        pivot = max(parts, key=lambda part: part[1], default=(-1, -1))[0]
        if pivot < 0:
            return []
        colors[pivot] = pivot + 1
        return [np.array([pivot], np.uint32)]

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays, "phase": state.params[0], "pivoted": self._pivoted}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        state.arrays, state.params = kept["arrays"], (integer(kept["phase"], LOOPS, BACKWARD),)
        self._pivoted = truth(kept["pivoted"])

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        components, colors = state["components"], state["colors"]
        within(colors, facts.vertices)
        for first in range(0, facts.vertices, AT_ONCE):
            piece = components[first : first + AT_ONCE]
            within(piece[piece != NONE], facts.vertices - 1)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        """Labels; a vertex that has no component yet is one of its own."""
        components, smallest = state["components"], state.memory_like("arriving")
        naturals = facts.naturals()
        if components.max(initial=0) == NONE:
            components = np.where(components == NONE, np.arange(components.size, dtype=np.uint32), components)
        smallest[:] = strong.NONE
        vertices.smallest_member(
            components, np.arange(components.size, dtype=np.uint32) if naturals is None else naturals, smallest
        )
        labels = state.memory_like("components")
        labels[:] = components
        replace_by(smallest, labels)
        return {"labels": labels}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        count, largest = label_counts(columns["labels"], state.memory_like("leaving"))
        return {"components": count, "largest": largest}


@algorithm(not_live="a deleted edge may break any cycle through it; weakly_connected_components is maintained")
def strongly_connected_components(run: Runner) -> Answer:
    """For every vertex the smallest vertex of its strongly connected component."""
    return run(StrongComponents(run.graph.self_loops > 0) if run.graph.directed else Components())
