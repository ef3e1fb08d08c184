"""Single-source shortest paths: a neighbour is as far as I am, plus the edge.

Whole-number weights give int64 distances, others float64. A distance that is too long for its type stops at `LONGEST`,
which is below the value of unreached vertices, and a note says so.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from isthmus import sizes
from isthmus.checks import is_real
from isthmus.errors import OptionError
from isthmus.kernels.loops import barrier
from isthmus.kernels.loops.vertices import reach, widen
from isthmus.kernels.programs import delta_stepping, traversal
from isthmus.programs.algorithm import Answer, Live, Option, Runner, Vertex, algorithm
from isthmus.programs.best_first import MonotoneBestFirst
from isthmus.programs.column import Column
from isthmus.programs.declaration import monotone
from isthmus.programs.message import INT_MAX
from isthmus.programs.predecessors import LONGEST, FindTree, Predecessors, with_predecessors
from isthmus.programs.program import NOTHING_YET, Array, Facts, NearEdges, Seen, State
from isthmus.programs.weights import no_negative_weights, note_unweighted

# of 1/4, 1/2, 1, 2 and 4 the fastest on Kronecker 20, or near it; on a grid 2 and 4 are faster by a few percent.
WIDTH = 1
TOLD = 1 << 10  # rounds of a call that the trace records one by one; a call of more rounds has TOLD / 16 records
NARROW_MAX = np.iinfo(np.uint32).max
LOOKED_AT = 1 << 14  # weights sampled for the mean that sets the width of a bucket


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def whole(distance, weight, cutoff=LONGEST["i"], beyond=LONGEST["i"]):  # type: ignore[no-untyped-def]
    # Compare before adding: the compiler assumes that whole numbers do not overflow.
    return distance + weight if weight <= cutoff - distance else beyond


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def real(distance, weight, cutoff=LONGEST["f"], beyond=LONGEST["f"]):  # type: ignore[no-untyped-def]
    total = distance + weight
    return total if total <= cutoff else beyond


class SSSP(MonotoneBestFirst):
    """Distances by weight from `source`; paths longer than `cutoff` do not count.

    `until`: a vertex. When its distance is known, those of farther ones may be left out, or be too long.
    """

    columns = (Column("distance"),)
    solve_bytes = 17  # two entries in buckets, distances of 32 bits, and those relaxed
    weights_from_0 = True

    def __init__(self, source: Any, cutoff: float | None = None, until: Any = None) -> None:
        super().__init__(real.message, real.initial, real.combine, real.start_value, real.column, real.sides)
        if cutoff is not None and (not is_real(cutoff) or cutoff < 0):
            raise OptionError(f"cutoff: expected at least 0, got {cutoff!r}")
        self.name, self.sources, self.cutoff, self._until = "sssp", [source], cutoff, until
        self._last: int | None = None  # the number of that vertex

    def dtype(self, facts: Facts) -> Any:
        """The type of distances; also chooses the message that this graph needs."""
        integral = facts.weight_dtype is None or np.issubdtype(facts.weight_dtype, np.integer)
        self.message = (whole if integral else real).message
        longest = LONGEST["i" if integral else "f"]
        if self.cutoff is None or self.cutoff >= longest:
            self.values_given = {"cutoff": longest, "beyond": longest}
        else:  # paths beyond a cutoff do not count at all
            cutoff, unreached = (math.floor(self.cutoff), INT_MAX) if integral else (float(self.cutoff), np.inf)
            self.values_given = {"cutoff": cutoff, "beyond": unreached}
        return np.int64 if integral else np.float64

    def begin(self, facts: Facts) -> State:
        self.dtype(facts)
        self._last = None if self._until is None else facts.number(self._until)
        return super().begin(facts)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        self.tighten(state)
        super().before(state, frontier, facts)

    def tighten(self, state: State) -> None:
        if self._last is not None and (known := state["values"][self._last].item()) < state.params[0]:
            # Weights are at least 0, so no path that is longer than one to the target leads there.
            state.params = known, INT_MAX if state["values"].dtype.kind == "i" else np.inf

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        if facts.vertices > 1 << 32:
            return False
        distances, cutoff, beyond = state["values"], self.values_given["cutoff"], self.values_given["beyond"]
        unreached = np.inf if distances.dtype.kind == "f" else INT_MAX
        if distances.dtype.kind == "i" and self._solve_narrow(distances, cutoff, state.start, facts, edges, seen):
            return True
        paths = Paths(cutoff, facts, edges, distances, unreached, seen, self._last)
        paths.run()
        if not paths.beyond or beyond == unreached:
            return True
        distances.fill(unreached)  # some distance is too long for its type: messages can say so, buckets cannot
        distances[state.start] = 0
        return False

    def _solve_narrow(
        self, distances: Array, cutoff: float, start: Any, facts: Facts, edges: NearEdges, seen: Seen
    ) -> bool:
        """Solve with distances of 32 bits, half as much memory to access at random; False: some path is too long for
        them.
        """
        narrow, n = np.empty(facts.vertices, np.uint32), facts.vertices
        facts.team.split(lambda a, b: narrow[a:b].fill(NARROW_MAX), n)
        narrow[start] = 0
        paths = Paths(min(cutoff, NARROW_MAX - 1), facts, edges, narrow, NARROW_MAX, seen, self._last)
        paths.run()
        if paths.beyond and cutoff >= NARROW_MAX:
            return False  # the distances are as they were
        facts.team.split(lambda a, b: widen(narrow, NARROW_MAX, INT_MAX, distances, a, b), n)
        return True

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        distance = columns["distance"]
        reached, farthest = reach(distance, INT_MAX if distance.dtype.kind == "i" else np.inf)
        return {"reached": reached, "farthest": farthest}


class Paths:
    """Shortest paths over near edges, bucket by bucket; see kernels.delta_stepping."""

    def __init__(
        self,
        cutoff: Any,
        facts: Facts,
        edges: NearEdges,
        distances: Array,
        none: Any,
        seen: Seen,
        until: int | None = None,
    ) -> None:
        self._until = -1 if until is None else until
        self._cutoff, self._team, self._edges, self._distances, self._none, self._seen = (
            cutoff,
            facts.team,
            edges,
            distances,
            none,
            seen,
        )
        self._relaxed = np.full(facts.vertices, none, distances.dtype)
        self._per = 1 / self._width(facts.vertices)
        members = facts.team.size
        chunks = members * (delta_stepping.RING + 1) + sizes.now.bucket_entries * -(
            -facts.vertices // delta_stepping.CHUNK
        )
        self._items, self._tables = (
            np.empty(chunks * delta_stepping.CHUNK, np.uint32),
            np.empty((members, chunks), np.int64),
        )
        self._laid, self._taken = (np.zeros(3 * members * barrier.LINE, np.int64) for _ in range(2))
        self._links = np.empty(chunks, np.int32)
        self._heads, self._fills = (np.empty((members, delta_stepping.RING + 1), np.int32) for _ in range(2))
        self._owns = np.zeros((members, delta_stepping.OWN), np.int64)
        self._gate = barrier.gate(delta_stepping.LINES)

    @property
    def beyond(self) -> bool:
        """Whether a path longer than the cutoff was seen."""
        return bool(self._gate[delta_stepping.BEYOND])

    def _width(self, vertices: int) -> float:
        """The width of a bucket: mean weight / mean degree."""
        return max(WIDTH * self._mean_weight() * vertices / max(self._edges.lists.arcs, 1), 1e-300)

    def _mean_weight(self) -> float:
        weights, lists = self._edges.weights, self._edges.lists
        step = max(1, lists.arcs // LOOKED_AT)
        if weights is None:
            return 1.0
        if not lists.has_gaps:
            return float(traversal.mean(weights, step))
        return float(traversal.mean_weight(weights, *lists.arrays, 0, len(lists), 0, step, lists.arcs))

    def run(self) -> None:
        current = 0
        self._requeue(current)
        while current != delta_stepping.NONE:
            self._gate[: delta_stepping.USED] = self._taken[:] = 0
            self._gate[delta_stepping.NEXT : delta_stepping.STOP] = delta_stepping.NONE
            current = self._relax(current)
            if self._gate[delta_stepping.LOST]:
                self._requeue(current)

    def _relax(self, current: int) -> int:
        edges, members, found = self._edges, self._team.size, [0] * self._team.size

        def work(member: int) -> None:
            found[member] = delta_stepping.relax_all(
                member,
                members,
                self._gate,
                current,
                self._per,
                self._cutoff,
                self._until,
                *edges.lists.arrays,
                edges.targets,
                edges.weights,
                self._distances,
                self._relaxed,
                self._items,
                self._links,
                self._tables,
                self._laid,
                self._taken,
                self._heads,
                self._fills,
                self._owns,
            )

        self._team.gang(work, lambda: barrier.abandon(self._gate))
        counts = [delta_stepping.ROUNDS, delta_stepping.VERTICES, delta_stepping.EDGES]
        rounds, vertices, walked = (int(self._owns[:, k].sum()) for k in counts)
        self._owns[:, counts] = 0
        records = rounds if rounds <= TOLD else TOLD // 16  # each record is a mean in any case
        for _ in range(records):
            self._seen(vertices // records, walked // records)
        return found[0]

    def _requeue(self, current: int) -> None:
        delta_stepping.requeue(
            current,
            self._per,
            self._none,
            self._distances,
            self._items,
            self._links,
            self._heads,
            self._fills,
            self._owns,
            self._gate,
        )


@algorithm(place=2, live=Live("SSSP", lambda graph, source, cutoff=None: SSSP(source, cutoff)))
def sssp(
    run: Runner,
    source: Vertex,
    cutoff: Annotated[float | None, Option("Longest distance that counts.", least=0)] = None,
    predecessors: FindTree = False,
) -> Answer:
    """Shortest distances by weight from a source.

    Without weights every edge counts as 1, with a note. With `predecessors` also a shortest-path tree, which takes a
    second pass.
    """
    weighted = run.graph.weighted
    no_negative_weights(run, "sssp")
    if predecessors:
        run.must_fit(Predecessors(source, NOTHING_YET, weighted))
    answer = run(SSSP(source, cutoff))
    note_unweighted(run)
    longest = LONGEST[answer.columns["distance"].dtype.kind]
    if answer.figures["farthest"] == longest:
        run.note(f"distances stop at {longest:g}, the longest that is counted; some paths are as long or longer")
    return with_predecessors(run, answer, source, weighted) if predecessors else answer
