"""Peeling for core numbers: vertices are removed by their remaining degree."""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import kernel


@kernel
def least_left(first: Any, last: Any, degrees: Any, cores: Any, most: Any) -> Any:
    """The smallest degree among the remaining vertices; `most` if there are none."""
    least = int64(most)
    for v in range(first, last):
        if cores[v] < 0:
            least = min(least, degrees[v])
    return least


@kernel
def list_left(first: Any, last: Any, degrees: Any, cores: Any, k: Any, out: Any) -> Any:
    """List the remaining vertices of first:last with a degree of at most k; returns how many."""
    count = 0
    for v in range(first, last):
        if cores[v] < 0 and degrees[v] <= k:
            out[count] = v
            count += 1
    return count


@kernel
def remove_rows(rows: Any, k: Any, cores: Any) -> Any:
    for i in range(rows.size):
        cores[int64(rows[i])] = k


@kernel
def remove_range(first: Any, last: Any, marks: Any, all_active: Any, k: Any, cores: Any) -> Any:
    for v in range(first, last):
        if all_active or marks[v]:
            cores[v] = k
