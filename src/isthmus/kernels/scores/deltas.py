"""Sums over residuals, for programs that send only residuals above a threshold."""

from __future__ import annotations

from typing import Any

from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_add, atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.stream.ring_queue import clear, fill, following, put


@kernel
def delta_sums(values: Any, residual: Any, threshold: Any, first: Any, last: Any) -> Any:
    """Sums of values and of |residual|, each with Kahan's correction, how many residuals exceed the threshold, and
    their sum.
    """
    total = left = lost_total = lost_left = surplus = 0.0
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
        surplus += residual[u]
    return total, left, above, surplus


@inline
def add(v: Any, more: Any, residual: Any, threshold: Any, marks: Any) -> None:
    """Add to a residual, and mark the vertex if it becomes active."""
    if abs(atomic_add(residual, v, more) + more) > threshold and marks[v] == 0:
        atomic_exchange(marks, v, uint8(1))


@kernel
def shift_arcs(
    tails: Any,
    heads: Any,
    amounts: Any,
    first: Any,
    last: Any,
    values: Any,
    residual: Any,
    divisors: Any,
    factor: Any,
    threshold: Any,
    absorber: Any,
    marks: Any,
) -> None:
    """Send what a vertex has sent so far along arcs whose weight has changed by `amounts` (a new one: by its
    weight).
    """
    for i in range(first, last):
        u, v = int64(tails[i]), int64(heads[i])
        if v != absorber and divisors[u] > 0:
            add(v, factor * values[u] / divisors[u] * amounts[i], residual, threshold, marks)


@kernel
def shift_lists(
    rows: Any,
    first: Any,
    last: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    strengths: Any,
    values: Any,
    residual: Any,
    divisors: Any,
    factor: Any,
    threshold: Any,
    absorber: Any,
    marks: Any,
) -> Any:
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
def spread_densest(
    starts: Any,
    density: Any,
    left: Any,
    enough: Any,
    most: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    values: Any,
    residual: Any,
    divisors: Any,
    factor: Any,
    absorber: Any,
    marks: Any,
    queue: Any,
) -> Any:
    """Follow vertices with more than `density` of |residual| per edge (plus one), in order of arrival, beginning with
    `starts`.

    `left` is the sum of all |residual|; it ends when that is `enough`, when no such vertex is left, or after about
    `most` edges. `marks` is zero, and is left so. Returns the vertices and edges followed, the sum of |value| of these
    vertices, and what is left.
    """
    head = edges = vertices = int64(0)
    used = int64(starts.size)
    total = 0.0
    fill(starts, queue, marks)
    while used > 0 and left > enough and edges < most:
        u = int64(queue[head])
        head = following(head, queue)
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
                put(v, queue, head, used, marks)
                used += 1
    clear(queue, head, used, marks)
    return vertices, edges, total, left
