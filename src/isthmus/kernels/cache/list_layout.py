"""Places of cached lists: one after the other, or in chunks of equal size."""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import inline, kernel


@kernel
def lay_out(
    lists: Any,
    count: Any,
    chosen: Any,
    held: Any,
    list_begins: Any,
    list_ends: Any,
    begins: Any,
    targets: Any,
    weights: Any,
    weighted: Any,
) -> Any:
    """Rearrange the cache from the first `count` of `lists` to all chosen lists; returns how many these are.

    Lists that stay move to the front and keep their order; the others are dropped; after them, space is reserved for
    chosen lists that are not there yet. It works in place, since there may be no free memory.
    """
    staying = at = int64(0)
    for i in range(count):
        u = int64(lists[i])
        if not held[u]:
            continue
        if not chosen[u]:
            held[u] = 0
            continue
        begin = int64(begins[u])
        size = list_ends[u] - list_begins[u]
        if begin != at:
            for k in range(size):
                targets[at + k] = targets[begin + k]
            if weighted:
                for k in range(size):
                    weights[at + k] = weights[begin + k]
        begins[u] = at
        lists[staying] = u
        at += size
        staying += 1
    for u in range(chosen.size):
        if chosen[u] and not held[u]:
            begins[u] = at
            lists[staying] = u
            at += list_ends[u] - list_begins[u]
            staying += 1
    return staying


@kernel
def drop_others(
    first: Any, last: Any, chosen: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any
) -> Any:
    """Drop the lists that have a place and are not chosen; counts their entries by chunk."""
    for key in range(first, last):
        if begins[key] >= 0 and not chosen[key]:
            drop(key, begins, sizes, held, chunk, dropped)


@kernel
def drop_keys(keys: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any) -> Any:
    """Drop these lists, if they have a place."""
    for i in range(keys.size):
        key = int64(keys[i])
        if begins[key] >= 0:
            drop(key, begins, sizes, held, chunk, dropped)


@inline
def drop(key: Any, begins: Any, sizes: Any, held: Any, chunk: Any, dropped: Any) -> Any:
    dropped[int64(begins[key]) // chunk] += int64(sizes[key])
    begins[key] = -1
    sizes[key] = 0
    held[key] = 0


@kernel
def allocate(keys: Any, lengths: Any, order: Any, chunk: Any, used: Any, begins: Any, sizes: Any, chosen: Any) -> Any:
    """Give lists, of these lengths, places behind the last lists of chunks, each in one chunk; a list that fits nowhere
    is not chosen any more.

    Chunks are taken in `order`. A list that does not fit the current one goes into the first that has space for it.
    """
    place = int64(0)
    most = int64(chunk)  # no chunk has more space
    for i in range(keys.size):
        key = int64(keys[i])
        size = int64(lengths[i])
        if size > most:
            chosen[key] = 0
            continue
        if used[order[place]] + size > chunk:
            best, place_found = int64(0), int64(-1)
            for k in range(order.size):
                space = chunk - used[order[k]]
                best = max(best, space)
                if space >= size:
                    place_found = k
                    break
            if place_found < 0:
                most = best
                chosen[key] = 0
                continue
            place = place_found
        c = int64(order[place])
        begins[key] = c * chunk + used[c]
        sizes[key] = size
        used[c] += size
