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

from isthmus.schedule.schedule import FAR, NEAR, NONE, NOTHING, Array, Schedule, UnitStates, first


class Settling(Schedule):
    """Units are partitions; the `pending` value of a unit is its urgency, the smallest first, or NOTHING.

    `members`: partitions that can run at once. After `most_runs` runs it pauses, so that the trace can record them.
    """

    def __init__(self, members: int, most_runs: int) -> None:
        self._members, self._most_runs = members, most_runs

    def _paused(self, units: UnitStates) -> bool:
        return units.total_runs >= self._most_runs

    def run(self, units: UnitStates) -> int:
        if self._paused(units):
            return NONE
        unit = most_urgent(units, units.places == NEAR)
        return unit if unit != NONE else self._guessed(units)

    def _guessed(self, units: UnitStates) -> int:
        """The predicted partition, once, while another runs."""
        unit = units.guess
        can_run = unit != NONE and units.running and units.places[unit] == NEAR and not units.runs[unit]
        return unit if can_run else NONE

    def fetch(self, units: UnitStates) -> int:
        if self._paused(units) or units.coming + units.running >= self._members or self.run(units) != NONE:
            return NONE
        far = most_urgent(units, units.places == FAR)
        return far if far != NONE else self._foreseen(units)

    def _foreseen(self, units: UnitStates) -> int:
        """Predict the next partition: the one after the last two fetched, if these are neighbours and a place is
        idle.
        """
        may_guess = units.guess == NONE  # one at a time
        if len(units.sent) < 2 or not units.running or not may_guess or not self._has_idle_place(units):
            return NONE
        before, latest = units.sent[-2:]
        unit = 2 * latest - before
        in_a_row = abs(latest - before) == 1 and 0 <= unit < units.places.size
        return unit if in_a_row and not units.asked_for[unit] else NONE

    def _has_idle_place(self, units: UnitStates) -> bool:
        return units.free > 0 or bool(((units.places == NEAR) & (units.pending == NOTHING)).any())

    def evict(self, units: UnitStates) -> int:
        """The partition that has not run for the longest time, of those without waiting vertices if there are any."""
        near = units.places == NEAR
        idle = near & (units.pending == NOTHING)
        return first(idle if idle.any() else near, units.turns)

    def done(self, units: UnitStates) -> bool:
        if units.running or units.coming:
            return False
        return self._paused(units) or not (units.pending < NOTHING).any()


def most_urgent(units: UnitStates, among: Array) -> int:
    """The unit of `among` with the smallest pending value; NONE if nothing waits in any of them."""
    urgency = np.where(among, units.pending, NOTHING)
    unit = int(urgency.argmin()) if urgency.size else NONE
    return unit if unit != NONE and urgency[unit] < NOTHING else NONE
