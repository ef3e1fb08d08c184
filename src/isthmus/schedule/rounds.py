"""Scaph's k-level queue: partitions that are near already are run again while others are still on their way.

Scaph (Zheng et al., ATC 2020), section 5.1 and Figures 10 and 11. Level i holds the partitions that will run for the
ith time in this iteration. Whoever is free takes from the lowest level: first runs go first, and a partition that has
run goes to the end of the next level, so that others have a chance to activate its vertices meanwhile. A partition is
run again only while transfers are pending and no first run is waiting. Room for the next transfer is made by the
partition that has run most often. The iteration ends when every high-value partition has run once.

This file is a state machine without clock or memory of its own: questions about a `Rounds`, and steps to the next one.
Steps do not check that they are possible; the questions only name what is.

Where this differs: Figure 10 bounds no level, so k = near / link bandwidth is here a bound on runs; its line 13 may evict
a partition that has not run yet; it re-runs partitions with no active vertex left. The first to go here is what is left
of the iteration before and of no high value now, which Figure 10 does not mention. The release has the queue switched off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isthmus.link.link import Array

FAR, COMING, QUEUED, RUNNING = range(4)  # where a partition is; QUEUED: near, and not being run
NONE = -1
LATER = np.iinfo(np.int64).max


def levels(near_bandwidth: float, link_bandwidth: float) -> int:
    """How often a partition may run in one iteration: about 20 for 224 and 11.4 GB/s (Scaph, section 5.1)."""
    return max(1, round(near_bandwidth / link_bandwidth))


@dataclass(frozen=True)
class Rounds:
    """Where each partition is, how often it has run in this iteration, and its turn within its level."""

    wanted: Array  # of high value in this iteration
    places: Array
    runs: Array
    turns: Array
    clock: int

    @property
    def waiting(self) -> Array:
        """High-value partitions whose transfer is pending."""
        return np.asarray(self.wanted & (self.runs == 0) & (self.places < QUEUED))

    @property
    def over(self) -> bool:
        """Whether every high-value partition has run."""
        return bool((self.runs[self.wanted] > 0).all())


def begin(wanted: Array, near: Array) -> Rounds:
    """The first state of an iteration; `near`: partitions that stayed from the last one."""
    count = wanted.size
    return Rounds(wanted, np.where(near, QUEUED, FAR), np.zeros(count, np.int64), np.arange(count), count)


def next_transfer(state: Rounds) -> int:
    """The partition to bring near next, or NONE."""
    return first(state.waiting & (state.places == FAR), np.arange(state.wanted.size))


def next_run(state: Rounds, active: Array, k: int) -> int:
    """The partition to run next, or NONE: wait for a transfer, or for the end. `active`: vertices of each, as they are now."""
    again = (state.runs < k) & (active > 0) if state.waiting.any() else np.zeros(state.runs.size, np.bool_)
    ready = state.wanted & (state.places == QUEUED) & ((state.runs == 0) | again)
    return first(ready, (state.runs << 32) + state.turns)


def next_evicted(state: Rounds) -> int:
    """The partition whose room the next transfer may take, or NONE: all that are near have still to run."""
    spent = (state.places == QUEUED) & (~state.wanted | (state.runs > 0))
    return first(spent, (-np.where(state.wanted, state.runs, 1 << 30) << 32) + state.turns)


def first(among: Array, keys: Array) -> int:
    """The one with the smallest key, or NONE."""
    return int(np.argmin(np.where(among, keys, LATER))) if among.any() else NONE


def sent_for(state: Rounds, partition: int) -> Rounds:
    return put(state, partition, COMING)


def arrived(state: Rounds, partition: int) -> Rounds:
    return put(state, partition, QUEUED)


def started(state: Rounds, partition: int) -> Rounds:
    return put(state, partition, RUNNING)


def finished(state: Rounds, partition: int) -> Rounds:
    """It has run once more, and goes to the end of the next level."""
    runs = state.runs.copy()
    runs[partition] += 1
    return put(replace(state, runs=runs), partition, QUEUED)


def evicted(state: Rounds, partition: int) -> Rounds:
    return put(state, partition, FAR)


def put(state: Rounds, partition: int, place: int) -> Rounds:
    places, turns = state.places.copy(), state.turns.copy()
    places[partition], turns[partition] = place, state.clock
    return replace(state, places=places, turns=turns, clock=state.clock + 1)
