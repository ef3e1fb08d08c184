"""Lists of a stored graph, patched with arcs that were added and removed since.

The list of vertex v in the patched graph is slots begins[v]:begins[v + 1] of arrays that exist nowhere as a whole. Its
entries are those of the stored list, in their order, without the removed ones, followed by the added ones. So every
slot is either an entry of the store or an added arc, and which one follows from the overlay alone, without reading:

- `added_tails`, `added_heads` (and their weights): added arcs, sorted by tail and then head.
- `removed_tails`, `removed_slots`: removed arcs by their slot in the store, ascending, and the vertex of each.

Stored lists need no positions of their own: the stored list of v begins at begins[v] less the arcs added before v, plus
those removed.
"""

from __future__ import annotations

from typing import Any

from numba import int64, uint8, uint64

from isthmus.kernels.compile.kernel import inline, kernel

NOWHERE = -1


@inline
def first_at_least(ascending: Any, value: Any, low: Any) -> Any:
    """The first position from `low` on whose entry is at least `value`; near ones are found in few steps."""
    step, high = int64(1), int64(low)
    while high < ascending.size and int64(ascending[high]) < value:
        low = high + 1
        high += step
        step *= 2
    high = min(high, ascending.size)
    while low < high:
        middle = (low + high) // 2
        if int64(ascending[middle]) < value:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def stored_begin(v: Any, begins: Any, added_tails: Any, removed_tails: Any) -> Any:
    """Where the stored list of a vertex begins."""
    return begins[v] - first_at_least(added_tails, v, 0) + first_at_least(removed_tails, v, 0)


@inline
def survivor(rank: Any, stored: Any, low: Any, high: Any, removed_slots: Any) -> Any:
    """How many of the removed slots low:high, all in the list at `stored`, come before the entry with this rank among
    those that stay.
    """
    first = low
    while low < high:
        middle = (low + high) // 2
        if removed_slots[middle] - stored - (middle - first) <= rank:
            low = middle + 1
        else:
            high = middle
    return low - first


@kernel
def locate(
    firsts: Any,
    lasts: Any,
    begins: Any,
    vertices: Any,
    added_tails: Any,
    removed_tails: Any,
    removed_slots: Any,
    stored_firsts: Any,
    stored_lasts: Any,
    added_at: Any,
    removed_at: Any,
) -> None:
    """Where the entries of slots firsts[i]:lasts[i], none empty, come from: stored slots
    stored_firsts[i]:stored_lasts[i].

    The first added arc and the first removed slot from there on are added_at[i] and removed_at[i]. Quick if `firsts`
    ascends.
    """
    v, a, r = int64(0), int64(0), int64(0)
    for i in range(firsts.size):
        for end in range(2):
            slot = firsts[i] if end == 0 else lasts[i] - 1
            if slot < begins[v]:
                v, a, r = int64(0), int64(0), int64(0)
            v = first_at_least(begins[: vertices + 1], slot + 1, v) - 1
            a, r = first_at_least(added_tails, v, a), first_at_least(removed_tails, v, r)
            next_a, next_r = first_at_least(added_tails, v + 1, a), first_at_least(removed_tails, v + 1, r)
            stored, stored_end = begins[v] - a + r, begins[v + 1] - next_a + next_r
            stay, rank = stored_end - stored - (next_r - r), slot - begins[v]
            if rank >= stay:
                place, added, removed, after = stored_end, a + rank - stay, next_r, stored_end
            else:
                passed = survivor(rank, stored, r, next_r, removed_slots)
                place, added, removed = stored + rank + passed, a, r + passed
                after = place + 1
            if end == 0:
                stored_firsts[i], added_at[i], removed_at[i] = place, added, removed
            else:
                stored_lasts[i] = max(after, stored_firsts[i])


@kernel
def patch(
    firsts: Any,
    lasts: Any,
    places: Any,
    chosen: Any,
    limit: Any,
    stored_firsts: Any,
    added_at: Any,
    removed_at: Any,
    near: Any,
    begins: Any,
    added_tails: Any,
    added: Any,
    removed_slots: Any,
    stage: Any,
    out: Any,
) -> None:
    """Fill slots firsts[i]:lasts[i] into out[places[i]:], for i from `chosen` to `limit`; entry k of the store is in
    stage[k - near[i]].
    """
    for i in range(chosen, limit):
        slot, last, shift = firsts[i], lasts[i], places[i] - firsts[i]
        stored, a, r = stored_firsts[i], added_at[i], removed_at[i]
        while slot < last:
            till, group = last, a
            if a < added_tails.size:
                v = int64(added_tails[a])
                while group < added_tails.size and int64(added_tails[group]) == v:
                    group += 1
                till = min(last, begins[v + 1] - (group - a))
            while slot < till:
                run = till - slot
                if r < removed_slots.size and removed_slots[r] - stored < run:
                    run = removed_slots[r] - stored
                begin, place = uint64(stored - near[i]), uint64(slot + shift)
                for k in range(uint64(run)):
                    out[place + k] = stage[begin + k]
                slot += run
                stored += run
                if slot < till:  # the next entry was removed
                    stored += 1
                    r += 1
            count = min(group - a, last - slot)
            for k in range(count):
                out[slot + shift + k] = added[a + k]
            slot += count
            a += count


