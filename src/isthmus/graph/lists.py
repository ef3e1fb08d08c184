"""Lists: the positions of each vertex's edges, in arrays that may have gaps.

The list of vertex v is the slots begins[v]:ends[v] of the arrays of targets and weights. Lists are in vertex order. A
list may be followed by a gap, where a changing graph inserts edges later. So slots are not arcs: arcs are edges to
follow; slots count what moves when a whole range moves, and what a buffer needs room for. The contents of a gap are
undefined: a target there may be prefetched and must not be followed.

The lists of a stored graph have no gaps and are two views of its one array of offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.store.files import Array


class Lists:
    """The list of vertex v is the slots begins[v]:ends[v]; each ends before the next begins, the last before
    `slots`.
    """

    __slots__ = ("arcs", "arrays", "begins", "ends", "slots")

    def __init__(self, begins: Array, ends: Array, slots: int | None = None, arcs: int | None = None) -> None:
        """`slots` may continue past the last list; `arcs` are counted unless given."""
        self.begins, self.ends = self.arrays = begins, ends  # `arrays`: as kernels take them
        self.slots = (int(ends[-1]) if ends.size else 0) if slots is None else slots
        # The sums may overflow; their difference is still correct.
        self.arcs = int(ends.sum() - begins.sum()) if arcs is None else arcs

    @classmethod
    def of(cls, offsets: Array) -> Lists:
        """Lists without gaps, as two views of one array: each ends where the next begins."""
        slots = int(offsets[-1])
        return cls(offsets[:-1], offsets[1:], slots, slots)

    def __len__(self) -> int:
        """The number of vertices."""
        return int(self.begins.size)

    @property
    def has_gaps(self) -> bool:
        return self.arcs < self.slots

    def degrees(self, dtype: Any = np.int64) -> Array:
        """The number of arcs of each vertex."""
        return np.subtract(self.ends, self.begins, dtype=dtype, casting="unsafe")

    def arcs_before(self) -> Array:
        """The number of arcs before each vertex's list. Without gaps this is `begins`, and takes no memory."""
        if not self.has_gaps:
            return self.begins
        before = np.zeros(len(self), np.int64)
        np.cumsum(self.degrees()[:-1], out=before[1:])
        return before
