"""Loops over residuals: sums for the bound on the error, corrections along edges, and vertices that send first.

The sum of |residual| bounds the error of scores (`programs/scores/deltas.py`). A vertex that sends its residual removes
at least (1 - factor) of it from that sum, at the cost of its edges. So the vertices with most residual per edge (plus
one), the *densest*, shrink the bound most for the edges that are read. They are chosen without sorting, by powers of
two.

`own` is what a vertex has without any edge, by vertex, or one entry for all. A share is what a vertex sends along an
edge of weight 1, without the factor.
"""

from __future__ import annotations

import math
from typing import Any

from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_add, atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel, quick_kernel
from isthmus.kernels.stream.ring_queue import clear, fill, following, put

LOWEST, BINS = -1100, 2200  # binary exponents of all numbers of float64, and more


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
def distance_from(first: Any, last: Any, residual: Any, level: Any) -> Any:
    """The sum of |residual - level|."""
    total = 0.0
    for v in range(first, last):
        total += abs(residual[v] - level)
    return total


@quick_kernel
def lacks(first: Any, last: Any, values: Any, residual: Any, own: Any) -> None:
    """Set the residuals of first:last to what their values would lack if nothing came to them."""
    for v in range(first, last):
        residual[v] = own[v if own.size > 1 else 0] - values[v]


@quick_kernel
def sort_by_density(
    first: Any, last: Any, amounts: Any, begins: Any, ends: Any, totals: Any, edges: Any, vertices: Any
) -> None:
    """Add the amounts, the edges and the number of lists of first:last to the bins of their densities.

    The density is the amount per edge (plus one); bin b has densities from 2 ** (LOWEST + b - 1) on, below twice that.
    """
    for v in range(first, last):
        if amounts[v] > 0:
            length = ends[v] - begins[v]
            _, exponent = math.frexp(amounts[v] / (length + 1))
            b = min(max(int64(exponent) - LOWEST, 0), BINS - 1)
            totals[b] += amounts[v]
            edges[b] += length
            vertices[b] += length > 0


@kernel
def mark_dense(first: Any, last: Any, amounts: Any, begins: Any, ends: Any, density: Any, marks: Any) -> None:
    """Mark the vertices of first:last with at least so much per edge (plus one)."""
    for v in range(first, last):
        if amounts[v] > 0 and amounts[v] / (ends[v] - begins[v] + 1) >= density:
            marks[v] = 1


@kernel
def spread_held(
    starts: Any,
    density: Any,
    most: Any,
    list_begins: Any,
    list_ends: Any,
    begins: Any,
    ends: Any,
    targets: Any,
    weights: Any,
    values: Any,
    residual: Any,
    divisors: Any,
    strengths: Any,
    factor: Any,
    absorber: Any,
    marks: Any,
    queue: Any,
) -> Any:
    """Let vertices whose lists are held send their residuals, with their strengths as divisors: `starts`, in order, and
    then all that come to at least `density` of |residual| per edge (plus one).

    A list begins:ends is held if it is as long as the whole list, list_begins:list_ends. It ends when no such vertex is
    left, or after about `most` edges. `marks` is zero, and is left so. Returns the vertices and edges followed, and the
    sum of |value| of these vertices.
    """
    head = edges = vertices = int64(0)
    used = int64(starts.size)
    total = 0.0
    fill(starts, queue, marks)
    while used > 0 and (edges < most or vertices < starts.size):
        u = int64(queue[head])
        head = following(head, queue)
        used -= 1
        marks[u] = 0
        delta, before = residual[u], values[u]
        residual[u] = 0.0
        values[u] = before + delta
        total += abs(values[u])
        vertices += 1
        edges += ends[u] - begins[u]
        x = 0.0
        if divisors[u] == strengths[u]:
            x = factor * delta / strengths[u] if strengths[u] > 0 else 0.0
        else:
            x = factor * values[u] / strengths[u] if strengths[u] > 0 else 0.0
            x -= factor * before / divisors[u] if divisors[u] > 0 else 0.0
            divisors[u] = strengths[u]
        for e in range(begins[u], ends[u]):
            v = int64(targets[e])
            if v == absorber:
                continue
            residual[v] += x * weights[e] if weights.size else x
            length = list_ends[v] - list_begins[v]
            if marks[v] == 0 and ends[v] - begins[v] == length and abs(residual[v]) >= density * (length + 1):
                put(v, queue, head, used, marks)
                used += 1
    clear(queue, head, used, marks)
    return vertices, edges, total
