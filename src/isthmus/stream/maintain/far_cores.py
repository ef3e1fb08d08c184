"""Core numbers kept current where lists are far: vertices sink and rise as in `stream/maintain/cores.py`, in rounds.

A round has all vertices whose lists are needed next, in ascending order, with the neighbours of some of them at a time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from isthmus.kernels.stream import core_rounds as kernels
from isthmus.kernels.stream.core_changes import CANDIDATE
from isthmus.programs.program import Program
from isthmus.runtime.session import Session
from isthmus.stream.maintain.cores import MaintainedCores
from isthmus.stream.maintain.maintained import Array
from isthmus.stream.maintain.neighbours import Neighbours


class MaintainedFarCores(MaintainedCores):
    """Core numbers, and how many neighbours support each."""

    def __init__(self, program: Program, session: Session, name: str | None = None) -> None:
        super().__init__(program, session, name)
        self._neighbours = Neighbours(self)

    def near_bytes(self, vertices: int) -> int:
        return super().near_bytes(vertices) + self._neighbours.near_bytes(vertices)

    def _count_supports(self) -> None:
        self._supports[:] = 0
        for side in self.sides:
            for first, last, lists in self.all_pieces(side):
                begins, ends, targets, _ = lists
                given = (begins[first:last], ends[first:last], targets, first, self._values, self._supports)
                self.team.split(partial(kernels.add_supports, *given), last - first)

    def _sink(self, ends: Array) -> None:
        rows = ends[self._supports[ends] < self._values[ends]]
        self._stages[rows] = 1
        while rows.size:
            used = 0
            for some, lists in self._neighbours.batches(rows):
                given = (*lists, self._values, self._supports, self._stages, self._degrees)
                used = int(kernels.sink_rows(some, *given, self._seen, used, *self._noted))
            rows = np.sort(self._seen[:used]).astype(np.int64)

    def _rise(self, roots: Array) -> None:
        while roots.size:
            found = self._candidates(roots[self._supports[roots] > self._values[roots]])
            risen = int(kernels.lift(self._seen, found, self._values, self._stages, *self._noted))
            roots = np.sort(self._seen[:risen]).astype(np.int64)
            for some, lists in self._neighbours.batches(roots):
                kernels.support_rows(some, *lists, self._values, self._supports, self._stages)
            self._stages[roots] = 0

    def _candidates(self, roots: Array) -> int:
        """The vertices that can rise together are those of `_seen`, as far as this returns, that are still
        candidates.
        """
        found, looked, height = int(roots.size), 0, 0
        self._seen[:found], self._stages[roots], self._left[roots] = roots, CANDIDATE, -1
        state: tuple[Any, ...] = (self._values, self._supports, self._stages, self._left)
        while looked < found or height:
            rows = np.sort(np.concatenate([self._seen[looked:found], self._pile[:height]])).astype(np.int64)
            looked, height = found, 0
            for some, lists in self._neighbours.batches(rows):
                found, height = map(
                    int, kernels.climb_rows(some, *lists, *state, self._seen, found, self._pile, height)
                )
        return found
