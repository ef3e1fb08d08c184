"""Loops of PageRank: sweeps over near edges in place, and passes over vertices before and after edges from elsewhere.

A vertex's share is its rank over its divisor, what each of its edges carries; a vertex without edges has its whole rank as
its share. So shares alone say what all ranks are. The divisors are out-degrees, and None where `offsets` tells them.
`teleports` is None where all are even; `base` is then what every vertex gets, else the factor of its teleport.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64

from isthmus.kernels.compile import inline, kernel, quick_kernel


@inline
def divisor(divisors: Any, offsets: Any, v: Any) -> Any:
    return float64(offsets[v + 1] - offsets[v] if divisors is None else divisors[v])


@kernel
def share_out(first: Any, last: Any, offsets: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """Turn ranks into shares, which may round them, and leave zeros.

    Returns the sum of ranks that the shares stand for, and of those that have no edge to follow.
    """
    mass = stuck = 0.0
    for v in range(first, last):
        d = divisor(divisors, offsets, v)
        size = d if d > 0 else 1.0
        shares[v] = ranks[v] / size
        ranks[v] = 0.0
        rank = float64(shares[v]) * size
        mass += rank
        if d <= 0:
            stuck += rank
    return mass, stuck


@kernel
def receive(first: Any, last: Any, offsets: Any, divisors: Any, teleports: Any, base: Any, alpha: Any, shares: Any, ranks: Any) -> Any:
    """Turn sums of shares into ranks; returns how far these are from those that were shared out."""
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, offsets, v)
        before = shares[v] * (d if d > 0 else 1.0)
        ranks[v] = alpha * ranks[v] + (base if teleports is None else base * teleports[v])
        change += abs(ranks[v] - before)
    return change


@quick_kernel
def sweep(
    first: Any, last: Any, offsets: Any, targets: Any, weights: Any, divisors: Any, teleports: Any, base: Any, alpha: Any, over: Any,
    shares: Any,
) -> Any:  # fmt: skip
    """Renew the shares of first:last from their in-neighbours', `over` times as far as these say; others see them at once.

    All in the precision of the shares, and with little left to do once the total is there: the vertex after may be waiting for
    this share. Returns the sum of ranks, of those without an edge, and of changes.
    """
    real = shares.dtype.type
    nothing, one, back, factor = real(0), real(1), real(1 - over), real(over * alpha)
    mass = stuck = change = 0.0
    begin = offsets[first]
    for v in range(first, last):
        end = offsets[v + 1]
        d = divisor(divisors, offsets, v)
        size = d if d > 0 else 1.0
        before = float64(shares[v]) * size
        smaller = one / real(size)
        own = (real(over * (base if teleports is None else base * teleports[v])) + back * real(before)) * smaller
        slope = factor * smaller
        total = nothing
        if weights is None:  # four by four: a tenth faster, and sums over many edges round less
            while begin < end - 3:
                pair = shares[int64(targets[begin])] + shares[int64(targets[begin + 1])]
                total += pair + (shares[int64(targets[begin + 2])] + shares[int64(targets[begin + 3])])
                begin += 4
        for e in range(begin, end):
            share = shares[int64(targets[e])]
            total += share if weights is None else share * real(weights[e])
        begin = end
        share = max(own + slope * total, nothing)
        shares[v] = share
        rank = float64(share) * size
        mass += rank
        change += abs(rank - before)
        if d <= 0:
            stuck += rank
    return mass, stuck, change


@quick_kernel
def step(
    first: Any, last: Any, offsets: Any, targets: Any, weights: Any, divisors: Any, teleports: Any, base: Any, alpha: Any, scale: Any,
    shares: Any, ranks: Any,
) -> Any:  # fmt: skip
    """Ranks of first:last, `scale` times, from shares that stay as they are; returns how far they are from those shared out."""
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, offsets, v)
        before = float64(shares[v]) * (d if d > 0 else 1.0)
        total = 0.0
        for e in range(offsets[v], offsets[v + 1]):
            share = float64(shares[int64(targets[e])])
            total += share if weights is None else share * weights[e]
        rank = alpha * total + (base if teleports is None else base * teleports[v])
        ranks[v] = scale * rank
        change += abs(rank - before)
    return scale * change


@kernel
def even_cuts(offsets: Any, cuts: Any) -> Any:
    """Fill `cuts` with vertices that part all vertices and their edges evenly."""
    n, last = offsets.size - 1, cuts.size - 1
    whole = offsets[n] + n
    for k in range(cuts.size):
        wanted = whole * k // max(last, 1)
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if offsets[middle] + middle < wanted:
                low = middle + 1
            else:
                high = middle
        cuts[k] = low
