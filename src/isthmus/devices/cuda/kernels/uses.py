"""Kernels that count how often lists were used, and choose the hottest: as kernels/cache/hot_lists.py, which says what
the words and levels mean.

What one thread adds up there from list to list is a prefix sum here, by the `Card`. Keys of a side begin at `offset`.
The level that no longer fits as a whole, and the room that those above it leave, are found on the GPU and stay there,
in `chosen`.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of
from isthmus.kernels.cache.hot_lists import CURRENT, MOST, SIZES

TEXT = (
    f"""

CURRENT, MOST, SIZES = {CURRENT}, {MOST}, {SIZES}
"""
    + '''

@called
def uses(word):
    """All uses that a word has counted."""
    word = np.int64(word)
    return (word & MOST) + ((word >> 8) & MOST) + ((word >> 16) & MOST) + (word >> 24)


@called
def level_of(word, held, length, longest):
    """Rank of a list: by uses; among equals those that are held come first, then shorter ones. 0: it cannot be a
    candidate.
    """
    level = np.int64(0)
    used = 2 * uses(word) + (1 if held else 0)
    if 0 < length and length <= longest and used > 0:
        bits, rest = np.int64(0), np.int64(length)
        while rest > 0:
            rest >>= 1
            bits += 1
        level = used * SIZES + SIZES - bits
    return level


@called
def count(words, key):
    """One more use in the current period."""
    if np.int64(words[key]) >> CURRENT < MOST:
        words[key] = words[key] + np.uint32(1 << CURRENT)


@called
def use_rows_share(thread, threads, rows, offset, words):
    for i in range(thread, rows.size, threads):
        count(words, np.int64(rows[i]) + offset)


@called
def use_marked_share(thread, threads, vertices, active, all_active, offset, words):
    for u in range(thread, vertices, threads):
        if all_active or active[u]:
            count(words, u + offset)


@called
def end_period_share(thread, threads, words):
    """The current period becomes the last one; the oldest is forgotten."""
    for key in range(thread, words.size, threads):
        words[key] = np.uint32(np.int64(words[key]) >> 8)


@called
def count_entries_share(thread, threads, vertices, offset, words, held, list_begins, list_ends, longest, entries):
    """Entries of the lists at each level."""
    for u in range(thread, vertices, threads):
        length = list_ends[u] - list_begins[u]
        level = level_of(words[u + offset], held[u + offset] != 0, length, longest)
        if level > 0:
            atomic_add(entries, level, length)


@called
def find_level_share(thread, threads, sums, capacity, chosen):
    """The lowest level above which everything fits, and the room that is left for lists on it."""
    if thread == 0:
        low, high, total = np.int64(0), np.int64(sums.size - 1), sums[sums.size - 1]
        while low < high:
            middle = (low + high) >> 1
            if total - sums[middle] <= capacity:
                high = middle
            else:
                low = middle + 1
        chosen[0] = low
        chosen[1] = capacity - (total - sums[low])


@called
def entries_on_level_share(thread, threads, first, last, offset, words, held, list_begins, list_ends, longest, chosen,
    sums):
    """For the prefix sum: the entries of the lists that are on the chosen level."""
    for u in range(first + thread, last, threads):
        length = list_ends[u] - list_begins[u]
        level = level_of(words[u + offset], held[u + offset] != 0, length, longest)
        sums[u - first] = length if level > 0 and level == chosen[0] else 0


@called
def mark_candidates_share(thread, threads, first, last, offset, words, held, list_begins, list_ends, longest, chosen,
    sums, wanted):
    """Mark the lists above the chosen level, and those on it while they fit the room."""
    for u in range(first + thread, last, threads):
        level = level_of(words[u + offset], held[u + offset] != 0, list_ends[u] - list_begins[u], longest)
        fits = level > chosen[0] or (level == chosen[0] and sums[u - first] <= chosen[1])
        wanted[u + offset] = 1 if level > 0 and fits else 0


@called
def take_room_share(thread, threads, sums, chosen):
    """What lists on the chosen level have taken is gone for the next ones."""
    if thread == 0:
        chosen[1] -= sums[sums.size - 1]


@called
def count_held_share(thread, threads, keys, lengths, words, entries):
    """Entries of lists that are held, at each level."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        atomic_add(entries, level_of(words[np.int64(keys[i])], True, length, length), length)


@called
def held_on_level_share(thread, threads, keys, lengths, words, chosen, sums):
    """For the prefix sum: the entries of the held lists that are on the chosen level."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        sums[i] = length if level_of(words[np.int64(keys[i])], True, length, length) == chosen[0] else 0


@called
def mark_cold_share(thread, threads, keys, lengths, words, chosen, sums, cold):
    """Mark the held lists below the chosen level, and those on it that do not fit the room."""
    for i in range(thread, keys.size, threads):
        length = np.int64(lengths[i])
        level = level_of(words[np.int64(keys[i])], True, length, length)
        cold[i] = 1 if level < chosen[0] or (level == chosen[0] and sums[i] > chosen[1]) else 0


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
    """The kernels of the hot subgraph's use counts."""
    return module_of("use counts", TEXT, gpu)
