"""Whether an answer is right: properties that prove it, by NumPy alone, and digests by which answers are compared.

Distances are proved as in Graph500: the source is at 0, no edge skips, and every other reached vertex has an edge that
leads exactly to it. With weights above 0 only the true distances do all three. A PageRank vector is proved by its
residual. Components are worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xxhash

import isthmus as ist

Array = np.ndarray[Any, Any]
UNREACHED = -1
ALPHA = 0.85
AT_ONCE = 1 << 23  # arcs


def arcs(graph: ist.Graph, weighted: bool = False) -> Iterator[tuple[Array, Array, Array | int]]:
    """Sources, targets and weights (1 unless `weighted`) of all arcs, piece by piece."""
    offsets = graph.store.read("out.offsets").astype(np.int64)
    first = 0
    while first < graph.vertices:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + AT_ONCE, "right")) - 1)
        begin, end = int(offsets[first]), int(offsets[last])
        sources = np.repeat(np.arange(first, last), np.diff(offsets[first : last + 1]))
        yield (
            sources,
            graph.store.read("out.targets", begin, end),
            graph.store.read("out.weights", begin, end) if weighted else 1,
        )
        first = last


def digest(answer: Array) -> str:
    """Equal for equal whole numbers, whatever their type."""
    return xxhash.xxh3_64_hexdigest(np.ascontiguousarray(answer, np.int64))


def prove_distances(graph: ist.Graph, source: int, distances: Array, weighted: bool) -> None:
    """Raise AssertionError unless these are the distances from `source`; weights must be above 0."""
    assert distances[source] == 0, "the source is not at 0"
    far = np.where(distances == UNREACHED, np.iinfo(np.int64).max // 2, distances)
    reached_by = np.zeros(graph.vertices, bool)
    for sources, targets, weights in arcs(graph, weighted):
        through, there = far[sources] + weights, far[targets]
        assert not (there > through).any(), "an edge skips"
        reached_by[targets[there == through]] = True
    lonely = (distances != UNREACHED) & ~reached_by
    lonely[source] = False
    assert not lonely.any(), "a vertex was reached by no edge"


def smallest_members(labels: Array) -> Array:
    """Labels of any kind as the smallest vertex of each component."""
    _, labels = np.unique(labels, return_inverse=True)
    smallest = np.full(labels.size, labels.size)
    np.minimum.at(smallest, labels, np.arange(labels.size))
    return smallest[labels]


def components(graph: ist.Graph) -> Array:
    """The smallest vertex of everyone's component: roots hook onto smaller roots until no edge joins two trees."""
    parents = np.arange(graph.vertices)
    joined = True
    while joined:
        joined = False
        for sources, targets, _ in arcs(graph):
            a, b = parents[sources], parents[targets]
            apart = a != b
            joined |= bool(apart.any())
            a, b = a[apart], b[apart]
            np.minimum.at(parents, np.maximum(a, b), np.minimum(a, b))
        while not np.array_equal(parents, above := parents[parents]):
            parents = above
    return parents


def pagerank_bound(graph: ist.Graph, ranks: Array) -> float:
    """A bound on the L1 error of a PageRank vector: what one more step changes, over 1 - alpha."""
    n = graph.vertices
    degrees = np.diff(graph.store.read("out.offsets").astype(np.int64))
    shares = np.divide(ranks, degrees, out=np.zeros(n), where=degrees > 0)
    sums = np.zeros(n)
    for sources, targets, _ in arcs(graph):
        sums += np.bincount(targets, weights=shares[sources], minlength=n)
    step = (1 - ALPHA) / n + ALPHA * (sums + ranks[degrees == 0].sum() / n)
    return float(np.abs(step - ranks).sum() / (1 - ALPHA))


def pagerank_error(scores: Array, reference: Array) -> float:
    """The L1 distance of scores, normalised, from the reference."""
    return float(np.abs(scores / scores.sum() - reference).sum())
