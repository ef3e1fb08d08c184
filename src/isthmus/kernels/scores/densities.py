"""Choosing the vertices that have the most of some amount per edge, without sorting: by powers of two."""

from __future__ import annotations

import math
from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import kernel, quick_kernel
from isthmus.kernels.stream.ring_queue import clear, fill, following, put

LOWEST, BINS = -1100, 2200  # binary exponents of all numbers of float64, and more


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
