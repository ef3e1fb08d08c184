"""Kernels that find wrong values before edges disappear: as kernels/stream/correction.py, whose words they use, with
many threads per list.

What they find is listed, each vertex once: `words` has a bit for every vertex, and the thread that sets it writes the
vertex behind the others of the list. (A GPU has no atomics on bytes.) Rows are those of `skeleton.py`.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of
from isthmus.devices.cuda.kernels.skeleton import TURNS
from isthmus.kernels.stream.correction import NOBODY

FROM_CONSTANT, FROM_NUMBER, FROM_ARRAY = range(3)  # where the initial value of a vertex comes from

LISTED = '''

@called
def add_once(v, words, found, count):
    """Add a vertex to a list, if it is not there."""
    bit = np.uint32(1 << (v & 31))
    if (words[v >> 5] & bit) == 0 and (atomic_or(words, v >> 5, bit) & bit) == 0:
        found[atomic_add(count, 0, 1)] = v
'''
TEXT = (
    TURNS
    + LISTED
    + f"""

NOBODY, FROM_NUMBER, FROM_ARRAY = np.uint32({int(NOBODY)}), {FROM_NUMBER}, {FROM_ARRAY}
"""
    + '''

@called
def orphan_heads_share(thread, threads, tails, heads, parents, words, found, count):
    """The heads of these arcs that depend on them become orphans."""
    for i in range(thread, tails.size, threads):
        v = np.int64(heads[i])
        if parents[v] == tails[i]:
            add_once(v, words, found, count)


@called
def orphan_children_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, line, targets, weights,
    parents, words, found,
    count
):
    """All vertices that depend on those of the rows become orphans."""
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            begin, end = begins[row], begins[row] + lengths[row]
            for e in range(first_turn(begin, lane, width, line), end, width):
                if e >= begin:
                    v = np.int64(targets[e])
                    if parents[v] == vertices[row]:
                        add_once(v, words, found, count)


@called
def give_up_share(
    thread, threads, orphans, values, levels, has_levels, parents, changed, changes, change_count, initial, initials,
    kind
):
    """These vertices, each given once, lose their value. They are noted as changed."""
    for i in range(thread, orphans.size, threads):
        v = np.int64(orphans[i])
        if changed[v] == 0:
            changed[v] = 1
            changes[atomic_add(change_count, 0, 1)] = v
        if kind == FROM_ARRAY:
            values[v] = initials[v]
        elif kind == FROM_NUMBER:
            values[v] = v
        else:
            values[v] = initial
        if has_levels:
            levels[v] = 0
        parents[v] = NOBODY
'''
)


def build(gpu: bool = True) -> ModuleType:
    """The kernels: `orphan_heads`, `orphan_children`, `give_up`."""
    return module_of("correction", TEXT, gpu)
