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
    """Units are partitions; `pending` in the standing is the urgency of each, the smallest first, NOTHING where nothing
    waits.

    `members`: partitions that can run at once. After `most_runs` runs it pauses, so that the trace can record them.
    """

    stays = True

    def __init__(self, members: int, most_runs: int) -> None:
        self._members, self._most_runs = members, most_runs

    def _paused(self, unit_states: UnitStates) -> bool:
        return unit_states.total_runs >= self._most_runs

    def run(self, unit_states: UnitStates) -> int:
        if self._paused(unit_states):
            return NONE
        unit = most_urgent(unit_states, unit_states.places == NEAR)
        return unit if unit != NONE else self._guessed(unit_states)

    def _guessed(self, unit_states: UnitStates) -> int:
        """The predicted partition, once, while another runs."""
        unit = unit_states.guess
        can_run = (
            unit != NONE and unit_states.running and unit_states.places[unit] == NEAR and not unit_states.runs[unit]
        )
        return unit if can_run else NONE

    def fetch(self, unit_states: UnitStates) -> int:
        if (
            self._paused(unit_states)
            or unit_states.coming + unit_states.running >= self._members
            or self.run(unit_states) != NONE
        ):
            return NONE
        far = most_urgent(unit_states, unit_states.places == FAR)
        return far if far != NONE else self._foreseen(unit_states)

    def _foreseen(self, unit_states: UnitStates) -> int:
        """Predict the next partition: the one after the last two fetched, if these are neighbours and a place is
        idle.
        """
        may_guess = unit_states.guess == NONE  # one at a time
        if (
            len(unit_states.sent) < 2
            or not unit_states.running
            or not may_guess
            or not self._has_idle_place(unit_states)
        ):
            return NONE
        before, latest = unit_states.sent[-2:]
        unit = 2 * latest - before
        in_a_row = abs(latest - before) == 1 and 0 <= unit < unit_states.places.size
        return unit if in_a_row and not unit_states.asked_for[unit] else NONE

    def _has_idle_place(self, unit_states: UnitStates) -> bool:
        return unit_states.room > 0 or bool(((unit_states.places == NEAR) & (unit_states.pending == NOTHING)).any())

    def evict(self, unit_states: UnitStates) -> int:
        """The partition that has not run for the longest time, of those without waiting vertices if there are any."""
        near = unit_states.places == NEAR
        idle = near & (unit_states.pending == NOTHING)
        return first(idle if idle.any() else near, unit_states.turns)

    def done(self, unit_states: UnitStates) -> bool:
        if unit_states.running or unit_states.coming:
            return False
        return self._paused(unit_states) or not (unit_states.pending < NOTHING).any()


def most_urgent(unit_states: UnitStates, among: Array) -> int:
    """The unit of `among` with the smallest pending value; NONE if nothing waits in any of them."""
    urgency = np.where(among, unit_states.pending, NOTHING)
    unit = int(urgency.argmin()) if urgency.size else NONE
    return unit if unit != NONE and urgency[unit] < NOTHING else NONE
