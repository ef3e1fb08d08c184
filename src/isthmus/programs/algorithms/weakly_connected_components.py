"""Weakly connected components by union-find: every edge joins two trees, in one pass over the edges.

Roots are hooked onto smaller roots with compare-and-swap (as in Afforest, Sutton et al. 2018), so a component's
root is its smallest vertex in the order of the store; labels are translated to the smallest user id. Direction
does not matter, so the out-edges are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.atomics import atomic_cas
from isthmus.kernels.loops import vertices
from isthmus.kernels.programs import union
from isthmus.programs.algorithm import Answer, Live, Runner, algorithm
from isthmus.programs.column import Column, Holds
from isthmus.programs.declaration import Monotone, monotone
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, NearEdges, Program, Seen, State
from isthmus.programs.vertex_choice import label_counts, replace_by

SAMPLED, SAMPLE = 2, 1024  # Afforest: neighbours linked first, vertices looked at to find the giant component
SLICE = 1 << 14  # vertices that a thread takes at a time


def find(parents: Any, u: Any) -> Any:
    """The root above u; shortens the path to it."""
    while True:
        parent = np.int64(parents[u])
        if parent == u:
            return u
        above = parents[parent]
        if np.int64(above) != parent:
            parents[u] = above
        u = parent


def root(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return find(state[0], u)


def join(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Hook the larger root onto the smaller; no vertex becomes active."""
    parents = state[0]
    a, b = np.int64(parents[u]), np.int64(parents[v])
    if a == b:
        return False
    a, b = find(parents, a), find(parents, b)
    while a != b:
        high, low = max(a, b), min(a, b)
        old = np.int64(atomic_cas(parents, high, parents.dtype.type(high), parents.dtype.type(low)))
        if old == high:
            break
        a, b = find(parents, old), find(parents, low)
    return False


class Components(Program):
    """labels[v] = the place in natural order of the smallest vertex connected with v."""

    name = "weakly_connected_components"
    state_bytes = 12  # parents, and when the store is in hub order the natural numbers and the smallest of each
    max_iter = 1
    columns = (Column("labels", Holds.PLACES),)

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> Functions:
        return Functions(root, join)

    def begin(self, facts: Facts) -> State:
        kind = np.uint32 if facts.vertices < 1 << 32 else np.uint64
        return State({"parents": np.arange(facts.vertices, dtype=kind)}, None)

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        """Neighbour sampling; a directed graph's edges are seen from one end only, so no vertex may be skipped."""
        parents, n, team = state["parents"], facts.vertices, facts.team
        count = -(-n // SLICE)

        def bounds(index: int) -> tuple[int, int]:
            return index * SLICE, min((index + 1) * SLICE, n)

        giant, skip = -1, 0
        if not facts.directed:
            for nth in range(SAMPLED):
                team.each(
                    lambda i, nth=nth: union.link_nth(*bounds(i), nth, *edges.lists.arrays, edges.targets, parents),
                    count,
                )
                team.each(lambda i: vertices.compress(parents, *bounds(i)), count)
            picks = np.random.default_rng(1).integers(0, n, SAMPLE) if n else np.empty(0, np.int64)
            found, often = np.unique(parents[picks], return_counts=True)
            giant, skip = (int(found[often.argmax()]) if found.size else -1), SAMPLED
        team.each(
            lambda i: union.link_rest(*bounds(i), skip, giant, *edges.lists.arrays, edges.targets, parents), count
        )
        seen(n, edges.lists.arcs)
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        parents = state.take("parents")
        step = -(-facts.vertices // facts.team.size) if facts.vertices else 0

        def part(index: int) -> None:
            vertices.compress(parents, index * step, min((index + 1) * step, facts.vertices))

        facts.team.each(part, facts.team.size)
        naturals = facts.naturals()  # None: a root is its component's smallest vertex already
        return {"labels": parents if naturals is None else smallest_places(parents, naturals)}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return counted(columns["labels"])


def smallest_places(labels: Array, naturals: Array) -> Array:
    """Labels, each a vertex of its component, replaced by the smallest place in natural order there; in place."""
    smallest = np.full(labels.size, np.iinfo(labels.dtype).max, labels.dtype)
    vertices.smallest_member(labels, naturals, smallest)
    replace_by(smallest, labels)
    return labels


def counted(labels: Array) -> dict[str, Any]:
    count, largest = label_counts(labels, np.empty_like(labels))
    return {"components": count, "largest": largest}


@monotone(initial="vertex", combine="min", column="labels")
def smallest(label):  # type: ignore[no-untyped-def]
    return label


class Labels(Monotone):
    """Components of a changing graph: every vertex takes the smallest number that reaches it, from either end of an
    edge.

    A label is the number of some vertex of the component. Numbers do not follow ids when vertices come and go, so the
    answer has the smallest place in natural order of each component instead.
    """

    columns = (Column("labels", Holds.PLACES),)
    labels_are_vertices = True

    def __init__(self, directed: bool) -> None:
        sides = ("out", "in") if directed else ("out",)
        super().__init__(smallest.message, smallest.initial, smallest.combine, None, smallest.column, sides)
        self.name = "weakly_connected_components"

    def dtype(self, facts: Facts) -> Any:
        return np.uint32

    def first_state(self, facts: Facts) -> State:
        labels, levels = np.arange(facts.vertices, dtype=np.uint32), np.zeros(facts.vertices, np.uint32)
        return State({"values": labels, "levels": levels}, None)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        naturals = facts.naturals()
        places = np.arange(facts.vertices) if naturals is None else naturals
        return {"labels": smallest_places(state.take("values"), places)}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return counted(columns["labels"])


@algorithm(alias="wcc", place=3, live=Live("WeaklyConnectedComponents", lambda graph: Labels(graph.directed)))
def weakly_connected_components(run: Runner) -> Answer:
    """For every vertex the smallest vertex it is connected with, whatever the edges' direction."""
    return run(Components())
