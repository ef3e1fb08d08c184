"""An overlay: the arcs of one side that were added and removed since a graph was stored, and where each list lies with
them.

Together with the store it is a side like any other: lists without gaps, and far arrays (`graph/far.py`) whose entries a
`PatchedReader` puts together (`kernels/changing/overlay_arcs.py` says how). An overlay does not change. A batch makes
the next one, so what was begun on a snapshot can go on beside later ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isthmus.graph.changing.packed_lists import SideChanges
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import Array
from isthmus.kernels.changing import overlay_arcs as kernels
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.threads import Team


@dataclass(frozen=True)
class Overlay:
    """Added arcs sorted by tail and head, removed ones by their slot in the store, and where the list of each vertex
    begins now.
    """

    begins: Array  # one more than there are vertices
    added_tails: Array
    added_heads: Array
    added_weights: Array  # empty: unweighted
    removed_tails: Array
    removed_slots: Array
    stored: int  # slots of the store
    weighted: bool

    @classmethod
    def nothing(cls, offsets: Array, target_dtype: np.dtype, weight_dtype: np.dtype | None) -> Overlay:
        """Lists as they are stored."""
        none = np.empty(0, target_dtype)
        weights = np.empty(0, np.int32 if weight_dtype is None else weight_dtype)
        return cls(
            offsets, none, none, weights, none, np.empty(0, np.int64), int(offsets[-1]), weight_dtype is not None
        )

    @property
    def vertices(self) -> int:
        return int(self.begins.size) - 1

    @property
    def arcs(self) -> int:
        return int(self.begins[-1])

    @property
    def changes(self) -> int:
        """Arcs that it adds and removes."""
        return int(self.added_tails.size + self.removed_slots.size)

    @property
    def change_bytes(self) -> int:
        """Memory of the arcs that it adds and removes."""
        added = self.added_tails.nbytes + self.added_heads.nbytes + self.added_weights.nbytes
        return added + self.removed_tails.nbytes + self.removed_slots.nbytes

    @property
    def bytes(self) -> int:
        return self.begins.nbytes + self.change_bytes

    @cached_property
    def lists(self) -> Lists:
        return Lists.of(self.begins)

    def with_vertices(self, count: int) -> Overlay:
        """With `count` vertices: new ones have no arcs, and neither have those that leave."""
        begins = np.full(count + 1, self.arcs, np.int64)
        shared = min(count + 1, self.begins.size)
        begins[:shared] = self.begins[:shared]
        return replace(self, begins=begins)

    def changed(self, changes: SideChanges, team: Team) -> Overlay:
        """The overlay after changes. The place of an arc is its slot in the store or, for an added one, `stored` and
        its position.
        """
        actions, places = changes.actions, changes.places
        stored, old = places < self.stored, actions != INSERT
        removed, dropped = old & stored, (actions == DELETE) & ~stored
        fresh = (actions == INSERT) | ((actions == REWEIGH) & stored)
        weights = self.added_weights
        again = (actions == REWEIGH) & ~stored
        if again.any():
            weights = weights.copy()
            weights[places[again] - self.stored] = changes.weights[again]
        stay = np.ones(self.added_tails.size, np.bool_)
        stay[places[dropped] - self.stored] = False
        new_weights = changes.weights[fresh] if self.weighted else weights
        return Overlay(
            self._shifted(changes, team),
            *self._added(stay, weights, changes.vertices[fresh], changes.others[fresh], new_weights),
            *self._removed(changes.vertices[removed], places[removed]),
            self.stored,
            self.weighted,
        )

    def _added(
        self, stay: Array, weights: Array, tails: Array, heads: Array, fresh: Array
    ) -> tuple[Array, Array, Array]:
        if stay.all() and not tails.size:
            return self.added_tails, self.added_heads, weights
        count = int(np.count_nonzero(stay)) + tails.size
        out = (
            np.empty(count, tails.dtype),
            np.empty(count, heads.dtype),
            np.empty(count if self.weighted else 0, weights.dtype),
        )
        kernels.merge_added(self.added_tails, self.added_heads, weights, stay, tails, heads, fresh, *out)
        return out

    def _removed(self, tails: Array, slots: Array) -> tuple[Array, Array]:
        if not slots.size:
            return self.removed_tails, self.removed_slots
        count = self.removed_slots.size + slots.size
        out = np.empty(count, tails.dtype), np.empty(count, np.int64)
        kernels.merge_removed(self.removed_tails, self.removed_slots, tails, slots, *out)
        return out

    def _shifted(self, changes: SideChanges, team: Team) -> Array:
        """Where lists begin after these changes."""
        cuts = changes.cuts[:-1]
        signs = (changes.actions == INSERT).astype(np.int64) - (changes.actions == DELETE)
        if not cuts.size or not signs.any():
            return self.begins
        changed, gains = changes.vertices[cuts], np.add.reduceat(signs, cuts)
        before, begins = np.concatenate([[0], np.cumsum(gains)]), np.empty_like(self.begins)

        def part(first: int, last: int) -> None:
            at = int(np.searchsorted(changed, first))
            kernels.shift_begins(first, last, self.begins, changed, gains, at, before[at], begins)

        team.split(part, begins.size)
        return begins


@dataclass(frozen=True)
class Patch:
    """What makes a far array of a changed graph from one that is stored: `added` are the entries of added arcs."""

    base: FarArray
    overlay: Overlay
    added: Array

    @property
    def needs_bounds(self) -> bool:
        """Whether entries are vertices and fewer of these are left than were stored, so that they are checked once
        more.
        """
        return self.base.name.endswith("targets") and self.base.bounds.most >= self.overlay.vertices


def patched(base: FarArray, overlay: Overlay, added: Array) -> FarArray:
    """A stored array with the arcs of an overlay."""
    return replace(base, count=overlay.arcs, patch=Patch(base, overlay, added))