@kernel
def beyond(firsts: Any, lasts: Any, places: Any, chosen: Any, limit: Any, out: Any, most: Any) -> Any:
    """Whether a target that was filled in by `patch` is more than `most`."""
    largest = out.dtype.type(0)
    for i in range(chosen, limit):
        for k in range(uint64(places[i]), uint64(places[i] + lasts[i] - firsts[i])):
            largest = max(largest, out[k])
    return int64(largest) > most


@kernel
def cover(
    chosen: Any,
    stored_firsts: Any,
    stored_lasts: Any,
    sections: Any,
    widths: Any,
    block: Any,
    room: Any,
    near: Any,
    read_sections: Any,
    read_offsets: Any,
    read_lengths: Any,
    read_places: Any,
) -> Any:
    """The blocks that hold stored slots, of as many pieces from `chosen` on as fit in `room` bytes; a block that pieces
    share is read once.

    Returns (the first piece that does not fit, reads). Entry k of piece i will lie at k - near[i] of the buffer, in
    entries.
    """
    used, reads = int64(0), 0
    section, end = int64(-1), int64(0)
    i = chosen
    while i < stored_firsts.size:
        width = widths[sections[i]]
        first = stored_firsts[i] * width // block * block
        last = (stored_lasts[i] * width + block - 1) // block * block
        if stored_lasts[i] <= stored_firsts[i]:
            near[i] = stored_firsts[i]
            i += 1
            continue
        joins = sections[i] == section and read_offsets[reads - 1] <= first <= end
        more = max(last - end, 0) if joins else last - first
        if used + more > room:
            break
        if joins:
            read_lengths[reads - 1] += more
            end = max(end, last)
        else:
            section, end = sections[i], last
            read_sections[reads], read_offsets[reads], read_lengths[reads], read_places[reads] = (
                section,
                first,
                more,
                used,
            )
            reads += 1
        near[i] = (read_offsets[reads - 1] - read_places[reads - 1]) // width
        used += more
        i += 1
    return i, reads


# Changes


@kernel
def merge_added(
    tails: Any,
    heads: Any,
    weights: Any,
    stay: Any,
    new_tails: Any,
    new_heads: Any,
    new_weights: Any,
    out_tails: Any,
    out_heads: Any,
    out_weights: Any,
) -> None:
    """Added arcs that `stay`, and new ones, in order."""
    i, j, at = 0, 0, 0
    while i < tails.size or j < new_tails.size:
        if i < tails.size and not stay[i]:
            i += 1
            continue
        old = j >= new_tails.size
        if not old and i < tails.size:
            old = tails[i] < new_tails[j] or (tails[i] == new_tails[j] and heads[i] < new_heads[j])
        if old:
            out_tails[at], out_heads[at] = tails[i], heads[i]
            if weights.size:
                out_weights[at] = weights[i]
            i += 1
        else:
            out_tails[at], out_heads[at] = new_tails[j], new_heads[j]
            if new_weights.size:
                out_weights[at] = new_weights[j]
            j += 1
        at += 1


@kernel
def merge_removed(tails: Any, slots: Any, new_tails: Any, new_slots: Any, out_tails: Any, out_slots: Any) -> None:
    """Removed arcs and new ones, by slot."""
    i, j = 0, 0
    for at in range(out_slots.size):
        if j >= new_slots.size or (i < slots.size and slots[i] < new_slots[j]):
            out_tails[at], out_slots[at] = tails[i], slots[i]
            i += 1
        else:
            out_tails[at], out_slots[at] = new_tails[j], new_slots[j]
            j += 1


@kernel
def shift_begins(first: Any, last: Any, begins: Any, changed: Any, gains: Any, at: Any, gained: Any, out: Any) -> None:
    """Begins of vertices first:last when lists of `changed` have become longer by `gains`; those before `at` by
    `gained` in all.
    """
    for v in range(first, last):
        while at < changed.size and int64(changed[at]) < v:
            gained += gains[at]
            at += 1
        out[v] = begins[v] + gained


# Looking for arcs


@kernel
def find_added(
    vertices: Any,
    others: Any,
    edge_ends: Any,
    lengths: Any,
    once: Any,
    added_tails: Any,
    added_heads: Any,
    added_weights: Any,
    stored: Any,
    places: Any,
    exists: Any,
    old: Any,
    sought: Any,
) -> Any:
    """Look for arcs, sorted by vertex and other end, among the added ones: arc k has the place stored + k, behind all
    slots of the store.

    `sought` gets the others that must be looked for in the store; returns their number. They are those of edges that
    have no empty list and that, if looked for `once`, have no shorter one.
    """
    count, at = 0, int64(0)
    for i in range(vertices.size):
        end = edge_ends[i]
        own, other = lengths[end], lengths[end ^ 1]
        if own == 0 or other == 0 or (once[end >> 1] != 0 and own > other):
            continue
        v = int64(vertices[i])
        at = first_at_least(added_tails, v, at)
        low, high = at, first_at_least(added_tails, v + 1, at)
        stop = high
        while low < high:
            middle = (low + high) // 2
            if added_heads[middle] < others[i]:
                low = middle + 1
            else:
                high = middle
        if low < stop and added_heads[low] == others[i]:
            places[i] = stored + low
            if exists[end >> 1] == 0 and old.size:
                old[end >> 1] = added_weights[low]
            exists[end >> 1] = uint8(1)
        else:
            sought[count] = i
            count += 1
    return count


