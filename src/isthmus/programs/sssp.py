"""Single-source shortest paths: a neighbour is as far as I am, plus the edge.

Whole-number weights give int64 distances that saturate instead of wrapping; others give float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.kernels import traversal
from isthmus.programs.best_first import BestFirst
from isthmus.programs.program import INT_MAX, Array, Facts, Monotone, NearEdges, Seen, State, monotone

FEW_EDGES = 1 << 14  # a round this small is done by one thread
STEP = 4  # of seven values from 1/4 to 16, by a few runs on a busy machine: ties with 2 on RMAT 20, near the best on a grid
NARROW_MAX = np.iinfo(np.uint32).max
LOOKED_AT = 1 << 14  # weights whose mean sets the width of a step


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

    solve_bytes = 18  # three queues, two byte maps, distances of 32 bits

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
        self._best_first = BestFirst(1)
        return super().begin(facts)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        self._best_first.part(state.arrays[0], frontier, facts)

    def remember(self, state: State) -> dict[str, Any]:
        return {**super().remember(state), "bound": self._best_first.bound}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        super().recall(state, kept)
        self._best_first.bound = kept["bound"]

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        if facts.vertices > 1 << 32:
            return False
        distances, cutoff = state.arrays[0], self.values_given["cutoff"]
        if distances.dtype.kind == "f" or not self._solve_narrow(distances, cutoff, state.start, facts, edges, seen):
            Paths(cutoff, facts, edges, distances, seen).run(state.start)
        return True

    def _solve_narrow(self, distances: Array, cutoff: float, start: Any, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        """With distances of 32 bits, half as much memory to reach at random; False: some path is too long for them."""
        narrow = np.full(facts.vertices, NARROW_MAX, np.uint32)
        narrow[start] = 0
        paths = Paths(min(cutoff, NARROW_MAX - 1), facts, edges, narrow, seen)
        paths.run(start)
        if paths.beyond[0] and cutoff >= NARROW_MAX:
            return False
        distances[:] = narrow
        distances[narrow == NARROW_MAX] = INT_MAX
        return True

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        distance = columns["distance"]
        reached = distance != INT_MAX if distance.dtype.kind == "i" else np.isfinite(distance)
        return {"reached": int(reached.sum()), "farthest": distance[reached].max().item() if reached.any() else 0}


class Paths:
    """Shortest paths over near edges, by two piles; see kernels.traversal."""

    def __init__(self, cutoff: Any, facts: Facts, edges: NearEdges, distances: Array, seen: Seen) -> None:
        self._cutoff, self._facts, self._edges, self._distances, self._seen = cutoff, facts, edges, distances, seen
        n = facts.vertices
        self._queue, self._near, self._far = (np.empty(n, np.uint32) for _ in range(3))
        self._near_marks, self._far_marks = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._near_tail, self._far_tail = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.beyond = np.zeros(1, np.uint8)  # whether a path longer than the cutoff was seen
        self._delta = self._step()

    def _step(self) -> float:
        """A mean weight over a mean degree: about as many vertices per step as there are neighbours."""
        weights, arcs = self._edges.weights, int(self._edges.offsets[-1])
        mean = 1.0 if weights is None else float(traversal.mean(weights, max(1, arcs // LOOKED_AT)))
        return max(STEP * mean * self._facts.vertices / max(arcs, 1), 1e-300)

    def run(self, start: Array | None) -> None:
        assert start is not None
        size = start.size
        self._queue[:size] = start
        self._near_marks[start] = 1
        done, bound = -1.0, float(self._delta)
        while size or self._far_tail[0]:
            if traversal.count_edges(self._queue, size, self._edges.offsets) <= FEW_EDGES:
                size, done, bound = self._alone(size, done, bound)
            else:
                size = self._together(size, bound)

    def _alone(self, size: int, done: float, bound: float) -> tuple[int, float, float]:
        edges = self._edges
        size, swapped, far, done, bound, rounds, walked = traversal.relax_alone(
            self._queue, size, edges.offsets, edges.targets, edges.weights, self._distances, done, bound, self._delta, self._cutoff,
            self._near, self._near_marks, self._far, self._far_tail[0], self._far_marks, self.beyond, FEW_EDGES,
        )  # fmt: skip
        if swapped:
            self._queue, self._near = self._near, self._queue
        self._far_tail[0] = far
        for _ in range(rounds):
            self._seen(size, walked // rounds)
        return size, done, bound

    def _together(self, size: int, bound: float) -> int:
        edges, team = self._edges, self._facts.team
        self._near_tail[0] = 0
        step = max(1, min(64, size // (8 * team.size)))

        def part(index: int) -> None:
            traversal.relax_near(
                self._queue, index * step, min((index + 1) * step, size), edges.offsets, edges.targets, edges.weights,
                self._distances, bound, self._cutoff, self._near, self._near_tail, self._near_marks,
                self._far, self._far_tail, self._far_marks, self.beyond,
            )  # fmt: skip

        walked = int(traversal.count_edges(self._queue, size, edges.offsets))
        team.each(part, -(-size // step))
        self._queue, self._near = self._near, self._queue
        self._seen(size, walked)
        return int(self._near_tail[0])
