"""Vertex passes of Katz centrality: what vertices send, and bounds for convergence."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels.compile.kernel import kernel


@kernel
def send_scaled(first: Any, last: Any, alpha: Any, values: Any, residual: Any, sent: Any) -> Any:
    """Add every residual to its value, and set what each edge of the vertex carries, alpha * residual."""
    for u in range(first, last):
        d = residual[u]
        values[u] += d
        sent[u] = alpha * d
        residual[u] = 0.0


@kernel
def katz_bounds(first: Any, last: Any, beta: Any, values: Any, residual: Any) -> Any:
    """(largest residual / value, smallest (beta - residual) / value)."""
    share, margin = 0.0, np.inf
    for u in range(first, last):
        share = max(share, residual[u] / values[u]) if residual[u] < np.inf else np.inf
        margin = min(margin, (beta - residual[u]) / values[u])
        if share == np.inf:
            return np.inf, margin
    return share, margin
