"""Breadth-first search: how many edges from the source.

A vertex sends its level plus one. Levels beyond the depth limit are never sent, so one program serves with and without
a limit, in any order of propagation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from isthmus import sizes
from isthmus.checks import whole
from isthmus.kernels.loops import barrier, vertices
from isthmus.kernels.programs import traversal
from isthmus.programs.algorithm import Answer, Live, Option, Runner, Vertex, algorithm
from isthmus.programs.checkpoint_checks import integer
from isthmus.programs.column import Column
from isthmus.programs.declaration import Monotone, monotone
from isthmus.programs.functions import Functions
from isthmus.programs.message import INT_MAX
from isthmus.programs.predecessors import FindTree, Predecessors, with_predecessors
from isthmus.programs.program import NOTHING_YET, Array, Facts, NearEdges, Seen, State

# Beamer's switches, as the GAP Benchmark Suite sets them: bottom up when the frontier has a 15th of the edges left,
# top down again when it has less than an 18th of the vertices.
ALPHA, BETA = 15, 18
# From disk a bottom-up level moves every edge of an unreached vertex, though it looks at few. Following an edge costs
# twice that.
SEEK_SHARE = 2
FEW_EDGES = 1 << 14  # a level this small stays top-down
GANG = 1 << 20  # edges; threads stay together from level to level up to this size
TOLD = 1 << 14  # levels that the trace records one by one; later ones, all levels of a call together
SLICE = 1 << 14  # vertices that a thread takes at a time


def next_to_frontier(u: Any, v: Any, state: Any, params: Any) -> Any:
    """Whether v is in the frontier's bitmap, which makes u one level further."""
    if state[1][v >> 6] >> np.uint64(v & 63) & np.uint64(1):
        state[0][u] = params[1]
        return True
    return False


@monotone(initial=np.inf, combine="min", start=0, column="distance")
def level(distance, limit=INT_MAX):  # type: ignore[no-untyped-def]
    return distance + 1 if distance < limit else INT_MAX


