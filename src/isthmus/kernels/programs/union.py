"""Union-find over edges that are all near, with neighbour sampling (Afforest; Sutton, Ben-Nun, Barak 2018).

Linking two neighbours of every vertex already forms the giant component, which a small sample identifies. Its vertices
are then skipped, since the other end of an edge that leaves the component also has that edge.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.atomics import atomic_cas
from isthmus.kernels.compile.kernel import inline, kernel


@inline
def link(parents: Any, u: Any, v: Any) -> Any:
    """Join the trees of u and v by hooking the larger root onto the smaller."""
    a, b = int64(parents[u]), int64(parents[v])
    while a != b:
        high, low = max(a, b), min(a, b)
        above = int64(parents[high])
        if above == low:
            return
        if (
            above == high
            and int64(atomic_cas(parents, high, parents.dtype.type(high), parents.dtype.type(low))) == high
        ):
            return
        up = parents[int64(parents[high])]
        if above != high:  # compress the path on the way up: concurrent links may have made long chains
            parents[high] = up
        a, b = int64(up), int64(parents[low])


@kernel
def link_nth(first: Any, last: Any, nth: Any, list_begins: Any, list_ends: Any, targets: Any, parents: Any) -> Any:
    """Link every vertex of first:last with its nth neighbour."""
    for u in range(first, last):
        e = list_begins[u] + nth
        if e < list_ends[u]:
            link(parents, u, int64(targets[e]))


@kernel
def link_rest(
    first: Any, last: Any, skip: Any, giant: Any, list_begins: Any, list_ends: Any, targets: Any, parents: Any
) -> Any:
    """Link every vertex outside the giant component with its neighbours from the skip-th on."""
    for u in range(first, last):
        if int64(parents[u]) == giant:
            continue
        for e in range(list_begins[u] + skip, list_ends[u]):
            link(parents, u, int64(targets[e]))
