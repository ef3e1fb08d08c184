"""Triangles, from lists that need not fit near (MGT, Hu, Tao and Chung 2013).

Edges are directed from the end with fewer edges to the one with more, ties by number, which keeps every list short: a
hub has few neighbours above it. A first pass counts these upward neighbours. Then the vertices are taken window by
window, a window being a range of vertices: its upward lists are kept near, whole, sorted and without duplicates, while
the lists of all other vertices pass by, in windows too. A triangle v, a, w with v below a below w is found while a is
in the kept window: w is in both v's and a's list. If all upward lists fit the spare memory, there is one window, and
two passes in all; otherwise there is one more pass for each window.

Parallel edges count once and self loops not at all; edge directions are ignored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.programs import triangle_lists as kernels
from isthmus.programs.algorithm import Answer, Live, Runner, algorithm
from isthmus.programs.checkpoint_checks import AT_ONCE, alike, exactly, integer, within
from isthmus.programs.column import Column
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State

DEGREES = 0  # where kernels find them
COUNT, GATHER = 0, 1
KEPT, PASSING = 0, 1  # tables
# Gather the lists of vertices first:last, with this bit in their entries, from these sides.
Request = tuple[int, int, int, tuple[str, ...]]


def degree_here(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return state[DEGREES][u]


def gather(mine: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Count an edge that leads upward, and put it into u's list."""
    degrees, cursors, table = state
    if degrees[v] < mine or (degrees[v] == mine and v <= u):
        return False
    at = np.int64(atomic_add(cursors, u, np.uint32(1)))
    if params[0] == GATHER and at < table.size:  # a file that changes between two passes must not lead outside
        table[at] = 2 * v + params[1]
    return False


