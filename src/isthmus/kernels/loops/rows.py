"""Active vertices and the positions of their edges: activity per partition, lists of rows, extents to read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint8

from isthmus.kernels.compile.atomics import atomic_exchange
from isthmus.kernels.compile.kernel import inline, kernel


@inline
def count_blocks(begin: Any, end: Any, width: Any, block: Any, last: Any) -> Any:
    """(blocks that the entries begin:end touch beyond block `last`, the last of them)."""
    first, final = begin * width // block, (end * width - 1) // block
    return max(int64(0), final - max(first, last + 1) + 1), final


@inline
def place_of(value: Any, bounds: Any) -> Any:
    """The last of the ascending bounds that is at most `value`; -1: none is. NumPy's search would load SciPy with the
    kernel.
    """
    low, high = int64(0), int64(bounds.size)
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inline
def skip_unmarked(words: Any, u: Any, last: Any) -> Any:
    """Skip unmarked vertices after u, eight at a time; returns the last one skipped. `words` are the marks as 64-bit
    words.
    """
    while (u + 1) & 7 == 0 and u + 9 <= last and words[(u + 1) >> 3] == 0:
        u += 8
    return u


@kernel
def activity_of_rows(
    vertices: Any,
    list_begins: Any,
    list_ends: Any,
    cuts: Any,
    width: Any,
    weight_width: Any,
    block: Any,
    shares: Any,
    active: Any,
    edges: Any,
    blocks: Any,
) -> Any:
    """Add up active vertices, their edges and the blocks they touch, per partition. `vertices` ascend.

    `shares`: a block that several lists touch counts once.
    """
    p = 0
    last = weight_last = int64(-1)
    for i in range(vertices.size):
        u = int64(vertices[i])
        begin, end = list_begins[u], list_ends[u]
        if begin == end:
            continue
        if cuts[p + 1] <= begin:
            p = place_of(begin, cuts)
        while begin < end:
            stop = min(end, cuts[p + 1])
            active[p] += 1
            edges[p] += stop - begin
            if not shares:
                last = weight_last = int64(-1)
            more, last = count_blocks(begin, stop, width, block, last)
            blocks[p] += more
            if weight_width:
                more, weight_last = count_blocks(begin, stop, weight_width, block, weight_last)
                blocks[p] += more
            begin = stop
            if begin < end:
                p += 1


@kernel
def activity_of_range(
    p: Any,
    first: Any,
    last: Any,
    marks: Any,
    all_active: Any,
    list_begins: Any,
    list_ends: Any,
    begin: Any,
    end: Any,
    width: Any,
    weight_width: Any,
    block: Any,
    shares: Any,
    active: Any,
    edges: Any,
    blocks: Any,
) -> Any:
    """The same for one partition whose active vertices are marked; `all_active`: all of them."""
    last_block = weight_last = int64(-1)
    vertices = total = touched = int64(0)
    words = marks.view(np.uint64)
    u = int64(first) - 1
    if all_active and shares and begin < end:
        for v in range(first, last):
            size = min(list_ends[v], end) - max(list_begins[v], begin)
            vertices += size > 0
            total += max(int64(0), size)
        if total == end - begin:  # no gaps: count it as one list
            u = int64(last)
            touched, _ = count_blocks(begin, end, width, block, last_block)
            if weight_width:
                touched += count_blocks(begin, end, weight_width, block, weight_last)[0]
        else:
            vertices = total = int64(0)
    while u + 1 < last:
        u += 1
        if not all_active and marks[u] == 0:
            u = skip_unmarked(words, u, last)
            continue
        low, high = max(list_begins[u], begin), min(list_ends[u], end)
        if low >= high:
            continue
        vertices += 1
        total += high - low
        if not shares:
            last_block = weight_last = int64(-1)
        more, last_block = count_blocks(low, high, width, block, last_block)
        touched += more
        if weight_width:
            more, weight_last = count_blocks(low, high, weight_width, block, weight_last)
            touched += more
    active[p] = vertices
    edges[p] = total
    blocks[p] = touched


@kernel
def arcs_between(begin: Any, end: Any, first: Any, last: Any, list_begins: Any, list_ends: Any) -> Any:
    """The number of slots in begin:end that hold arcs of vertices first:last."""
    total = int64(0)
    for v in range(first, last):
        total += max(int64(0), min(list_ends[v], end) - max(list_begins[v], begin))
    return total


@kernel
def list_marked(marks: Any, all_active: Any, first: Any, last: Any, out: Any) -> Any:
    """List the marked vertices of first:last; returns how many."""
    count = 0
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if all_active or marks[u]:
            out[count] = u
            count += 1
        else:
            u = skip_unmarked(words, u, last)
    return count


@kernel
def rows_in_range(
    vertices: Any,
    list_begins: Any,
    list_ends: Any,
    begin: Any,
    end: Any,
    base: Any,
    weight_base: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
) -> Any:
    """Positions of the rows in a buffer that holds the edges begin:end from position begin - base on."""
    for i in range(vertices.size):
        u = int64(vertices[i])
        low, high = max(list_begins[u], begin), min(list_ends[u], end)
        begins[i] = low - base
        weight_begins[i] = low - weight_base
        lengths[i] = max(int64(0), high - low)


@inline
def extend(
    begin: Any, end: Any, width: Any, block: Any, gap: Any, extents: Any, offsets: Any, lengths: Any, used: Any
) -> Any:
    """Add the entries begin:end to the extents to read; returns (extents, bytes used in the buffer).

    They join the last extent if they start at most `gap` bytes after its end.
    """
    first, final = begin * width // block * block, ((end * width - 1) // block + 1) * block
    if extents > 0:
        last_end = offsets[extents - 1] + lengths[extents - 1]
        if first <= last_end + gap and first >= offsets[extents - 1]:
            more = max(int64(0), final - last_end)
            lengths[extents - 1] += more
            return extents, used + more
    offsets[extents] = first
    lengths[extents] = final - first
    return extents + 1, used + final - first


@inline
def growth(begin: Any, end: Any, width: Any, block: Any, gap: Any, extents: Any, offsets: Any, lengths: Any) -> Any:
    """Bytes that `extend` would add."""
    first, final = begin * width // block * block, ((end * width - 1) // block + 1) * block
    if extents > 0:
        last_end = offsets[extents - 1] + lengths[extents - 1]
        if first <= last_end + gap and first >= offsets[extents - 1]:
            return max(int64(0), final - last_end)
    return final - first


@kernel
def clip_rows(vertices: Any, list_begins: Any, list_ends: Any, low: Any, high: Any, begins: Any, ends: Any) -> Any:
    """Clip the list of each vertex to the edges low:high."""
    for i in range(vertices.size):
        u = int64(vertices[i])
        begins[i] = max(list_begins[u], low)
        ends[i] = min(list_ends[u], high)


@kernel
def fill_with_rows(
    vertices: Any,
    edge_begins: Any,
    edge_ends: Any,
    row: Any,
    skip: Any,
    width: Any,
    weight_width: Any,
    block: Any,
    gap: Any,
    room: Any,
    weight_room: Any,
    kept: Any,
    edges: Any,
    begins: Any,
    weight_begins: Any,
    lengths: Any,
    at: Any,
    sizes: Any,
    weight_at: Any,
    weight_sizes: Any,
) -> Any:
    """Fill one buffer: extents for rows from `row` on (without its first `skip` edges) until a zone or `kept` is full.

    For each row kept, `edges` is its first edge, and `begins` its position in the buffer's zones, in entries. Returns
    (next row, next skip, rows kept, extents, weight extents).
    """
    extents = weight_extents = 0
    used = weight_used = int64(0)
    out = 0
    while row < vertices.size and out < kept.size:
        begin, end = edge_begins[row] + skip, edge_ends[row]
        if begin >= end:
            row += 1
            skip = 0
            continue
        # Take as much of the list as fits; some of it always fits into an empty buffer.
        stop = end
        while True:
            need = growth(begin, stop, width, block, gap, extents, at, sizes)
            more = (
                growth(begin, stop, weight_width, block, gap, weight_extents, weight_at, weight_sizes)
                if weight_width
                else int64(0)
            )
            if used + need <= room and weight_used + more <= weight_room:
                break
            if out > 0:
                return row, skip, out, extents, weight_extents  # the next buffer starts with this row
            fit = room // width - 2 * block // width
            if weight_width:
                fit = min(fit, weight_room // weight_width - 2 * block // weight_width)
            stop = begin + max(int64(1), min(stop - begin - 1, fit))
        extents, used = extend(begin, stop, width, block, gap, extents, at, sizes, used)
        begins[out] = (used - (at[extents - 1] + sizes[extents - 1]) + begin * width) // width
        if weight_width:
            weight_extents, weight_used = extend(
                begin, stop, weight_width, block, gap, weight_extents, weight_at, weight_sizes, weight_used
            )
            weight_end = weight_at[weight_extents - 1] + weight_sizes[weight_extents - 1]
            weight_begins[out] = (weight_used - weight_end + begin * weight_width) // weight_width
        kept[out] = vertices[row]
        edges[out] = begin
        lengths[out] = stop - begin
        out += 1
        if stop < end:
            return row, skip + stop - begin, out, extents, weight_extents
        row += 1
        skip = 0
    return row, skip, out, extents, weight_extents


@kernel
def edges_of_rows(vertices: Any, list_begins: Any, list_ends: Any) -> Any:
    total = int64(0)
    for i in range(vertices.size):
        u = int64(vertices[i])
        total += list_ends[u] - list_begins[u]
    return total


@kernel
def edges_of_range(first: Any, last: Any, marks: Any, list_begins: Any, list_ends: Any) -> Any:
    total = int64(0)
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if marks[u]:
            total += list_ends[u] - list_begins[u]
        else:
            u = skip_unmarked(words, u, last)
    return total


@kernel
def again_in_range(
    first: Any, last: Any, begin: Any, end: Any, list_begins: Any, list_ends: Any, marks: Any, out: Any
) -> Any:
    """Unmark the vertices of first:last whose edges are all in begin:end, and list them in `out`; returns how many."""
    count = 0
    words = marks.view(np.uint64)
    u = int64(first) - 1
    while u + 1 < last:
        u += 1
        if marks[u] == 0:
            u = skip_unmarked(words, u, last)
        elif list_begins[u] >= begin and list_ends[u] <= end and atomic_exchange(marks, u, uint8(0)):
            out[count] = u
            count += 1
    return count


@kernel
def again_of_rows(vertices: Any, lengths: Any, list_begins: Any, list_ends: Any, marks: Any, out: Any) -> Any:
    """Unmark the marked rows that are whole lists, and list their indices in `out`; returns how many."""
    count = 0
    for i in range(vertices.size):
        u = int64(vertices[i])
        if marks[u] and lengths[i] == list_ends[u] - list_begins[u] and atomic_exchange(marks, u, uint8(0)):
            out[count] = i
            count += 1
    return count
