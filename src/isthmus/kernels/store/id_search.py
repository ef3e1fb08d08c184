"""Vertex numbers of keys: by a bitmap with ranks for compact ids, by a sorted table for sparse ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint64

from isthmus.kernels.compile.atomics import atomic_or
from isthmus.kernels.compile.kernel import inline, kernel


@kernel
def mark(keys: Any, base: Any, words: Any) -> Any:
    """Set the bit of every key; threads may mark the same words."""
    for i in range(keys.size):
        at = uint64(keys[i]) - base
        bit = uint64(1) << (at & uint64(63))
        if not words[at >> uint64(6)] & bit:
            atomic_or(words, at >> uint64(6), bit)


@inline
def popcount(x: Any) -> Any:
    x = x - ((x >> uint64(1)) & uint64(0x5555555555555555))
    x = (x & uint64(0x3333333333333333)) + ((x >> uint64(2)) & uint64(0x3333333333333333))
    x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (x * uint64(0x0101010101010101)) >> uint64(56)


@kernel
def count_bits(words: Any, before: Any) -> Any:
    """before[i] = bits set in the words before word i; returns their total."""
    total = 0
    for i in range(words.size):
        before[i] = total
        total += int64(popcount(words[i]))
    return total


@kernel
def rank_in_bitmap(keys: Any, base: Any, words: Any, before: Any, out: Any) -> Any:
    """Vertex numbers of `keys`; returns the position of the first key that is not a vertex, or -1."""
    for i in range(keys.size):
        at = uint64(keys[i]) - base
        word = at >> uint64(6)
        if word >= uint64(words.size):
            return i
        bit = uint64(1) << (at & uint64(63))
        if not words[word] & bit:
            return i
        out[i] = before[word] + popcount(words[word] & (bit - uint64(1)))
    return -1


@kernel
def list_bits(words: Any, first_word: Any, base: Any, out: Any) -> Any:
    """The keys whose bits are set, ascending; returns how many."""
    count = 0
    for i in range(words.size):
        word = words[i]
        key = base + uint64(first_word + i) * uint64(64)
        while word:
            low = word & (uint64(0) - word)
            out[count] = key + popcount(low - uint64(1))
            word ^= low
            count += 1
    return count


@kernel
def unique(keys: Any) -> Any:
    """Drop repeated keys from a sorted array, in place; returns how many are left."""
    count = min(keys.size, 1)
    for i in range(1, keys.size):
        if keys[i] != keys[i - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@kernel
def fill_directory(table: Any, low: Any, shift: Any, directory: Any) -> Any:
    """directory[c] = first position in the sorted `table` whose key is in cell c or after it."""
    at = 0
    for cell in range(directory.size):
        while at < table.size and (table[at] - low) >> shift < uint64(cell):
            at += 1
        directory[cell] = at


@kernel
def rank_in_table(
    keys: Any, flip: Any, table: Any, ranks: Any, base: Any, low: Any, shift: Any, directory: Any, out: Any
) -> Any:
    """out[i] = number of keys[i] ^ flip where `table` has it: ranks[position], or base + position. Returns how many
    were found.
    """
    found = 0
    for i in range(keys.size):
        key = uint64(keys[i]) ^ flip
        if table.size == 0 or key < table[0] or key > table[table.size - 1]:
            continue
        cell = int64((key - low) >> shift)
        a, b = directory[cell], directory[cell + 1]
        while a < b:
            middle = (a + b) >> 1
            if table[middle] < key:
                a = middle + 1
            else:
                b = middle
        if a < table.size and table[a] == key:
            out[i] = ranks[a] if ranks is not None else base + a
            found += 1
    return found


@kernel
def hash_strings(data: Any, offsets: Any, salt: Any, out: Any) -> Any:
    """A 64-bit hash per string. Collisions are the caller's to detect."""
    for i in range(out.size):
        h = uint64(salt) ^ uint64(0x9E3779B97F4A7C15)
        p, end = offsets[i], offsets[i + 1]
        h ^= uint64(end - p)
        while p < end:
            word = uint64(0)
            for k in range(min(8, end - p)):
                word |= uint64(data[p + k]) << uint64(8 * k)
            h = (h ^ word) * uint64(0xBF58476D1CE4E5B9)
            h ^= h >> uint64(29)
            p += 8
        h *= uint64(0x94D049BB133111EB)
        out[i] = h ^ (h >> uint64(32))


@kernel
def first_missing(found: Any) -> Any:
    """Position of the first entry that is still the marker for 'none', or -1."""
    none = np.iinfo(found.dtype).max
    for i in range(found.size):
        if found[i] == none:
            return i
    return -1
