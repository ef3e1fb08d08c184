"""Loops of PageRank: in-place sweeps over near or delivered edges, and passes over vertices before and after them.

A vertex's share is what each of its edges carries: its rank / its divisor. A vertex without edges has its whole rank as
its share. So all ranks follow from the shares. The divisors are out-degrees, or None if the lists give them.
`teleports` is None if all vertices teleport equally; then every vertex gets `base`, else `base` times its teleport.
`rules` are the parameters (divisors, teleports, base, alpha, over). `weights` is empty if the edges are unweighted.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64

from isthmus.kernels.compile.atomics import atomic_add, prefetch
from isthmus.kernels.compile.kernel import inline, kernel, quick_kernel

AHEAD = 64  # edges to prefetch ahead: saves a fifth of the time on Kronecker 22, a third on 24; the best of 16 to 128


@inline
def divisor(divisors: Any, list_begins: Any, list_ends: Any, v: Any) -> Any:
    return float64(list_ends[v] - list_begins[v] if divisors is None else divisors[v])


@inline
def gift(teleports: Any, base: Any, v: Any) -> Any:
    return base if teleports is None else base * teleports[v]


@kernel
def share_out(first: Any, last: Any, list_begins: Any, list_ends: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """Turn ranks into shares, which may round them, and set the ranks to zero.

    Returns the sum of the ranks after rounding, and the part of it at vertices without edges.
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
def receive(
    first: Any, last: Any, list_begins: Any, list_ends: Any, rules: Any, scale: Any, shares: Any, ranks: Any
) -> Any:
    """Turn sums of shares into ranks, times `scale`; returns their L1 distance from the ranks behind the shares."""
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
    """How to update the share of v: (divisor, rank before, constant part of the new share, factor for the sum over
    in-edges).
    """
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
    """Store the new share, visible to other vertices at once; returns (rank, the same if v has no edges, else 0;
    change).
    """
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
    first: Any,
    last: Any,
    begin: Any,
    end: Any,
    base: Any,
    weight_base: Any,
    active: Any,
    all_active: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """Update the shares of first:last from their in-neighbours, over-relaxed by `over`; replaces a program's
    `push_range`.

    It computes in the precision of the shares, with little work after the last edge, since the next vertex may wait for
    this share. It adds to `sums`: ranks, ranks at vertices without edges, changes. For a list that is not whole here,
    it adds the partial sum to `ranks` and marks the vertex. If marks is None, all lists are whole, and vertices without
    one are updated, too.
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
            e, stop = uint64(low - base), uint64(max(high, low) - base)  # unsigned: no check for negative indices
            while e + four <= stop:  # four by four: a tenth faster, and sums over many edges round less
                if e + ahead + four <= all_edges:  # also into the next lists
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
    vertices: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    row: Any,
    skip: Any,
    edges: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """As `sweep_range`, but replaces a program's `push_rows`."""
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
def sweep_rest(
    first: Any, last: Any, list_begins: Any, list_ends: Any, lacking: Any, state: Any, params: Any, marks: Any
) -> Any:
    """Update the shares of vertices of first:last whose list is empty or came in parts, and clear their sums and marks.

    `lacking` says whether there may be empty lists; returns how many there are.
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
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    rules: Any,
    scale: Any,
    shares: Any,
    ranks: Any,
) -> Any:
    """Ranks of first:last, times `scale`, from unchanged shares; returns their L1 distance from the ranks behind the
    shares.
    """
    divisors, teleports, base, alpha, _ = rules
    ahead, all_edges = uint64(AHEAD), uint64(list_ends[last - 1])  # first:last is never empty
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
    """Fill `cuts` with vertices that divide all vertices and slots into even parts."""
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
