"""Vertex passes over ranks of many sources: `width` adjacent ranks per vertex."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.kernel import kernel


@kernel
def send_ranks(first: Any, last: Any, alpha: Any, width: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """Turn ranks into the share that each edge carries, alpha * rank / divisor; returns the sum at vertices without
    edges.
    """
    stuck = np.zeros(width)
    for u in range(first, last):
        at = u * width
        if divisors[u] > 0:
            scale = alpha / divisors[u]
            for s in range(width):
                shares[at + s] = scale * ranks[at + s]
        else:
            for s in range(width):
                shares[at + s] = alpha * ranks[at + s]
                stuck[s] += shares[at + s]
        for s in range(width):
            ranks[at + s] = 0.0
    return stuck


@kernel
def rank_changes(first: Any, last: Any, alpha: Any, width: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """By source, the L1 distance of the ranks from those that were sent, with Kahan summation."""
    total, lost = np.zeros(width), np.zeros(width)
    for u in range(first, last):
        at = u * width
        back = divisors[u] / alpha if divisors[u] > 0 else 1 / alpha
        for s in range(width):
            y = abs(ranks[at + s] - shares[at + s] * back) - lost[s]
            t = total[s] + y
            lost[s] = (t - total[s]) - y
            total[s] = t
    return total
