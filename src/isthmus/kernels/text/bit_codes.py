"""Codes of natural numbers in a stream of bits: those that WebGraph's files use.

A stream is an array of 64-bit words. Its first bit is the highest of the first word or, in a little-endian stream, the
lowest; `little` is None or True, and Numba compiles a loop for one of them. The unary code of n is n zeros and a one.
Elias' gamma has the length of n + 1 in unary, delta has it in gamma, omega in itself. Zeta (Boldi and Vigna, Codes for
the World Wide Web) and pi (Apostolico and Drovandi, Graph Compression by BFS) are for power laws; Golomb's code has the
remainder by k in truncated binary; a nibble is three bits, after a bit that is 1 in the last one.

The zeros behind a stream's `end` may be read, as two words follow it: then the next position is beyond the end. A
number of more than 62 bits is read as HUGE. Short codes are looked up in tables, which `fill_table` makes with the
function that reads any code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint32, uint64
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.compile.kernel import (
    program_inline as inline,  # counts no references to arrays: four times as fast
)

UNARY, GAMMA, DELTA, ZETA, GOLOMB, NIBBLE, OMEGA, PI = range(8)
BEYOND = 1 << 62  # a position behind every end
HUGE = 1 << 61  # stands for every number from there on
LONGEST = 60  # bits of a number's binary digits
LONGEST_RUN = 1 << 32  # zeros of a number in unary code: no file has more vertices
TABLE_BITS = 11  # of the codes in a table: two tables of 2048 entries fit the L1 cache
LENGTH_BITS = 6  # of a table's entry, below the number itself
PADDING = 2  # words of zeros behind a stream


@inline
def peek(words: Any, at: Any, little: Any) -> Any:
    """The next 64 bits."""
    word, skip = at >> 6, uint64(at & 63)
    if little is None:
        return words[word] << skip | (words[word + 1] >> uint64(1)) >> (uint64(63) - skip)
    return words[word] >> skip | (words[word + 1] << uint64(1)) << (uint64(63) - skip)


@inline
def first_of(bits: Any, count: Any, little: Any) -> Any:
    """The first `count` of 64 bits, at most 63, as a number."""
    if little is None:
        return int64((bits >> uint64(1)) >> uint64(63 - count))
    return int64(bits & ((uint64(1) << uint64(count)) - uint64(1)))


@inline
def read_bits(words: Any, at: Any, end: Any, count: Any, little: Any) -> Any:
    """(A number of `count` bits, the position behind it)."""
    if at + count > end:
        return int64(0), int64(BEYOND)
    return first_of(peek(words, at, little), count, little), at + count


@inline
def read_zeros(words: Any, at: Any, end: Any, most: Any, little: Any) -> Any:
    """(How many zeros there are before the next one, the position behind it). The number may be wrong if it is above
    `most`.
    """
    count = int64(0)
    while at < end:
        bits = peek(words, at, little)
        if bits != uint64(0):
            run = int64(leading_zeros(bits) if little is None else trailing_zeros(bits))
            return count + run, at + run + 1
        count += 64
        at += 64
        if count > most:
            return count, at
    return int64(0), int64(BEYOND)


@inline
def read_truncated(words: Any, at: Any, end: Any, width: Any, short: Any, little: Any) -> Any:
    """A number of `width` bits if it is below `short`, else of one bit more: truncated binary code."""
    found, at = read_bits(words, at, end, width, little)
    if found < short:
        return found, at
    bit, at = read_bits(words, at, end, int64(1), little)
    return (found << 1) + bit - short, at


@inline
def with_digits(words: Any, at: Any, end: Any, width: Any, little: Any) -> Any:
    """The number n whose successor has `width` binary digits behind the first, which follow."""
    if width > LONGEST:
        return int64(HUGE), at
    digits, at = read_bits(words, at, end, width, little)
    return (int64(1) << width) + digits - 1, at


@inline
def read_nibbles(words: Any, at: Any, end: Any, little: Any) -> Any:
    value, last = int64(0), int64(0)
    while last == 0 and at < end:
        last, at = read_bits(words, at, end, int64(1), little)
        digits, at = read_bits(words, at, end, int64(3), little)
        if value >= HUGE >> 3:
            return int64(HUGE), at
        value = value << 3 | digits
    return value, at if last else int64(BEYOND)


@inline
def read_omega(words: Any, at: Any, end: Any, little: Any) -> Any:
    value = int64(1)
    while at < end:
        more, after = read_bits(words, at, end, int64(1), little)
        if more == 0:
            return value - 1, after
        if value > LONGEST:
            return int64(HUGE), after
        width = value
        value, at = read_bits(words, at, end, width + 1, little)
        if little is not None:  # the highest bit, which is 1, comes first
            value = value >> 1 | int64(1) << width
    return int64(0), int64(BEYOND)


@inline
def read_any(words: Any, at: Any, end: Any, code: Any, k: Any, little: Any) -> Any:
    """(The next number, the position behind it), without a table."""
    if code == NIBBLE:
        return read_nibbles(words, at, end, little)
    if code == OMEGA:
        return read_omega(words, at, end, little)
    most = int64(LONGEST)
    if code == UNARY or code == GOLOMB:  # noqa: SIM109 - compiles to fewer branches than a search in a tuple
        most = int64(LONGEST_RUN)
    run, at = read_zeros(words, at, end, most, little)
    if run > most:
        return int64(HUGE), at
    if code == UNARY:
        return run, at
    if code == GAMMA:
        return with_digits(words, at, end, run, little)
    if code == DELTA:
        width, at = with_digits(words, at, end, run, little)
        return with_digits(words, at, end, width, little)
    if code == ZETA:
        if run * k + k > LONGEST:
            return int64(HUGE), at
        low = int64(1) << run * k
        found, at = read_truncated(words, at, end, run * k + k - 1, low, little)
        return found + low - 1, at
    if code == GOLOMB:
        width = int64(63) - int64(leading_zeros(uint64(k)))
        rest, at = read_truncated(words, at, end, width, (int64(2) << width) - k, little)
        return run * k + rest, at
    low, at = read_bits(words, at, end, k, little)
    return with_digits(words, at, end, run << k | low, little)


@inline
def read(stream: Any, at: Any, part: Any) -> Any:
    """(The next number of a stream, the position behind it). `part` is the row of its code in the stream's tables and
    codes.
    """
    words, end, tables, codes, little = stream
    if at >= end:
        return int64(0), int64(BEYOND)
    entry = tables[part, first_of(peek(words, at, little), int64(TABLE_BITS), little)]
    if entry != 0:
        return int64(entry >> uint32(LENGTH_BITS)), at + int64(entry & uint32((1 << LENGTH_BITS) - 1))
    return read_any(words, at, end, codes[part, 0], codes[part, 1], little)


@kernel
def fill_table(table: Any, code: Any, k: Any, little: Any) -> Any:
    """For every TABLE_BITS bits, the number whose code they begin with, and its length; 0 if the code is longer."""
    words = np.zeros(1 + PADDING, np.uint64)
    for bits in range(table.size):
        words[0] = uint64(bits) << uint64(64 - TABLE_BITS) if little is None else uint64(bits)
        value, length = read_any(words, int64(0), int64(TABLE_BITS), code, k, little)
        table[bits] = uint32(value << LENGTH_BITS | length) if length <= TABLE_BITS and value < HUGE else uint32(0)


@kernel
def read_all(words: Any, at: Any, end: Any, tables: Any, codes: Any, little: Any, part: Any, out: Any) -> Any:
    """Fill `out` with the next numbers of one part; returns the position behind them."""
    stream = (words, int64(end), tables, codes, little)
    for i in range(out.size):
        out[i], at = read(stream, at, part)
    return at


@inline
def write_bits(words: Any, at: Any, value: Any, count: Any) -> Any:
    """Write a number of at most 63 bits into zeros of a big-endian stream; returns the position behind it. None: only
    that.
    """
    if words is not None and count > 0:
        word, room = at >> 6, int64(64) - (at & 63)
        if count <= room:
            words[word] |= uint64(value) << uint64(room - count)
        else:
            words[word] |= uint64(value) >> uint64(count - room)
            words[word + 1] |= uint64(value) << uint64(64 - (count - room))
    return at + count


@inline
def write_unary(words: Any, at: Any, value: Any) -> Any:
    return write_bits(words, at + value, int64(1), int64(1))


@inline
def write_gamma(words: Any, at: Any, value: Any) -> Any:
    width = int64(63) - int64(leading_zeros(uint64(value + 1)))
    at = write_unary(words, at, width)
    return write_bits(words, at, value + 1 - (int64(1) << width), width)


@inline
def write_zeta(words: Any, at: Any, value: Any, k: Any) -> Any:
    run = (int64(63) - int64(leading_zeros(uint64(value + 1)))) // k
    low, width = int64(1) << run * k, run * k + k - 1
    rest = value + 1 - low
    at = write_unary(words, at, run)
    if rest < low:
        return write_bits(words, at, rest, width)
    return write_bits(words, at, rest + low, width + 1)