class Triangles(Program):
    """Counts at each vertex the edges between its neighbours. `both_ways`: an edge in both directions counts twice."""

    order_free = False  # each edge is gathered once
    needs_spare_memory = True
    state_bytes = 36  # 28 for degrees, cursors, offsets and counts; the least tables

    def __init__(self, directed: bool, both_ways: bool) -> None:
        self.sides = ("out", "in") if directed else ("out",)
        self._bits: list[tuple[int, tuple[str, ...]]] = (
            [(0, ("out",)), (1, ("in",))] if directed and both_ways else [(0, self.sides)]
        )
        self._following: tuple[str, ...] = self.sides
        self._steps: Iterator[Request] = iter(())
        self._reserved = 0
        self._share: float | None = None
        self._request: Request | None = None
        self._gathered = KEPT  # the table in the arena

    def table_bytes(self, graph: Snapshot) -> int:
        """For the longest upward list, kept or passing by, beyond the least tables.

        Its vertex has no more edges than the vertices it leads to, so at most as many as the second of all.
        """
        degrees = np.zeros(graph.vertices, np.uint32)
        for side in self.sides:
            degrees += graph.lists(side).degrees(np.uint32)
        second = int(np.partition(degrees, -2)[-2]) if degrees.size > 1 else 0
        self._reserved = 2 * max(0, second - least_entries(graph.vertices)) * entry_of(graph.vertices).itemsize
        return self._reserved

    def reads_weights(self) -> bool:
        return False

    def following(self, state: State) -> tuple[str, ...]:
        return self._following

    def functions(self, facts: Facts) -> Functions:
        return Functions(degree_here, gather)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        degrees = np.zeros(n, np.uint32)
        for lists in facts.lists_of_sides:
            degrees += lists.degrees(np.uint32)
        arrays = {"degrees": degrees, "cursors": np.zeros(n, np.uint32), "table": np.empty(0, entry_of(n))}
        state = State(arrays, None, (COUNT, 0), {"counts": np.zeros(n, np.int64), "neighbours": np.zeros(n, np.uint32)})
        self._steps, self._following = self._passes(state, facts), self.sides
        # Vertices whose lists are kept; what an earlier process had requested last.
        self._near, self._request = (0, 0), None
        self._requests = self._skip = 0  # requests so far; those that an earlier process had done before its checkpoint
        return state

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        request = self._next_request(state)
        if request is None:
            return False
        frontier.wake(*request[:2])
        return True

    def share_done(self, state: State, iteration: int) -> float | None:
        """By edges: those of kept windows, and of the lists that have passed by the present one."""
        return self._share

    def _next_request(self, state: State) -> Request | None:
        request = next(self._steps, None)
        if request is not None:
            self._requests += 1
            self._following = request[3]
            state.params = (GATHER, request[2])
        return request

    def remember(self, state: State) -> dict[str, Any]:
        extra = {**state.extra, "tables": self._both(state)} if "other" in state.extra else {**state.extra}
        extra.pop("other", None)
        return {"cursors": state["cursors"], "extra": extra, "requests": self._requests}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        """Advance the steps to where they were, without doing their work again."""
        check_lists(state["degrees"], kept["extra"], state["table"].dtype)
        state["cursors"], state.extra = kept["cursors"], dict(kept["extra"])
        self._put(state, *state.extra.pop("tables"))
        self._skip = integer(kept["requests"], 1)
        for _ in range(self._skip):
            self._request = self._next_request(state)
            if self._request is None:
                raise ValueError(f"expected fewer than {self._skip} requests")

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        """The lists of the active vertices go to the table; those that are kept end inside of theirs."""
        assert self._request is not None
        exactly(frontier, *self._request[:2])
        within(state["cursors"][slice(*self._near)], self._both(state)[0].size)

    def _passes(self, state: State, facts: Facts) -> Iterator[Request]:
        """What to do once the upward neighbours are counted; yields a request wherever lists have to be gathered."""
        n = facts.vertices
        if "offsets" not in state.extra:
            offsets = state.extra["offsets"] = np.empty(n + 1, np.int64)
            kernels.prefix_sums(state["cursors"], offsets)
            self._put(state, *self._tables(state, facts, offsets))
        offsets, sizes = state.extra["offsets"], [table.size for table in self._both(state)]
        for near, near_end in windows(offsets, 0, n, sizes[KEPT]):
            self._near = near, near_end
            self._share = share_of(offsets, near, near_end, 0)
            yield from self._gather(state, facts, offsets, near, near_end, KEPT, True)
            self._count(state, facts, offsets, (near, near_end), KEPT, (near, near_end))
            for begin, end in ((0, near), (near_end, n)):
                for first, last in windows(offsets, begin, end, sizes[PASSING]):
                    self._share = share_of(offsets, near, near_end, first)
                    yield from self._gather(state, facts, offsets, first, last, PASSING, False)
                    self._count(state, facts, offsets, (first, last), PASSING, (near, near_end))
        del state.extra["offsets"], state.extra["other"]

    def _put(self, state: State, kept: Array, passing: Array) -> None:
        """Put the tables where they belong: the one that is gathered into is in the arena, the other in `extra`."""
        self._gathered = KEPT
        state["table"], state.extra["other"] = kept, passing

    def _both(self, state: State) -> tuple[Array, Array]:
        """The table of lists that are kept, and that of lists that pass by."""
        tables = state["table"], state.extra["other"]
        return tables if self._gathered == KEPT else (tables[1], tables[0])

    def _gather_into(self, state: State, which: int) -> None:
        if which != self._gathered:
            state["table"], state.extra["other"] = state.extra["other"], state["table"]
            self._gathered = which

    def _tables(self, state: State, facts: Facts, offsets: Array) -> tuple[Array, Array]:
        """A table for lists that are kept, and one for those that pass by if not all can be kept; a checkpoint has no
        other entries.
        """
        entry = state["table"].dtype
        everything, least = int(offsets[-1]), least_entries(facts.vertices)
        room = 2 * least + (self._reserved + facts.spare) // entry.itemsize
        if everything <= room:
            return np.zeros(everything, entry), np.empty(0, entry)
        passing = max(least, int(np.diff(offsets).max()))
        assert passing <= room // 2, "table_bytes reserves room for the longest list, twice"
        return np.zeros(room - passing, entry), np.zeros(passing, entry)

    def _gather(
        self, state: State, facts: Facts, offsets: Array, first: int, last: int, which: int, fresh: bool
    ) -> Iterator[Request]:
        """Fill the table with the upward lists of first:last and make them simple; `fresh`: neighbours not counted
        yet.
        """
        self._gather_into(state, which)
        base, neighbours = int(offsets[first]), state.extra["neighbours"]
        if self._requests >= self._skip:
            kernels.lay_out(first, last, base, offsets, state["cursors"])
        for bit, sides in self._bits:
            yield first, last, bit, sides
        if self._requests >= self._skip:
            given = (base, offsets, state["cursors"], state["table"], fresh, neighbours)
            by_pieces(facts, offsets, first, last, lambda a, b: kernels.simplify(a, b, *given))

    def _count(
        self, state: State, facts: Facts, offsets: Array, window: tuple[int, int], which: int, near: tuple[int, int]
    ) -> None:
        if self._requests < self._skip:
            return
        base, near_base = int(offsets[window[0]]), int(offsets[near[0]])
        tables, cursors, counts = self._both(state), state["cursors"], state.extra["counts"]

        def work(a: int, b: int) -> None:
            kernels.count_triangles(a, b, base, tables[which], *near, near_base, tables[KEPT], offsets, cursors, counts)

        by_pieces(facts, offsets, *window, work)


