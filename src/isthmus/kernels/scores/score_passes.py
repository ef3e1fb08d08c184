"""Passes over all in-edges that bring scores up to date, for lists that arrive in deliveries: values are renewed in
place, or what comes to a vertex is added to its residual.

These loops take the place of a program's `push_rows` and `push_range` (`kernels/loops/skeleton.py`). The state is
(values, residuals, shares, divisors); a share is what a vertex sends along an edge of weight 1, without the factor. The
parameters are (factor, absorber, own, sums). `own` is what a vertex has without any edge, by vertex, or once for all of
them. `score_sweeps.py` has the same passes for lists that are all near.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64

from isthmus.kernels.compile.atomics import atomic_add, prefetch
from isthmus.kernels.compile.kernel import inline, quick_kernel

AHEAD = 64  # entries to prefetch ahead, as in `sweeps.py`


@inline
def arriving(
    begin: Any, end: Any, weight_begin: Any, all_edges: Any, sources: Any, weights: Any, shares: Any, exact: Any
) -> Any:
    """The sum of what comes along edges begin:end of a delivery that has `all_edges`. Groups of four are summed as
    precisely as `exact`.
    """
    real, total = exact.dtype.type, 0.0
    if weights.size:
        for k in range(end - begin):
            total += float64(shares[int64(sources[begin + k])]) * weights[weight_begin + k]
        return total
    e, stop, ahead, four, limit = uint64(begin), uint64(end), uint64(AHEAD), uint64(4), uint64(all_edges)
    while e + four <= stop:  # four by four, as in `sweeps.py`
        if e + ahead + four <= limit:
            for k in range(4):
                prefetch(shares, int64(sources[e + ahead + uint64(k)]))
        pair = real(shares[int64(sources[e])]) + real(shares[int64(sources[e + uint64(1)])])
        total += float64(
            pair + (real(shares[int64(sources[e + uint64(2)])]) + real(shares[int64(sources[e + uint64(3)])]))
        )
        e += four
    for k in range(e, stop):
        total += float64(shares[int64(sources[k])])
    return total


@inline
def renewed(v: Any, total: Any, state: Any, params: Any) -> Any:
    """Set the value of v by what comes to it, and its share, which others see at once; returns by how much the value
    has changed.
    """
    values, _, shares, divisors = state
    factor, absorber, own, _ = params
    value = own[v if own.size > 1 else 0]
    if v != absorber:
        value += factor * total
    change = abs(value - values[v])
    values[v] = value
    shares[v] = value / divisors[v] if divisors[v] > 0 else 0.0
    return change


@quick_kernel
def renew_range(
    first: Any,
    last: Any,
    begin: Any,
    end: Any,
    base: Any,
    weight_base: Any,
    active: Any,
    all_active: Any,
    list_begins: Any,
    list_ends: Any,
    sources: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """Renew the values of first:last. A list that is not whole here is summed up in the residuals, and its vertex is
    marked.
    """
    residual, shares, change = state[1], state[2], 0.0
    for v in range(first, last):
        low, high = max(list_begins[v], begin), min(list_ends[v], end)
        if low >= high or (not all_active and active[v] == 0):
            continue
        total = arriving(low - base, high - base, low - weight_base, end - base, sources, weights, shares, shares)
        if high - low == list_ends[v] - list_begins[v]:
            change += renewed(v, total, state, params)
        else:
            atomic_add(residual, v, total)
            marks[v] = 1
    atomic_add(params[3], 0, change)
    return used


@quick_kernel
def renew_rows(
    vertices: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    row: Any,
    skip: Any,
    edges: Any,
    list_begins: Any,
    list_ends: Any,
    sources: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """As `renew_range`, for lists anywhere in a delivery."""
    residual, shares, change = state[1], state[2], 0.0
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count > 0:
            v, at = int64(vertices[row]), begins[row] + skip
            total = arriving(at, at + count, weight_begins[row] + skip, at + count, sources, weights, shares, shares)
            if count == list_ends[v] - list_begins[v]:
                change += renewed(v, total, state, params)
            else:
                atomic_add(residual, v, total)
                marks[v] = 1
        edges -= count
        row += 1
        skip = 0
    atomic_add(params[3], 0, change)
    return used


@quick_kernel
def renew_rest(first: Any, last: Any, list_begins: Any, list_ends: Any, state: Any, params: Any, marks: Any) -> None:
    """Renew the values of vertices of first:last whose lists came in parts or are empty, and clear their sums and
    marks.
    """
    residual, change = state[1], 0.0
    for v in range(first, last):
        if marks[v] or list_begins[v] == list_ends[v]:
            change += renewed(v, residual[v], state, params)
            residual[v] = 0.0
            marks[v] = 0
    atomic_add(params[3], 0, change)


@quick_kernel
def collect_range(
    first: Any,
    last: Any,
    begin: Any,
    end: Any,
    base: Any,
    weight_base: Any,
    active: Any,
    all_active: Any,
    list_begins: Any,
    list_ends: Any,
    sources: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """Add to the residuals of first:last what comes to them, summed in double precision."""
    _, residual, shares, _ = state
    factor, absorber = params[0], params[1]
    for v in range(first, last):
        low, high = max(list_begins[v], begin), min(list_ends[v], end)
        if low >= high or v == absorber or (not all_active and active[v] == 0):
            continue
        more = factor * arriving(
            low - base, high - base, low - weight_base, end - base, sources, weights, shares, residual
        )
        if high - low == list_ends[v] - list_begins[v]:
            residual[v] += more
        else:
            atomic_add(residual, v, more)
    return used


@quick_kernel
def collect_rows(
    vertices: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    row: Any,
    skip: Any,
    edges: Any,
    list_begins: Any,
    list_ends: Any,
    sources: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """As `collect_range`, for lists anywhere in a delivery."""
    _, residual, shares, _ = state
    factor, absorber = params[0], params[1]
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        v, at = int64(vertices[row]), begins[row] + skip
        if count > 0 and v != absorber:
            total = arriving(at, at + count, weight_begins[row] + skip, at + count, sources, weights, shares, residual)
            atomic_add(residual, v, factor * total)
        edges -= count
        row += 1
        skip = 0
    return used


@quick_kernel
def lacks(first: Any, last: Any, values: Any, residual: Any, own: Any) -> None:
    """Set the residuals of first:last to what their values would lack if nothing came to them."""
    for v in range(first, last):
        residual[v] = own[v if own.size > 1 else 0] - values[v]
