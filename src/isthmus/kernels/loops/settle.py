"""Settling: processing a range of vertices until none is active, while their edges are near. Compiled with each
program.

All marked vertices of first:last are followed, including those that get marked meanwhile. Two piles order them
(near-far, Davidson et al. 2014): vertices with a value within `delta` of the most urgent one go first, in order of
arrival.

A mark is cleared with an atomic exchange before the value is read. With a plain store, the read could happen first, and
an improvement by another thread in between would be lost.
"""

from __future__ import annotations

SETTLE = '''

@compiled
def settle(
    first, last, starts, base, weight_base, most, sign, delta, list_begins, list_ends, targets, weights, state, params,
    marks, piles, soon,
    later, outer, used
):
    """Follow at most about `most` edges; newly marked vertices outside first:last go to `outer`.

    `starts` are the marked vertices; empty: they are looked for.
    `piles` is zero for each vertex; `soon` has room for all vertices, `later` for twice as many. Returns
    (entries needed in `outer`, vertices followed, edges followed); vertices that were not followed stay marked.
    """
    values = state[0]
    room = soon.size
    head = tail = waiting = put_off = vertices = edges = np.int64(0)
    bound = np.float64(-np.inf)
    if starts.size:
        for i in range(starts.size):
            later[i] = starts[i]
            piles[np.int64(starts[i]) - first] = 2
        put_off = np.int64(starts.size)
    else:
        for u in range(first, last):
            if marks[u]:
                later[put_off] = u
                put_off += 1
                piles[u - first] = 2
    while edges < most:
        if waiting == 0:
            # Take the most urgent vertices of `later`; entries of vertices that moved to `soon` meanwhile are stale.
            least = np.float64(np.inf)
            kept = np.int64(0)
            for i in range(put_off):
                u = np.int64(later[i])
                if piles[u - first] == 2:
                    piles[u - first] = 3
                    later[kept] = u
                    kept += 1
                    least = min(least, np.float64(values[u] * sign))
            if kept == 0:
                break
            bound = least + delta
            if not bound >= least:  # -inf + inf is NaN, and then no vertex would be urgent
                bound = np.float64(np.inf)
            put_off = np.int64(0)
            for i in range(kept):
                u = np.int64(later[i])
                if np.float64(values[u] * sign) <= bound:
                    piles[u - first] = 1
                    soon[tail] = u
                    tail = tail + 1 if tail + 1 < room else 0
                    waiting += 1
                else:
                    piles[u - first] = 2
                    later[put_off] = u
                    put_off += 1
        u = np.int64(soon[head])
        head = head + 1 if head + 1 < room else 0
        waiting -= 1
        piles[u - first] = 0
        atomic_exchange(marks, u, np.uint8(0))
        x = source(u, list_ends[u] - list_begins[u], state, params)
        vertices += 1
        edges += list_ends[u] - list_begins[u]
        for e in range(list_begins[u], list_ends[u]):
            v = np.int64(targets[e - base])
            if not edge(x, u, v, {weight_of_range}, state, params):
                continue
            if v < first or v >= last:
                if marks[v] == 0 and atomic_exchange(marks, v, np.uint8(1)) == 0:
                    if used < outer.size:
                        outer[used] = v
                    used += 1
                continue
            pile = piles[v - first]
            if pile == 1:
                continue
            if pile == 0:
                atomic_exchange(marks, v, np.uint8(1))
            if np.float64(values[v] * sign) <= bound:
                piles[v - first] = 1
                soon[tail] = v
                tail = tail + 1 if tail + 1 < room else 0
                waiting += 1
            elif pile == 0:
                if put_off == later.size:  # full of stale entries: keep only the others
                    kept = np.int64(0)
                    for i in range(put_off):
                        w = np.int64(later[i])
                        if piles[w - first] == 2:
                            piles[w - first] = 3
                            later[kept] = w
                            kept += 1
                    for i in range(kept):
                        piles[np.int64(later[i]) - first] = 2
                    put_off = kept
                piles[v - first] = 2
                later[put_off] = v
                put_off += 1
    if edges >= most:
        piles[: last - first] = 0
    return used, vertices, edges
'''
