"""Workloads to try a stream with: batches of inserts and deletes, drawn from a graph.

Two ways. Without an initial graph the changes apply to the graph itself: deletes are edges that it has, drawn
uniformly, and inserts are edges that it lacks, each end of which is an end of a uniformly drawn edge, so vertices get
them in proportion to their degrees. With an initial graph it is as in Grapin's experiments: all changes are edges of
the graph, drawn uniformly; those to be inserted are missing in the initial graph, which is written.

Every edge is changed once, so the order of batches does not matter and nothing is missing or repeated. Edges are read
in one or two passes, some at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.checks import whole
from isthmus.errors import OptionError
from isthmus.graph.changing.change import Edits
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.stream.input.batch_columns import Array

PIECE = 1 << 22  # arcs read at once
SPARE = 1.3  # draws for every edge that is needed; some are drawn twice, some exist
TRIES = 40


@dataclass
class Changes:
    """Edges by number, and what happens to them."""

    wishes: Array
    sources: Array
    targets: Array
    weights: Array | None


def drawn(graph: Graph, batches: int, size: int, ratio: float, seed: int, keeps_graph: bool = True) -> Changes:
    """Changes for `batches` batches of `size`, a share `ratio` of which are inserts. `keeps_graph`: they apply to the
    graph itself.
    """
    whole("batches", batches, 1)
    whole("size", size, 1)
    if not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        raise OptionError(f"ratio: expected a share of inserts from 0 to 1, got {ratio!r}")
    draw, inserts = np.random.default_rng(seed), round(ratio * size)
    total, needed = batches * size, batches * (size if not keeps_graph else size - inserts)
    if needed > graph.edges:
        raise OptionError(
            f"{graph} has fewer than the {needed:,} edges that are to change; give a smaller size or fewer batches"
        )
    us, vs, weights = existing(graph, draw, needed)
    if keeps_graph:
        more_u, more_v, more_w = missing(graph, draw, total - needed)
        us, vs = np.concatenate([more_u, us]), np.concatenate([more_v, vs])
        weights = None if weights is None or more_w is None else np.concatenate([more_w, weights])
    count = batches * inserts
    wishes = np.full(total, DELETE, np.uint8)
    wishes[:count] = INSERT
    order = mixed(draw, batches, inserts, size - inserts, count)
    return Changes(wishes[order], us[order], vs[order], None if weights is None else weights[order])


def mixed(draw: Any, batches: int, inserts: int, deletes: int, first_delete: int) -> Array:
    """The order of rows: each batch has its share of both, mixed."""
    parts = []
    for batch in range(batches):
        mine = np.concatenate(
            [
                np.arange(batch * inserts, (batch + 1) * inserts),
                first_delete + np.arange(batch * deletes, (batch + 1) * deletes),
            ]
        )
        parts.append(draw.permutation(mine))
    return np.concatenate(parts)


def existing(graph: Graph, draw: Any, count: int) -> tuple[Array, Array, Array | None]:
    """Edges of the graph, all different, drawn uniformly."""
    chosen, needed = np.empty(0, np.int64), count if graph.directed else 2 * count
    arcs = Arcs(graph)
    for _ in range(TRIES):
        if needed * SPARE * 4 > graph.arcs:
            chosen = np.arange(graph.arcs)  # many: all, of which some are chosen
        else:
            chosen = np.unique(np.concatenate([chosen, draw.integers(0, graph.arcs, int(needed * SPARE) + 16)]))
        us, vs, weights = arcs.at(chosen)
        single = np.flatnonzero(us <= vs) if not graph.directed else np.arange(us.size)  # an undirected edge once
        _, first = np.unique(us[single] << 32 | vs[single], return_index=True)  # parallel ones count once
        single = single[first]
        if single.size >= count:
            single = draw.permutation(single)[:count]
            return us[single], vs[single], None if weights is None else weights[single]
        if chosen.size == graph.arcs:
            break
        needed = 2 * needed
    raise OptionError(f"{graph} has fewer than {count:,} different edges; give a smaller size or fewer batches")


def missing(graph: Graph, draw: Any, count: int) -> tuple[Array, Array, Array | None]:
    """Edges that the graph lacks, all different, with weights like those that it has."""
    us = vs = np.empty(0, np.int64)
    weights = None if not graph.weighted else np.empty(0, np.float64)
    if count and not graph.arcs:
        raise OptionError(f"{graph} has no edges to draw inserts from")
    arcs = Arcs(graph)
    for _ in range(TRIES):
        if us.size >= count:
            return us[:count], vs[:count], None if weights is None else weights[:count]
        more = int((count - us.size) * SPARE) + 16
        picks = draw.integers(0, graph.arcs, 2 * more)
        order = np.argsort(picks, kind="stable")
        heads, tails, some = arcs.at(picks[order])
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        fresh_u, fresh_v = heads[back[:more]], tails[back[more:]]
        fresh_w = None if some is None else some[back[:more]]
        if not graph.directed:
            fresh_u, fresh_v = np.minimum(fresh_u, fresh_v), np.maximum(fresh_u, fresh_v)
        good = np.flatnonzero((fresh_u != fresh_v) & ~arcs.exist(fresh_u, fresh_v))
        keys = np.concatenate([us << 32 | vs, fresh_u[good] << 32 | fresh_v[good]])
        _, first = np.unique(keys, return_index=True)
        first = np.sort(first)  # in the order of drawing
        us, vs = (np.concatenate([one, other[good]])[first] for one, other in ((us, fresh_u), (vs, fresh_v)))
        weights = None if weights is None or fresh_w is None else np.concatenate([weights, fresh_w[good]])[first]
    raise OptionError(
        f"{graph} has too few missing edges to draw {count:,} inserts from; give a smaller size or fewer batches"
    )


class Arcs:
    """The arcs of a graph by position, read some at a time."""

    def __init__(self, graph: Graph) -> None:
        if graph.vertices > 1 << 32:
            raise OptionError(f"{graph}: workloads are drawn from graphs of at most {1 << 32:,} vertices")
        self._graph = graph
        self._offsets = np.asarray(graph.snapshot.lists("out").arrays[0])
        self._ends = np.asarray(graph.snapshot.lists("out").arrays[1])

    def _pieces(self) -> Iterator[tuple[int, int, int, int]]:
        """(first and last vertex, first and last arc) of pieces of whole lists."""
        first = 0
        while first < self._graph.vertices:
            begin = int(self._offsets[first])
            last = max(int(np.searchsorted(self._ends, begin + PIECE, "right")), first + 1)
            yield first, last, begin, int(self._ends[last - 1])
            first = last

    def _section(self, name: str, begin: int, end: int) -> Array:
        return self._graph.entries(f"out.{name}", begin, end)

    def at(self, chosen: Array) -> tuple[Array, Array, Array | None]:
        """Tails, heads and weights of arcs, by ascending position."""
        us = np.searchsorted(self._ends, chosen, "right")
        vs = np.empty(chosen.size, np.int64)
        weights = np.empty(chosen.size, self._graph.snapshot.weight_dtype) if self._graph.weighted else None
        for _, _, begin, end in self._pieces():
            a, b = np.searchsorted(chosen, [begin, end])
            if a < b:
                vs[a:b] = self._section("targets", begin, end)[chosen[a:b] - begin]
                if weights is not None:
                    weights[a:b] = self._section("weights", begin, end)[chosen[a:b] - begin]
        return us, vs, weights

    def exist(self, us: Array, vs: Array) -> Array:
        """Whether there are arcs from us to vs, by binary search in their lists."""
        order = np.argsort(us, kind="stable")
        found = np.zeros(us.size, np.bool_)
        sorted_u = us[order]
        for first, last, begin, end in self._pieces():
            a, b = np.searchsorted(sorted_u, [first, last])
            if a < b:
                mine = order[a:b]
                targets = self._section("targets", begin, end)
                low, high = self._offsets[us[mine]] - begin, self._ends[us[mine]] - begin
                found[mine] = contains(targets, low, high, vs[mine])
        return found


def contains(targets: Array, low: Array, high: Array, sought: Array) -> Array:
    """Whether targets[low:high], which ascend, have the sought one."""
    low, last = low.copy(), high
    high = high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        below = (low < high) & (targets[np.minimum(middle, targets.size - 1)] < sought)
        high = np.where((low < high) & ~below, middle, high)
        low = np.where(below, middle + 1, low)
    return (
        (low < last) & (targets[np.minimum(low, max(targets.size - 1, 0))] == sought)
        if targets.size
        else np.zeros(low.size, np.bool_)
    )


def initial_graph(graph: Graph, changes: Changes, save: Callable[[ChangingGraph], None]) -> None:
    """Save the graph without the edges that are to be inserted."""
    users = graph.ids.users
    gone = np.flatnonzero(changes.wishes == INSERT)
    with ChangingGraph(graph) as before:
        ends = (np.asarray(users(changes.sources[gone])), np.asarray(users(changes.targets[gone])))
        before.apply(Edits(np.full(gone.size, DELETE, np.uint8), *ends), strict=True)
        save(before)
