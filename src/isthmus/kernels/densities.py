"""Choosing the vertices that have the most of some amount per edge, without sorting: by powers of two."""

from __future__ import annotations

import math
from typing import Any

from numba import int64

from isthmus.kernels.compile import kernel, quick_kernel

LOWEST, BINS = -1100, 2200  # binary exponents of all numbers of float64, and more


@quick_kernel
def sort_by_density(first: Any, last: Any, amounts: Any, begins: Any, ends: Any, totals: Any, edges: Any, vertices: Any) -> None:
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
def take_rows(rows: Any, first: Any, last: Any, values: Any, residual: Any, divisors: Any, strengths: Any, shares: Any) -> Any:
    """As `score_sweeps.take_residuals`, of these vertices. Returns the sums of |value| and of |change of what is sent|."""
    total = sent = 0.0
    for i in range(first, last):
        u = int64(rows[i])
        before, strength = values[u], strengths[u]
        after = before + residual[u]
        residual[u] -= after - before
        more = after / strength if strength > 0 else 0.0
        if divisors[u] > 0:
            more -= before / divisors[u]
        values[u], divisors[u], shares[u] = after, strength, more
        total += abs(after)
        sent += abs(more) * strength
    return total, sent
