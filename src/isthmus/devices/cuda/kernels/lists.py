"""Kernels over lists: into near memory from mapped memory, into a cache, and within it.

A row is as in `skeleton.py`: a vertex, and where its edges lie; rows are sorted by length first. `places` says by
vertex where a cached list begins.

`fetch` reads lists of mapped memory once, in whole lines, and leaves them in near memory, where they can be followed
again. `copy_lists`, `take` and `put` copy any lists within near memory: thread by thread an entry, which finds its list
in `starts`, the ascending sums of the lengths. Where lists move to the front of their own memory, `take` and `put`
carry them through a window of scratch memory; no list moves backwards, so the entries of a window are read before
others overwrite them.

`find_staying` to `place_coming` lay lists out one after the other, as kernels/cache/list_layout.py does. What one
thread does there from vertex to vertex is a prefix sum here: the `Card` adds up what one kernel writes, and the next
kernel reads the sums. Sums are inclusive. Vertices and lists go by parts of bounded length; `carried` has the sums of
the parts before.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of, text_of
from isthmus.devices.cuda.kernels.rows import ADD_ROW, PLACE_OF
from isthmus.devices.cuda.kernels.skeleton import TURNS
from isthmus.kernels.cache.list_moves import bring, patch
from isthmus.kernels.changing.packed_array import DELETE, INSERT

NAME = "lists"
TEXT = (
    ADD_ROW
    + PLACE_OF
    + TURNS
    + text_of(bring)
    + text_of(patch)
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
def sort_chosen_share(
    thread, threads, given, given_begins, given_weight_begins, given_lengths, chosen, held, list_begins, list_ends,
    room, vertices,
    begins, weight_begins, lengths, counts
):
    """Of some rows, those that a cache is to keep: chosen, not there yet, and whole. No list is whole in two rows."""
    for row in range(thread, given.size, threads):
        u = np.int64(given[row])
        length = list_ends[u] - list_begins[u]
        if chosen[u] and not held[u] and length > 0 and given_lengths[row] == length:
            held[u] = 1
            add_row(u, given_begins[row], given_weight_begins[row], length, room, vertices, begins, weight_begins,
                lengths, counts)


@called
def sort_chosen_range_share(
    thread, threads, first, last, begin, end, base, weight_base, chosen, held, list_begins, list_ends, room,
    vertices, begins,
    weight_begins, lengths, counts
):
    """The same for all lists within the edges begin:end of the vertices first:last."""
    for u in range(first + thread, last, threads):
        low, high = list_begins[u], list_ends[u]
        if chosen[u] and not held[u] and begin <= low and low < high and high <= end:
            held[u] = 1
            add_row(u, low - base, low - weight_base, high - low, room, vertices, begins, weight_begins, lengths,
                counts)


@called
def keep_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, places, targets, weights,
    weighted,
    near_targets, near_weights
):
    """Copy rows to their places in a cache."""
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            begin, weight_begin, to = begins[row], weight_begins[row], np.int64(places[vertices[row]])
            for k in range(lane, lengths[row], width):
                near_targets[to + k] = targets[begin + k]
                if weighted:
                    near_weights[to + k] = weights[weight_begin + k]


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
def patch_lists_share(
    thread, threads, begins, lengths, tos, held, groups, cuts, others, actions, positions, targets, weights, weighted,
    near_targets, near_weights
):
    """Bring lists that have changed up to date: a thread for each, as few change."""
    for i in range(thread, begins.size, threads):
        low, high = np.int64(cuts[groups[i]]), np.int64(cuts[groups[i] + 1])
        far, near = (targets, weights), (near_targets, near_weights)
        patch(begins[i], lengths[i], tos[i], held[i], low, high, others, actions, positions, far, near, weighted)


@called
def find_staying_share(thread, threads, first, last, order, chosen, held, list_begins, list_ends, vertices, ones,
    sizes):
    """Of the lists first:last in their order in memory: which stay, and their lengths. Others are dropped."""
    for i in range(first + thread, last, threads):
        u = np.int64(order[i])
        stays = held[u] != 0 and chosen[u] != 0
        if not stays:
            held[u] = 0
        vertices[i - first] = u
        ones[i - first] = 1 if stays else 0
        sizes[i - first] = list_ends[u] - list_begins[u] if stays else 0


@called
def place_staying_share(
    thread, threads, count, vertices, ones, sizes, list_begins, list_ends, carried, carried_entries, places, order,
    starts, froms, tos
):
    """Lists that stay get new places, one after the other; `starts`, `froms` and `tos` say how to move them."""
    for i in range(thread, count, threads):
        if ones[i] > (ones[i - 1] if i > 0 else 0):
            u, at = np.int64(vertices[i]), ones[i] - 1
            start = sizes[i] - (list_ends[u] - list_begins[u])
            starts[at], froms[at], tos[at] = start, places[u], carried_entries + start
            places[u] = carried_entries + start
            order[carried + at] = u


@called
def find_coming_share(thread, threads, first, last, chosen, held, list_begins, list_ends, ones, sizes):
    """Of the vertices first:last: whose lists have yet to come, and their lengths."""
    for u in range(first + thread, last, threads):
        comes = chosen[u] != 0 and held[u] == 0
        ones[u - first] = 1 if comes else 0
        sizes[u - first] = list_ends[u] - list_begins[u] if comes else 0


@called
def place_coming_share(thread, threads, first, last, ones, sizes, list_begins, list_ends, carried, carried_entries,
    places, order):
    """Reserve places for them."""
    for u in range(first + thread, last, threads):
        i = u - first
        if ones[i] > (ones[i - 1] if i > 0 else 0):
            places[u] = carried_entries + sizes[i] - (list_ends[u] - list_begins[u])
            order[carried + ones[i] - 1] = u
'''
)


def build(gpu: bool = True) -> ModuleType:
    """The kernels of lists."""
    return module_of(NAME, TEXT, gpu)
