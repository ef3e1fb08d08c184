"""Loops of PageRank: sweeps in place over edges that are near or delivered, and passes over vertices before and after edges.

A vertex's share is its rank over its divisor, what each of its edges carries; a vertex without edges has its whole rank as
its share. So shares alone say what all ranks are. The divisors are out-degrees, and None where the lists tell them.
`teleports` is None where all are even; `base` is then what every vertex gets, else the factor of its teleport. What a vertex goes
by, its `rules`, are (divisors, teleports, base, alpha, over). `weights` is empty where every edge counts the same.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64

from isthmus.kernels.atomics import atomic_add, prefetch
from isthmus.kernels.compile import inline, kernel, quick_kernel

AHEAD = 64  # edges whose shares are asked for in advance: a fifth of the time on Kronecker 22, a third on 24; of 16 to 128 the best


@inline
def divisor(divisors: Any, list_begins: Any, list_ends: Any, v: Any) -> Any:
    return float64(list_ends[v] - list_begins[v] if divisors is None else divisors[v])


@inline
def gift(teleports: Any, base: Any, v: Any) -> Any:
    return base if teleports is None else base * teleports[v]


@kernel
def share_out(first: Any, last: Any, list_begins: Any, list_ends: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """Turn ranks into shares, which may round them, and leave zeros.

    Returns the sum of ranks that the shares stand for, and of those that have no edge to follow.
    """
    mass = stuck = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        size = d if d > 0 else 1.0
        shares[v] = ranks[v] / size
        ranks[v] = 0.0
        rank = float64(shares[v]) * size
        mass += rank
        if d <= 0:
            stuck += rank
    return mass, stuck


@kernel
def receive(first: Any, last: Any, list_begins: Any, list_ends: Any, rules: Any, scale: Any, shares: Any, ranks: Any) -> Any:
    """Turn sums of shares into ranks, `scale` times; returns how far these are from those that were shared out."""
    divisors, teleports, base, alpha, _ = rules
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        before = float64(shares[v]) * (d if d > 0 else 1.0)
        rank = alpha * ranks[v] + gift(teleports, base, v)
        ranks[v] = scale * rank
        change += abs(rank - before)
    return scale * change


@inline
def aim(v: Any, list_begins: Any, list_ends: Any, rules: Any, shares: Any) -> Any:
    """Where the share of v goes: (divisor, rank before, what of the new share depends on nobody, what the total is multiplied by)."""
    divisors, teleports, base, alpha, over = rules
    real = shares.dtype.type
    d = divisor(divisors, list_begins, list_ends, v)
    size = d if d > 0 else 1.0
    before = float64(shares[v]) * size
    smaller = real(1) / real(size)
    own = (real(over * gift(teleports, base, v)) + real(1 - over) * real(before)) * smaller
    return d, before, own, real(over * alpha) * smaller


@inline
def renew(v: Any, goal: Any, total: Any, shares: Any) -> Any:
    """Put the new share in its place, for others to see at once; returns the rank, what of it has no edge to follow, and the change."""
    d, before, own, slope = goal
    share = max(own + slope * total, shares.dtype.type(0))
    shares[v] = share
    rank = float64(share) * (d if d > 0 else 1.0)
    return rank, rank if d <= 0 else 0.0, abs(rank - before)


@inline
def mark(marks: Any, v: Any) -> None:
    if marks is not None:
        marks[v] = 1


@inline
def add_up(sums: Any, mass: Any, stuck: Any, change: Any) -> None:
    atomic_add(sums, 0, mass)
    atomic_add(sums, 1, stuck)
    atomic_add(sums, 2, change)


@quick_kernel
def sweep_range(
    first: Any, last: Any, begin: Any, end: Any, base: Any, weight_base: Any, active: Any, all_active: Any, list_begins: Any,
    list_ends: Any, targets: Any, weights: Any, state: Any, params: Any, marks: Any, queue: Any, used: Any,
) -> Any:  # fmt: skip
    """Renew the shares of first:last from their in-neighbours', `over` times as far as these say; in place of a program's `push_range`.

    All in the precision of the shares, and with little left to do once the total is there: the vertex after may be waiting for
    this share. Adds up the sum of ranks, of those without an edge, and of changes. Of a list that is not whole here, leaves the sum
    with the ranks and a mark. Where marks are None, all lists are whole, and vertices without one are renewed as well.
    """
    (ranks, shares), (rules, sums) = state, params
    real = shares.dtype.type
    four, ahead, all_edges = uint64(4), uint64(AHEAD), uint64(max(end - base, 0))
    mass = stuck = change = 0.0
    for v in range(first, last):
        low, high = max(list_begins[v], begin), min(list_ends[v], end)
        if (low >= high and marks is not None) or (not all_active and active[v] == 0):
            continue
        goal = aim(v, list_begins, list_ends, rules, shares)
        total = real(0)
        if weights.size:
            for k in range(high - low):
                total += shares[int64(targets[low - base + k])] * real(weights[low - weight_base + k])
        else:
            e, stop = uint64(low - base), uint64(max(high, low) - base)  # unsigned: no look at whether an index counts from the end
            while e + four <= stop:  # four by four: a tenth faster, and sums over many edges round less
                if e + ahead + four <= all_edges:  # also those of the next lists
                    for k in range(4):
                        prefetch(shares, int64(targets[e + ahead + uint64(k)]))
                pair = shares[int64(targets[e])] + shares[int64(targets[e + uint64(1)])]
                total += pair + (shares[int64(targets[e + uint64(2)])] + shares[int64(targets[e + uint64(3)])])
                e += four
            for k in range(e, stop):
                total += shares[int64(targets[k])]
        if high - low == list_ends[v] - list_begins[v]:
            found = renew(v, goal, total, shares)
            mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
        else:
            atomic_add(ranks, v, float64(total))
            mark(marks, v)
    add_up(sums, mass, stuck, change)
    return used


@quick_kernel
def sweep_rows(
    vertices: Any, begins: Any, weight_begins: Any, lengths: Any, row: Any, skip: Any, edges: Any, list_begins: Any, list_ends: Any,
    targets: Any, weights: Any, state: Any, params: Any, marks: Any, queue: Any, used: Any,
) -> Any:  # fmt: skip
    """As `sweep_range`, in place of a program's `push_rows`."""
    (ranks, shares), (rules, sums) = state, params
    real = shares.dtype.type
    mass = stuck = change = 0.0
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count == 0:
            row += 1
            continue
        v = int64(vertices[row])
        goal = aim(v, list_begins, list_ends, rules, shares)
        total = real(0)
        for e in range(begins[row] + skip, begins[row] + skip + count):
            share = shares[int64(targets[e])]
            total += share * real(weights[weight_begins[row] - begins[row] + e]) if weights.size else share
        if count == list_ends[v] - list_begins[v]:
            found = renew(v, goal, total, shares)
            mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
        else:
            atomic_add(ranks, v, float64(total))
            mark(marks, v)
        edges -= count
        row += 1
        skip = 0
    add_up(sums, mass, stuck, change)
    return used


