"""Oracles for algorithms: plain Python over the oracle's own graph (`naive.clean`), obviously right, slow."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.naive import Cleaned

UNREACHED = 2**63 - 1  # of whole distances
INF = float("inf")


def bfs(graph: Cleaned, source: Any, depth_limit: int | None = None) -> dict[Any, int]:
    """Edges from the source, of the vertices that it reaches."""
    found = {source: 0}
    queue = deque([source])
    while queue:
        u = queue.popleft()
        if depth_limit is not None and found[u] >= depth_limit:
            continue
        for v, _ in graph.out[u]:
            if v not in found:
                found[v] = found[u] + 1
                queue.append(v)
    return found


def sssp(graph: Cleaned, source: Any, cutoff: float | None = None) -> dict[Any, Any]:
    """Distances by weight (1 where there is none), by Dijkstra's algorithm with a heap."""
    return best_paths(graph, {source: 0}, lambda distance, w: distance + w, cutoff)


def best_paths(
    graph: Cleaned, start: dict[Any, Any], extend: Callable[[Any, Any], Any], cutoff: float | None = None
) -> dict[Any, Any]:
    """The least value that any path gives, where extending a path never makes it less."""
    final: dict[Any, Any] = {}
    heap = [(value, position, v) for position, (v, value) in enumerate(start.items())]
    heapq.heapify(heap)
    pushed = len(heap)
    while heap:
        value, _, u = heapq.heappop(heap)
        if u in final:
            continue
        final[u] = value
        for v, w in graph.out[u]:
            further = extend(value, 1 if w is None else w)
            if v not in final and (cutoff is None or further <= cutoff):
                heapq.heappush(heap, (further, pushed, v))
                pushed += 1
    return final


def widest(graph: Cleaned, source: Any) -> dict[Any, Any]:
    """The largest smallest weight on any path from the source, whose own is infinite."""
    found = best_paths(graph, {source: -INF}, lambda width, w: max(width, -w))
    return {v: -width for v, width in found.items()}


def components(graph: Cleaned) -> dict[Any, Any]:
    """The smallest id that each vertex is connected with, whatever the edges' direction."""
    around: dict[Any, set[Any]] = {v: set() for v in graph.ids}
    for u, entries in graph.out.items():
        for v, _ in entries:
            around[u].add(v)
            around[v].add(u)
    label: dict[Any, Any] = {}
    for smallest in graph.ids:  # ascending, so whoever comes first in a component is its smallest
        if smallest in label:
            continue
        label[smallest] = smallest
        rest = [smallest]
        while rest:
            for v in around[rest.pop()]:
                if v not in label:
                    label[v] = smallest
                    rest.append(v)
    return label


def pagerank(
    graph: Cleaned,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    dangling: dict[Any, float] | None = None,
    weight: bool = False,
    iterations: int | None = None,
) -> dict[Any, float]:
    """Power iteration until less than 1e-14 can be missing, or LDBC's fixed number of rounds from 1/n."""
    n = len(graph.ids)
    teleport = shares(graph, personalization)
    drain = teleport if dangling is None else shares(graph, dangling)
    strength = {u: float(sum((w if weight else 1) for _, w in entries)) for u, entries in graph.out.items()}
    rank = dict.fromkeys(graph.ids, 1 / n)
    done = 0
    while iterations is None or done < iterations:
        lost = sum(rank[u] for u in graph.ids if strength[u] == 0)
        fresh = {v: (1 - alpha) * teleport[v] + alpha * lost * drain[v] for v in graph.ids}
        for u, entries in graph.out.items():
            for v, w in entries:
                if strength[u]:
                    fresh[v] += alpha * rank[u] * (w if weight else 1) / strength[u]
        change = sum(abs(fresh[v] - rank[v]) for v in graph.ids)
        rank = fresh
        done += 1
        if iterations is None and min(change * alpha / (1 - alpha), 2 * alpha**done) < 1e-14:
            break
    return rank


def shares(graph: Cleaned, given: dict[Any, float] | None) -> dict[Any, float]:
    """A distribution over the vertices; even where none is given."""
    n = len(graph.ids)
    if given is None:
        return dict.fromkeys(graph.ids, 1 / n)
    total = sum(given.values())
    return {v: given.get(v, 0) / total for v in graph.ids}


def katz(graph: Cleaned, alpha: float) -> dict[Any, float]:
    """x = 1 + alpha A^T x, summed up walk by walk until nothing is left."""
    total = dict.fromkeys(graph.ids, 0.0)
    wave = dict.fromkeys(graph.ids, 1.0)
    while max(wave.values(), default=0) > 1e-18:
        fresh = dict.fromkeys(graph.ids, 0.0)
        for u in graph.ids:
            total[u] += wave[u]
            for v, _ in graph.out[u]:
                fresh[v] += alpha * wave[u]
        wave = fresh
    return total


def betweenness(graph: Cleaned, sources: list[Any], endpoints: bool = False) -> list[float]:
    """For every vertex, summed over the sources and all targets, the share of shortest paths through it; parallel edges
    count each.
    """
    total = dict.fromkeys(graph.ids, 0.0)
    for source in sources:
        level, ways = bfs(graph, source), {source: 1}
        for u in level:  # by level: a queue found them
            for v, _ in graph.out[u]:
                if level[v] == level[u] + 1:
                    ways[v] = ways.get(v, 0) + ways[u]
        depends = dict.fromkeys(level, 0.0)
        for u in reversed(level):
            depends[u] = sum(ways[u] / ways[v] * (1 + depends[v]) for v, _ in graph.out[u] if level[v] == level[u] + 1)
            total[u] += (depends[u] if u != source else 0.0) + (endpoints and (1 if u != source else len(level) - 1))
    return [total[v] for v in graph.ids]
