"""A batch of changes: as its sender wrote it (`Edits`), and what it does to a graph in the end (`Change`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus.graph.changing.packed_lists import SideChanges
from isthmus.graph.store.files import Array
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.kernels.store import arc_keys


def plain_row(row: int) -> str:
    return f"row {row}"


@dataclass
class Edits:
    """A batch as its sender wrote it, in order of arrival: each row has an operation (INSERT, DELETE, REWEIGH) and an
    edge by user ids.

    `added` and `removed` are vertices. A vertex of an inserted edge need not be added. `where`, `where_added` and
    `where_removed` name a row in the sender's words, for messages.
    """

    wishes: Array
    sources: Array
    targets: Array
    weights: Array | None = None
    added: Array | None = None
    removed: Array | None = None
    where: Callable[[int], str] = plain_row
    where_added: Callable[[int], str] = plain_row
    where_removed: Callable[[int], str] = plain_row

    def __len__(self) -> int:
        return int(self.wishes.size)

    def removing(self, user: Any) -> str:
        """The row that removes a vertex, in the sender's words."""
        return self.where_removed(self.removed.tolist().index(user)) if self.removed is not None else ""

    @property
    def changes(self) -> int:
        """Edges and vertices."""
        return len(self) + sum(int(users.size) for users in (self.added, self.removed) if users is not None)


@dataclass
class Change:
    """What a batch does to a graph, by vertex numbers; made by `prepare`.

    `out` has every arc that changes, and `into` the same arcs by their heads; they are the same for an undirected
    graph. Deleted arcs of `out` have their old weights there; `old_weights` has the old weights of those that change.
    """

    number: int  # of the snapshot that it leads to
    out: SideChanges
    into: SideChanges
    old_weights: Array
    added: Array  # user ids of new vertices, which get the next numbers
    removed: Array  # numbers of removed vertices, ascending
    movers: Array  # after the change, vertex movers[i] takes the number holes[i]
    holes: Array
    vertices: int  # when it is done
    counts: dict[str, int] = field(default_factory=dict)
    edges: int = 0
    self_loops: int = 0
    negative_arcs: int = 0
    edits: Edits | None = None  # what it was made of

    def removing(self, user: Any) -> str:
        """The row of the batch that removes a vertex."""
        return self.edits.removing(user) if self.edits is not None else "batch"

    @property
    def vertices_between(self) -> int:
        """Vertices while both the new and the removed ones have numbers."""
        return self.vertices + int(self.removed.size)


def negatives_gained(changes: SideChanges, old: Array) -> int:
    """How many more arcs have negative weights after these changes; `old` are the weights that deleted and reweighed
    arcs had.
    """
    if not changes.weights.size:
        return 0
    now = (changes.actions != DELETE) & (changes.weights < 0)
    before = (changes.actions != INSERT) & (old < 0)
    return int(np.count_nonzero(now)) - int(np.count_nonzero(before))


def sorted_pairs(us: Array, vs: Array, vertices: int) -> Array:
    """The stable order of pairs by u, then v: numbers from 0 to `vertices`, which stands for a vertex that does not
    exist.
    """
    bits = int(vertices).bit_length()
    if 2 * bits > 64:
        return np.lexsort((vs, us))
    keys = us.astype(np.uint64) << np.uint64(bits) | vs.astype(np.uint64)
    rows = np.arange(us.size)
    arc_keys.radix_sort(keys, rows, np.empty_like(keys), np.empty_like(rows))
    return rows


def grouped_pairs(us: Array, vs: Array, vertices: int) -> tuple[Array, Array]:
    """(the order of pairs as above, a mask of the first of each pair in that order)."""
    order = sorted_pairs(us, vs, vertices)
    us, vs = us[order], vs[order]
    first = np.ones(us.size, np.bool_)
    first[1:] = (us[1:] != us[:-1]) | (vs[1:] != vs[:-1])
    return order, first


def distinct(users: Array) -> Array:
    """Each id once, in order of arrival."""
    if users.dtype == object:
        return np.array(list(dict.fromkeys(users.tolist())), object)
    _, first = np.unique(users, return_index=True)
    return users[np.sort(first)]