@quick_kernel
def sweep_rest(first: Any, last: Any, list_begins: Any, list_ends: Any, lacking: Any, state: Any, params: Any, marks: Any) -> Any:
    """Renew the shares of those of first:last that have no list, or whose lists came in parts, and take their sums and marks away.

    `lacking` says whether anyone may have no list; returns how many of these have none.
    """
    (ranks, shares), (rules, sums) = state, params
    mass = stuck = change = 0.0
    lack = 0
    for v in range(first, last):
        if marks[v] or (lacking and list_begins[v] == list_ends[v]):
            lack += marks[v] == 0
            found = renew(v, aim(v, list_begins, list_ends, rules, shares), shares.dtype.type(ranks[v]), shares)
            mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
            ranks[v] = 0.0
            marks[v] = 0
    add_up(sums, mass, stuck, change)
    return lack


@quick_kernel
def step(
    first: Any, last: Any, list_begins: Any, list_ends: Any, targets: Any, weights: Any, rules: Any, scale: Any, shares: Any, ranks: Any
) -> Any:
    """Ranks of first:last, `scale` times, from shares that stay as they are; returns how far they are from those shared out."""
    divisors, teleports, base, alpha, _ = rules
    ahead, all_edges = uint64(AHEAD), uint64(list_ends[last - 1])  # of an empty piece nobody asks
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        before = float64(shares[v]) * (d if d > 0 else 1.0)
        total = 0.0
        for e in range(uint64(list_begins[v]), uint64(list_ends[v])):
            if e + ahead < all_edges:
                prefetch(shares, int64(targets[e + ahead]))
            share = float64(shares[int64(targets[e])])
            total += share * weights[e] if weights.size else share
        rank = alpha * total + gift(teleports, base, v)
        ranks[v] = scale * rank
        change += abs(rank - before)
    return scale * change


@kernel
def even_cuts(list_begins: Any, slots: Any, cuts: Any) -> Any:
    """Fill `cuts` with vertices that part all vertices and their edges evenly, as far as gaps are spread evenly."""
    n, last = list_begins.size, cuts.size - 1
    whole = slots + n
    for k in range(cuts.size):
        wanted = whole * k // max(last, 1)
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if list_begins[middle] + middle < wanted:
                low = middle + 1
            else:
                high = middle
        cuts[k] = low
