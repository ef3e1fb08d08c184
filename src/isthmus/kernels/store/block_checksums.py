"""Checks of 4 KB blocks as they arrive from a file: is the checksum right, and can the entries be what they claim to
be?

The checksum is XXH3-64 (Yann Collet) of one block with seed 0, as the xxhash package computes it. The block is hashed
in stripes of 64 bytes: eight lanes of 64 bits. After every sixteen stripes, a group, the lanes are scrambled. Within a
group only sums are computed, in any order, so the loops are written for vector instructions: 25 GB/s where the block is
in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import uint32, uint64

from isthmus.kernels.compile.kernel import inline, kernel

BLOCK = 4096  # bytes
WORDS, STRIPES, LANES, GROUP = 512, 64, 8, 16
SCRATCH = (3, 2 * LANES)  # the shape of an array of 64-bit words that a hash is computed in
# Columns of a rule, and what a missing table of checksums has as its first entry.
WIDTH, MASK, ZERO, MOST, FIRST = range(5)
NO_SUMS = 2**64 - 1
FINE, WRONG_SUM, WRONG_ENTRY = range(3)

# The constants of XXH3: its default secret and its primes.
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
PRIME, SCRAMBLING, AVALANCHE = 0x9E3779B185EBCA87, 0x9E3779B1, 0x165667919E3779F9
STARTS = np.array(
    [
        0xC2B2AE3D,
        PRIME,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x85EBCA77,
        0x27D4EB2F165667C5,
        SCRAMBLING,
    ],
    np.uint64,
)


def secret(at: int) -> Any:
    """The eight words of the secret from byte `at` on, a word for each lane."""
    return np.frombuffer(SECRET, "<u8", LANES, at).astype(np.uint64)


# The key of a stripe begins a word later for each stripe of a group; the last stripe of a block has a key of its own.
KEYS = np.array([secret(8 * (stripe % GROUP) if stripe < STRIPES - 1 else 121) for stripe in range(STRIPES)]).reshape(
    -1
)
SCRAMBLER, MERGER = secret(128), secret(11)


@inline
def fold(a: Any, b: Any) -> Any:
    """The high half of the product of two 64-bit numbers, xor its low half."""
    low = uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> uint64(32), b & low, b >> uint64(32)
    middle = (a0 * b0 >> uint64(32)) + (a0 * b1 & low) + a1 * b0
    return a * b ^ (a1 * b1 + (a0 * b1 >> uint64(32)) + (middle >> uint64(32)))


@inline
def product(word: Any, key: Any) -> Any:
    keyed = word ^ key
    return (keyed & uint64(0xFFFFFFFF)) * (keyed >> uint64(32))


@inline
def hash_block(words: Any, at: Any, lanes: Any) -> Any:
    """The checksum of the block that begins at words[at]. `lanes` is an array of shape (3, 16) to compute in.

    Stripes of a group are added up two by two: a loop over the sixteen words of two stripes becomes vector
    instructions, one over the eight of a single stripe does not.
    """
    state, products, plain = lanes[0], lanes[1], lanes[2]
    for i in range(LANES):
        state[i] = STARTS[i]
    for group in range(uint64(STRIPES // GROUP)):
        k = group * uint64(GROUP * LANES)
        w = uint64(at) + k
        for j in range(uint64(2 * LANES)):
            w0, w1, w2, w3 = (
                words[w + j],
                words[w + uint64(16) + j],
                words[w + uint64(32) + j],
                words[w + uint64(48) + j],
            )
            w4, w5, w6, w7 = (
                words[w + uint64(64) + j],
                words[w + uint64(80) + j],
                words[w + uint64(96) + j],
                words[w + uint64(112) + j],
            )
            plain[j] = w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7
            products[j] = (
                product(w0, KEYS[k + j])
                + product(w1, KEYS[k + uint64(16) + j])
                + product(w2, KEYS[k + uint64(32) + j])
                + product(w3, KEYS[k + uint64(48) + j])
                + product(w4, KEYS[k + uint64(64) + j])
                + product(w5, KEYS[k + uint64(80) + j])
                + product(w6, KEYS[k + uint64(96) + j])
                + product(w7, KEYS[k + uint64(112) + j])
            )
        for i in range(LANES):
            state[i] += products[i] + products[i + LANES] + plain[i ^ 1] + plain[(i ^ 1) + LANES]
        if group < STRIPES // GROUP - 1:
            for i in range(LANES):
                state[i] = (state[i] ^ state[i] >> uint64(47) ^ SCRAMBLER[i]) * uint64(SCRAMBLING)
    found = uint64(BLOCK) * uint64(PRIME)
    for i in range(0, LANES, 2):
        found += fold(state[i] ^ MERGER[i], state[i + 1] ^ MERGER[i + 1])
    found = (found ^ found >> uint64(37)) * uint64(AVALANCHE)
    return found ^ found >> uint64(32)


@kernel
def hash_blocks(data: Any, sums: Any) -> Any:
    """The checksums of the blocks of `data`, an array of bytes."""
    words, lanes = data.view(np.uint64), np.empty(SCRATCH, np.uint64)
    for block in range(sums.size):
        sums[block] = hash_block(words, block * WORDS, lanes)


@inline
def largest(entries: Any, mask: Any, zero: Any) -> Any:
    kind = entries.dtype.type
    most = kind(0)
    if zero == 0 and mask == kind(-1):  # targets
        for i in range(entries.size):
            most = max(most, entries[i])
        return most
    for i in range(entries.size):
        entry = kind(entries[i] & mask)
        most = max(most, kind(0) if entries[i] == zero else entry)
    return most


@inline
def fits(block: Any, rule: Any) -> Any:
    """Whether all entries of a block are within bounds: without the bits outside MASK at most MOST; ZERO counts as 0.

    Entries are compared as unsigned integers: the bits of floating-point numbers that are not negative have the order
    of the numbers.
    """
    if rule[WIDTH] == 4:
        return uint64(largest(block.view(np.uint32), uint32(rule[MASK]), uint32(rule[ZERO]))) <= rule[MOST]
    if rule[WIDTH] == 8:
        return largest(block.view(np.uint64), rule[MASK], rule[ZERO]) <= rule[MOST]
    return True


@kernel
def check_blocks(data: Any, place: Any, size: Any, first: Any, rule: Any, sums: Any, lanes: Any) -> Any:
    """Check the blocks in data[place : place + size]; the first of them is block `first` of its array.

    `rule` is a row of the table of rules; its entry FIRST is where the checksums of the array begin in `sums`. Returns
    (status, block): the first block that is not fine.
    """
    words = data[place : place + size].view(np.uint64)
    for k in range(size // BLOCK):
        block = first + k
        if rule[FIRST] != uint64(NO_SUMS) and hash_block(words, k * WORDS, lanes) != sums[rule[FIRST] + uint64(block)]:
            return WRONG_SUM, block
        if not fits(data[place + k * BLOCK : place + (k + 1) * BLOCK], rule):
            return WRONG_ENTRY, block
    return FINE, first
