"""Vertex passes of Borůvka's algorithm between two passes over the edges: reset and hook.

`components` points every vertex at its root. A root's `best` and `picks` describe the lightest edge that leaves its
component. Those of any other vertex are final: they describe the edge by which it was hooked to another root.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint64

from isthmus.kernels.compile.kernel import inline, kernel

NO_EDGE = 2**64 - 1


@kernel
def forget(first: Any, last: Any, heaviest: Any, components: Any, best: Any, picks: Any) -> Any:
    """Reset the lightest edge of every root."""
    for v in range(first, last):
        if components[v] == v:
            best[v] = heaviest
            picks[v] = NO_EDGE


@inline
def find(components: Any, v: Any) -> Any:
    while int64(components[v]) != v:
        components[v] = components[int64(components[v])]
        v = int64(components[v])
    return v


@kernel
def hook(first: Any, last: Any, components: Any, picks: Any) -> Any:
    """Hook every root to the root at the other end of its edge, unless that root is already hooked here by the same
    edge.

    For one thread at a time, so that a root is hooked only by its own edge.
    """
    for v in range(first, last):
        if int64(components[v]) != v or picks[v] == uint64(NO_EDGE):
            continue
        a = find(components, int64(picks[v] >> uint64(32)))
        b = find(components, int64(picks[v] & uint64(0xFFFFFFFF)))
        if a != b:
            components[v] = b if a == v else a
