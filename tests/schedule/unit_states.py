"""States of units, made by hand, for tests of schedules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isthmus.schedule.schedule import Array, UnitStates


def marks(count: int, chosen: Iterable[int]) -> Array:
    """A mask of `count` units in which these are set."""
    mask = np.zeros(count, np.bool_)
    mask[list(chosen)] = True
    return mask


def come(units: UnitStates, *which: int) -> None:
    """These were asked for and are near now."""
    for unit in which:
        units.fetched(unit)
        units.arrived(unit)


def run(units: UnitStates, *which: int) -> None:
    """These have run once more."""
    for unit in which:
        units.started(unit)
        units.finished(unit)
