"""Whether the lists of a changing graph mirror each other: each arc is once in the out-edges, and once in the in-edges.

Those of a sound store do, but checksums can be forged. When a vertex is removed, its in-edges tell in which other lists
it is; an arc that is not among them would stay behind, and lead kernels to a vertex that is gone. As batches change
both sides alike, one look is enough.

Sides are compared by sums of hashes, as `verify` does it, with a secret: nobody can prepare other arcs with the same
sum.
"""

from __future__ import annotations

import os

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.packed_lists import PackedLists
from isthmus.kernels.store import list_checks
from isthmus.threads import Team


def fault(out: PackedLists, into: PackedLists, team: Team) -> str | None:
    """What contradicts itself in the lists of a graph; None: nothing. `out` and `into` are the same if it is
    undirected.
    """
    if has_repeated(out, team):
        return "a list has an edge twice"
    secret = np.uint64(int.from_bytes(os.urandom(8)))
    if hash_sum(out, False, secret, team) != hash_sum(into, True, secret, team):
        return "edges are in one direction only" if out is into else "in-edges and out-edges differ"
    return None


def has_repeated(side: PackedLists, team: Team) -> bool:
    bits, found = side.bits(), []

    def part(member: int, first: int, last: int) -> None:
        found.append(list_checks.find_repeated(*side.arrays()[:3], first, last, bits[member]))

    team.share_by_size(part, side.lists().ends, sizes.now.few_changes)
    return any(vertex >= 0 for vertex in found)


def hash_sum(side: PackedLists, backward: bool, secret: np.uint64, team: Team) -> int:
    """The sum of hashes of all arcs, or of the reversed ones."""
    found: list[int] = []

    def part(_: int, first: int, last: int) -> None:
        found.append(int(list_checks.hash_arcs(*side.arrays()[:3], first, last, backward, secret)))

    team.share_by_size(part, side.lists().ends, sizes.now.few_changes)
    return sum(found) % 2**64
