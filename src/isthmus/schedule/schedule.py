"""The Schedule interface: given the state of all units, a schedule answers *fetch p*, *run p* or *done*.

A unit is what is fetched and run as one: a task of an iteration, or a partition that stays near. An executor
(`runtime/executor/executor.py`) keeps the `UnitStates` of all units, asks the schedule and carries out its answers.
Schedules are pure: the same states give the same answer. They are asked after every step, because the best answer
depends on what is pending.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FAR, COMING, NEAR, RUNNING = range(4)  # NEAR: near, and not running
NONE = -1  # no unit
NOTHING = np.inf  # `pending` of a unit in which nothing waits, for schedules that ask for it


class UnitStates:
    """Where each of `count` units is, how often it has run, and what waits to run. `near`: units that are near at the
    start.
    """

    def __init__(self, count: int, near: Array | None = None) -> None:
        self.places = np.full(count, FAR, np.int8) if near is None else np.where(near, NEAR, FAR).astype(np.int8)
        self.runs = np.zeros(count, np.int64)
        self.turns = np.arange(count)  # the step of each unit's last change
        self.pending = np.zeros(count)  # work that waits in each unit, in a measure of the schedule's own
        self.ready: deque[int] = deque()  # units with arrived edges that have not run yet, in the order of arrival
        self.sent: list[int] = []  # units in the order they were fetched
        self.asked_for = np.zeros(count, np.bool_)  # units that were ever fetched
        self.guess = NONE  # the unit that was fetched last although nothing waited in it, until something does
        self.coming = self.running = 0
        self.total_runs = 0
        self.free = 0  # places for further units that stay near
        self._steps = itertools.count(count)

    def fetched(self, unit: int) -> None:
        """The unit is on its way near."""
        self.sent.append(unit)
        self.asked_for[unit] = True
        self.guess = unit if self.pending[unit] == NOTHING else NONE
        self.coming += 1
        self.places[unit], self.turns[unit] = COMING, next(self._steps)

    def arrived(self, unit: int) -> None:
        """All of the unit is near."""
        self.coming -= 1
        self.places[unit], self.turns[unit] = NEAR, next(self._steps)

    def started(self, unit: int) -> None:
        self.running += 1
        if unit == self.guess and self.pending[unit] != NOTHING:
            self.guess = NONE
        self.places[unit], self.turns[unit] = RUNNING, next(self._steps)

    def finished(self, unit: int) -> None:
        """The unit has run once more."""
        self.running -= 1
        self.total_runs += 1
        self.runs[unit] += 1
        self.places[unit], self.turns[unit] = NEAR, next(self._steps)

    def evicted(self, unit: int) -> None:
        self.places[unit], self.turns[unit] = FAR, next(self._steps)


class Schedule(ABC):
    """Decides by the states of all units what to do next; NONE: nothing at the moment."""

    under_way: int | None = None  # units on their way at once; None: one for every reader
    alone = False  # whether units run one at a time, each by all members

    @abstractmethod
    def fetch(self, units: UnitStates) -> int:
        """The unit to bring near next."""

    @abstractmethod
    def run(self, units: UnitStates) -> int:
        """The unit to run next."""

    @abstractmethod
    def done(self, units: UnitStates) -> bool:
        """Whether there is nothing more to fetch or to start."""

    def evict(self, units: UnitStates) -> int:
        """The near unit to evict when no place is free for the next one."""
        return NONE

    def again(self, unit: int, runs: int) -> bool:
        """Whether a unit with `runs` runs, still in its buffer, runs again if vertices of it were marked."""
        return False


def first(among: Array, keys: Array) -> int:
    """The unit with the smallest key, or NONE."""
    return int(np.argmin(np.where(among, keys, np.iinfo(np.int64).max))) if among.any() else NONE
