"""Scaph's k-level queue: near partitions run again while others are still on their way.

Scaph (Zheng et al., ATC 2020), section 5.1 and Figures 10 and 11. Level i holds the partitions that will run for the
ith time in this iteration. A free processor takes from the lowest level, so first runs go first. A partition that has
run goes to the end of the next level, so that others can activate its vertices meanwhile. A partition runs again only
while transfers are pending and no first run is waiting. The partition that has run most often is evicted for the next
transfer. The iteration ends when every high-value partition has run once.

Where this differs: Figure 10 sets no limit on levels. Section 5.1 expects k <= 20, the ratio of near and link bandwidth
for 224 and 11.4 GB/s, so here k limits runs: that ratio, but at most 20. (For the P100 of its evaluation, 732 GB/s, the
ratio is 64. A kernel that pushes along edges reaches 28.7 % of the bandwidth, which makes it 18.) Its line 13 may evict
a partition that has not run yet, and it re-runs partitions without active vertices; we do neither. We first evict
partitions left from the last iteration that are no longer of high value; Figure 10 does not mention those. The release
has the queue switched off.
"""

from __future__ import annotations

import numpy as np

from isthmus.schedule.schedule import FAR, NEAR, Array, Schedule, UnitStates, first

UNDER_WAY = 2  # transfers at once: one moves and one waits, so that the link is never idle; more would only take places


LEVELS = 20  # Scaph, section 5.1: k is not expected to be larger


def levels(near_bandwidth: float, link_bandwidth: float) -> int:
    """How often a partition may run in one iteration: 20 for 224 and 11.4 GB/s (Scaph, section 5.1), fewer for a faster
    link.
    """
    return min(LEVELS, max(1, round(near_bandwidth / link_bandwidth)))


class Levels(Schedule):
    """Units are partitions; the `pending` value of a unit is the number of its active vertices now."""

    under_way = UNDER_WAY
    alone = True

    def __init__(self, high_value: Array, k: int) -> None:
        self._high_value, self._k = high_value, k

    def waiting(self, units: UnitStates) -> Array:
        """High-value partitions whose transfer is pending."""
        return np.asarray(self._high_value & (units.runs == 0) & (units.places < NEAR))

    def fetch(self, units: UnitStates) -> int:
        return first(self.waiting(units) & (units.places == FAR), np.arange(self._high_value.size))

    def run(self, units: UnitStates) -> int:
        runs = units.runs
        again = (runs < self._k) & (units.pending > 0) if self.waiting(units).any() else np.zeros(runs.size, np.bool_)
        ready = self._high_value & (units.places == NEAR) & ((runs == 0) | again)
        return first(ready, (runs << 32) + units.turns)

    def evict(self, units: UnitStates) -> int:
        """The partition to evict: one no longer of high value, else the one that has run most often; NONE: all have yet
        to run.
        """
        runs = units.runs
        spent = (units.places == NEAR) & (~self._high_value | (runs > 0))
        return first(spent, (-np.where(self._high_value, runs, 1 << 30) << 32) + units.turns)

    def done(self, units: UnitStates) -> bool:
        """Whether every high-value partition has run."""
        return bool((units.runs[self._high_value] > 0).all())

    def first_run_waits(self, units: UnitStates) -> bool:
        """Whether a near partition waits for its first run; if so, `pending` is not needed."""
        return bool(((units.places == NEAR) & (units.runs == 0) & self._high_value).any())
