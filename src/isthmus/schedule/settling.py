"""Working partitions to a standstill: near ones first, the most urgent before the others.

For graphs with long paths, whose iterations would read little at a time, often. Instead of one step everywhere,
everything in one partition after another: a partition is run until nothing in it changes, and what crosses over waits at
its own partition. A far partition is fetched when no near one is waiting. So a wave rolls over a road network reading it
about once.

A partition is also fetched ahead of any need: if the last two that were fetched are neighbours, the next in that
direction will probably be wanted, unless it has been fetched before.
"""

from __future__ import annotations

import numpy as np

from isthmus.schedule.schedule import FAR, NEAR, NONE, Array, Schedule, Standing, first

NOTHING = np.inf  # pending in a partition where no vertex waits


class Settling(Schedule):
    """Units are partitions; `pending` in the standing is how urgent each is, the least first, NOTHING where nothing waits.

    `members` is how many partitions can be worked on at once, `most_runs` when to pause, for a record of what was done.
    """

    stays = True

    def __init__(self, members: int, most_runs: int) -> None:
        self._members, self._most_runs = members, most_runs

    def _paused(self, standing: Standing) -> bool:
        return standing.total_runs >= self._most_runs

    def run(self, standing: Standing) -> int:
        return NONE if self._paused(standing) else most_urgent(standing, standing.places == NEAR)

    def fetch(self, standing: Standing) -> int:
        if self._paused(standing) or standing.coming + standing.running >= self._members or self.run(standing) != NONE:
            return NONE
        far = most_urgent(standing, standing.places == FAR)
        return far if far != NONE else self._foreseen(standing)

    def _foreseen(self, standing: Standing) -> int:
        """The next in a row of two that were fetched one after the other, if a place is idle for it."""
        if len(standing.sent) < 2 or not standing.running or not self._has_idle_place(standing):
            return NONE
        before, latest = standing.sent[-2:]
        unit = 2 * latest - before
        if abs(latest - before) != 1 or not 0 <= unit < standing.places.size or standing.asked_for[unit]:
            return NONE
        guessed = standing.runs[latest] == 0 and standing.pending[latest] == NOTHING
        return NONE if guessed else unit  # one guess at a time

    def _has_idle_place(self, standing: Standing) -> bool:
        return standing.room > 0 or bool(((standing.places == NEAR) & (standing.pending == NOTHING)).any())

    def evict(self, standing: Standing) -> int:
        """The partition that has not run for the longest time; those where something waits last."""
        near = standing.places == NEAR
        idle = near & (standing.pending == NOTHING)
        return first(idle if idle.any() else near, standing.turns)

    def done(self, standing: Standing) -> bool:
        if standing.running or standing.coming:
            return False
        return self._paused(standing) or not (standing.pending < NOTHING).any()


def most_urgent(standing: Standing, among: Array) -> int:
    """Of some units, the one with the least pending value; NONE where nothing waits in any of them."""
    urgency = np.where(among, standing.pending, NOTHING)
    unit = int(urgency.argmin()) if urgency.size else NONE
    return unit if unit != NONE and urgency[unit] < NOTHING else NONE



