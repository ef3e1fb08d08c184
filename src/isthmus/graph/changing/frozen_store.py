"""A changing graph as a store in memory: lists without gaps, sorted, in the order of its vertex numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus.graph.changing.packed_lists import PackedLists
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import Array, aligned_empty
from isthmus.graph.store.manifest import Manifest, Section
from isthmus.graph.store.store import MemoryStore
from isthmus.kernels.changing import packed_array
from isthmus.threads import Team


def frozen_store(snapshot: Snapshot, sides: Mapping[str, PackedLists], team: Team) -> MemoryStore:
    """A copy of the graph."""
    arrays = snapshot.ids.sections()
    for side in ("out", "in") if snapshot.directed else ("out",):
        arrays |= compacted(side, sides[side], team)
    kinds = {name: Section(str(array.dtype), array.size) for name, array in arrays.items()}
    manifest = Manifest(
        snapshot.vertices,
        snapshot.edges,
        snapshot.arcs,
        snapshot.directed,
        snapshot.weighted,
        snapshot.ids.kind,
        snapshot.order,
        snapshot.self_loops,
        False,
        snapshot.directed,
        snapshot.negative_weights,
        {"made by": f"a stream, batch {snapshot.number}"},
        kinds,
    )
    return MemoryStore(manifest, arrays)


def compacted(side: str, lists: PackedLists, team: Team) -> dict[str, Array]:
    """The sections of one side."""
    degrees = lists.lists().degrees()
    offsets = np.zeros(degrees.size + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    targets = aligned_empty(lists.arcs, lists.targets.dtype)  # so that a GPU can read it where it is
    weights = aligned_empty(lists.arcs if lists.weighted else 0, lists.weights.dtype)
    team.split(
        lambda a, b: packed_array.compact_sorted(a, b, *lists.arrays(), offsets, targets, weights), lists.vertices
    )
    found = {f"{side}.offsets": offsets, f"{side}.targets": targets}
    return {**found, f"{side}.weights": weights} if lists.weighted else found
