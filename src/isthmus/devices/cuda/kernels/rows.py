"""Kernels over vertices: rows by length, activity per partition, the frontier, deltas.

They are the same for all programs. `active` are the marks of this iteration, and `all_active` stands for them if every
vertex is active.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of, text_of
from isthmus.devices.cuda.kernels.skeleton import LONG, VERY_LONG
from isthmus.kernels.loops.rows import place_of

NAME = "all programs"  # whose kernels these are
ADD_ROW = (
    f"""

LONG = {LONG}
VERY_LONG = {VERY_LONG}
"""
    + '''

@called
def add_row(u, begin, weight_begin, length, room, vertices, begins, weight_begins, lengths, counts):
    """Add a row to those of its kind, in any order."""
    kind = 0 if length < LONG else (1 if length < VERY_LONG else 2)
    at = kind * room + atomic_add(counts, kind, 1)
    vertices[at] = u
    begins[at] = begin
    weight_begins[at] = weight_begin
    lengths[at] = length
'''
)
PLACE_OF = text_of(place_of)
TEXT = (
    ADD_ROW
    + PLACE_OF
    + '''

@called
def sort_range_share(
    thread, threads, first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, room,
    vertices, begins,
    weight_begins, lengths, counts
):
    for u in range(first + thread, last, threads):
        if all_active or active[u]:
            low, high = max(list_begins[u], begin), min(list_ends[u], end)
            if low < high:
                add_row(u, low - base, low - weight_base, high - low, room, vertices, begins, weight_begins, lengths,
                    counts)


@called
def sort_rows_share(
    thread, threads, given, given_begins, given_weight_begins, given_lengths, room, vertices, begins, weight_begins,
    lengths, counts
):
    for row in range(thread, given.size, threads):
        if given_lengths[row] > 0:
            add_row(
                given[row], given_begins[row], given_weight_begins[row], given_lengths[row], room, vertices, begins,
                weight_begins,
                lengths, counts
            )


@called
def touched(begin, end, width, block):
    """Blocks that the entries begin:end lie in."""
    return (end * width - 1) // block - begin * width // block + 1


@called
def count_activity_share(
    thread, threads, vertices, active, all_active, list_begins, list_ends, cuts, width, weight_width, block, found,
    found_edges,
    found_blocks
):
    for u in range(thread, vertices, threads):
        begin, end = list_begins[u], list_ends[u]
        if (all_active or active[u]) and begin < end:
            p = place_of(begin, cuts)
            while begin < end:
                stop = min(end, cuts[p + 1])
                if stop > begin:
                    blocks = touched(begin, stop, width, block)
                    if weight_width > 0:
                        blocks += touched(begin, stop, weight_width, block)
                    atomic_add(found, p, 1)
                    atomic_add(found_edges, p, stop - begin)
                    atomic_add(found_blocks, p, blocks)
                begin = stop
                p += 1


@called
def mark_others_share(thread, threads, vertices, active, all_active, held, others, count):
    """Mark the active vertices that are not held; adds their number to `count`."""
    found = np.int64(0)
    for u in range(thread, vertices, threads):
        mark = (all_active or active[u] != 0) and held[u] == 0
        others[u] = 1 if mark else 0
        found += 1 if mark else 0
    atomic_add(count, 0, found)


@called
def pack_marks_share(thread, threads, marks, bits, count):
    """Marks as a bitmap, vertex v at bit v % 8 of byte v // 8, for the host; adds their number to `count`."""
    for at in range(thread, bits.size, threads):
        byte = 0
        for k in range(8):
            if 8 * at + k < marks.size and marks[8 * at + k]:
                byte |= 1 << k
                atomic_add(count, 0, 1)
        bits[at] = byte


@called
def fill_share(thread, threads, array, value):
    for at in range(thread, array.size, threads):
        array[at] = value


@called
def take_deltas_share(thread, threads, vertices, active, all_active, values, residual, deltas):
    """The deltas of the active vertices: their residuals, which are added to their values."""
    for u in range(thread, vertices, threads):
        if all_active or active[u]:
            deltas[u] = residual[u]
            values[u] += residual[u]
            residual[u] = 0.0
'''
)


def build(gpu: bool = True) -> ModuleType:
    """The kernels: `sort_range`, `sort_rows`, `count_activity`, `pack_marks`, `fill`, `take_deltas`."""
    return module_of(NAME, TEXT, gpu)
