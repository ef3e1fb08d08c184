"""Vertex orders. Hub order (HyTGraph, section VI) puts the hubs first.

Hubs are the top 8 % by out-degree x in-degree, in descending order; the rest keep their natural order. The
partitions of hubs are then active in almost every iteration and can get priority.
"""

from __future__ import annotations

import os

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.store.files import Array
from isthmus.graph.store.store import MemoryStore, Store

HUB_SHARE = 0.08  # HyTGraph: the top 8 % of the vertices
TARGETS_AT_ONCE = 1 << 22


def degrees(store: Store | MemoryStore) -> tuple[Array, Array]:
    """Out- and in-degrees of all vertices; in-degrees are counted if in-edges are not stored."""
    n = store.manifest.vertices
    out = degrees_of(store, "out", 0, n)
    if not store.manifest.directed:
        return out, out
    if "in.offsets" in store:
        return out, degrees_of(store, "in", 0, n)
    return out, counted_in_degrees(store)


def counted_in_degrees(store: Store | MemoryStore) -> Array:
    """In-degrees, counted from the targets of out-edges."""
    into = np.zeros(store.manifest.vertices, np.int64)
    for at in range(0, store.manifest.arcs, TARGETS_AT_ONCE):
        targets = store.read("out.targets", at, min(at + TARGETS_AT_ONCE, store.manifest.arcs))
        check_numbers(store, "out.targets", targets)
        into += np.bincount(targets.astype(np.int64), minlength=into.size)
    return into


def degrees_of(store: Store | MemoryStore, side: str, first: int, last: int) -> Array:
    """Degrees of the vertices first:last on one side."""
    offsets = store.read(f"{side}.offsets", first, last + 1)
    arcs, n = store.manifest.arcs, store.manifest.vertices
    ends = (first > 0 or offsets[0] == 0) and (last < n or offsets[-1] == arcs)
    # a difference could overflow.
    if not ends or offsets[0] < 0 or offsets[-1] > arcs or (offsets[1:] < offsets[:-1]).any():
        raise StoreError(f"{store}: section {side}.offsets does not ascend from 0 to {arcs}; run isthmus verify")
    degrees: Array = np.diff(offsets)
    return degrees


def check_numbers(store: Store | MemoryStore, section: str, numbers: Array) -> None:
    """Raise StoreError unless all entries read from a section are vertex numbers."""
    if numbers.size and int(numbers.max()) >= store.manifest.vertices:
        raise StoreError(f"{store}: section {section} has an entry that is not a vertex; run isthmus verify")


def whole_order(store: Store | MemoryStore, section: str) -> Array:
    """One of the two permutations of a hub-ordered store, compared with the other, which is its inverse."""
    order = store.read(section)
    check_numbers(store, section, order)
    other = "order.from_natural" if section == "order.to_natural" else "order.to_natural"
    for first in range(0, order.size, sizes.now.degree_vertices):
        last = min(first + sizes.now.degree_vertices, order.size)
        places = store.read(other, first, last)
        check_numbers(store, other, places)
        # On a finite range, a one-sided inverse is the inverse of a permutation.
        if not np.array_equal(order[places], np.arange(first, last)):
            raise not_inverse(store)
    return order


def check_inverse(store: Store | MemoryStore) -> None:
    """Compare the two permutations of a hub-ordered store, piece by piece.

    Both give the same pairs of a place and a number, so sums of a hash of each pair agree. Every process draws another
    hash, so that no store can be made to fit it.
    """
    key, n, sums = np.frombuffer(os.urandom(16), np.uint64) | np.uint64(1), store.manifest.vertices, [0, 0]
    for first in range(0, n, sizes.now.degree_vertices):
        last = min(first + sizes.now.degree_vertices, n)
        here = np.arange(first, last, dtype=np.uint64)
        for side, section in enumerate(("order.to_natural", "order.from_natural")):
            there = store.read(section, first, last).astype(np.uint64)
            places, numbers = (there, here) if side == 0 else (here, there)
            sums[side] += int(mixed(places * key[0] + numbers + key[1]).sum())
    if (sums[0] - sums[1]) % 2**64:
        raise not_inverse(store)


def mixed(words: Array) -> Array:
    """64-bit words, each replaced by a hash of it (the last steps of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ words >> np.uint64(shift)) * np.uint64(factor)
    last: Array = words ^ words >> np.uint64(31)
    return last


def not_inverse(store: Store | MemoryStore) -> StoreError:
    return StoreError(
        f"{store}: sections order.to_natural and order.from_natural are not inverse permutations; run isthmus verify"
    )


def hub_order(store: Store | MemoryStore) -> Array:
    """Natural numbers of the vertices in hub order: entry i is the vertex that gets number i."""
    out, into = degrees(store)
    score = out.astype(np.float64) * into  # float: the product of two 64-bit degrees may not fit
    hubs = int(np.ceil(HUB_SHARE * score.size))
    order = np.argsort(-score, kind="stable")[:hubs]
    rest = np.ones(score.size, np.bool_)
    rest[order] = False
    return np.concatenate([order, np.flatnonzero(rest)])
