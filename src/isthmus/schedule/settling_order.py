"""Settling: run each partition until nothing in it changes, near partitions first, the most urgent of them first.

It is for graphs with long paths, where each of many iterations would read little. Instead of one step in all
partitions, it finishes one partition after another. Updates to another partition wait there. A far partition is fetched
when no near one has work. This way a search reads a road network about once.

It also predicts the next partition: if the last two fetched were neighbours, it fetches the one after them in the same
direction, unless that was fetched before. The predicted partition runs as soon as it is near, though nothing is known
to wait there: the partition that runs meanwhile marks vertices in it all the time, and is only asked which ones when it
has finished.
"""

from __future__ import annotations

import numpy as np

from isthmus.schedule.schedule import FAR, NEAR, NONE, NOTHING, Array, Schedule, Standing, first


class Settling(Schedule):
    """Units are partitions; `pending` in the standing is the urgency of each, the smallest first, NOTHING where nothing
    waits.

    `members`: partitions that can run at once. After `most_runs` runs it pauses, so that the trace can record them.
    """

    stays = True

    def __init__(self, members: int, most_runs: int) -> None:
        self._members, self._most_runs = members, most_runs

    def _paused(self, standing: Standing) -> bool:
        return standing.total_runs >= self._most_runs

    def run(self, standing: Standing) -> int:
        if self._paused(standing):
            return NONE
        unit = most_urgent(standing, standing.places == NEAR)
        return unit if unit != NONE else self._guessed(standing)

    def _guessed(self, standing: Standing) -> int:
        """The predicted partition, once, while another runs."""
        unit = standing.guess
        can_run = unit != NONE and standing.running and standing.places[unit] == NEAR and not standing.runs[unit]
        return unit if can_run else NONE

    def fetch(self, standing: Standing) -> int:
        if self._paused(standing) or standing.coming + standing.running >= self._members or self.run(standing) != NONE:
            return NONE
        far = most_urgent(standing, standing.places == FAR)
        return far if far != NONE else self._foreseen(standing)

    def _foreseen(self, standing: Standing) -> int:
        """Predict the next partition: the one after the last two fetched, if these are neighbours and a place is
        idle.
        """
        may_guess = standing.guess == NONE  # one at a time
        if len(standing.sent) < 2 or not standing.running or not may_guess or not self._has_idle_place(standing):
            return NONE
        before, latest = standing.sent[-2:]
        unit = 2 * latest - before
        in_a_row = abs(latest - before) == 1 and 0 <= unit < standing.places.size
        return unit if in_a_row and not standing.asked_for[unit] else NONE

    def _has_idle_place(self, standing: Standing) -> bool:
        return standing.room > 0 or bool(((standing.places == NEAR) & (standing.pending == NOTHING)).any())

    def evict(self, standing: Standing) -> int:
        """The partition that has not run for the longest time, of those without waiting vertices if there are any."""
        near = standing.places == NEAR
        idle = near & (standing.pending == NOTHING)
        return first(idle if idle.any() else near, standing.turns)

    def done(self, standing: Standing) -> bool:
        if standing.running or standing.coming:
            return False
        return self._paused(standing) or not (standing.pending < NOTHING).any()


def most_urgent(standing: Standing, among: Array) -> int:
    """The unit of `among` with the smallest pending value; NONE if nothing waits in any of them."""
    urgency = np.where(among, standing.pending, NOTHING)
    unit = int(urgency.argmin()) if urgency.size else NONE
    return unit if unit != NONE and urgency[unit] < NOTHING else NONE
