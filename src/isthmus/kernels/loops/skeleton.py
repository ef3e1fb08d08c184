"""The loops that every program shares, with the program's own scalar functions compiled into them.

A program is given as source text: `source(u, degree, state, params)`, computed once per active vertex, and `edge(x, u,
v, w, state, params)`, which returns whether v becomes active. `source` gets the loops' `before`: `state` itself or, on
a modelled device, `state` as a launch found it (`devices/model/launches.py`). Text and loops become a module named
by their hash, so that its machine code is found again on the next run. (A closure over a compiled function would not
be.)

Two loops deliver edges: `push_rows` for a list of active vertices whose edges lie anywhere in a buffer, and
`push_range` for a range of vertices whose edges are side by side. Both take the weights' positions separately,
because targets and weights are two arrays. `list_begins` and `list_ends` are the positions of each vertex's whole list
among all edges; a gap may follow it. The contents of a gap may be prefetched as targets ahead, and never followed.

A program that pulls has instead `nothing(params)`, the initial total, `sent(total, u, w, state, params)`, the total
with an in-edge u -> v added, and `received(v, total, state, params)`. It needs no atomics per edge, and is for programs
with all vertices active. A total may be a tuple with one sum per source; the sums then stay in registers.

A program that can also seek has `found(u, v, state, params)`: an active vertex u checks its neighbours v, stops at the
first for which `found` is true, and becomes active in the next iteration.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import threading
from types import ModuleType

import numba

from isthmus.kernels.loops.incremental import incremental
from isthmus.kernels.loops.settle import SETTLE

BUILDING = threading.Lock()
HEAD = '''"""Written by Isthmus for the program {name}."""
import math

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add, atomic_cas, atomic_exchange, atomic_load
from isthmus.kernels.compile.atomics import atomic_max, atomic_min, atomic_or
from isthmus.kernels.compile.atomics import fence, lowest_bit, prefetch
from isthmus.kernels.compile.kernel import program_inline as called
from isthmus.kernels.compile.kernel import program_kernel as compiled

inf = np.inf
INT_MAX = np.iinfo(np.int64).max
INT_MIN = np.iinfo(np.int64).min
AHEAD = 16

'''
LOOPS = '''

@compiled
def push_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    """Edges of vertices[row:], from the skip-th edge of the first on, `edges` in all. Returns entries in `queue`."""
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count == 0:
            row += 1
            continue
        u = np.int64(vertices[row])
        x = source(u, list_ends[u] - list_begins[u], before, params)
        at = begins[row] + skip
        {first_weight_of_row}
        for j in range(count):
            if j + AHEAD < count:
                prefetch(state[{prefetched}], np.int64(targets[at + j + AHEAD]))
            v = np.int64(targets[at + j])
            if edge(x, u, v, {weight}, state, params) and marks[v] == 0 and atomic_exchange(marks, v, np.uint8(1)) == 0:
                if used < queue.size:
                    queue[used] = v
                used += 1
        edges -= count
        row += 1
        skip = 0
    return used


@compiled
def push_range(
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    """Edges begin:end of the active vertices first:last; edge e lies at targets[e - base], weights[e - weight_base]."""
    for u in range(first, last):
        if not all_active and active[u] == 0:
            continue
        low, high = max(list_begins[u], begin), min(list_ends[u], end)
        if low >= high:
            continue
        x = source(u, list_ends[u] - list_begins[u], before, params)
        for e in range(low, high):
            if e + AHEAD < end:
                prefetch(state[{prefetched}], np.int64(targets[e - base + AHEAD]))
            v = np.int64(targets[e - base])
            if edge(x, u, v, {weight_of_range}, state, params) and marks[v] == 0 and atomic_exchange(marks, v,
                np.uint8(1)) == 0:
                if used < queue.size:
                    queue[used] = v
                used += 1
    return used
'''


PULL = """

@compiled
def push_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count == 0:
            row += 1
            continue
        v = np.int64(vertices[row])
        at = begins[row] + skip
        {first_weight_of_row}
        total = nothing(params)
        for j in range(count):
            total = sent(total, np.int64(targets[at + j]), {weight}, state, params)
        received(v, total, state, params)
        edges -= count
        row += 1
        skip = 0
    return used


@compiled
def push_range(
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    for v in range(first, last):
        low, high = max(list_begins[v], begin), min(list_ends[v], end)
        if low >= high or (not all_active and active[v] == 0):
            continue
        total = nothing(params)
        for e in range(low, high):
            total = sent(total, np.int64(targets[e - base]), {weight_of_range}, state, params)
        received(v, total, state, params)
    return used
"""


SEEK = """

@compiled
def seek_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        u = np.int64(vertices[row])
        at = begins[row] + skip
        if count > 0 and marks[u] == 0:
            for j in range(count):
                if found(u, np.int64(targets[at + j]), state, params):
                    if atomic_exchange(marks, u, np.uint8(1)) == 0:
                        if used < queue.size:
                            queue[used] = u
                        used += 1
                    break
        edges -= count
        row += 1
        skip = 0
    return used


@compiled
def seek_range(
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state,
    before, params, marks,
    queue, used
):
    for u in range(first, last):
        if (not all_active and active[u] == 0) or marks[u]:
            continue
        for e in range(max(list_begins[u], begin), min(list_ends[u], end)):
            if found(u, np.int64(targets[e - base]), state, params):
                if atomic_exchange(marks, u, np.uint8(1)) == 0:
                    if used < queue.size:
                        queue[used] = u
                    used += 1
                break
    return used
"""


def loops(weighted: bool, pull: bool, prefetched: int) -> str:
    return (PULL if pull else LOOPS + SETTLE).format(
        prefetched=prefetched,
        first_weight_of_row="weight_at = weight_begins[row] + skip" if weighted else "",
        weight="weights[weight_at + j]" if weighted else "1",
        weight_of_range="weights[e - weight_base]" if weighted else "1",
    )


def build(name: str, functions: str, weighted: bool, pull: bool, prefetched: int, live: bool = False) -> ModuleType:
    """The module of a program's loops; the same text gives the same module, in all threads of this process.

    `live`: also the loops that bring answers up to date.
    """
    text = (
        HEAD.format(name=name)
        + functions
        + loops(weighted, pull, prefetched)
        + (SEEK if "def found(" in functions else "")
    )
    text += incremental(weighted, "def gives(" in functions) if live else ""
    module_name = f"isthmus_program_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    with BUILDING:  # a module is found below before it is executed
        return sys.modules.get(module_name) or executed(module_name, text)


def executed(module_name: str, text: str) -> ModuleType:
    """A new module with that text. It has no file, so nobody else can change it or leave bytecode for it."""
    module, path = ModuleType(module_name), f"<{module_name}>"
    # For tracebacks, and for Numba's messages.
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    sys.modules[module_name] = module  # before execution: Numba looks the functions up by module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


Failure = (numba.core.errors.NumbaError, numba.core.errors.UnsupportedBytecodeError)


TELLING = (
    "No implementation",
    "Use of unsupported",
    "Unknown attribute",
    "Cannot unify",
    "Untyped",
    "No conversion",
    "NameError",
)


def reason(error: BaseException) -> str:
    """The main line of a Numba error, without its hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(TELLING)]
    others = [line for line in lines[1:] if not line.startswith(("-", "During", "File"))]
    return (telling[-1:] or others[:1] or lines[:1] or [type(error).__name__])[0]
