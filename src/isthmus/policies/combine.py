"""Combining: which partitions make one task, once each has an engine.

A recipe names one of the ways below. HyTGraph (Wang et al., ICDE 2023), Algorithm 1, lines 15-24, combines at most k =
4 neighbouring filter partitions, and all partitions of any other engine. It drops every (k+1)th filter partition in a
row; here that one begins the next group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from isthmus.errors import OptionError
from isthmus.link.link import Array
from isthmus.policies.policy import FILTER, NOTHING

TOGETHER = 4  # HyTGraph: filter partitions in one task


@dataclass(frozen=True)
class Groups:
    """Partitions in groups, each for one task: group g is partitions[cuts[g]:cuts[g + 1]], for the engine
    choices[g].
    """

    choices: Array
    cuts: Array
    partitions: Array


def neighbours(choice: Array, k: int = TOGETHER) -> Groups:
    """Combine at most k neighbouring filter partitions, and all partitions of any other engine.

    Groups come in the order of the engines' numbers and then of the partitions. Every partition with a choice is in
    exactly one group.
    """
    partitions, choices = chosen(choice)
    filtered = choices == FILTER
    begins = np.ones(choices.size, np.bool_)
    begins[1:] = (choices[1:] != choices[:-1]) | (filtered[1:] & (np.diff(partitions) != 1))
    places = np.arange(choices.size)
    places -= np.maximum.accumulate(np.where(begins, places, 0))  # from the start of its run
    firsts = np.flatnonzero(begins | (filtered & (places % k == 0)))
    return Groups(choices[firsts], np.append(firsts, choices.size), partitions)


def by_engine(choice: Array) -> Groups:
    """Combine all partitions of an engine, which then cuts them into tasks itself."""
    partitions, choices = chosen(choice)
    firsts = np.flatnonzero(np.diff(choices, prepend=NOTHING) != 0)
    return Groups(choices[firsts], np.append(firsts, choices.size), partitions)


def apart(choice: Array) -> Groups:
    """Combine nothing: every partition is a group."""
    partitions, choices = chosen(choice)
    return Groups(choices, np.arange(choices.size + 1), partitions)


def chosen(choice: Array) -> tuple[Array, Array]:
    """Partitions with a choice, by choice and then by number; and their choices."""
    order = np.argsort(choice, kind="stable")
    partitions = order[choice[order] != NOTHING]
    return partitions, choice[partitions]


WAYS: dict[str, Callable[[Array], Groups]] = {
    "buffers": by_engine,
    "neighbours": neighbours,
    "whole apart": partial(neighbours, k=1),
    "apart": apart,
}


def combined(way: str, choice: Array) -> Groups:
    """The chosen partitions in groups, by the way of that name."""
    if way not in WAYS:
        raise OptionError(f"combine: expected one of {', '.join(WAYS)}, got {way!r}")
    return WAYS[way](choice)
