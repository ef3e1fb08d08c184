"""Whole lists from pieces: a program that must see all neighbours of a vertex at once takes vertices window by window.

Deliveries bring lists in pieces: the two sides separately, a hub in several buffers. A window is a range of vertices
whose lists, both sides together, fit a table in near memory. One iteration of the loop gathers one window, in whatever
order its pieces arrive (every vertex has a cursor into the table), and then all lists of the window are whole.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from isthmus import sizes
from isthmus.programs.program import Array, Facts

MOST = 1 << 31  # entries of a table: cursors have 32 bits


@dataclass
class Windows:
    """Ranges of vertices with at most `room` entries in their lists, or a single vertex with more."""

    arcs_before: tuple[Array, ...]  # for each side, the number of arcs before each vertex's list
    arcs: int  # of all vertices, on all sides
    vertices: int
    room: int

    @classmethod
    def of(cls, facts: Facts, entry_bytes: int, cap: int = MOST) -> Windows:
        """As large as the budget's spare bytes allow, and at least one entry per vertex."""
        everything = sum(lists.arcs for lists in facts.lists_of_sides)
        room = max(facts.vertices, sizes.now.least_table, min(facts.spare // entry_bytes, everything))
        return cls(
            tuple(lists.arcs_before() for lists in facts.lists_of_sides), everything, facts.vertices, min(room, cap)
        )

    def before(self, vertex: int) -> int:
        """Entries in the lists of the vertices before this one."""
        return sum(int(before[vertex]) for before in self.arcs_before) if vertex < self.vertices else self.arcs

    def entries(self, first: int, last: int) -> int:
        return self.before(last) - self.before(first)

    def end(self, first: int) -> int:
        """Where the window that starts with `first` ends."""
        limit = self.before(first) + self.room
        found = bisect_right(range(self.vertices + 1), limit, key=self.before) - 1
        return min(max(found, first + 1), self.vertices)

    def start(self) -> Array | None:
        """The vertices of the first window, for `State.start`."""
        end = self.end(0)
        if end == self.vertices:
            return None
        mask = np.zeros(self.vertices, bool)
        mask[:end] = True
        return mask
