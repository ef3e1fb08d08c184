"""Sums over residuals, for programs that send only residuals above a threshold."""

from __future__ import annotations

from typing import Any

from isthmus.kernels.compile import kernel


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
