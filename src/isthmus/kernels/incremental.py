"""Loops that bring answers up to date after a batch; compiled with each program, beside those of `skeleton.py`.

`relax_arcs` sends along single arcs, those that were inserted. `pull_rows` lets vertices hear from all in-neighbours, those that
lost their value. A vertex whose value is `silent` has nothing to send (`has_silent` False: every value is sent). Both return the
entries in `queue`, as `push_rows` does.

The state of such a program ends with four arrays that every program here has: parents, a byte per vertex that has changed,
the list of these, and its length.
"""

from __future__ import annotations

INCREMENTAL = '''

@compiled
def relax_arcs(
    tails, heads, weights, first, last, list_begins, list_ends, has_silent, silent, state, params, marks, queue, used
):
    for i in range(first, last):
        u = np.int64(tails[i])
        if has_silent and state[0][u] == silent:
            continue
        v = np.int64(heads[i])
        x = source(u, list_ends[u] - list_begins[u], state, params)
        if edge(x, u, v, {weight_of_arc}, state, params) and marks[v] == 0 and atomic_exchange(marks, v, np.uint8(1)) == 0:
            if used < queue.size:
                queue[used] = v
            used += 1
    return used


@compiled
def pull_rows(
    rows, first, last, list_begins, list_ends, in_begins, in_ends, in_targets, in_weights, has_silent, silent, state, params, marks, queue,
    used
):
    for i in range(first, last):
        v = np.int64(rows[i])
        heard = not has_silent
        for e in range(in_begins[v], in_ends[v]):
            u = np.int64(in_targets[e])
            if has_silent and state[0][u] == silent:
                continue
            x = source(u, list_ends[u] - list_begins[u], state, params)
            if edge(x, u, v, {weight_of_in_arc}, state, params):
                heard = True
        if heard and marks[v] == 0 and atomic_exchange(marks, v, np.uint8(1)) == 0:
            if used < queue.size:
                queue[used] = v
            used += 1
    return used
'''


def incremental(weighted: bool) -> str:
    return INCREMENTAL.format(
        weight_of_arc="weights[i]" if weighted else "1", weight_of_in_arc="in_weights[e]" if weighted else "1"
    )
