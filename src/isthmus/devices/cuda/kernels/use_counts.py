"""Kernels of the vertex cache: uses are counted, the hottest vertices chosen, and places for their lists laid out.

The same steps as kernels/cache/use_counts.py and kernels/cache/list_layout.py, which say what they are for. What one
thread does there from vertex to vertex is a prefix sum here: the `Card` adds up what one kernel writes, and the next
kernel reads the sums. Sums are inclusive. Vertices and lists go by parts of bounded length; `carried` has what the
parts before have added up.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of
from isthmus.kernels.cache.use_counts import HOTTEST, SIZES

NAME = "the vertex cache"
TEXT = (
    f"""

HOTTEST = {HOTTEST}
SIZES = {SIZES}
"""
    + '''

@called
def level_of(count, degree, capacity):
    """The level of a vertex, as in kernels/cache/use_counts.py; 0 also for lists that are longer than the capacity."""
    level = np.int64(0)
    if count > 0 and degree <= capacity:
        rest = degree
        while rest > 0:
            rest >>= 1
            level += 1
        if level > 0:
            level += np.int64(count) * SIZES
    return level


@called
def heat_share(thread, threads, vertices, active, all_active, hotness):
    """Count one more use of the active vertices."""
    for u in range(thread, vertices, threads):
        if (all_active or active[u]) and hotness[u] < HOTTEST:
            hotness[u] += 1


@called
def count_levels_share(thread, threads, vertices, hotness, list_begins, list_ends, capacity, edges):
    """Edges at each level."""
    for u in range(thread, vertices, threads):
        degree = list_ends[u] - list_begins[u]
        level = level_of(hotness[u], degree, capacity)
        if level > 0:
            atomic_add(edges, level, degree)


@called
def edges_on_level_share(thread, threads, first, last, hotness, list_begins, list_ends, capacity, level, edges):
    """For the prefix sum: the edges of the vertices that are on a level."""
    for u in range(first + thread, last, threads):
        degree = list_ends[u] - list_begins[u]
        edges[u - first] = degree if level_of(hotness[u], degree, capacity) == level else 0


@called
def mark_hot_share(thread, threads, first, last, hotness, list_begins, list_ends, capacity, level, sums, room, marks):
    """Mark the vertices above a level, and those on it while their edges fit the room; unmark the others."""
    for u in range(first + thread, last, threads):
        mine = level_of(hotness[u], list_ends[u] - list_begins[u], capacity)
        marks[u] = mine > level or (mine > 0 and mine == level and sums[u - first] <= room)


@called
def count_fresh_share(thread, threads, vertices, candidates, wanted, list_begins, list_ends, found):
    """Edges of the candidates that are not wanted yet, and of all candidates."""
    fresh, total = np.int64(0), np.int64(0)
    for u in range(thread, vertices, threads):
        if candidates[u]:
            degree = list_ends[u] - list_begins[u]
            total += degree
            if not wanted[u]:
                fresh += degree
    atomic_add(found, 0, fresh)
    atomic_add(found, 1, total)


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
def find_staying_share(thread, threads, first, last, order, wanted, filled, list_begins, list_ends, vertices, ones,
    sizes):
    """Of the lists first:last in their order in memory: which stay, and their lengths. Others are dropped."""
    for i in range(first + thread, last, threads):
        u = np.int64(order[i])
        stays = filled[u] != 0 and wanted[u] != 0
        if not stays:
            filled[u] = 0
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
def find_coming_share(thread, threads, first, last, wanted, filled, list_begins, list_ends, ones, sizes):
    """Of the vertices first:last: whose lists have yet to come, and their lengths."""
    for u in range(first + thread, last, threads):
        comes = wanted[u] != 0 and filled[u] == 0
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
    """The kernels of the vertex cache, and `mark_others`."""
    return module_of(NAME, TEXT, gpu)
