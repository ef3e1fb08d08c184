"""Sums over residuals, for programs that send only residuals above a threshold."""

from __future__ import annotations

from typing import Any

from numba import int64, uint8, uint64

from isthmus.kernels.atomics import atomic_add, atomic_exchange, prefetch
from isthmus.kernels.compile import inline, kernel, quick_kernel

AHEAD = 64  # entries to prefetch ahead


@kernel
def delta_sums(values: Any, residual: Any, threshold: Any, first: Any, last: Any) -> Any:
    """Sums of values and of |residual|, each with Kahan's correction, and how many residuals exceed the threshold."""
    total = left = lost_total = lost_left = 0.0
    above = 0
    for u in range(first, last):
        y = values[u] - lost_total
        t = total + y
        lost_total = (t - total) - y
        total = t
        y = abs(residual[u]) - lost_left
        t = left + y
        lost_left = (t - left) - y
        left = t
        above += abs(residual[u]) > threshold
    return total, left, above


@inline
def add(v: Any, more: Any, residual: Any, threshold: Any, marks: Any) -> None:
    """Add to a residual, and mark the vertex if it becomes active."""
    if abs(atomic_add(residual, v, more) + more) > threshold and marks[v] == 0:
        atomic_exchange(marks, v, uint8(1))


@kernel
def shift_arcs(
    tails: Any, heads: Any, amounts: Any, first: Any, last: Any, values: Any, residual: Any, divisors: Any, factor: Any, threshold: Any,
    absorber: Any, marks: Any
) -> None:  # fmt: skip
    """Send what a vertex has sent so far along arcs whose weight has changed by `amounts` (a new one: by its weight)."""
    for i in range(first, last):
        u, v = int64(tails[i]), int64(heads[i])
        if v != absorber and divisors[u] > 0:
            add(v, factor * values[u] / divisors[u] * amounts[i], residual, threshold, marks)


@kernel
def shift_lists(
    rows: Any, first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, strengths: Any, values: Any, residual: Any,
    divisors: Any, factor: Any, threshold: Any, absorber: Any, marks: Any
) -> Any:  # fmt: skip
    """Set the divisors of these vertices to their strengths, and correct what they have sent; returns their edges."""
    edges = int64(0)
    for i in range(first, last):
        u = int64(rows[i])
        more = factor * values[u] * (1 / strengths[u] - 1 / divisors[u])
        divisors[u] = strengths[u]
        edges += ends[u] - begins[u]
        for e in range(begins[u], ends[u]):
            v = int64(targets[e])
            if v != absorber:
                add(v, more * weights[e] if weights.size else more, residual, threshold, marks)
    return edges


@kernel
def send_values(
    first: Any, last: Any, begins: Any, ends: Any, targets: Any, weights: Any, values: Any, residual: Any, divisors: Any, factor: Any,
    absorber: Any,
) -> None:  # fmt: skip
    """Add to the residuals all that the vertices first:last have sent so far."""
    for u in range(first, last):
        if divisors[u] > 0 and values[u] != 0:
            more = factor * values[u] / divisors[u]
            for e in range(begins[u], ends[u]):
                v = int64(targets[e])
                if v != absorber:
                    atomic_add(residual, v, more * weights[e] if weights.size else more)


@kernel
def spread_densest(
    starts: Any, density: Any, left: Any, enough: Any, most: Any, begins: Any, ends: Any, targets: Any, weights: Any, values: Any,
    residual: Any, divisors: Any, factor: Any, absorber: Any, marks: Any, queue: Any,
) -> Any:  # fmt: skip
    """Follow vertices with more than `density` of |residual| per edge (plus one), in order of arrival, beginning with `starts`.

    `left` is the sum of all |residual|; it ends when that is `enough`, when no such vertex is left, or after about `most` edges. `marks` is
    zero, and is left so. Returns the vertices and edges followed, the sum of |value| of these vertices, and what is left.
    """
    head = edges = vertices = int64(0)
    used = int64(starts.size)
    total = 0.0
    for i in range(used):
        queue[i] = starts[i]
        marks[int64(starts[i])] = 1
    while used > 0 and left > enough and edges < most:
        u = int64(queue[head])
        head = head + 1 if head + 1 < queue.size else 0
        used -= 1
        marks[u] = 0
        delta = residual[u]
        residual[u] = 0.0
        values[u] += delta
        left -= abs(delta)
        total += abs(values[u])
        vertices += 1
        edges += ends[u] - begins[u]
        if divisors[u] <= 0:
            continue
        x = factor * delta / divisors[u]
        for e in range(begins[u], ends[u]):
            v = int64(targets[e])
            if v == absorber:
                continue
            before = residual[v]
            after = before + (x * weights[e] if weights.size else x)
            residual[v] = after
            left += abs(after) - abs(before)
            if marks[v] == 0 and abs(after) > density * (ends[v] - begins[v] + 1):
                marks[v] = 1
                at = head + used
                queue[at if at < queue.size else at - queue.size] = v
                used += 1
    for _ in range(used):
        marks[int64(queue[head])] = 0
        head = head + 1 if head + 1 < queue.size else 0
    return vertices, edges, total, left


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
        pair = shares[int64(sources[e])] + shares[int64(sources[e + uint64(1)])]
        total += pair + (shares[int64(sources[e + uint64(2)])] + shares[int64(sources[e + uint64(3)])])
        e += uint64(4)
    for k in range(e, stop):
        total += shares[int64(sources[k])]
    return total


@quick_kernel
def sweep_values(
    first: Any, last: Any, begins: Any, ends: Any, sources: Any, weights: Any, own: Any, values: Any, divisors: Any, shares: Any,
    factor: Any, absorber: Any
) -> Any:  # fmt: skip
    """Set the values of first:last, one after the other, to what they should be by their in-neighbours; returns the sum of all changes.

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
    first: Any, last: Any, begins: Any, ends: Any, sources: Any, weights: Any, own: Any, values: Any, shares: Any, residual: Any,
    factor: Any, absorber: Any
) -> Any:  # fmt: skip
    """Set the residuals of first:last to what their values lack; returns the sum of their sizes."""
    left = 0.0
    for v in range(first, last):
        value = own[v]
        if v != absorber:
            value += factor * received(v, begins, ends, sources, weights, shares)
        residual[v] = value - values[v]
        left += abs(residual[v])
    return left
