"""Standings made by hand, for tests of schedules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isthmus.schedule.schedule import Array, Standing


def marks(count: int, chosen: Iterable[int]) -> Array:
    """A mask of `count` units in which these are set."""
    mask = np.zeros(count, np.bool_)
    mask[list(chosen)] = True
    return mask


def come(standing: Standing, *units: int) -> None:
    """These were asked for and are near now."""
    for unit in units:
        standing.fetched(unit)
        standing.arrived(unit)


def run(standing: Standing, *units: int) -> None:
    """These have run once more."""
    for unit in units:
        standing.started(unit)
        standing.finished(unit)
