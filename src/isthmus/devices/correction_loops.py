"""The loops of a maintained monotone program: they find values that have become wrong, and set them right.

`stream/maintain/monotone.py` says when they run. A device supplies loops of its own (`Residency.correction_loops`);
`HostLoops` run on this machine, over lists where they lie. A loop lists each vertex once: orphans before the edges
change, and afterwards vertices that have improved. An orphan is a vertex whose parent edge will be gone; it is adopted
if another neighbour becomes its parent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np

from isthmus.graph.changing.change import Change
from isthmus.kernels.loops import skeleton
from isthmus.kernels.stream import correction
from isthmus.programs.program import Facts

Array = np.ndarray[Any, Any]
Maintained = Any  # a program of stream/maintain, which is above devices: it reads lists, piece by piece
MonotoneState = Any  # its arrays, by name
OPPOSITE = {"out": "in", "in": "out"}
NO_LEVELS = np.empty(0, np.uint32)
NO_WEIGHTS = np.empty(0, np.int32)
NO_VERTICES = np.empty(0, np.uint32)


class CorrectionLoops(ABC):
    """What `MaintainedMonotone` needs where its state is. Methods that read lists return the number of edges."""

    # On the old edges

    @abstractmethod
    def orphan_heads(self, tails: Array, heads: Array) -> None:
        """The heads of these arcs that depend on them become orphans."""

    @abstractmethod
    def orphan_children(self, side: str, rows: Array) -> int:
        """All vertices that depend on these become orphans."""

    @abstractmethod
    def take_orphans(self) -> Array:
        """The orphans found since the last call."""

    def adopted(self, orphans: Array, change: Change) -> tuple[Array, int]:
        """Which of these orphans have found another parent, and the edges read. Here none looks for one."""
        return np.zeros(orphans.size, np.uint8), 0

    @abstractmethod
    def reset(self, orphans: Array, adopted: Array) -> Array:
        """Give orphans that were not adopted their initial value; returns them."""

    @abstractmethod
    def end_correction(self, lost: Array) -> None:
        """No vertex is an orphan any more; these have lost their value."""

    # On the new edges

    @abstractmethod
    def pull(self, side: str, rows: Array) -> int:
        """Send along all arcs of a side that lead to these vertices."""

    @abstractmethod
    def relax(self, side: str, tails: Array, heads: Array, weights: Array) -> None:
        """Send along these arcs of a side."""

    @abstractmethod
    def improved(self) -> Array:
        """The vertices that have improved since the last call; they are marked."""

    def mark(self, rows: Array) -> Array:
        """Mark these vertices as active; returns those that were not."""
        return rows

    def unmark_all(self) -> None:
        """No vertex is active any more."""
        return

    def settle(self, starts: Array, most: int) -> tuple[int, Array]:
        """Let one thread follow these marked vertices, and all that improve by that, along about `most` edges.

        Returns the edges followed, and the vertices that are left. Only called where `Residency.settles`.
        """
        return 0, starts


class HostLoops(CorrectionLoops):
    """Loops on this machine over the lists of a program, by all members of its team if there is much to do."""

    def __init__(self, lists: Maintained, state: MonotoneState, facts: Facts) -> None:
        self._lists, self._state, self._graph = lists, state, lists.graph
        self._weighted = lists.reads_weights() and lists.graph.weighted
        capacity = state.capacity
        self._orphaned, self._orphans = np.zeros(capacity, np.uint8), np.empty(capacity, np.uint32)
        self._count = np.zeros(1, np.int64)  # of orphans
        self._improved: list[Array] = []
        self.marks = np.zeros(-(-capacity // 8) * 8, np.uint8)  # of vertices that are active
        self._piles = np.zeros(capacity, np.uint8)
        self._soon, self._later = np.empty(capacity, np.uint32), np.empty(2 * capacity, np.uint32)
        program = state.memoised(lists.sides)
        text = program.text(facts)
        self.module = skeleton.build(program.name, text, self._weighted, False, program.prefetched_array, True)
        self._width: float | None = None  # of the buckets of `settle`

    @property
    def _orphan_list(self) -> tuple[Array, Array, Array, Array]:
        return self._state.parents, self._orphaned, self._orphans, self._count

    @property
    def _sending(self) -> tuple[Any, ...]:
        """The silent value, the state, and marks of vertices that improve, as kernels take them."""
        return *self._state.silent_value, self._state.arrays, self._state.params, self.marks

    # On the old edges

    def orphan_heads(self, tails: Array, heads: Array) -> None:
        listed = self._orphan_list
        self._lists.in_parts(lambda a, b: correction.orphan_heads(tails, heads, a, b, *listed), tails.size)

    def orphan_children(self, side: str, rows: Array) -> int:
        edges = 0
        for some, lists in self._lists.pieces(side, rows):
            given = (*lists[:3], *self._orphan_list)
            work = partial(correction.orphan_children, some)
            edges += sum(self._lists.in_parts(lambda a, b, work=work, given=given: work(a, b, *given), some.size))
        return edges

    def take_orphans(self) -> Array:
        """In ascending order if lists come from disk, as these will."""
        found = self._orphans[: int(self._count[0])]
        self._count[0] = 0
        if not self._graph.lists_are_near:
            found.sort()
        return found

    def adopted(self, orphans: Array, change: Change) -> tuple[Array, int]:
        adopted, edges, near = np.zeros(orphans.size, np.uint8), 0, self._graph.lists_are_near
        state, reads_weights = self._state, self._lists.reads_weights()
        common = (reads_weights, *state.silent_value, self._orphaned, state.arrays, state.params, state.parents)
        for side in self._lists.sides:
            changes, done = change.into if side == "out" else change.out, 0
            left = slice(None) if near else np.flatnonzero(adopted == 0)
            found = adopted[left]
            for some, into in self._lists.pieces(OPPOSITE[side], orphans[left]):
                here = found[done : done + some.size]
                arcs = (changes.vertices, changes.others, changes.actions)
                given = (here, *self._lists_of(side, into), *arcs, *common)
                work = partial(self.module.adopt, some)
                read = self._lists.in_parts(lambda a, b, work=work, given=given: work(a, b, *given), some.size)
                edges += int(sum(read)) if near else entries(into, some)  # lists from disk come whole
                done += some.size
            adopted[left] = found
        return adopted, edges

    def _lists_of(self, side: str, into: tuple[Array, ...]) -> tuple[Array, ...]:
        """Where all lists of a side lie, and the lists against it that are there, as kernels take them."""
        return *self._lists.ends_of(side), *into[:3], into[3] if self._weighted else NO_WEIGHTS

    def reset(self, orphans: Array, adopted: Array) -> Array:
        state, lost, count = self._state, np.empty(orphans.size, np.uint32), np.zeros(1, np.int64)
        levels = NO_LEVELS if state.levels is None else state.levels
        arrays = (state.values, levels, state.parents, *state.changes, state.initial, state.initials, lost, count)
        self._lists.in_parts(
            lambda a, b: correction.reset(orphans, adopted, a, b, self._orphaned, *arrays), orphans.size
        )
        return lost[: int(count[0])]

    def end_correction(self, lost: Array) -> None:
        self._orphaned[lost] = 0

    # On the new edges

    def pull(self, side: str, rows: Array) -> int:
        edges = 0
        for some, into in self._lists.pieces(OPPOSITE[side], rows):
            edges += entries(into, some)
            given = (*self._lists_of(side, into), *self._sending)
            work = partial(self.module.pull_rows, some)
            self._queue(lambda a, b, q, work=work, given=given: work(a, b, *given, q, 0), some.size)
        return edges

    def relax(self, side: str, tails: Array, heads: Array, weights: Array) -> None:
        given = (*self._lists.ends_of(side), *self._sending)
        self._queue(lambda a, b, q: self.module.relax_arcs(tails, heads, weights, a, b, *given, q, 0), tails.size)

    def _queue(self, work: Any, count: int) -> None:
        """Run work(first, last, queue) on parts of 0:count; it returns how many vertices in `queue` have improved."""

        def part(first: int, last: int) -> Array:
            queue = np.empty(last - first, np.uint32)
            return queue[: work(first, last, queue)]

        self._improved += self._lists.in_parts(part, count)

    def improved(self) -> Array:
        found, self._improved = self._improved, []
        return np.concatenate(found) if found else NO_VERTICES

    def mark(self, rows: Array) -> Array:
        fresh: Array = rows[self.marks[rows] == 0]
        self.marks[fresh] = 1
        return fresh

    def unmark_all(self) -> None:
        self.marks[: self._graph.vertices] = 0

    def settle(self, starts: Array, most: int) -> tuple[int, Array]:
        n, state = self._graph.vertices, self._state
        begins, ends, targets, weights = self._graph.sides[self._lists.sides[0]].arrays()
        self._width = self._bucket_width() if self._width is None else self._width
        how = (0, 0, most, state.program.settles, self._width)
        lists = (begins, ends, targets, weights if self._weighted else NO_WEIGHTS)
        tools = (self.marks, self._piles, self._soon, self._later, NO_VERTICES, 0)
        _, _, edges = self.module.settle(0, n, starts, *how, *lists, state.arrays, state.params, *tools)
        left = np.flatnonzero(self.marks[:n]).astype(np.uint32) if edges >= most else NO_VERTICES
        return int(edges), left

    def _bucket_width(self) -> float:
        """Vertices whose values are this near to the most urgent one go first."""
        if self._state.has_labels or not self._lists.reads_weights():
            return 0.0
        lists = self._graph.sides["out"]
        begins, ends = lists.lists().arrays
        chosen = np.flatnonzero(ends > begins)[:: max(1, begins.size // 4096)]
        sample = lists.weights[begins[chosen]] if self._graph.weighted else NO_WEIGHTS
        return float(np.abs(sample).mean()) / 4 if sample.size else 0.0


def entries(lists: tuple[Array, ...], rows: Array) -> int:
    """How many edges these vertices have in lists."""
    return int((lists[1][rows] - lists[0][rows]).sum())
