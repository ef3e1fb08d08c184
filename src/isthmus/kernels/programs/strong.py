"""Passes over vertices between the phases of strongly connected components.

A vertex without a component (`NONE`) is called remaining. Colours are vertex numbers plus one; 0 is no colour.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel

NONE = 2**32 - 1


@kernel
def list_ends(first: Any, last: Any, degrees: Any, components: Any, colors: Any, taken: Any, out: Any) -> Any:
    """List the remaining vertices without remaining edges; with `taken`, also vertices with a component and a
    colour.
    """
    count = 0
    for v in range(first, last):
        there = components[v] == NONE
        if (there and degrees[v] == 0) or (taken and not there and colors[v] != 0):
            out[count] = v
            count += 1
    return count


@kernel
def list_own_colors(first: Any, last: Any, components: Any, colors: Any, out: Any) -> Any:
    """Give every remaining vertex its own colour and list it; returns how many there are."""
    count = 0
    for v in range(first, last):
        if components[v] == NONE:
            colors[v] = v + 1
            out[count] = v
            count += 1
    return count


@kernel
def list_roots(first: Any, last: Any, components: Any, colors: Any, out: Any) -> Any:
    """List the vertices that kept their own colour; each is the root of its component."""
    count = 0
    for v in range(first, last):
        if components[v] == NONE and colors[v] == v + 1:
            components[v] = v
            out[count] = v
            count += 1
    return count


@kernel
def busiest(first: Any, last: Any, arriving: Any, leaving: Any, components: Any) -> Any:
    """(the remaining vertex with the largest in-degree x out-degree, that product); (-1, -1) if none remains."""
    best, most = int64(-1), -1.0
    for v in range(first, last):
        if components[v] == NONE and float(arriving[v]) * float(leaving[v]) > most:
            best, most = int64(v), float(arriving[v]) * float(leaving[v])
    return best, most


@kernel
def surplus(first: Any, last: Any, arriving: Any, leaving: Any, components: Any) -> Any:
    """In-degrees minus out-degrees of the remaining vertices."""
    total = int64(0)
    for v in range(first, last):
        if components[v] == NONE:
            total += int64(arriving[v]) - int64(leaving[v])
    return total


@inline
def settle(v: Any, components: Any, colors: Any) -> Any:
    if components[v] == NONE:
        components[v] = v
    colors[v] = 0


@kernel
def settle_rows(rows: Any, components: Any, colors: Any) -> Any:
    """Make each row without a component a component of its own; clear the colours of all rows."""
    for i in range(rows.size):
        settle(int64(rows[i]), components, colors)


@kernel
def settle_range(first: Any, last: Any, marks: Any, all_active: Any, components: Any, colors: Any) -> Any:
    for v in range(first, last):
        if all_active or marks[v]:
            settle(int64(v), components, colors)
