"""A program's compiled loops, applied to deliveries.

A delivery is cut into pieces of about equally many edges, so that members finish at about the same time even if it has
a hub. The executor hands the pieces to members of the team.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np

from isthmus import sizes
from isthmus.engines.engine import Delivery, Ranges, Rows
from isthmus.frontier import Frontier
from isthmus.kernels.loops import rows
from isthmus.link.link import Array
from isthmus.programs.program import Program, State
from isthmus.threads import Team

Piece = Callable[[int], None]  # a part of the work on a delivery; its argument is the member of the team that does it

NO_WEIGHTS = np.empty(0, np.int32)


class LiveValues:
    """What the sources of a launch read: the values as they are at that moment."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self._state.arrays

    def begin(self, delivery: Delivery, edges: Ranges | Rows, frontier: Frontier) -> None:
        """A launch begins that runs a delivery's edges."""

    def again(self, rows: Rows) -> None:
        """A further run of these rows begins."""


class Worker:
    """Applies a program's compiled loops to deliveries.

    `least_again`: the fewest edges for which a further run pays. `sources`: what a launch reads.
    """

    uploaded_bytes: int | None = None  # on a GPU: rows that the host has uploaded, beside what the link counts

    def __init__(
        self,
        module: ModuleType,
        program: Program,
        state: State,
        team: Team,
        least_again: int = 0,
        sources: LiveValues | None = None,
    ) -> None:
        self._module, self._program, self._state, self._team = module, program, state, team
        self._least_again, self._sources = least_again, sources or LiveValues(state)
        self.choose_loops()

    def choose_loops(self) -> None:
        """Choose the loops for the next iteration: the program's own, those that seek, or those that push."""
        own, module = self._program.loops(self._state), self._module
        if own is not None:
            self._rows_loop, self._range_loop = own
        elif self._program.seeks(self._state):
            self._rows_loop, self._range_loop = module.seek_rows, module.seek_range
        else:
            self._rows_loop, self._range_loop = module.push_rows, module.push_range

    @property
    def settle(self) -> Callable[..., tuple[int, int, int]]:
        """The loop that runs a partition until nothing changes inside."""
        loop: Callable[..., tuple[int, int, int]] = self._module.settle
        return loop

    def again(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        """Pieces that follow once more the vertices that were marked, if the delivery holds their whole lists."""
        marked = self.marked(delivery, frontier)
        if marked is None:
            return []
        delivery.again_edges += int(marked.lengths.sum())
        self._sources.again(marked)
        return self._rows(delivery, marked, frontier)

    def marked(self, delivery: Delivery, frontier: Frontier) -> Rows | None:
        """Unmark the vertices whose whole lists the delivery holds, and return their rows; None, and still marked, if
        too few.
        """
        edges, lists = delivery.edges, delivery.task.side.lists
        if isinstance(edges, Rows):
            chosen = np.empty(edges.vertices.size, np.int64)
            chosen = chosen[
                : rows.again_of_rows(edges.vertices, edges.lengths, *lists.arrays, frontier.next_marks, chosen)
            ]
            marked = Rows(
                edges.vertices[chosen], edges.begins[chosen], edges.weight_begins[chosen], edges.lengths[chosen]
            )
        else:
            found = []
            for k in range(edges.first.size):
                first, last = int(edges.first[k]), int(edges.last[k])
                out = np.empty(last - first, np.uint32)
                out = out[
                    : rows.again_in_range(
                        first, last, edges.begin[k], edges.end[k], *lists.arrays, frontier.next_marks, out
                    )
                ]
                begin = lists.begins[out]
                found.append((out, begin - edges.base[k], begin - edges.weight_base[k], lists.ends[out] - begin))
            marked = Rows(*(np.concatenate(column) for column in zip(*found, strict=True)))
        if not marked.vertices.size:
            return None
        if marked.lengths.sum() < self._least_again:
            frontier.next_marks[marked.vertices] = 1
            return None
        self._program.again(self._state, marked.vertices)
        return marked

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        edges = delivery.edges
        self._sources.begin(delivery, edges, frontier)
        return (
            self._rows(delivery, edges, frontier)
            if isinstance(edges, Rows)
            else self._ranges(delivery, edges, frontier)
        )

    def _rows(self, d: Delivery, lists: Rows, frontier: Frontier) -> list[Piece]:
        ends = np.cumsum(lists.lengths)
        total = int(ends[-1]) if ends.size else 0
        cuts = even_cuts(total)
        firsts = np.searchsorted(ends, cuts[:-1], "right")
        skips = cuts[:-1] - (ends[firsts] - lists.lengths[firsts])
        weights = NO_WEIGHTS if d.weights is None else d.weights
        arrays, loop, state, before = d.task.side.lists.arrays, self._rows_loop, self._state, self._sources.arrays

        def piece(k: int, member: int) -> None:
            frontier.used[member] = loop(
                lists.vertices,
                lists.begins,
                lists.weight_begins,
                lists.lengths,
                firsts[k],
                skips[k],
                cuts[k + 1] - cuts[k],
                *arrays,
                d.targets,
                weights,
                state.arrays,
                before,
                state.params,
                frontier.next_marks,
                frontier.queues[member],
                frontier.used[member],
            )

        return [partial(piece, k) for k in range(cuts.size - 1)]

    def _ranges(self, d: Delivery, ranges: Ranges, frontier: Frontier) -> list[Piece]:
        weights = NO_WEIGHTS if d.weights is None else d.weights
        lists, loop, state, before = d.task.side.lists, self._range_loop, self._state, self._sources.arrays

        def piece(run: int, first: int, last: int, begin: int, end: int, member: int) -> None:
            frontier.used[member] = loop(
                first,
                last,
                begin,
                end,
                ranges.base[run],
                ranges.weight_base[run],
                frontier.marks,
                frontier.all_active,
                *lists.arrays,
                d.targets,
                weights,
                state.arrays,
                before,
                state.params,
                frontier.next_marks,
                frontier.queues[member],
                frontier.used[member],
            )

        pieces: list[Piece] = []
        for run in range(ranges.first.size):
            cuts = ranges.begin[run] + even_cuts(int(ranges.end[run] - ranges.begin[run]))
            firsts = np.maximum(np.searchsorted(lists.begins, cuts[:-1], "right") - 1, ranges.first[run])
            lasts = np.minimum(np.searchsorted(lists.begins, cuts[1:] - 1, "right"), ranges.last[run])
            pieces += map(partial(partial, piece, run), firsts, lasts, cuts[:-1], cuts[1:])
        return pieces


def even_cuts(edges: int) -> Array:
    """Where to cut `edges` edges into even pieces of at most `sizes.piece`."""
    return np.linspace(0, edges, -(-edges // sizes.now.piece) + 1).astype(np.int64) if edges else np.zeros(1, np.int64)
