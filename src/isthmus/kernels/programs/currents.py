"""Vertex passes of conjugate gradients for a resistor network.

A vertex that is not solved for (held at a voltage, or without a path to such a vertex) has an infinite strength: its
residual stays 0 and its voltage never changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.kernel import kernel


@kernel
def missing(
    first: Any, last: Any, voltages: Any, sums: Any, directions: Any, residual: Any, strengths: Any, ohms: Any
) -> Any:
    """Compute each vertex's residual current from `sums`, the current that arrives, and the first search direction."""
    squares = bound = leak = 0.0
    low, high = np.inf, -np.inf
    for v in range(first, last):
        residual[v] = directions[v] = 0.0
        if strengths[v] < np.inf:
            r = sums[v] - strengths[v] * voltages[v]
            residual[v], directions[v] = r, r / strengths[v]
            squares += r * directions[v]
            bound += ohms[v] * abs(r)
            leak += abs(r)
        if ohms[v] < np.inf:
            low, high = min(low, voltages[v]), max(high, voltages[v])
        sums[v] = 0.0
    return squares, bound, leak, low, high


@kernel
def multiply(first: Any, last: Any, sums: Any, directions: Any, strengths: Any) -> Any:
    """Turn `sums` into the network's matrix times `directions`; returns the dot product of both."""
    total = 0.0
    for v in range(first, last):
        if strengths[v] < np.inf:
            sums[v] = strengths[v] * directions[v] - sums[v]
            total += directions[v] * sums[v]
        else:
            sums[v] = 0.0
    return total


@kernel
def move(
    first: Any,
    last: Any,
    step: Any,
    voltages: Any,
    sums: Any,
    directions: Any,
    residual: Any,
    strengths: Any,
    ohms: Any,
) -> Any:
    """Move the voltages by `step` along the directions; returns the same as `missing`."""
    squares = bound = leak = 0.0
    low, high = np.inf, -np.inf
    for v in range(first, last):
        if strengths[v] < np.inf:
            voltages[v] += step * directions[v]
            residual[v] -= step * sums[v]
            squares += residual[v] * (residual[v] / strengths[v])
            bound += ohms[v] * abs(residual[v])
            leak += abs(residual[v])
        if ohms[v] < np.inf:
            low, high = min(low, voltages[v]), max(high, voltages[v])
    return squares, bound, leak, low, high


@kernel
def turn(first: Any, last: Any, share: Any, sums: Any, directions: Any, residual: Any, strengths: Any) -> Any:
    """Compute the next search direction: the scaled residual plus a share of the last direction."""
    for v in range(first, last):
        directions[v] = residual[v] / strengths[v] + share * directions[v]
        sums[v] = 0.0
