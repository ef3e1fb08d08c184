"""The loops of a program on a GPU: push, pull and seek over rows of edges, with 1, 32 or 256 threads per row.

A row is a vertex and where its edges lie. Rows are first sorted into three kinds by their length
(`devices/cuda/kernels/rows.py`); each kind is one launch, with as many threads per row as suit it (WIDTHS). No kernel
needs to know how many there are: the grid has a fixed size, and its threads go on from row to row.

The `width` threads of a row are neighbours. They take its edges in turn, beginning at the line of `line` entries that
holds its first edge, so that a warp reads whole aligned lines: 128 bytes, one request on the link (EMOGI). A thread
before the first edge waits for its next turn. Short rows have a thread each in near memory. In mapped memory a line's
worth of threads reads each of them, too (`far_widths`): one thread would request every sector of its list by itself.

`source`, `edge`, `nothing`, `sent`, `received` and `found` are those of kernels.skeleton. Every thread of a row calls
`source`. Each thread of a row that is pulled has a total of its own, so `received` gets several totals of a vertex, as
it does from several pieces of a list on the processor. Marks are written without atomics, as all write the same byte
(Grus); the next frontier is made by a scan.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.head import module_of

WARP, BLOCK = 32, 256  # threads
LONG, VERY_LONG = 32, 1024  # edges from which a row gets a warp, and a block
WIDTHS = (1, WARP, BLOCK)  # threads per row, by kind
LINE = 128  # bytes of a request


def line_of(*widths: int) -> int:
    """Entries after which lines begin in arrays with entries of these widths, of which those of width 0 are not
    read.
    """
    return LINE // min(width for width in widths if width)


def far_widths(line: int) -> tuple[int, ...]:
    """Threads per row, by kind, where kernels read far memory: a line of entries for short rows, at most a warp."""
    return (min(WARP, line), *WIDTHS[1:])


TURNS = '''

@called
def first_turn(begin, lane, width, line):
    """The first entry that a lane takes; it may lie before the row."""
    return begin - begin % line + lane if width > 1 else begin
'''
PUSH = """

@called
def push_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, line, list_begins, list_ends,
    targets, weights,
    state, before, params, marks
):
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            u = np.int64(vertices[row])
            begin, end = begins[row], begins[row] + lengths[row]
            x = source(u, list_ends[u] - list_begins[u], before, params)
            for e in range(first_turn(begin, lane, width, line), end, width):
                if e >= begin:
                    v = np.int64(targets[e])
                    if edge(x, u, v, {weight}, state, params):
                        marks[v] = 1
"""
PULL = """

@called
def push_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, line, list_begins, list_ends,
    targets, weights,
    state, before, params, marks
):
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            v = np.int64(vertices[row])
            begin, end = begins[row], begins[row] + lengths[row]
            total, any_edge = nothing(params), False
            for e in range(first_turn(begin, lane, width, line), end, width):
                if e >= begin:
                    total, any_edge = sent(total, np.int64(targets[e]), {weight}, state, params), True
            if any_edge:
                received(v, total, state, params)
"""
SEEK = """

@called
def seek_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, line, list_begins, list_ends,
    targets, weights,
    state, before, params, marks
):
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            u = np.int64(vertices[row])
            begin, end = begins[row], begins[row] + lengths[row]
            for e in range(first_turn(begin, lane, width, line), end, width):
                if marks[u]:  # another thread of this row has found one
                    break
                if e >= begin and found(u, np.int64(targets[e]), state, params):
                    marks[u] = 1
                    break
"""


def build(name: str, functions: str, weighted: bool, pull: bool, gpu: bool = True) -> ModuleType:
    """The module of a program's kernels: `push` and, if it has `found`, `seek`. `gpu=False`: for this machine's
    processor.
    """
    loops = (PULL if pull else PUSH) + (SEEK if "def found(" in functions else "")
    weight = "weights[weight_begins[row] + e - begin]" if weighted else "1"
    return module_of(f"the program {name}", functions + TURNS + loops.replace("{weight}", weight), gpu)