@kernel
def choose_blocks(
    sought: Any,
    vertices: Any,
    others: Any,
    begins: Any,
    added_tails: Any,
    removed_tails: Any,
    fences: Any,
    per_block: Any,
    lows: Any,
    highs: Any,
    blocks: Any,
) -> None:
    """The one block of the store that can hold each arc that is sought, and the part of its vertex's list in there;
    NOWHERE: none.

    fences[b] is the first target of block b. Lists are sorted, so the fences inside a list tell which of its blocks it
    is.
    """
    for j in range(sought.size):
        i = sought[j]
        v = int64(vertices[i])
        begin = stored_begin(v, begins, added_tails, removed_tails)
        end = stored_begin(v + 1, begins, added_tails, removed_tails)
        if begin >= end:
            blocks[j] = NOWHERE
            continue
        low, high = begin // per_block, (end - 1) // per_block
        while low < high:
            middle = (low + high + 1) // 2
            if fences[middle] <= others[i]:
                low = middle
            else:
                high = middle - 1
        blocks[j] = low
        lows[j], highs[j] = max(begin, low * per_block), min(end, (low + 1) * per_block)


@kernel
def plan_reads(
    blocks: Any, gap: Any, room: Any, near: Any, begins: Any, lengths: Any, places: Any, cuts: Any, read_cuts: Any
) -> Any:
    """Reads of ascending blocks, through gaps of up to `gap` blocks, in as many portions as buffers of `room` blocks
    need.

    Portion p has the blocks cuts[p]:cuts[p + 1] and the reads read_cuts[p]:read_cuts[p + 1]: lengths[r] blocks from
    begins[r] on go to block places[r] of a buffer. Block blocks[k] will be block blocks[k] - near[k] there. Returns the
    number of portions.
    """
    portions, reads, used = 0, 0, int64(0)
    cuts[0], read_cuts[0] = 0, 0
    for k in range(blocks.size):
        last = begins[reads - 1] + lengths[reads - 1] - 1 if reads > read_cuts[portions] else int64(-1)
        joins = last >= 0 and blocks[k] - last <= gap
        more = blocks[k] - last if joins else int64(1)
        if used + more > room:
            portions += 1
            cuts[portions], read_cuts[portions] = k, reads
            used, joins, more = int64(0), False, int64(1)
        if joins:
            lengths[reads - 1] += more
        else:
            begins[reads], lengths[reads], places[reads] = blocks[k], 1, used
            reads += 1
        used += more
        near[k] = begins[reads - 1] - places[reads - 1]
    portions += 1
    cuts[portions], read_cuts[portions] = blocks.size, reads
    return portions


@kernel
def find_stored(
    order: Any,
    first: Any,
    last: Any,
    sought: Any,
    others: Any,
    lows: Any,
    highs: Any,
    near: Any,
    per_block: Any,
    stage: Any,
    removed_slots: Any,
    places: Any,
) -> None:
    """Look for arcs in blocks that are near; order[first:last] are the ones whose blocks are. Removed arcs are not
    found.

    Slot s is in stage[s - near[k] * per_block].
    """
    for k in range(first, last):
        j, shift = order[k], near[k] * per_block
        i = sought[j]
        low, high = lows[j], highs[j]
        while low < high:
            middle = (low + high) // 2
            if stage[middle - shift] < others[i]:
                low = middle + 1
            else:
                high = middle
        if low < highs[j] and stage[low - shift] == others[i]:
            at = first_at_least(removed_slots, low, 0)
            if at == removed_slots.size or removed_slots[at] != low:
                places[i] = low


# A new store


@kernel
def sort_lists(
    first: Any,
    last: Any,
    begins: Any,
    added_tails: Any,
    low: Any,
    targets: Any,
    weights: Any,
    out: Any,
    out_weights: Any,
) -> None:
    """Lists of vertices first:last with their entries in order: those of the store and the added ones, which follow
    them, are merged.

    `targets` has slots from `low` on.
    """
    a = first_at_least(added_tails, first, 0)
    for v in range(first, last):
        next_a = a
        while next_a < added_tails.size and int64(added_tails[next_a]) == v:
            next_a += 1
        i, end = begins[v] - low, begins[v + 1] - low
        half = end - (next_a - a)
        j = half
        for at in range(begins[v] - low, end):
            if j >= end or (i < half and targets[i] < targets[j]):
                k = i
                i += 1
            else:
                k = j
                j += 1
            out[at] = targets[k]
            if weights.size:
                out_weights[at] = weights[k]
        a = next_a
