"""Kernels over lists: into near memory from mapped memory, into a cache, and within it.

A row is as in `skeleton.py`: a vertex, and where its edges lie; rows are sorted by length first. `places` says by
vertex where a cached list begins.

`fetch` reads lists of mapped memory once, in whole lines, and leaves them in near memory: for whoever follows them
again. `copy_lists`, `take` and `put` copy any lists within near memory: thread by thread an entry, which finds its list
in `starts`, the ascending sums of the lengths. Where lists move to the front of their own memory, `take` and `put`
carry them through a window of scratch memory; no list moves backwards, so the entries of a window are read before
others overwrite them.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of
from isthmus.devices.cuda.kernels.rows import ADD_ROW, PLACE_OF
from isthmus.devices.cuda.kernels.skeleton import TURNS
from isthmus.kernels.changing.packed_array import DELETE, INSERT

NAME = "lists"
TEXT = (
    ADD_ROW
    + PLACE_OF
    + TURNS
    + f"""

INSERT, DELETE = {INSERT}, {DELETE}
"""
    + '''

@called
def sort_held_share(
    thread, threads, given, places, list_begins, list_ends, room, vertices, begins, weight_begins, lengths, counts
):
    """Rows of lists in a cache, from their vertices alone."""
    for row in range(thread, given.size, threads):
        u = np.int64(given[row])
        begin = np.int64(places[u])
        if list_begins[u] < list_ends[u]:
            add_row(u, begin, begin, list_ends[u] - list_begins[u], room, vertices, begins, weight_begins, lengths,
                counts)


@called
def sort_wanted_share(
    thread, threads, given, given_begins, given_weight_begins, given_lengths, wanted, filled, list_begins, list_ends,
    room, vertices,
    begins, weight_begins, lengths, counts
):
    """Of some rows, those that a cache is to keep: wanted, not there yet, and whole. No list is whole in two rows."""
    for row in range(thread, given.size, threads):
        u = np.int64(given[row])
        length = list_ends[u] - list_begins[u]
        if wanted[u] and not filled[u] and length > 0 and given_lengths[row] == length:
            filled[u] = 1
            add_row(u, given_begins[row], given_weight_begins[row], length, room, vertices, begins, weight_begins,
                lengths, counts)


@called
def sort_wanted_range_share(
    thread, threads, first, last, begin, end, base, weight_base, wanted, filled, list_begins, list_ends, room,
    vertices, begins,
    weight_begins, lengths, counts
):
    """The same for all lists within the edges begin:end of the vertices first:last."""
    for u in range(first + thread, last, threads):
        low, high = list_begins[u], list_ends[u]
        if wanted[u] and not filled[u] and begin <= low and low < high and high <= end:
            filled[u] = 1
            add_row(u, low - base, low - weight_base, high - low, room, vertices, begins, weight_begins, lengths,
                counts)


@called
def keep_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, places, targets, weights,
    weighted,
    kept_targets, kept_weights
):
    """Copy rows to their places in a cache."""
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            begin, weight_begin, to = begins[row], weight_begins[row], np.int64(places[vertices[row]])
            for k in range(lane, lengths[row], width):
                kept_targets[to + k] = targets[begin + k]
                if weighted:
                    kept_weights[to + k] = weights[weight_begin + k]


@called
def fetch_share(thread, threads, kind, room, vertices, begins, tos, lengths, counts, width, line, far, near):
    """Copy the entries of rows from far memory, where they lie at `begins`, to `tos` in near memory."""
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            begin, to = begins[row], tos[row]
            for e in range(first_turn(begin, lane, width, line), begin + lengths[row], width):
                if e >= begin:
                    near[to + e - begin] = far[e]


@called
def copy_lists_share(thread, threads, entries, starts, froms, tos, source, sink):
    """Copy lists that have so many entries together."""
    for k in range(thread, entries, threads):
        i = place_of(k, starts)
        sink[tos[i] + k - starts[i]] = source[froms[i] + k - starts[i]]


@called
def take_share(thread, threads, low, high, starts, froms, source, scratch):
    """Copy the entries low:high of some lists to scratch memory."""
    for k in range(low + thread, high, threads):
        i = place_of(k, starts)
        scratch[k - low] = source[froms[i] + k - starts[i]]


@called
def put_share(thread, threads, low, high, starts, tos, scratch, sink):
    """Copy them to their new places."""
    for k in range(low + thread, high, threads):
        i = place_of(k, starts)
        sink[tos[i] + k - starts[i]] = scratch[k - low]


@called
def bring(begin, length, to, targets, weights, weighted, near_targets, near_weights):
    for k in range(length):
        near_targets[to + k] = targets[begin + k]
        if weighted:
            near_weights[to + k] = weights[begin + k]


@called
def refresh_share(
    thread, threads, begins, lengths, tos, held, groups, cuts, others, actions, positions, targets, weights, weighted,
    near_targets,
    near_weights
):
    """Bring lists that have changed up to date, as kernels/cache/hot_lists.py does: a thread for each, as few
    change.
    """
    for i in range(thread, begins.size, threads):
        begin, length, to = begins[i], lengths[i], tos[i]
        low, high = np.int64(cuts[groups[i]]), np.int64(cuts[groups[i] + 1])
        inserts, deletes = np.int64(0), np.int64(0)
        for c in range(low, high):
            inserts += 1 if actions[c] == INSERT else 0
            deletes += 1 if actions[c] == DELETE else 0
        same = held[i] != 0
        for c in range(low, high):
            if same and actions[c] != INSERT:
                at = np.int64(positions[c])
                same = 0 <= at and at < length - inserts + deletes
                if same:
                    same = near_targets[to + at] == others[c]
        if same:
            for c in range(low, high):
                at = np.int64(positions[c])
                if actions[c] != INSERT and at < length:
                    bring(begin + at, 1, to + at, targets, weights, weighted, near_targets, near_weights)
            kept = length - inserts
            bring(begin + kept, inserts, to + kept, targets, weights, weighted, near_targets, near_weights)
        else:
            bring(begin, length, to, targets, weights, weighted, near_targets, near_weights)
'''
)


def build(gpu: bool = True) -> ModuleType:
    """The kernels: `sort_held`, `sort_wanted`, `sort_wanted_range`, `keep`, `fetch`, `copy_lists`, `take`, `put`,
    `refresh`.
    """
    return module_of(NAME, TEXT, gpu)
