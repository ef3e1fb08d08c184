"""Standings made by hand, for tests of schedules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isthmus.schedule.schedule import Array, UnitStates


def marks(count: int, chosen: Iterable[int]) -> Array:
    """A mask of `count` units in which these are set."""
    mask = np.zeros(count, np.bool_)
    mask[list(chosen)] = True
    return mask


def come(unit_states: UnitStates, *units: int) -> None:
    """These were asked for and are near now."""
    for unit in units:
        unit_states.fetched(unit)
        unit_states.arrived(unit)


def run(unit_states: UnitStates, *units: int) -> None:
    """These have run once more."""
    for unit in units:
        unit_states.started(unit)
        unit_states.finished(unit)
