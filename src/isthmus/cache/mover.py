"""Moving lists in the memory where a cache lies: the interface, and a mover for this machine.

A cache decides which lists lie where; a mover copies them. A device with memory of its own brings its own mover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from isthmus.graph.lists import Lists
from isthmus.kernels.cache import list_moves
from isthmus.link.link import Array

FEW = 1 << 16  # entries that one thread copies before a team has begun
Pair = tuple[Array, Array]  # where lists are read, and where they are written: targets of both, or weights
Rows = tuple[Array, ...]  # vertices, and of each: where its targets and its weights begin, how many there are


@dataclass(frozen=True)
class Index:
    """Of the lists of one side: which of them are chosen, which of them are held, and where their places begin."""

    chosen: Array
    held: Array
    begins: Array


class Mover(Protocol):
    """Moves lists. Columns tell where lists lie, where they go, and their lengths. Several threads may call it."""

    def copy(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        """Copy lists to memory that none of them is read from."""

    def shift(self, froms: Array, tos: Array, lengths: Array, arrays: Sequence[Array]) -> None:
        """Move lists, in the order of their places, towards the front of their memory."""

    def fetch(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        """Copy lists from far memory."""

    def patch(self, columns: tuple[Array, ...], far: tuple[Array, Array, bool], near: tuple[Array, Array]) -> None:
        """Bring lists that have changed up to date; see `kernels/cache/list_moves.py: patch_lists`."""

    def keep(self, rows: Rows, lists: Pair, index: Index, pairs: Sequence[Pair]) -> None:
        """Fill the places of rows that are whole, chosen, and not held yet. `pairs`: of targets, and maybe weights."""


class HostMover:
    """Moves lists in the memory of this machine."""

    def __init__(self, team: Any) -> None:
        self._team = team

    def copy(self, froms: Array, tos: Array, lengths: Array, pairs: Sequence[Pair]) -> None:
        for pair in pairs:
            self._copy_each(froms, tos, lengths, pair)

    def _copy_each(self, froms: Array, tos: Array, lengths: Array, pair: Pair) -> None:
        if int(lengths.sum()) < FEW:
            list_moves.copy_lists(0, froms.size, froms, tos, lengths, *pair)
        else:
            self._team.split(lambda a, b: list_moves.copy_lists(a, b, froms, tos, lengths, *pair), froms.size)

    def shift(self, froms: Array, tos: Array, lengths: Array, arrays: Sequence[Array]) -> None:
        for array in arrays:
            list_moves.copy_lists(0, froms.size, froms, tos, lengths, array, array)

    fetch = copy

    def patch(self, columns: tuple[Array, ...], far: tuple[Array, Array, bool], near: tuple[Array, Array]) -> None:
        self._team.split(lambda a, b: list_moves.patch_lists(a, b, *columns, *far, *near), columns[0].size)

    def keep(self, rows: Rows, lists: Pair, index: Index, pairs: Sequence[Pair]) -> None:
        (targets, near_targets), *weights = pairs
        far_weights, near_weights = weights[0] if weights else (targets[:0], near_targets[:0])
        own = (index.chosen, index.held, index.begins)
        list_moves.keep_rows(*rows, *lists, targets, far_weights, *own, near_targets, near_weights, bool(weights))


def copy_part(near: Array, to: int, source: Array, at: int, size: int) -> None:
    """Copy one run of entries in the memory of this machine."""
    near[to : to + size] = source[at : at + size]


Copy = Callable[[Array, int, Array, int, int], None]  # as `copy_part`


def copier(mover: Mover) -> Copy:
    """`copy_part` by a mover."""

    def copied(near: Array, to: int, source: Array, at: int, size: int) -> None:
        froms, tos, lengths = (np.array([each], np.int64) for each in (at, to, size))
        mover.copy(froms, tos, lengths, [(source, near)])

    return copied


@dataclass(frozen=True)
class Attached:
    """What a cache uses while it is attached to a run or a stream. `lists`: begins and ends, as kernels read them."""

    mover: Mover
    lists: Callable[[Lists], Pair]
