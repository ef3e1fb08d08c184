"""Kernels that count how often lists were used, and choose the hottest: as kernels/cache/ranking.py, which says what
the words, levels and `order` mean.

What one thread adds up there from list to list is a prefix sum here, by the `Card`. Keys of a side begin at `offset`.
The level that no longer fits as a whole, and the space that those above it leave, are found on the GPU and stay there,
in `cutoff`.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of, text_of
from isthmus.kernels.cache.ranking import MOST, level_of, use, uses

NAME = "use counts"
TEXT = (
    f"""

MOST = {MOST}
"""
    + text_of(use)
    + text_of(uses)
    + text_of(level_of)
    + '''

@called
def use_rows_share(thread, threads, rows, offset, words, current):
    for i in range(thread, rows.size, threads):
        use(words, np.int64(rows[i]) + offset, current)


@called
def use_marked_share(thread, threads, vertices, active, all_active, offset, words, current):
    for u in range(thread, vertices, threads):
        if all_active or active[u]:
            use(words, u + offset, current)


@called
def end_period_share(thread, threads, words):
    """The current period becomes the last one; the oldest is forgotten."""
    for key in range(thread, words.size, threads):
        words[key] = np.int64(words[key]) >> 8


@called
def count_entries_share(thread, threads, vertices, offset, words, held, list_begins, list_ends, longest, order,
    entries):
    """Entries of the lists at each level."""
    for u in range(thread, vertices, threads):
        length = list_ends[u] - list_begins[u]
        level = level_of(words[u + offset], held[u + offset] != 0, length, longest, order)
        if level > 0:
            atomic_add(entries, level, length)


@called
def find_level_share(thread, threads, sums, capacity, cutoff):
    """The lowest level above which everything fits, and the space that is left for lists on it."""
    if thread == 0:
        low, high, total = np.int64(0), np.int64(sums.size - 1), sums[sums.size - 1]
        while low < high:
            middle = (low + high) >> 1
            if total - sums[middle] <= capacity:
                high = middle
            else:
                low = middle + 1
        cutoff[0] = low
        cutoff[1] = capacity - (total - sums[low])


@called
def entries_on_level_share(thread, threads, first, last, offset, words, held, list_begins, list_ends, longest, order,
    cutoff, sums):
    """For the prefix sum: the entries of the lists that are on the cutoff level."""
    for u in range(first + thread, last, threads):
        length = list_ends[u] - list_begins[u]
        level = level_of(words[u + offset], held[u + offset] != 0, length, longest, order)
        sums[u - first] = length if level > 0 and level == cutoff[0] else 0


@called
def mark_candidates_share(thread, threads, first, last, offset, words, held, list_begins, list_ends, longest, order,
    cutoff, sums, marks):
    """Mark the lists above the cutoff level, and those on it while they fit the space."""
    for u in range(first + thread, last, threads):
        level = level_of(words[u + offset], held[u + offset] != 0, list_ends[u] - list_begins[u], longest, order)
        fits = level > cutoff[0] or (level == cutoff[0] and sums[u - first] <= cutoff[1])
        marks[u + offset] = 1 if level > 0 and fits else 0


@called
def take_space_share(thread, threads, sums, cutoff):
    """What lists on the cutoff level have taken is gone for the next ones."""
    if thread == 0:
        cutoff[1] -= sums[sums.size - 1]


@called
def count_new_share(thread, threads, vertices, found, chosen, list_begins, list_ends, sums):
    """Entries of the lists that are found and not chosen yet, and of all that are found."""
    fresh, total = np.int64(0), np.int64(0)
    for u in range(thread, vertices, threads):
        if found[u]:
            length = list_ends[u] - list_begins[u]
            total += length
            if not chosen[u]:
                fresh += length
    atomic_add(sums, 0, fresh)
    atomic_add(sums, 1, total)


@called
def count_held_share(thread, threads, keys, lengths, words, order, entries):
    """Entries of lists that are held, at each level."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        atomic_add(entries, level_of(words[np.int64(keys[i])], True, length, length, order), length)


@called
def held_on_level_share(thread, threads, keys, lengths, words, order, cutoff, sums):
    """For the prefix sum: the entries of the held lists that are on the cutoff level."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        sums[i] = length if level_of(words[np.int64(keys[i])], True, length, length, order) == cutoff[0] else 0


@called
def mark_cold_share(thread, threads, keys, lengths, words, order, cutoff, sums, cold):
    """Mark the held lists below the cutoff level, and those on it that do not fit the space."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        level = level_of(words[np.int64(keys[i])], True, length, length, order)
        cold[i] = 1 if level < cutoff[0] or (level == cutoff[0] and sums[i] > cutoff[1]) else 0


@called
def heat_share(thread, threads, keys, words, found):
    for i in range(thread, keys.size, threads):
        found[i] = uses(words[np.int64(keys[i])])


@called
def move_words_share(thread, threads, froms, tos, words):
    """No key is moved from and to."""
    for i in range(thread, froms.size, threads):
        words[tos[i]] = words[froms[i]]
'''
)


def build(gpu: bool = True) -> ModuleType:
    """The kernels of the ranking."""
    return module_of(NAME, TEXT, gpu)
