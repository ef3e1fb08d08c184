"""Vertex orders. Hub order (HyTGraph, section VI) puts the hubs first.

Hubs are the top 8 % by out-degree x in-degree, in descending order; the rest keep their natural order. The
partitions of hubs are then active in almost every iteration and can get priority.
"""

from __future__ import annotations

import numpy as np

from isthmus.graph.files import Array
from isthmus.graph.store import MemoryStore, Store

HUB_SHARE = 0.08  # HyTGraph: the top 8 % of the vertices
TARGETS_AT_ONCE = 1 << 22


def degrees(store: Store | MemoryStore) -> tuple[Array, Array]:
    """Out- and in-degrees of all vertices; in-degrees are counted if in-edges are not stored."""
    out = np.diff(store.read("out.offsets"))
    if not store.manifest.directed:
        return out, out
    if "in.offsets" in store:
        return out, np.diff(store.read("in.offsets"))
    into = np.zeros(out.size, np.int64)
    for at in range(0, store.manifest.arcs, TARGETS_AT_ONCE):
        targets = store.read("out.targets", at, min(at + TARGETS_AT_ONCE, store.manifest.arcs))
        into += np.bincount(targets.astype(np.int64), minlength=out.size)
    return out, into


def hub_order(store: Store | MemoryStore) -> Array:
    """Natural numbers of the vertices in hub order: entry i is the vertex that gets number i."""
    out, into = degrees(store)
    score = out.astype(np.float64) * into  # float: the product of two 64-bit degrees may not fit
    hubs = int(np.ceil(HUB_SHARE * score.size))
    order = np.argsort(-score, kind="stable")[:hubs]
    rest = np.ones(score.size, np.bool_)
    rest[order] = False
    return np.concatenate([order, np.flatnonzero(rest)])
