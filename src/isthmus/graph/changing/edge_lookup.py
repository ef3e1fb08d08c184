"""Where the edges of a batch lie in a changing graph.

Lists are not sorted, so an edge is found by reading a list. That is most of the work of a batch; so all edges of one
vertex are looked for when its list is read, and their slots are noted: the change that follows goes to the same slots
without looking again. An edge that is only inserted is looked for in the shorter of its two lists, one that may be
deleted or reweighed in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.changing.packed_lists import PackedLists, SideChanges
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import Array
from isthmus.kernels.changing import edge_search
from isthmus.threads import Team

LONG = np.iinfo(np.int64).max
NOBODY = np.empty(0, np.int64)
SAMPLE = 1 << 10  # edges by which vertices are divided among the members of a team
ONE_SIDED = (
    "an edge of the batch is in one of its two lists only. The store that the graph was opened from contradicts "
    "itself: "
    "run isthmus verify. If it finds nothing, this is a bug, please report it"
)
PIECES = 16  # per member: lists differ in length, so one that is done takes another piece


@dataclass
class SideArcs:
    """The arcs of some edges on one side, sorted by vertex and then by the other end.

    `ends`: an arc of edge e is 2 * e at its head and 2 * e + 1 at its tail. `places`: its slot, or -1.
    """

    vertices: Array
    others: Array
    ends: Array
    places: Array


class SearchedSide(Protocol):
    """What a search needs to know of a side."""

    @property
    def vertices(self) -> int: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def weight_dtype(self) -> Any: ...
    def lists(self) -> Lists: ...


class Search:
    """Finds distinct edges, sorted by tail and then head; if the graph is undirected, no tail exceeds its head."""

    def __init__(
        self, sides: Mapping[str, SearchedSide], directed: bool, tails: Array, heads: Array, team: Team
    ) -> None:
        self._lists, self._team = sides, team
        self.tails, self.heads = tails, heads
        self._lengths = np.full(2 * tails.size, LONG, np.int64)  # of the lists at both ends
        self.sides = {"out": self._arcs(sides["out"], True, not directed)}
        if directed:
            self.sides["in"] = self._arcs(sides["in"], False, True)
        out = sides["out"]
        self.exists, self.old = (
            np.zeros(tails.size, np.uint8),
            np.empty(tails.size if out.weighted else 0, out.weight_dtype),
        )

    def _arcs(self, lists: SearchedSide, forward: bool, backward: bool) -> SideArcs:
        """The arcs of one side; each member of the team sorts those of a range of vertices."""
        tails, heads = self.tails, self.heads
        bounds, cuts = self._ranges(forward, backward)
        keys, spare, ends, spare_ends = (
            np.empty(cuts[-1], kind) for kind in (np.uint64, np.uint64, np.int64, np.int64)
        )
        vertices, others, positions = (
            np.empty(cuts[-1], tails.dtype),
            np.empty(cuts[-1], tails.dtype),
            lists.lists().arrays,
        )

        def sort(k: int) -> None:
            arrays = [array[cuts[k] : cuts[k + 1]] for array in (keys, spare, spare_ends, vertices, others, ends)]
            edge_search.sort_arcs(tails, heads, forward, backward, bounds[k], bounds[k + 1], *arrays)
            edge_search.measure(arrays[3], arrays[5], *positions, lists.vertices, self._lengths)

        self._team.each(sort, len(bounds) - 1)
        spare_ends[:] = -1
        return SideArcs(vertices, others, ends, spare_ends)

    def _ranges(self, forward: bool, backward: bool) -> tuple[list[int], list[int]]:
        """Ranges of vertices with about equally many arcs, and where the arcs of each begin."""
        tails, heads, size = self.tails, self.heads, self.tails.size
        bounds = [0, LONG]
        if size > sizes.now.few_changes:
            step = -(-size // SAMPLE)
            sample = np.sort(np.concatenate([tails[::step]] * forward + [heads[::step]] * backward))
            parts = self._team.size
            bounds[1:1] = np.unique(sample[[k * sample.size // parts for k in range(1, parts)]]).tolist()
        loops = np.flatnonzero(tails == heads) if forward and backward else NOBODY
        looped = tails[loops]  # ascending
        cuts = [0] * len(bounds)
        for k, bound in enumerate(bounds[1:], 1):
            last = bound == LONG
            if forward:
                cuts[k] += size if last else int(np.searchsorted(tails, bound))
            if backward:
                cuts[k] += size if last else int(np.count_nonzero(heads < bound))
                cuts[k] -= looped.size if last else int(np.searchsorted(looped, bound))
        return bounds, cuts

    def find(self, once: Array) -> None:
        """Look for the edges: those that are marked in `once` in the shorter of their lists, all others in both."""
        for name, side in self.sides.items():
            self._find(side, name, once)

    def _find(self, side: SideArcs, name: str, once: Array) -> None:
        lists = self._lists[name]
        assert isinstance(lists, PackedLists)
        size, vertices = side.ends.size, side.vertices
        bits, arrays = lists.bits(), lists.arrays()
        cuts = [0, size]
        if size > sizes.now.few_changes:  # at the first arcs of vertices
            pieces = PIECES * self._team.size
            cuts[1:1] = np.searchsorted(vertices, vertices[[k * size // pieces for k in range(1, pieces)]]).tolist()

        def find(member: int, k: int) -> None:
            given = (cuts[k], cuts[k + 1], vertices, side.others, side.ends, self._lengths, once, *arrays)
            edge_search.find_arcs(*given, bits[member], side.places, self.exists, self.old)

        self._team.share(find, len(cuts) - 1)

    def changes(self, name: str, actions: Array, final: Array) -> tuple[SideChanges, Array]:
        """The changes of one side when each edge has an action and a new weight; and the old weights of the arcs that
        change.
        """
        side, size = self.sides[name], self.sides[name].ends.size
        vertices, others = np.empty(size + 1, side.vertices.dtype), np.empty(size + 1, side.vertices.dtype)
        kinds, places, cuts = np.empty(size + 1, np.uint8), np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
        weights, old = (np.empty(size + 1 if final.size else 0, final.dtype) for _ in range(2))
        given = (side.vertices, side.others, side.ends, side.places, actions, final, self.old)
        count, groups = edge_search.keep_changes(*given, vertices, others, kinds, places, weights, old, cuts)
        if count < 0:
            raise StoreError(ONE_SIDED)
        changes = SideChanges(
            vertices[:count], others[:count], kinds[:count], places[:count], weights[:count], cuts[: groups + 1]
        )
        return changes, old[:count]
