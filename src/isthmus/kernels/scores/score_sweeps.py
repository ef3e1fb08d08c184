"""Passes over all in-edges that bring scores up to date: what is lacking is sent on, swept in place, or measured.

`shares` has what a vertex sends along an edge of weight 1, without the factor. Sums are in double precision, whatever
the shares are in.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64

from isthmus.kernels.compile.atomics import prefetch
from isthmus.kernels.compile.kernel import inline, kernel, quick_kernel

AHEAD = 64  # entries to prefetch ahead


@quick_kernel
def take_residuals(
    first: Any,
    last: Any,
    values: Any,
    residual: Any,
    divisors: Any,
    strengths: Any,
    stretch: Any,
    own: Any,
    shares: Any,
) -> Any:
    """Add the residuals of first:last to the values, and put into `shares` by how much what they send along an edge
    changes.

    Values also grow by `stretch` times what exceeds `own`, which has one entry if it is the same everywhere. The
    divisors become the strengths. Residuals become what they would be if nothing were sent. Returns the sum of |change
    of what is sent|.
    """
    sent = 0.0
    for u in range(first, last):
        before, strength = values[u], strengths[u]
        after = before + residual[u]
        after += stretch * (after - own[u if own.size > 1 else 0])
        residual[u] -= after - before
        more = after / strength if strength > 0 else 0.0
        if divisors[u] > 0:
            more -= before / divisors[u]
        values[u], divisors[u], shares[u] = after, strength, more
        sent += abs(more) * strength
    return sent


@kernel
def share_values(first: Any, last: Any, values: Any, divisors: Any, shares: Any) -> None:
    """What each of the vertices first:last sends along an edge of weight 1, without the factor."""
    for u in range(first, last):
        shares[u] = values[u] / divisors[u] if divisors[u] > 0 else 0.0


@inline
def received(v: Any, begins: Any, ends: Any, sources: Any, weights: Any, shares: Any) -> Any:
    """The sum of what comes to v along its in-edges."""
    total = 0.0
    if weights.size:
        for e in range(begins[v], ends[v]):
            total += shares[int64(sources[e])] * weights[e]
        return total
    e, stop, ahead, slots = uint64(begins[v]), uint64(ends[v]), uint64(AHEAD), uint64(sources.size)
    while e + uint64(4) <= stop:  # four by four, as in `sweeps.py`
        if e + ahead + uint64(4) <= slots:  # also into the next lists, and into gaps
            for k in range(4):
                prefetch(shares, int64(sources[e + ahead + uint64(k)]))
        pair = float64(shares[int64(sources[e])]) + float64(shares[int64(sources[e + uint64(1)])])
        total += pair + (
            float64(shares[int64(sources[e + uint64(2)])]) + float64(shares[int64(sources[e + uint64(3)])])
        )
        e += uint64(4)
    for k in range(e, stop):
        total += shares[int64(sources[k])]
    return total


@quick_kernel
def sweep_values(
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    sources: Any,
    weights: Any,
    own: Any,
    values: Any,
    divisors: Any,
    shares: Any,
    factor: Any,
    absorber: Any,
) -> Any:
    """Set the values of first:last, one after the other, to what they should be by their in-neighbours; returns the sum
    of all changes.

    `own` is what a vertex has without any edge. Lists are those of the in-edges.
    """
    change = 0.0
    for v in range(first, last):
        value = own[v]
        if v != absorber:
            value += factor * received(v, begins, ends, sources, weights, shares)
        change += abs(value - values[v])
        values[v] = value
        shares[v] = value / divisors[v] if divisors[v] > 0 else 0.0
    return change


@quick_kernel
def measure_residuals(
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    sources: Any,
    weights: Any,
    own: Any,
    values: Any,
    shares: Any,
    residual: Any,
    factor: Any,
    absorber: Any,
) -> None:
    """Set the residuals of first:last to what their values lack."""
    for v in range(first, last):
        value = own[v]
        if v != absorber:
            value += factor * received(v, begins, ends, sources, weights, shares)
        residual[v] = value - values[v]


@quick_kernel
def send_shares(
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    sources: Any,
    weights: Any,
    residual: Any,
    shares: Any,
    factor: Any,
    absorber: Any,
) -> None:
    """Add to the residuals of first:last what comes to them along their in-edges."""
    for v in range(first, last):
        if v != absorber:
            residual[v] += factor * received(v, begins, ends, sources, weights, shares)


@kernel
def score_sums(first: Any, last: Any, values: Any, residual: Any) -> Any:
    """The sums of values, of residuals and of |residual|."""
    total = surplus = left = 0.0
    for v in range(first, last):
        total += values[v]
        surplus += residual[v]
        left += abs(residual[v])
    return total, surplus, left


@kernel
def stuck_sums(first: Any, last: Any, values: Any, divisors: Any) -> Any:
    """The sums of all values and of those at vertices that send nothing."""
    total = stuck = 0.0
    for v in range(first, last):
        total += values[v]
        if divisors[v] <= 0:
            stuck += values[v]
    return total, stuck


@kernel
def distance_from(first: Any, last: Any, residual: Any, level: Any) -> Any:
    """The sum of |residual - level|."""
    total = 0.0
    for v in range(first, last):
        total += abs(residual[v] - level)
    return total