def check_lists(degrees: Array, extra: dict[str, Any], entry: Any) -> None:
    """Check what a checkpoint has: lists are no longer than the degrees and fit their tables, and their entries are
    vertices.
    """
    offsets, (kept, passing) = extra["offsets"], extra["tables"]
    alike(offsets, np.empty(degrees.size + 1, np.int64))
    within(offsets[:1], 0)
    longest = 0
    for first in range(0, degrees.size, AT_ONCE):
        lengths = np.diff(offsets[first : first + AT_ONCE + 1])
        if (lengths < 0).any() or (lengths > degrees[first : first + AT_ONCE]).any():
            raise ValueError("expected lists that are no longer than the degrees")
        longest = max(longest, int(lengths.max()))
    if not (kept.size >= offsets[-1] or min(kept.size, passing.size) >= longest):
        raise ValueError("expected tables with room for every list")
    for table in (kept, passing):
        alike(table, np.empty(table.shape[:1], entry))
        within(table, 2 * degrees.size - 1)


def least_entries(vertices: int) -> int:
    """Entries of each of the two least tables, which `state_bytes` includes."""
    return max(vertices // 2, sizes.now.least_table)


def entry_of(vertices: int) -> Any:
    """The type of a table's entries: a vertex and a bit."""
    return np.dtype(np.uint32 if vertices < 1 << 31 else np.uint64)


def share_of(offsets: Array, near: int, near_end: int, first: int) -> float:
    """The share of all pairs of lists that is done when near:near_end are kept and the lists before `first` have passed
    by.
    """
    total, before, behind, passed = (int(offsets[at]) for at in (-1, near, near_end, first))
    return (before + (behind - before) * passed / total) / total if total else 1.0


def windows(offsets: Array, begin: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Cut begin:end into windows with at most `room` entries."""
    while begin < end:
        stop = min(end, bisect_right(offsets, int(offsets[begin]) + room) - 1)
        yield begin, stop
        begin = stop


def by_pieces(facts: Facts, offsets: Array, first: int, last: int, work: Callable[[int, int], None]) -> None:
    """work(first, last) on ranges of about `triangle_piece` entries, by all members of the team."""
    piece = sizes.now.triangle_piece
    cuts = np.searchsorted(offsets[first:last], np.arange(offsets[first] + piece, offsets[last], piece)) + first
    bounds = [first, *np.unique(cuts).tolist(), last]
    facts.team.each(lambda k: work(bounds[k], bounds[k + 1]), len(bounds) - 1)


class TriangleCount(Triangles):
    """How many triangles a vertex is in."""

    name = "triangle_count"
    columns = (Column("triangles"),)

    def __init__(self, directed: bool) -> None:
        super().__init__(directed, False)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"triangles": state.given(state.extra["counts"])}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {"triangles": int(columns["triangles"].sum()) // 3, "most": int(columns["triangles"].max(initial=0))}


@algorithm(live=Live("TriangleCount", lambda graph: TriangleCount(graph.directed)))
def triangle_count(run: Runner) -> Answer:
    """How many triangles each vertex is in, whatever the edges' direction."""
    return run(TriangleCount(run.graph.directed))
