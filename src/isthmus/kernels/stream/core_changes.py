"""Core numbers of a graph that changes: vertices sink after deletions, and rise by one in each round after insertions.

`supports[v]` counts the neighbours of v whose core number is at least v's own, which is never below that number. A
neighbour counts once per edge; self loops do not count. A directed graph has lists of two sides, an undirected one of
one.

A round finds the largest set of vertices that can rise by one together: each needs more than `core` neighbours with a
larger core number or in the set. It grows from the given roots through vertices of equal core number, and vertices that
cannot reach this drop out as soon as that is known (Sariyuce et al. 2013, for one edge; here for any number of roots
and levels at once).
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.stream.ring_queue import following, put

UNSEEN, CANDIDATE, OUT = 0, 1, 2


@inline
def note(v: Any, changed: Any, changes: Any, count: Any) -> None:
    if changed[v] == 0:
        changed[v] = 1
        changes[count[0]] = v
        count[0] += 1


@inline
def lowered(old: Any, counts: Any) -> Any:
    """(The largest core number up to `old` that has enough neighbours, how many), by counts of neighbours, which become
    zero.
    """
    fresh, enough = old, int64(counts[old])
    counts[old] = 0
    while enough < fresh:
        fresh -= 1
        enough += counts[fresh]
        counts[fresh] = 0
    for k in range(fresh):
        counts[k] = 0
    return fresh, enough


@inline
def lifted(seen: Any, found: Any, cores: Any, stages: Any, changed: Any, changes: Any, count: Any) -> Any:
    """Raise the candidates that are left by one; they come first in `seen`. Returns how many."""
    risen = int64(0)
    for i in range(found):
        v = int64(seen[i])
        if stages[v] == CANDIDATE:
            cores[v] += 1
            note(v, changed, changes, count)
            seen[risen] = v
            risen += 1
        else:
            stages[v] = UNSEEN
    return risen


@kernel
def count_supports(first: Any, last: Any, sides: Any, out: Any, into: Any, cores: Any, supports: Any) -> None:
    """Count the supports of first:last. `out` and `into` are (begins, ends, targets)."""
    for v in range(first, last):
        total = 0
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            for e in range(begins[v], ends[v]):
                w = int64(targets[e])
                total += w != v and cores[w] >= cores[v]
        supports[v] = total


@kernel
def shift_supports(tails: Any, heads: Any, amounts: Any, both: Any, cores: Any, supports: Any) -> None:
    """Arcs have come (amount 1) and gone (-1), and core numbers are as before. `both`: an arc counts at its head
    too.
    """
    for i in range(tails.size):
        u, v = int64(tails[i]), int64(heads[i])
        if u == v:
            continue
        if cores[v] >= cores[u]:
            supports[u] += amounts[i]
        if both and cores[u] >= cores[v]:
            supports[v] += amounts[i]


@kernel
def sink(
    queue: Any,
    waiting: Any,
    used: Any,
    sides: Any,
    out: Any,
    into: Any,
    cores: Any,
    supports: Any,
    changed: Any,
    changes: Any,
    count: Any,
    counts: Any,
) -> Any:
    """Lower the vertices in the ring `queue`, which have too little support, and all that this leaves with too little.

    `waiting` marks the vertices in the queue; `counts` is zero, with an entry for every possible core number. Returns
    the edges read.
    """
    edges = head = int64(0)
    while used > 0:
        v = int64(queue[head])
        head = following(head, queue)
        used -= 1
        waiting[v] = 0
        old = int64(cores[v])
        if supports[v] >= old:
            continue
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            edges += ends[v] - begins[v]
            for e in range(begins[v], ends[v]):
                w = int64(targets[e])
                if w != v:
                    counts[min(cores[w], old)] += 1
        fresh, enough = lowered(old, counts)
        cores[v], supports[v] = fresh, enough
        note(v, changed, changes, count)
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            for e in range(begins[v], ends[v]):
                w = int64(targets[e])
                if w != v and fresh < cores[w] and cores[w] <= old:
                    supports[w] -= 1
                    if supports[w] < cores[w] and waiting[w] == 0:
                        put(w, queue, head, used, waiting)
                        used += 1
    return edges


@inline
def chances(v: Any, sides: Any, out: Any, into: Any, cores: Any, supports: Any, stages: Any) -> Any:
    """How many neighbours may support v if it rises: those above it, and those beside it that may rise too."""
    k, total = cores[v], int64(0)
    for side in range(sides):
        begins, ends, targets = out if side == 0 else into
        for e in range(begins[v], ends[v]):
            w = int64(targets[e])
            if w != v and (cores[w] > k or (cores[w] == k and supports[w] > k and stages[w] != OUT)):
                total += 1
    return total


@kernel
def rise(
    roots: Any,
    sides: Any,
    out: Any,
    into: Any,
    cores: Any,
    supports: Any,
    stages: Any,
    left: Any,
    seen: Any,
    pile: Any,
    changed: Any,
    changes: Any,
    count: Any,
) -> Any:
    """One round from these roots. The vertices that rise come first in `seen`; returns (their number, edges read).

    `stages` is UNSEEN for each vertex before and after; `left` needs no contents.
    """
    found = edges = int64(0)
    for i in range(roots.size):
        v = int64(roots[i])
        if stages[v] == UNSEEN and supports[v] > cores[v]:
            stages[v] = CANDIDATE
            left[v] = -1
            seen[found] = v
            found += 1
    at = int64(0)
    while at < found:
        v = int64(seen[at])
        at += 1
        if stages[v] == OUT:
            continue
        k = cores[v]
        left[v] = chances(v, sides, out, into, cores, supports, stages)
        for side in range(sides):
            begins, ends, _ = out if side == 0 else into
            edges += ends[v] - begins[v]
        if left[v] > k:
            for side in range(sides):
                begins, ends, targets = out if side == 0 else into
                edges += ends[v] - begins[v]
                for e in range(begins[v], ends[v]):
                    w = int64(targets[e])
                    if cores[w] == k and stages[w] == UNSEEN and supports[w] > k:
                        stages[w] = CANDIDATE
                        left[w] = -1
                        seen[found] = w
                        found += 1
            continue
        stages[v] = OUT
        pile[0] = v
        height = 1
        while height > 0:
            height -= 1
            x = int64(pile[height])
            for side in range(sides):
                begins, ends, targets = out if side == 0 else into
                edges += ends[x] - begins[x]
                for e in range(begins[x], ends[x]):
                    w = int64(targets[e])
                    if w != x and cores[w] == k and stages[w] == CANDIDATE and left[w] >= 0:
                        left[w] -= 1
                        if left[w] <= k:
                            stages[w] = OUT
                            pile[height] = w
                            height += 1
    risen = lifted(seen, found, cores, stages, changed, changes, count)
    edges += support_risen(seen, risen, sides, out, into, cores, supports, stages)
    return risen, edges


@inline
def support_risen(
    seen: Any, risen: Any, sides: Any, out: Any, into: Any, cores: Any, supports: Any, stages: Any
) -> Any:
    """Count the supports of vertices that have risen, and let them support those that were above them by one."""
    edges = int64(0)
    for i in range(risen):
        v = int64(seen[i])
        k, total = cores[v], 0
        for side in range(sides):
            begins, ends, targets = out if side == 0 else into
            edges += ends[v] - begins[v]
            for e in range(begins[v], ends[v]):
                w = int64(targets[e])
                if w == v:
                    continue
                total += cores[w] >= k
                if cores[w] == k and stages[w] == UNSEEN:
                    supports[w] += 1
        supports[v] = total
    for i in range(risen):
        stages[int64(seen[i])] = UNSEEN
    return edges
