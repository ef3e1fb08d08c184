"""Core numbers of a graph that changes: vertices sink after deletions, and rise by one in each round after insertions.

`supports[v]` counts the neighbours of v whose core number is at least v's own, which is never below that number. A
neighbour counts once per edge; self loops do not count. A directed graph has lists of two sides, an undirected one of
one.

A round finds the largest set of vertices that can rise by one together: each needs more than `core` neighbours with a
larger core number or in the set. It grows from the given roots through vertices of equal core number, and vertices that
cannot reach this drop out as soon as that is known (Sariyuce et al. 2013, for one edge; here for any number of roots
and levels at once).

Lists are (begins, ends, targets) by vertex. A kernel is given `rows` whose lists are there, and goes on with vertices
that it finds, if their lists are there as well: all are if the graph is in memory. The others come back, for a next
call with their lists. A candidate that cannot rise, and whose list is not there, is LEAVING: its neighbours still count
it as a supporter. When its list has come, it is OUT, and each neighbour that was looked at counts one supporter less.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.stream.ring_queue import fill, following, put

UNSEEN, CANDIDATE, OUT, LEAVING = 0, 1, 2, 3


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


@kernel
def add_supports(
    begins: Any, ends: Any, targets: Any, offset: Any, cores: Any, supports: Any, first: Any, last: Any
) -> None:
    """Add the neighbours in lists first:last to the supports of their vertices. Lists begin with that of vertex
    `offset`.
    """
    for i in range(first, last):
        v = offset + i
        for e in range(begins[i], ends[i]):
            w = int64(targets[e])
            supports[v] += w != v and cores[w] >= cores[v]


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


@inline
def is_here(v: Any, sides: Any, out: Any, into: Any) -> Any:
    """Whether the list of v, which has edges, is among the lists that the kernel was given."""
    return out[1][v] > out[0][v] or (sides == 2 and into[1][v] > into[0][v])


@kernel
def sink(
    rows: Any,
    sides: Any,
    out: Any,
    into: Any,
    cores: Any,
    supports: Any,
    waiting: Any,
    counts: Any,
    queue: Any,
    later: Any,
    postponed: Any,
    changed: Any,
    changes: Any,
    count: Any,
) -> Any:
    """Lower those of `rows` that have too little support, and all vertices that this leaves with too little.

    `waiting` marks the vertices in the ring `queue`, which are `rows` at first, and those in `later`. `counts` is zero,
    with an entry for every possible core number. Returns (vertices in `later`, edges read).
    """
    fill(rows, queue, waiting)
    edges, head, used = int64(0), int64(0), int64(rows.size)
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
                        if is_here(w, sides, out, into):
                            put(w, queue, head, used, waiting)
                            used += 1
                        else:
                            waiting[w] = 1
                            later[postponed] = w
                            postponed += 1
    return postponed, edges


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
def climb(
    rows: Any,
    sides: Any,
    out: Any,
    into: Any,
    cores: Any,
    supports: Any,
    stages: Any,
    left: Any,
    seen: Any,
    found: Any,
    pile: Any,
    postponed: Any,
) -> Any:
    """Find out which candidates can rise: look at `rows`, and at the candidates that are found by that.

    A candidate is in `seen`, as far as `found`; before it is looked at, `left` is -1. A vertex in `rows` is such a
    candidate, or LEAVING. Returns (candidates in `seen`, vertices at the end of `pile`, edges read): at the end of
    `pile` are vertices whose lists are needed next, and from its beginning on those that are leaving now.
    """
    edges, at, next_row = int64(0), int64(found), int64(0)
    while next_row < rows.size or at < found:
        if next_row < rows.size:
            v = int64(rows[next_row])
            next_row += 1
        else:
            v = int64(seen[at])
            at += 1
            if not is_here(v, sides, out, into):
                postponed += 1
                pile[pile.size - postponed] = v
                continue
        if stages[v] == OUT:
            continue
        k = cores[v]
        if stages[v] == CANDIDATE:
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
                            if is_here(w, sides, out, into):
                                stages[w] = OUT
                                pile[height] = w
                                height += 1
                            else:
                                stages[w] = LEAVING
                                postponed += 1
                                pile[pile.size - postponed] = w
    return found, postponed, edges


@kernel
def lift(seen: Any, found: Any, cores: Any, stages: Any, changed: Any, changes: Any, count: Any) -> Any:
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
def support_risen(rows: Any, sides: Any, out: Any, into: Any, cores: Any, supports: Any, stages: Any) -> Any:
    """Count the supports of vertices that have risen, and let them support those that were above them by one; returns
    the edges read.
    """
    edges = int64(0)
    for i in range(rows.size):
        v = int64(rows[i])
        k, total = cores[v], int64(0)
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
    return edges
