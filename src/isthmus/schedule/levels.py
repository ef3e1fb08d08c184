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
    """Units are partitions. `wanted`: those of high value; `pending` in the standing: the active vertices of each,
    now.
    """

    under_way = UNDER_WAY
    alone = True
    stays = True

    def __init__(self, wanted: Array, k: int) -> None:
        self._wanted, self._k = wanted, k

    def waiting(self, unit_states: UnitStates) -> Array:
        """High-value partitions whose transfer is pending."""
        return np.asarray(self._wanted & (unit_states.runs == 0) & (unit_states.places < NEAR))

    def fetch(self, unit_states: UnitStates) -> int:
        return first(self.waiting(unit_states) & (unit_states.places == FAR), np.arange(self._wanted.size))

    def run(self, unit_states: UnitStates) -> int:
        runs = unit_states.runs
        again = (
            (runs < self._k) & (unit_states.pending > 0)
            if self.waiting(unit_states).any()
            else np.zeros(runs.size, np.bool_)
        )
        ready = self._wanted & (unit_states.places == NEAR) & ((runs == 0) | again)
        return first(ready, (runs << 32) + unit_states.turns)

    def evict(self, unit_states: UnitStates) -> int:
        """The partition to evict: one no longer wanted, else the one that has run most often; NONE: all are still to
        run.
        """
        runs = unit_states.runs
        spent = (unit_states.places == NEAR) & (~self._wanted | (runs > 0))
        return first(spent, (-np.where(self._wanted, runs, 1 << 30) << 32) + unit_states.turns)

    def done(self, unit_states: UnitStates) -> bool:
        """Whether every high-value partition has run."""
        return bool((unit_states.runs[self._wanted] > 0).all())

    def first_run_waits(self, unit_states: UnitStates) -> bool:
        """Whether a near partition waits for its first run; if so, `pending` is not needed."""
        return bool(((unit_states.places == NEAR) & (unit_states.runs == 0) & self._wanted).any())
