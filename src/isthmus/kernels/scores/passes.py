"""Passes over in-edges: one loop renews scores in place, near or far, for PageRank and for every score that spreads.

All scores here solve x = b + A'x, where each step along edges preserves at most a factor d < 1 of the sum of |x|. A
pass reads each in-edge (u, v) once, adds up the shares of u (what u sends along an edge of weight 1), and then does one
of four things with the total at v:

- *sweep* (`sweep_*`, PageRank): set the share of v, over-relaxed, visible to the vertices after it (Gauss-Seidel). It
  keeps no proof: the order of threads, stale shares and single precision only change how fast it converges.
- *renew*: set the value of v to b + the total, and its share: a sweep without over-relaxation.
- *collect*: add the total to the residual of v, and change no share. The sum of |residual| then bounds the error.
- *step* (`step`, or `receive` where a program's own loops have added up the shares): compute Gx from unchanged shares
  in double precision, and measure |Gx - x|. Then |Gx - x*| <= d / (1 - d) |Gx - x|, since G shrinks distances by d.

A vertex is finished where its list is whole. Lists that arrive in parts, or that threads share, are added up in
`partial`, and the vertex is marked; `sweep_rest` finishes it after all others. Near edges are a delivery of one piece:
`marks` is None, all lists are whole, and vertices with empty lists are finished in the same loop.

`sweep_range` and `sweep_rows` replace a program's `push_range` and `push_rows` (`kernels/loops/skeleton.py`). The state
is (partial, shares). The parameters are (ranked, scored, sums, group, exact); one of the first two is None:

- `ranked`, for PageRank: (divisors, teleports, base, alpha, over). A vertex without edges has its whole rank as its
  share, so all ranks follow from the shares. `divisors` is None if they are the lengths of the lists. `teleports` is
  None if all vertices teleport equally; then every vertex gets `base`, else `base` times its teleport.
- `scored`, for scores that spread: (divisors, own, values, factor, absorber, renews). `own` is b, by vertex, or one
  entry for all; the absorber receives nothing; `renews` is False to collect.
- A pass adds to `sums`: the scores, the scores at vertices that send nothing, and the changes.
- Four shares at a time are summed in the precision of the array `group`, and lists in that of `exact`.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64

from isthmus.kernels.compile.atomics import atomic_add, prefetch
from isthmus.kernels.compile.kernel import edge_loop, inline, kernel, quick_kernel

AHEAD = 64  # edges to prefetch ahead: saves a fifth of the time on Kronecker 22, a third on 24; the best of 16 to 128


@inline
def divisor(divisors: Any, list_begins: Any, list_ends: Any, v: Any) -> Any:
    return float64(list_ends[v] - list_begins[v] if divisors is None else divisors[v])


@inline
def gift(teleports: Any, base: Any, v: Any) -> Any:
    return base if teleports is None else base * teleports[v]


@kernel
def share_out(first: Any, last: Any, list_begins: Any, list_ends: Any, divisors: Any, ranks: Any, shares: Any) -> Any:
    """Turn ranks into shares, which may round them, and set the ranks to zero.

    Returns the sum of the ranks after rounding, and the part of it at vertices without edges.
    """
    mass = stuck = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        size = d if d > 0 else 1.0
        shares[v] = ranks[v] / size
        ranks[v] = 0.0
        rank = float64(shares[v]) * size
        mass += rank
        if d <= 0:
            stuck += rank
    return mass, stuck


@kernel
def receive(
    first: Any, last: Any, list_begins: Any, list_ends: Any, ranked: Any, scale: Any, shares: Any, ranks: Any
) -> Any:
    """Turn sums of shares into ranks, times `scale`; returns their L1 distance from the ranks behind the shares."""
    divisors, teleports, base, alpha, _ = ranked
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        before = float64(shares[v]) * (d if d > 0 else 1.0)
        rank = alpha * ranks[v] + gift(teleports, base, v)
        ranks[v] = scale * rank
        change += abs(rank - before)
    return scale * change


@edge_loop
def arriving(
    begin: Any,
    end: Any,
    weight_begin: Any,
    all_edges: Any,
    sources: Any,
    weights: Any,
    shares: Any,
    group: Any,
    exact: Any,
) -> Any:
    """The sum of the shares that arrive along edges begin:end of a delivery of `all_edges`.

    Groups of four are summed in the precision of the array `group`, and all of them in that of `exact`.
    """
    real, whole = group.dtype.type, exact.dtype.type
    total = whole(0)
    if weights.size:
        for k in range(end - begin):
            total += whole(shares[int64(sources[begin + k])]) * whole(weights[weight_begin + k])
        return total
    # Unsigned: no check for negative indices.
    e, stop, ahead, four, limit = uint64(begin), uint64(end), uint64(AHEAD), uint64(4), uint64(all_edges)
    while e + four <= stop:  # four by four: a tenth faster, and sums over many edges round less
        if e + ahead + four <= limit:  # also into the next lists, and into gaps
            for k in range(4):
                prefetch(shares, int64(sources[e + ahead + uint64(k)]))
        pair = real(shares[int64(sources[e])]) + real(shares[int64(sources[e + uint64(1)])])
        total += whole(
            pair + (real(shares[int64(sources[e + uint64(2)])]) + real(shares[int64(sources[e + uint64(3)])]))
        )
        e += four
    for k in range(e, stop):
        total += whole(shares[int64(sources[k])])
    return total


@inline
def aim(v: Any, list_begins: Any, list_ends: Any, shares: Any, ranked: Any) -> Any:
    """What the new share of v takes beside the sum over its in-edges, computed before that sum, as another vertex may
    wait for it: (divisor, rank before, constant part of the new share, factor of the sum). Only PageRank needs it.
    """
    real = shares.dtype.type
    if ranked is None:
        return 0.0, 0.0, real(0), real(0)
    divisors, teleports, base, alpha, over = ranked
    d = divisor(divisors, list_begins, list_ends, v)
    size = d if d > 0 else 1.0
    before = float64(shares[v]) * size
    smaller = real(1) / real(size)
    own = (real(over * gift(teleports, base, v)) + real(1 - over) * real(before)) * smaller
    return d, before, own, real(over * alpha) * smaller


@inline
def finish(v: Any, goal: Any, total: Any, partial: Any, shares: Any, ranked: Any, scored: Any) -> Any:
    """Set the score of v by what arrives, visible to other vertices at once; returns (score, the same if v sends
    nothing, else 0; change).
    """
    if ranked is None:
        return finish_score(v, total, partial, shares, scored)
    d, before, own, slope = goal
    share = max(own + slope * total, shares.dtype.type(0))
    shares[v] = share
    rank = float64(share) * (d if d > 0 else 1.0)
    return rank, rank if d <= 0 else 0.0, abs(rank - before)


@inline
def finish_score(v: Any, total: Any, partial: Any, shares: Any, scored: Any) -> Any:
    """As `finish`, for scores that spread: renew the value, or add what arrives to the residual in `partial`."""
    if scored is None:
        return 0.0, 0.0, 0.0
    divisors, own, values, factor, absorber, renews = scored
    more = factor * total if v != absorber else 0.0
    if not renews:
        partial[v] += more
        return 0.0, 0.0, 0.0
    value = own[v if own.size > 1 else 0] + more
    change = abs(value - values[v])
    values[v] = value
    shares[v] = value / divisors[v] if divisors[v] > 0 else 0.0
    return value, 0.0 if divisors[v] > 0 else value, change


@inline
def postpone(v: Any, total: Any, partial: Any, marks: Any, scored: Any) -> None:
    """Add up a part of a list, and mark the vertex, which is finished after all others. A residual needs no mark."""
    if scored is not None:
        _, _, _, factor, absorber, renews = scored
        if not renews:
            if v != absorber:
                atomic_add(partial, v, factor * total)
            return
    atomic_add(partial, v, float64(total))
    if marks is not None:
        marks[v] = 1


@inline
def add_up(sums: Any, mass: Any, stuck: Any, change: Any) -> None:
    atomic_add(sums, 0, mass)
    atomic_add(sums, 1, stuck)
    atomic_add(sums, 2, change)


@quick_kernel
def sweep_range(
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
    targets: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """Finish the vertices first:last whose lists are whole in edges begin:end, and add up the parts of others."""
    (partial, shares), (ranked, scored, sums, group, exact) = state, params
    all_edges = max(end - base, 0)
    mass = stuck = change = 0.0
    for v in range(first, last):
        low, high = max(list_begins[v], begin), min(list_ends[v], end)
        if (low >= high and marks is not None) or (not all_active and active[v] == 0):
            continue
        goal = aim(v, list_begins, list_ends, shares, ranked)
        at, stop = low - base, max(high, low) - base
        total = arriving(at, stop, low - weight_base, all_edges, targets, weights, shares, group, exact)
        if high - low == list_ends[v] - list_begins[v]:
            found = finish(v, goal, total, partial, shares, ranked, scored)
            mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
        else:
            postpone(v, total, partial, marks, scored)
    add_up(sums, mass, stuck, change)
    return used


@quick_kernel
def sweep_rows(
    vertices: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    row: Any,
    skip: Any,
    edges: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    state: Any,
    before: Any,
    params: Any,
    marks: Any,
    queue: Any,
    used: Any,
) -> Any:
    """As `sweep_range`, for lists anywhere in a delivery."""
    (partial, shares), (ranked, scored, sums, group, exact) = state, params
    mass = stuck = change = 0.0
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count > 0:
            v, at = int64(vertices[row]), begins[row] + skip
            goal = aim(v, list_begins, list_ends, shares, ranked)
            stop, weight_at = at + count, weight_begins[row] + skip
            total = arriving(at, stop, weight_at, stop, targets, weights, shares, group, exact)
            if count == list_ends[v] - list_begins[v]:
                found = finish(v, goal, total, partial, shares, ranked, scored)
                mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
            else:
                postpone(v, total, partial, marks, scored)
        edges -= count
        row += 1
        skip = 0
    add_up(sums, mass, stuck, change)
    return used


@quick_kernel
def sweep_rest(
    first: Any, last: Any, list_begins: Any, list_ends: Any, lacking: Any, state: Any, params: Any, marks: Any
) -> Any:
    """Finish the vertices of first:last whose list is empty or came in parts, and clear their sums and marks.

    `lacking` says whether there may be empty lists; returns how many there are.
    """
    (partial, shares), (ranked, scored, sums, _, exact) = state, params
    mass = stuck = change = 0.0
    lack = 0
    for v in range(first, last):
        if marks[v] or (lacking and list_begins[v] == list_ends[v]):
            lack += marks[v] == 0
            goal = aim(v, list_begins, list_ends, shares, ranked)
            found = finish(v, goal, exact.dtype.type(partial[v]), partial, shares, ranked, scored)
            mass, stuck, change = mass + found[0], stuck + found[1], change + found[2]
            partial[v] = 0.0
            marks[v] = 0
    add_up(sums, mass, stuck, change)
    return lack


@quick_kernel
def step(
    first: Any,
    last: Any,
    list_begins: Any,
    list_ends: Any,
    targets: Any,
    weights: Any,
    ranked: Any,
    scale: Any,
    shares: Any,
    ranks: Any,
) -> Any:
    """Ranks of first:last, times `scale`, from unchanged shares; returns their L1 distance from the ranks behind the
    shares.
    """
    divisors, teleports, base, alpha, _ = ranked
    all_edges = list_ends[last - 1]  # first:last is never empty
    change = 0.0
    for v in range(first, last):
        d = divisor(divisors, list_begins, list_ends, v)
        before = float64(shares[v]) * (d if d > 0 else 1.0)
        at = list_begins[v]
        total = arriving(at, list_ends[v], at, all_edges, targets, weights, shares, ranks, ranks)
        rank = alpha * total + gift(teleports, base, v)
        ranks[v] = scale * rank
        change += abs(rank - before)
    return scale * change


@kernel
def even_cuts(list_begins: Any, slots: Any, cuts: Any) -> Any:
    """Fill `cuts` with vertices that divide all vertices and slots into even parts."""
    n, last = list_begins.size, cuts.size - 1
    whole = slots + n
    for k in range(cuts.size):
        goal = whole * k // max(last, 1)
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            if list_begins[middle] + middle < goal:
                low = middle + 1
            else:
                high = middle
        cuts[k] = low
