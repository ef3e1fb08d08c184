"""Lists of neighbours in WebGraph's BV format (Boldi and Vigna, The WebGraph Framework I: Compression Techniques).

The list of a vertex has its length; how many vertices back the list is that it refers to (0: none); which blocks of
that list it shares, alternately taken and skipped; intervals of consecutive neighbours; and all others, as differences.
Numbers that may be negative, the first ones' differences to the vertex, are written as 0, -1, 1, -2, ... -> 0, 1, 2, 3,
...

Lists are decoded in order, one behind the other, into an array that begins with those that the next ones may refer to.
All counts of a list are checked before anything is written. Encoding tries all lists in the window and takes the one
that needs fewest bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.compile.kernel import (
    program_inline as inline,  # counts no references to arrays: four times as fast
)
from isthmus.kernels.text.bit_codes import read, write_gamma, write_unary, write_zeta

DEGREE, REFERENCE, BLOCK_COUNT, BLOCK, INTERVAL, RESIDUAL = range(6)  # what has a code of its own
# Entries of `shape`: counts of the graph, and the shortest interval (0: none).
VERTICES, ARCS, WINDOW, SHORTEST = range(4)
DONE, SHORT, FULL, BAD_DEGREE, TOO_MANY, BAD_REFERENCE, BAD_BLOCKS, BAD_INTERVALS, BAD_NEIGHBOUR, TWICE = range(10)


@inline
def whole(natural: Any) -> Any:
    """0, 1, 2, 3, ... as 0, -1, 1, -2, ..."""
    return (natural >> 1) ^ -(natural & 1)


@inline
def natural(whole: Any) -> Any:
    return whole << 1 if whole >= 0 else -(whole << 1) - 1


@inline
def copy_blocks(stream: Any, at: Any, lists: Any, begin: Any, end: Any, out: Any, degree: Any) -> Any:
    """Copy the shared blocks of the list begin:end to `out`; returns (status, how many neighbours, position)."""
    blocks, at = read(stream, at, BLOCK_COUNT)
    copied = int64(0)
    if blocks > end - begin + 1:
        return BAD_BLOCKS, copied, at
    for block in range(blocks + 1):
        if block == blocks:  # the last one has no length in the file
            size = end - begin
        else:
            size, at = read(stream, at, BLOCK)
            size += block > 0
        if size > end - begin:
            return BAD_BLOCKS, copied, at
        if block & 1 == 0:
            if copied + size > degree:
                return BAD_BLOCKS, copied, at
            for e in range(size):
                lists[out + copied + e] = lists[begin + e]
            copied += size
        begin += size
    return DONE, copied, at


@inline
def read_intervals(stream: Any, at: Any, x: Any, shape: Any, extra: Any, spans: Any) -> Any:
    """Intervals of neighbours into `spans`, first and length; returns (status, how many, neighbours left, position)."""
    count, at = read(stream, at, INTERVAL)
    if count > extra // shape[SHORTEST]:
        return BAD_INTERVALS, int64(0), extra, at
    behind = int64(0)
    for i in range(count):
        gap, at = read(stream, at, INTERVAL)
        size, at = read(stream, at, INTERVAL)
        first = x + whole(gap) if i == 0 else behind + 1 + gap
        size += shape[SHORTEST]
        if size > extra:
            return BAD_INTERVALS, count, extra, at
        if first < 0 or first + size > shape[VERTICES]:
            return BAD_NEIGHBOUR, count, extra, at
        spans[i, 0], spans[i, 1] = first, size
        extra -= size
        behind = first + size
    return DONE, count, extra, at


@inline
def merge_list(
    stream: Any,
    at: Any,
    x: Any,
    vertices: Any,
    lists: Any,
    out: Any,
    degree: Any,
    copied: Any,
    spans: Any,
    intervals: Any,
    residuals: Any,
) -> Any:
    """Merge copied neighbours, intervals and the residuals of the stream, all ascending; returns (status, position)."""
    behind = out + degree
    c = behind - copied
    # to the end of the list: what is written never overtakes what is still to be read.
    for e in range(copied - 1, -1, -1):
        lists[c + e] = lists[out + e]
    none = int64(vertices)
    copy = int64(lists[c]) if copied else none
    span, last = (spans[0, 0], spans[0, 0] + spans[0, 1] - 1) if intervals else (none, none)
    interval = 0
    residual = none
    if residuals:
        gap, at = read(stream, at, RESIDUAL)
        residual = x + whole(gap)
        if residual < 0 or residual >= vertices:
            return BAD_NEIGHBOUR, at
    before = int64(-1)
    for p in range(out, behind):
        v = min(copy, min(span, residual))
        if v == before:
            return TWICE, at
        lists[p] = before = v
        if v == copy:
            c += 1
            copy = int64(lists[c]) if c < behind else none
        elif v == span:
            span += 1
            if v == last:
                interval += 1
                span, last = (
                    (spans[interval, 0], spans[interval, 0] + spans[interval, 1] - 1)
                    if interval < intervals
                    else (none, none)
                )
        else:
            residuals -= 1
            residual = none
            if residuals:
                gap, at = read(stream, at, RESIDUAL)
                residual = v + 1 + gap
                if residual >= vertices:
                    return BAD_NEIGHBOUR, at
    return DONE, at


@inline
def read_residuals(stream: Any, at: Any, x: Any, vertices: Any, lists: Any, out: Any, degree: Any) -> Any:
    """A list that has nothing else; returns (status, position)."""
    gap, at = read(stream, at, RESIDUAL)
    v = x + whole(gap)
    if v < 0 or v >= vertices:
        return BAD_NEIGHBOUR, at
    lists[out] = v
    for p in range(out + 1, out + degree):
        gap, at = read(stream, at, RESIDUAL)
        v += 1 + gap
        if v >= vertices:
            return BAD_NEIGHBOUR, at
        lists[p] = v
    return DONE, at


@inline
def decode_list(
    stream: Any, at: Any, shape: Any, x: Any, local: Any, lists: Any, bounds: Any, degree: Any, spans: Any
) -> Any:
    """The list of vertex x, which is list `local` in the array; returns (status, position)."""
    out, copied, intervals = bounds[local], int64(0), int64(0)
    if shape[WINDOW] > 0:
        back, at = read(stream, at, REFERENCE)
        if back > min(shape[WINDOW], x):
            return BAD_REFERENCE, at
        if back > 0:
            begin, end = bounds[local - back], bounds[local - back + 1]
            status, copied, at = copy_blocks(stream, at, lists, begin, end, out, degree)
            if status != DONE:
                return status, at
    residuals = degree - copied
    if residuals == 0:
        return DONE, at
    if shape[SHORTEST] > 0:
        status, intervals, residuals, at = read_intervals(stream, at, x, shape, residuals, spans)
        if status != DONE:
            return status, at
    if residuals == degree:
        return read_residuals(stream, at, x, shape[VERTICES], lists, out, degree)
    return merge_list(stream, at, x, shape[VERTICES], lists, out, degree, copied, spans, intervals, residuals)


@kernel
def decode(
    words: Any,
    at: Any,
    stop: Any,
    tables: Any,
    codes: Any,
    little: Any,
    shape: Any,
    x: Any,
    local: Any,
    count: Any,
    arcs: Any,
    lists: Any,
    bounds: Any,
    spans: Any,
) -> Any:
    """Decode the lists of `count` vertices from x on, after `arcs` arcs; that of x becomes list `local`, at
    bounds[local] of `lists`.

    `bounds` says where lists begin, and gets where they end. Returns (status, position, vertices decoded, degree): the
    position and the degree are those of the list that could not be decoded, because the words end (SHORT), the array is
    full or the file is wrong.
    """
    stream = (words, int64(stop), tables, codes, little)
    for done in range(count):
        start = at
        degree, at = read(stream, at, DEGREE)
        status = DONE
        if at > stop:  # zeros behind the end were read: this is not the degree
            return SHORT, start, done, int64(0)
        if degree > shape[VERTICES]:
            status = BAD_DEGREE
        elif arcs + degree > shape[ARCS]:
            status = TOO_MANY
        elif bounds[local] + degree > lists.size:
            return FULL, start, done, degree
        elif degree > 0:
            status, at = decode_list(stream, at, shape, x + done, local, lists, bounds, degree, spans)
        if at > stop:
            return SHORT, start, done, degree
        if status != DONE:
            return status, start, done, degree
        arcs += degree
        bounds[local + 1] = bounds[local] + degree
        local += 1
    return DONE, at, int64(count), int64(0)


@inline
def compare(lists: Any, begin: Any, end: Any, other: Any, other_end: Any, blocks: Any, extras: Any) -> Any:
    """Lengths of the blocks that a list shares with another and does not, in turn, and its other neighbours; returns
    how many of both.
    """
    count = extra = 0
    size = int64(0)
    taking = True
    while begin < end and other < other_end:
        u, v = lists[begin], lists[other]
        if u < v:
            extras[extra] = u
            extra += 1
            begin += 1
        elif taking == (u == v):
            size += 1
            begin += taking
            other += 1
        else:
            blocks[count] = size
            count += 1
            size = int64(0)
            taking = not taking
    if taking and other < other_end:  # nothing of what remains is shared
        blocks[count] = size
        count += 1
    while begin < end:
        extras[extra] = lists[begin]
        extra += 1
        begin += 1
    return count, extra


@inline
def write_extras(words: Any, at: Any, x: Any, shortest: Any, k: Any, extras: Any, extra: Any) -> Any:
    """Neighbours as intervals and residuals; returns the position behind them."""
    intervals = 0
    e = 0
    while e < extra:
        run = run_of(extras, e, extra)
        intervals += run >= shortest
        e += run
    at = write_gamma(words, at, int64(intervals))
    behind = e = 0
    first = True
    while e < extra and intervals:
        run = run_of(extras, e, extra)
        if run >= shortest:
            left = int64(extras[e])
            at = write_gamma(words, at, natural(left - x) if first else left - behind - 1)
            at = write_gamma(words, at, int64(run - shortest))
            behind, first = left + run, False
        e += run
    before = int64(0)
    first = True
    e = 0
    while e < extra:
        run = run_of(extras, e, extra)
        for i in range(e, e + run if run < shortest else e):
            v = int64(extras[i])
            at = write_zeta(words, at, natural(v - x) if first else v - before - 1, k)
            before, first = v, False
        e += run
    return at


@inline
def run_of(extras: Any, e: Any, extra: Any) -> Any:
    """How many numbers from e on follow each other without a gap."""
    run = int64(1)
    while e + run < extra and int64(extras[e + run]) == int64(extras[e]) + run:
        run += 1
    return run


@inline
def write_list(
    words: Any,
    at: Any,
    x: Any,
    back: Any,
    window: Any,
    shortest: Any,
    k: Any,
    lists: Any,
    bounds: Any,
    local: Any,
    blocks: Any,
    extras: Any,
) -> Any:
    """A list that is not empty, by the one `back` before it, without its length; returns the position. None: write
    nothing.
    """
    other, other_end = (bounds[local - back], bounds[local - back + 1]) if back else (int64(0), int64(0))
    count, extra = compare(lists, bounds[local], bounds[local + 1], other, other_end, blocks, extras)
    if window:
        at = write_unary(words, at, int64(back))
    if back:
        at = write_gamma(words, at, int64(count))
        for b in range(count):
            at = write_gamma(words, at, blocks[b] - (b > 0))
    if extra:
        at = write_extras(words, at, x, shortest, k, extras, extra)
    return at


@kernel
def encode(
    words: Any,
    at: Any,
    x: Any,
    local: Any,
    count: Any,
    window: Any,
    most_chained: Any,
    shortest: Any,
    k: Any,
    lists: Any,
    bounds: Any,
    chained: Any,
    offsets: Any,
) -> Any:
    """Write lists local:local+count, of the vertices from x on, into zeros; returns the position behind them.

    `chained` says how many lists must be decoded before each one, at most `most_chained`. `offsets` gets where each
    list ends.
    """
    most = int64(0)
    for i in range(local, local + count):
        most = max(most, bounds[i + 1] - bounds[i])
    extras = np.empty(most, lists.dtype)
    for i in range(max(local - window, 0), local):
        most = max(most, bounds[i + 1] - bounds[i])
    blocks = np.empty(most + 2, np.int64)
    for i in range(local, local + count):
        degree = bounds[i + 1] - bounds[i]
        at = write_gamma(words, at, degree)
        chained[i] = 0
        if degree:
            best, fewest = (
                int64(0),
                write_list(None, int64(0), x, 0, window, shortest, k, lists, bounds, i, blocks, extras),
            )
            for back in range(1, min(window, i) + 1):
                if chained[i - back] < most_chained and bounds[i - back] < bounds[i - back + 1]:
                    bits = write_list(None, int64(0), x, back, window, shortest, k, lists, bounds, i, blocks, extras)
                    if bits < fewest:
                        best, fewest = int64(back), bits
            chained[i] = chained[i - best] + 1 if best else 0
            at = write_list(words, at, x, best, window, shortest, k, lists, bounds, i, blocks, extras)
        offsets[i - local] = at
        x += 1
    return at


@kernel
def write_gammas(words: Any, at: Any, values: Any) -> Any:
    """Write numbers in gamma code into zeros; returns the position behind them."""
    for i in range(values.size):
        at = write_gamma(words, at, int64(values[i]))
    return at
