"""Working on a delivery with all cores: edges are shared out evenly, so that one hub does not hold up a round."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from isthmus.engines.engine import Delivery
from isthmus.frontier import Frontier
from isthmus.programs.program import State
from isthmus.threads import Team

ALONE = 1 << 14  # edges below which one thread is faster than a team
SHARES = 4  # pieces per member: evens out what is active
MOST_EDGES = 1 << 20  # per call: a kernel holds up Ctrl-C until it returns
NO_WEIGHTS = np.empty(0, np.int32)


class Worker:
    """Applies a program's compiled loops to deliveries."""

    def __init__(self, module: ModuleType, state: State, team: Team) -> None:
        self._module, self._state, self._team = module, state, team

    def relax(self, delivery: Delivery, frontier: Frontier) -> None:
        if delivery.vertices is not None:
            self._rows(delivery, frontier)
        else:
            self._range(delivery, frontier)

    def _rows(self, d: Delivery, frontier: Frontier) -> None:
        assert d.lengths is not None
        ends = np.cumsum(d.lengths)
        edges = int(ends[-1]) if ends.size else 0
        cuts = self._cuts(edges)
        firsts = np.searchsorted(ends, cuts[:-1], "right")
        skips = cuts[:-1] - (ends[firsts] - d.lengths[firsts]) if edges else firsts
        weights = NO_WEIGHTS if d.weights is None else d.weights
        offsets = d.task.side.offsets

        def piece(member: int, index: int) -> None:
            frontier.used[member] = self._module.push_rows(
                d.vertices, d.begins, d.weight_begins, d.lengths, firsts[index], skips[index], cuts[index + 1] - cuts[index],
                offsets, d.targets, weights, self._state.arrays, self._state.params,
                frontier.next_marks, frontier.queues[member], frontier.used[member],
            )  # fmt: skip

        self._team.share(piece, cuts.size - 1)

    def _range(self, d: Delivery, frontier: Frontier) -> None:
        offsets = d.task.side.offsets
        cuts = d.begin + self._cuts(d.end - d.begin)
        firsts = np.maximum(np.searchsorted(offsets, cuts[:-1], "right") - 1, d.first)
        lasts = np.minimum(np.searchsorted(offsets, cuts[1:] - 1, "right"), d.last)
        weights = NO_WEIGHTS if d.weights is None else d.weights

        def piece(member: int, index: int) -> None:
            frontier.used[member] = self._module.push_range(
                firsts[index], lasts[index], cuts[index], cuts[index + 1], d.base, d.weight_base,
                frontier.marks, frontier.everyone, offsets, d.targets, weights, self._state.arrays, self._state.params,
                frontier.next_marks, frontier.queues[member], frontier.used[member],
            )  # fmt: skip

        self._team.share(piece, cuts.size - 1)

    def _cuts(self, edges: int) -> Any:
        """Where to cut `edges` edges into even pieces."""
        if edges <= ALONE or self._team.size == 1:
            pieces = max(1, -(-edges // MOST_EDGES))
        else:
            pieces = max(min(SHARES * self._team.size, edges // ALONE + 1), -(-edges // MOST_EDGES))
        return np.linspace(0, edges, pieces + 1).astype(np.int64)