class BFS(Monotone):
    """Distances in edges from `source`, up to `depth_limit`; unreached: the largest int64.

    `until`: a vertex. When it is reached, farther ones may be left out.
    """

    levels = True
    state_bytes = 10  # distances, the frontier's bitmap, a byte map of the unreached
    follows_each_vertex_once = True
    columns = (Column("distance"),)
    solve_bytes = 13  # levels, two queues, two bitmaps

    def __init__(self, source: Any, depth_limit: int | None = None, until: Any = None) -> None:
        program = level
        super().__init__(
            program.message, program.initial, program.combine, program.start_value, program.column, program.sides
        )
        self.name = "bfs"
        self.sources, self._until = [source], until
        self.values_given = {
            "limit": INT_MAX if depth_limit is None else min(whole("depth_limit", depth_limit, 0), INT_MAX)
        }

    def dtype(self, facts: Facts) -> Any:
        return np.int64

    def functions(self, facts: Facts) -> Functions:
        """Also the loop of bottom-up levels: an unreached vertex looks for a neighbour in the frontier's bitmap."""
        return replace(super().functions(facts), found=next_to_frontier)

    def begin(self, facts: Facts) -> State:
        state = super().begin(facts)
        self._left = facts.lists.arcs  # edges of vertices that were not active yet
        self._level = 0
        self._seeking = False
        self._in_levels = True
        self._last = None if self._until is None else facts.number(self._until)
        self._unreached: Array | None = None  # marks, from the first bottom-up level on
        state.add("front", np.zeros((facts.vertices + 63) // 64, np.uint64))  # the frontier's bitmap
        state.params = (*state.params, 1)
        return state

    def seeks(self, state: State) -> bool:
        return self._seeking

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Go bottom-up where moving the unreached vertices' edges costs less than following the frontier's."""
        self._level += 1
        state.params = (*state.params[:-1], self._level)
        edges = frontier.edges(facts.lists, facts.team)
        self._left -= edges
        self._seeking = (
            not facts.directed
            and edges > FEW_EDGES
            and self._left < SEEK_SHARE * edges
            and self._level <= state.params[0]
        )
        if self._seeking:
            frontier.bits(state["front"])
            frontier.take_marks(self._mark_unreached(state["values"], frontier, facts))
        elif self._unreached is not None:
            self._unreached[frontier.rows(0, facts.vertices)] = 0

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        return self._last is None or not self._in_levels or int(state["values"][self._last]) == INT_MAX

    def top_down(self, state: State) -> None:
        self._left = INT_MAX

    def unordered(self, state: State) -> None:
        self._left = INT_MAX  # bottom-up search needs levels
        self._in_levels = False  # the first distance of a vertex may not be its last

    def remember(self, state: State) -> dict[str, Any]:
        return {**super().remember(state), "left": self._left, "level": self._level}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        super().recall(state, kept)
        self._left, self._level = integer(kept["left"], -INT_MAX, INT_MAX), integer(kept["level"], 0)

    def _mark_unreached(self, distances: Array, frontier: Any, facts: Facts) -> int:
        """Mark the unreached vertices that have edges; only the first call passes over all distances."""
        left, marks, n = self._unreached, frontier.marks, facts.vertices
        if left is not None:
            return int(sum(facts.team.split(lambda a, b: vertices.mark_left(left, marks, a, b), n)))
        lists = facts.lists.arrays
        found = sum(facts.team.split(lambda a, b: vertices.mark_equal(distances, INT_MAX, *lists, marks, a, b), n))
        self._unreached = marks.copy()
        return int(found)

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        if facts.vertices > 1 << 32:
            return False
        if facts.vertices + edges.lists.arcs <= sizes.now.few_arcs:
            assert state.start is not None
            search_few(state["values"], state.start, int(self.values_given["limit"]), edges, seen)
            return True
        levels, distances, n = np.empty(facts.vertices, np.int32), state["values"], facts.vertices
        facts.team.split(lambda a, b: levels[a:b].fill(traversal.UNSEEN), n)
        Search(int(self.values_given["limit"]), facts, edges, levels, seen, self._last).run(state.start)
        facts.team.split(lambda a, b: vertices.widen(levels, traversal.UNSEEN, INT_MAX, distances, a, b), n)
        return True

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        distances = columns["distance"]
        if distances.size <= sizes.now.few_arcs:
            found = distances[distances != INT_MAX]
            return {"reached": found.size, "depth": int(found.max(initial=0))}
        reached, depth = vertices.reach(distances, INT_MAX)
        return {"reached": reached, "depth": depth}


def search_few(distances: Array, front: Array, limit: int, edges: NearEdges, seen: Seen) -> None:
    """A breadth-first search without kernels, which would have to be compiled, from the vertices `front`."""
    begins, ends = edges.lists.arrays
    level = 0
    while front.size and level < limit:
        slots = np.concatenate([np.arange(begins[v], ends[v]) for v in front.tolist()])
        seen(front.size, slots.size)
        level += 1
        heads = np.unique(edges.targets[slots])
        front = heads[distances[heads] == INT_MAX]
        distances[front] = level


class Search:
    """A breadth-first search over near edges, one level at a time."""

    def __init__(
        self, limit: int, facts: Facts, edges: NearEdges, levels: Array, seen: Seen, until: int | None = None
    ) -> None:
        self._until = until  # a vertex that ends the search
        self._limit = min(limit, traversal.UNSEEN - 1)
        self._facts, self._edges, self._levels, self._seen = facts, edges, levels, seen
        self._queue, self._spare = np.empty(facts.vertices, np.uint32), np.empty(facts.vertices, np.uint32)
        self._tail = np.zeros(1, np.int64)
        self._room = min(facts.vertices, GANG)  # vertices that one thread may find in a level
        self._piles: Array | None = None  # what threads find; a level touches only as much as it has vertices
        self._told = 0
        self._left = edges.lists.arcs  # about how many edges unseen vertices have

    def run(self, start: Array | None) -> None:
        assert start is not None
        size = start.size
        self._queue[:size] = start
        self._levels[start] = 0
        level = 1
        edges = int(traversal.count_edges(self._queue, size, *self._edges.lists.arrays))
        while size and level <= self._limit and (self._until is None or self._levels[self._until] == traversal.UNSEEN):
            if edges < sizes.now.search_alone or (edges <= FEW_EDGES and self._facts.team.size == 1):
                size, level, edges = self._alone(size, level)
            elif not self._facts.directed and edges > max(self._left // ALPHA, FEW_EDGES):
                size, level, edges = self._bottom_up(size, level, edges)
            elif edges <= min(GANG, max(self._left // ALPHA, FEW_EDGES)) and size <= self._room:
                size, level, edges = self._descend(size, level, edges)
            else:
                size, edges = self._top_down(size, level, edges)
                level += 1

    def _alone(self, size: int, level: int) -> tuple[int, int, int]:
        counted = np.empty((sizes.now.search_levels, 2), np.int64)
        size, swapped, done, edges = traversal.top_down_alone(
            self._queue,
            size,
            *self._edges.lists.arrays,
            self._edges.targets,
            self._levels,
            level,
            self._limit,
            self._spare,
            2 * sizes.now.search_alone if self._facts.team.size > 1 else FEW_EDGES,
            counted,
        )
        if swapped:
            self._queue, self._spare = self._spare, self._queue
        self._tell(counted[:done])
        return size, level + done, edges

    def _tell(self, counted: Array) -> None:
        self._told += len(counted)
        self._left -= int(counted[:, 1].sum())
        for active, walked in (counted if self._told <= TOLD else counted.sum(0, keepdims=True)).tolist():
            self._seen(active, walked)

    def _descend(self, size: int, level: int, edges: int) -> tuple[int, int, int]:
        team, gate, counted = (
            self._facts.team,
            barrier.gate(traversal.LINES),
            np.empty((sizes.now.search_levels + 1, 3), np.int64),
        )
        most = GANG if self._facts.directed else min(GANG, max(self._left // (2 * ALPHA), FEW_EDGES))
        if self._piles is None:
            self._piles = np.empty((2, team.size, self._room), np.uint32)
        piles, filled = self._piles, np.zeros((3, team.size, barrier.LINE), np.int64)
        for member, part in enumerate(np.array_split(self._queue[:size], team.size)):
            piles[0, member, : part.size] = part
            filled[0, member, 0] = part.size

        def work(member: int) -> None:
            traversal.descend(
                member,
                team.size,
                gate,
                piles,
                filled,
                edges,
                *self._edges.lists.arrays,
                self._edges.targets,
                self._levels,
                level,
                self._limit,
                sizes.now.search_alone // 4,
                max(most, edges),
                counted,
            )

        team.gang(work, lambda: barrier.abandon(gate))
        left, done, more = (int(number) for number in counted[-1])
        found = [piles[done & 1, member, : filled[done % 3, member, 0]] for member in range(team.size)]
        np.concatenate(found, out=self._queue[:left])
        self._tell(counted[:done, :2])
        return left, level + done, more

    def _top_down(self, size: int, level: int, edges: int) -> tuple[int, int]:
        self._tail[0] = 0
        found = np.zeros(self._facts.team.size, np.int64)
        step = max(1, min(64, size // (8 * self._facts.team.size)))

        def part(member: int, index: int) -> None:
            found[member] += traversal.top_down(
                self._queue,
                index * step,
                min((index + 1) * step, size),
                *self._edges.lists.arrays,
                self._edges.targets,
                self._levels,
                level,
                self._spare,
                self._tail,
            )

        self._facts.team.share(part, -(-size // step))
        self._queue, self._spare = self._spare, self._queue
        self._left -= edges
        self._seen(size, edges)
        return int(self._tail[0]), int(found.sum())

    def _bottom_up(self, size: int, level: int, edges: int) -> tuple[int, int, int]:
        n = self._facts.vertices
        front, fresh = np.zeros((n + 63) // 64, np.uint64), np.zeros((n + 63) // 64, np.uint64)
        traversal.queue_to_bits(self._queue, size, front)
        found = np.zeros(self._facts.team.size, np.int64)

        def part(member: int, index: int) -> None:
            found[member] += traversal.bottom_up(
                index * SLICE,
                min((index + 1) * SLICE, n),
                *self._edges.lists.arrays,
                self._edges.targets,
                self._levels,
                level,
                front,
                fresh,
            )

        awake = size
        while level <= self._limit:
            before, found[:] = awake, 0
            self._facts.team.share(part, -(-n // SLICE))
            self._seen(awake, edges)
            awake = int(found.sum())
            front, fresh = fresh, front
            level += 1
            if awake == 0 or (awake < before and awake < n // BETA):
                break
        size, edges = traversal.bits_to_queue(front, *self._edges.lists.arrays, self._queue)
        self._left -= edges
        return int(size), level, int(edges)


@algorithm(place=1, live=Live("BFS", lambda graph, source, depth_limit=None: BFS(source, depth_limit)))
def bfs(
    run: Runner,
    source: Vertex,
    depth_limit: Annotated[int | None, Option("Maximum distance.", least=0)] = None,
    predecessors: FindTree = False,
) -> Answer:
    """Distances in edges from a source.

    With `predecessors` also a shortest-path tree, which takes a second pass.
    """
    if predecessors:
        run.must_fit(Predecessors(source, NOTHING_YET, False))
    answer = run(BFS(source, depth_limit))
    return with_predecessors(run, answer, source, False) if predecessors else answer
