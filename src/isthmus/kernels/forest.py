"""Borůvka's rounds between two passes over the edges: forgetting, hooking, counting what was chosen.

`components` points every vertex at its root. A root's `best` and `picks` are the lightest edge that leaves its
component; those of any other vertex are the edge by which it stopped being a root, and final.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint64

from isthmus.kernels.compile import inline, kernel

NO_EDGE = 2**64 - 1


@kernel
def forget(first: Any, last: Any, heaviest: Any, components: Any, best: Any, picks: Any) -> Any:
    """Roots have seen no edge yet."""
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
    """Hang every root under the root at the other end of its edge, unless that one already hangs here by the same edge.

    For one thread at a time: a root can then only stop being one by its own edge.
    """
    for v in range(first, last):
        if int64(components[v]) != v or picks[v] == uint64(NO_EDGE):
            continue
        a = find(components, int64(picks[v] >> uint64(32)))
        b = find(components, int64(picks[v] & uint64(0xFFFFFFFF)))
        if a != b:
            components[v] = b if a == v else a
