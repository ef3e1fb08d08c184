"""One side of a changing graph: a packed memory array of edge lists (Grapin, section 6, after VCSR).

All lists lie in one array, in vertex order, each followed by a gap for edges to come. A list without a gap is
respread together with its neighbours: the smallest window of vertices that is not too dense, with gaps that grow with
the lengths of lists. If the whole array is too dense, it doubles; if deletions have left it nearly empty, it halves.
Lists begin on boundaries of 128 bytes, so that a GPU reads them with the fewest requests (`align=False`: anywhere).
Density is measured over aligned lists, otherwise vertices of low degree would keep every window too dense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import IsthmusError
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import Array, aligned_empty
from isthmus.kernels.changing import packed_array
from isthmus.threads import Team

LINE = 128  # bytes; the largest request of a GPU to host memory
# Densest leaf and root. VCSR's root is 0.75, but lists are read as slowly as the array has slots.
TIGHT, LOOSE = 1.00, 0.92
SPARSE = 0.25  # of a root, below which half of it is given back
FILL = 0.86  # density of an array that was made anew: below LOOSE, so that it does not double at once
DEAR = 1.5  # times the slots that aligned lists may take; sparse graphs would take more
FEW_WINDOWS = 16  # one thread respreads this few sooner than a team
NONE = np.empty(0, np.int64)


@dataclass
class SideChanges:
    """Changes of arcs, sorted by vertex and then by the other end. Group g, the changes of one vertex, is
    cuts[g]:cuts[g + 1].
    """

    vertices: Array
    others: Array
    actions: Array
    places: Array  # slots of the arcs that are deleted or reweighed
    weights: Array  # empty: unweighted
    cuts: Array
    # Where each group's list began before it was changed, in a packed memory array.
    begins: Array = field(default_factory=lambda: NONE)

    @property
    def positions(self) -> Array:
        """Positions in their lists of the arcs that are deleted or reweighed. Lists may lie elsewhere by now."""
        return np.asarray(self.places - np.repeat(self.begins, np.diff(self.cuts)))

    @property
    def arcs_gained(self) -> int:
        return int(np.count_nonzero(self.actions == packed_array.INSERT)) - int(
            np.count_nonzero(self.actions == packed_array.DELETE)
        )


class PackedLists:
    """Lists with gaps, and the changes to them. Not thread-safe; a change uses all members of the team."""

    def __init__(
        self, lists: Lists, targets: Array, weights: Array | None, team: Team, align: bool | None = None
    ) -> None:
        """A copy of these lists, at memory speed. `align`: lists begin on lines; None: if that takes little memory."""
        self._team = team
        self._unit = max(1, LINE // targets.itemsize)
        if align is False or (align is None and lists.arcs * DEAR < aligned_slots(lists.degrees(), self._unit)):
            self._unit = 1
        self.vertices, self.arcs = len(lists), lists.arcs
        self.targets, self.weights = targets, no_weights(targets) if weights is None else weights
        self.weighted = weights is not None
        self._begins = np.append(lists.begins, lists.slots)
        self._ends = np.append(lists.ends, lists.slots)
        self._bits = [np.zeros(0, np.uint64) for _ in range(team.size)]
        self._needed = np.zeros(0, np.int64)  # slots that a vertex needs; all 0 between changes
        self._deleted = 0  # arcs since it was last looked whether the array has become sparse
        self._remake(self._fitting(NONE), NONE)

    @property
    def slots(self) -> int:
        return int(self.targets.size)

    @property
    def weight_dtype(self) -> Any:
        return self.weights.dtype

    @property
    def bytes(self) -> int:
        return (
            self._begins.nbytes
            + self._ends.nbytes
            + self.targets.nbytes
            + (self.weights.nbytes if self.weighted else 0)
        )

    def lists(self) -> Lists:
        return Lists(self._begins[: self.vertices], self._ends[: self.vertices], self.slots, self.arcs)

    def row(self, v: int) -> tuple[int, int]:
        return int(self._begins[v]), int(self._ends[v])

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """(begins, ends, targets, weights), as kernels take them; begins has the number of slots at its end."""
        return self._begins, self._ends, self.targets, self.weights

    def move_edges(self, moved: Callable[[Array], Array]) -> None:
        """Let targets and weights lie in other memory: `moved` copies an array there."""
        self.targets = moved(self.targets)
        if self.weighted:
            self.weights = moved(self.weights)

    def bits(self) -> list[Array]:
        """For each member of the team a bit for every vertex, all 0, and to be left so."""
        words = (self.vertices >> 6) + 1
        if self._bits[0].size < words:
            self._bits = [np.zeros(words + words // 8, np.uint64) for _ in self._bits]
        return self._bits

    # Vertices

    def add_vertices(self, count: int) -> None:
        """Add vertices without edges behind the others."""
        n = self.vertices + count
        if n >= self._begins.size:
            capacity = max(n + 1, self._begins.size * 3 // 2)
            self._begins = grown(self._begins, capacity, self.vertices + 1)
            self._ends = grown(self._ends, capacity, self.vertices)
        self._begins[self.vertices : n + 1] = self.slots
        self._ends[self.vertices : n] = self.slots
        self.vertices = n

    def drop_vertices(self, count: int) -> None:
        """Remove the last vertices, which have no edges left."""
        self.vertices -= count
        self._begins[self.vertices] = self.slots

    # Edges

    def apply(self, changes: SideChanges) -> None:
        """Change the lists. Edges to delete or reweigh must exist, edges to insert must not."""
        needs = np.empty(changes.cuts.size - 1, np.int64)
        changes.begins = self._begins[changes.vertices[changes.cuts[:-1]]]
        columns = (changes.vertices, changes.others, changes.actions)

        def part(_: int, first: int, last: int) -> None:
            given = (changes.cuts, first, last, *columns, changes.places, changes.weights, *self.arrays())
            if not packed_array.change_lists(*given, needs):
                raise IsthmusError("a changing graph has lost an edge; this is a bug, please report it")

        self._team.share_by_size(part, changes.cuts[1:], sizes.now.few_changes)
        self.arcs += changes.arcs_gained
        late = np.flatnonzero(needs)
        if late.size:
            crowded = changes.vertices[changes.cuts[late]].astype(np.int64)
            self._widen(crowded, needs[late])
            packed_array.append_late(late, changes.cuts, *columns, changes.weights, *self.arrays()[1:])
        self._give_back(int(np.count_nonzero(changes.actions == packed_array.DELETE)))

    def _give_back(self, deleted: int) -> None:
        """Halve the array, maybe more than once, if deletions left it nearly empty. Rarely checked: it takes a pass
        over all vertices.
        """
        self._deleted += deleted
        if self._deleted * 8 > self.slots // self._unit:
            self._deleted = 0
            slots, needed = self.slots, self._slots_needed(NONE)
            while needed < SPARSE * slots:
                slots = slots // 2 // self._unit * self._unit
            if slots < self.slots:
                self._remake(max(self._fitting(NONE), slots), NONE)

    def _widen(self, crowded: Array, needs: Array) -> None:
        """Respread windows around the crowded vertices so that each gets the slots it needs, or double."""
        if self._needed.size < self.vertices:
            self._needed = np.zeros(self._begins.size, np.int64)
        needed = self._needed[: self.vertices]
        needed[crowded] = needs
        leaf, height = leaf_size(self.vertices)
        windows = np.empty((crowded.size, 2), np.int64)
        count = packed_array.choose_windows(
            crowded, needed, self._begins, self._ends, self.vertices, self._unit, leaf, height, LOOSE, TIGHT, windows
        )
        if count < 0:
            self._remake(max(2 * self.slots, self._fitting(needed)), needed)
        else:
            self._respread(windows[:count], needed)
        needed[crowded] = 0

    def _respread(self, windows: Array, needed: Array) -> None:
        largest = int((windows[:, 1] - windows[:, 0]).max())
        slots = np.cumsum(self._begins[windows[:, 1]] - self._begins[windows[:, 0]])

        def spread(_: int, first: int, last: int) -> None:
            fresh = np.empty(largest, np.int64)
            packed_array.respread_windows(windows, first, last, *self.arrays(), needed, self._unit, fresh)

        self._team.share_by_size(spread, slots, FEW_WINDOWS)

    def _slots_needed(self, needed: Array) -> int:
        """Aligned slots of all lists; a vertex needs those given for it, if that is not 0, else those that it has."""
        need = self._ends[: self.vertices] - self._begins[: self.vertices]
        if needed.size:
            need = np.where(needed > 0, needed, need)
        return aligned_slots(need, self._unit)

    def _fitting(self, needed: Array) -> int:
        """Slots of an array made anew."""
        return -(-int(self._slots_needed(needed) / FILL) // self._unit) * self._unit

    def _remake(self, slots: int, needed: Array) -> None:
        """Move all lists to new arrays of this size."""
        n, team = self.vertices, self._team
        fresh, ends = np.empty(max(self._begins.size, n + 1), np.int64), np.empty(max(self._ends.size, n + 1), np.int64)
        packed_array.lay_out(0, n, self._begins, self._ends, needed, self._unit, 0, slots, fresh)
        fresh[n] = slots
        targets = aligned_empty(slots, self.targets.dtype)
        weights = aligned_empty(slots, self.weights.dtype) if self.weighted else self.weights
        cuts = np.searchsorted(self._begins[:n], np.linspace(0, self.targets.size, 4 * team.size + 1)).astype(np.int64)
        cuts[0], cuts[-1] = 0, n
        team.each(
            lambda k: packed_array.copy_lists(
                int(cuts[k]),
                int(cuts[k + 1]),
                self._begins,
                self._ends,
                self.targets,
                self.weights,
                fresh,
                ends,
                targets,
                weights,
            ),
            cuts.size - 1,
        )
        self._begins, self._ends, self.targets, self.weights = fresh, ends, targets, weights


def aligned_slots(lengths: Array, unit: int) -> int:
    """Slots of lists of these lengths, each rounded up to whole units."""
    return int((-(-lengths // unit)).sum()) * unit


def no_weights(targets: Array) -> Array:
    return np.empty(0, np.int32)


def leaf_size(vertices: int) -> tuple[int, int]:
    """(vertices of a leaf, height of the tree above): about log2 of the vertices, and the last one may be smaller."""
    leaf = max(1, int(np.ceil(np.log2(max(vertices, 2)))))
    leaves = -(-vertices // leaf) or 1
    return leaf, int(np.ceil(np.log2(leaves))) if leaves > 1 else 0


def grown(array: Array, size: int, used: int) -> Array:
    larger = np.empty(size, array.dtype)
    larger[:used] = array[:used]
    return larger
