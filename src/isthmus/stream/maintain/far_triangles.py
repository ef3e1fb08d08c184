"""Triangle counts kept current where lists are far: changed pairs in batches, with the neighbours of their ends in a
table.
"""

from __future__ import annotations

import numpy as np

from isthmus.programs.program import Program
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import Array
from isthmus.stream.maintain.maintained_triangles import MaintainedTriangles
from isthmus.stream.maintain.neighbours import Neighbours


class MaintainedFarTriangles(MaintainedTriangles):
    """How many triangles each vertex is in."""

    def __init__(self, program: Program, session: Session, name: str | None = None) -> None:
        super().__init__(program, session, name)
        self._neighbours = Neighbours(self)

    def near_bytes(self, vertices: int) -> int:
        return super().near_bytes(vertices) + self._neighbours.near_bytes(vertices)

    def _count_pairs(self, firsts: Array, seconds: Array, keys: Array, sign: int) -> None:
        """Some pairs at a time, whose ends have no more neighbours than the table has room for; one pair at least."""
        room, degrees = self._neighbours.room, self._neighbours.degrees(firsts)
        fresh = np.append(True, firsts[1:] != firsts[:-1])
        needed = np.cumsum(self._neighbours.degrees(seconds) + np.where(fresh, degrees, 0))
        begin = 0
        while begin < firsts.size:
            there = int(needed[begin - 1]) if begin else 0
            more = 0 if fresh[begin] else int(degrees[begin])
            end = max(begin + 1, int(np.searchsorted(needed, there + room - more, side="right")))
            begins, ends, table = self._neighbours.of(
                np.unique(np.concatenate([firsts[begin:end], seconds[begin:end]]))
            )
            # With two sides, a neighbour may be there twice.
            twice = (len(self.sides), (begins, ends, table), (begins, begins, table))
            self._count_in(firsts[begin:end], seconds[begin:end], keys, sign, twice)
            begin = end
