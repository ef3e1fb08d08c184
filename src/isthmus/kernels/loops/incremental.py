"""Loops that bring answers up to date after a batch; compiled with each program, beside those of `skeleton.py`.

`relax_arcs` sends along single arcs, those that were inserted. `pull_rows` lets vertices that lost their value pull
from all in-neighbours. A vertex whose value is `silent` has nothing to send (`has_silent` False: every value is sent).
Both return the entries in `queue`, as `push_rows` does. The state of a program that uses them ends with four arrays:
parents, a byte per vertex that has changed, the list of these, and its length.

`adopt` runs on the edges before a batch, for programs that have `gives(u, degree, v, w, state, params)`: whether u
gives v its value and cannot depend on v. An orphan takes the first such neighbour for its parent that is no orphan
itself, along an edge that the batch leaves as it is. `heads`, `tails` and `actions` are the arcs that change, by heads.
It returns how many edges it looked at.

`drain` lets one thread follow vertices with residuals, in order of arrival, until none is left or about `most` edges
were followed; those left over stay marked. It is for programs whose first arrays are values, residuals and deltas, and
returns the vertices and edges followed, the rounds this took (a vertex is followed at most once in each), and the sum
of |value| of all vertices followed.
"""

from __future__ import annotations

from isthmus.kernels.changing.packed_array import DELETE, REWEIGH

INCREMENTAL = """

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
        if edge(x, u, v, {weight_of_arc}, state, params) and marks[v] == 0 and atomic_exchange(marks, v,
            np.uint8(1)) == 0:
            if used < queue.size:
                queue[used] = v
            used += 1
    return used


@compiled
def pull_rows(
    rows, first, last, list_begins, list_ends, in_begins, in_ends, in_targets, in_weights, has_silent, silent, state,
    params, marks, queue,
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


@compiled
def drain(starts, most, list_begins, list_ends, targets, weights, state, params, marks, queue):
    values, residual, deltas = state[0], state[1], state[2]
    head = edges = vertices = rounds = round_left = np.int64(0)
    used = np.int64(starts.size)
    total = 0.0
    for i in range(used):
        queue[i] = starts[i]
        marks[np.int64(starts[i])] = 1
    while used > 0 and edges < most:
        if round_left == 0:
            rounds += 1
            round_left = used
        round_left -= 1
        u = np.int64(queue[head])
        head = head + 1 if head + 1 < queue.size else 0
        used -= 1
        marks[u] = 0
        delta = residual[u]
        residual[u] = 0.0
        values[u] += delta
        deltas[u] = delta
        vertices += 1
        total += abs(values[u])
        x = source(u, list_ends[u] - list_begins[u], state, params)
        edges += list_ends[u] - list_begins[u]
        for e in range(list_begins[u], list_ends[u]):
            v = np.int64(targets[e])
            if edge(x, u, v, {weight_of_range}, state, params) and marks[v] == 0:
                marks[v] = 1
                at = head + used
                queue[at if at < queue.size else at - queue.size] = v
                used += 1
    return vertices, edges, rounds, total
"""

ADOPT = """

@called
def is_gone(u, v, heads, tails, actions, weights_count):
    low, high = np.int64(0), np.int64(heads.size)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(heads[middle]) < v:
            low = middle + 1
        else:
            high = middle
    while low < heads.size and np.int64(heads[low]) == v:
        if np.int64(tails[low]) == u:
            return actions[low] == {delete} or (weights_count and actions[low] == {reweigh})
        low += 1
    return False


@compiled
def adopt(
    orphans, first, last, adopted, list_begins, list_ends, in_begins, in_ends, in_targets, in_weights, heads, tails,
    actions,
    weights_count, has_silent, silent, orphaned, state, params, parents
):
    edges = np.int64(0)
    for i in range(first, last):
        if adopted[i]:
            continue
        v = np.int64(orphans[i])
        for e in range(in_begins[v], in_ends[v]):
            u = np.int64(in_targets[e])
            edges += 1
            if orphaned[u] or (has_silent and state[0][u] == silent):
                continue
            if gives(u, list_ends[u] - list_begins[u], v, {weight_of_in_arc}, state, params):
                if not is_gone(u, v, heads, tails, actions, weights_count):
                    parents[v] = u
                    adopted[i] = 1
                    break
    return edges
"""


def incremental(weighted: bool, adopts: bool) -> str:
    return (INCREMENTAL + (ADOPT if adopts else "")).format(
        weight_of_arc="weights[i]" if weighted else "1",
        weight_of_in_arc="in_weights[e]" if weighted else "1",
        weight_of_range="weights[e]" if weighted else "1",
        delete=DELETE,
        reweigh=REWEIGH,
    )
