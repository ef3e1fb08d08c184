"""The loops that every program shares, with the program's own scalar functions compiled into them.

A program is given as source text: `source(u, degree, state, params)`, computed once per active vertex, and
`edge(x, u, v, w, state, params)`, which returns whether v becomes active. Text and loops are written to a module file
named by their hash, in a folder named by the versions of everything they depend on, so Numba finds its machine code
again on the next run. (A closure over a compiled function would miss that cache each time.)

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
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np

from isthmus.kernels.settle import SETTLE

TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []
HEAD = '''"""Written by Isthmus for the program {name}. Safe to delete."""
import math

import numpy as np

from isthmus.kernels.atomics import atomic_add, atomic_cas, atomic_exchange, atomic_max, atomic_min, atomic_or, lowest_bit, prefetch
from isthmus.kernels.compile import program_inline as called
from isthmus.kernels.compile import program_kernel as compiled

inf = np.inf
INT_MAX = np.iinfo(np.int64).max
INT_MIN = np.iinfo(np.int64).min
AHEAD = 16

'''
LOOPS = '''

@compiled
def push_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state, params, marks, queue, used
):
    """Edges of vertices[row:], from the skip-th edge of the first on, `edges` in all. Returns entries in `queue`."""
    while edges > 0:
        count = min(lengths[row] - skip, edges)
        if count == 0:
            row += 1
            continue
        u = np.int64(vertices[row])
        x = source(u, list_ends[u] - list_begins[u], state, params)
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
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state, params, marks, queue,
    used
):
    """Edges begin:end of the active vertices first:last; edge e lies at targets[e - base], weights[e - weight_base]."""
    for u in range(first, last):
        if not all_active and active[u] == 0:
            continue
        low, high = max(list_begins[u], begin), min(list_ends[u], end)
        if low >= high:
            continue
        x = source(u, list_ends[u] - list_begins[u], state, params)
        for e in range(low, high):
            if e + AHEAD < end:
                prefetch(state[{prefetched}], np.int64(targets[e - base + AHEAD]))
            v = np.int64(targets[e - base])
            if edge(x, u, v, {weight_of_range}, state, params) and marks[v] == 0 and atomic_exchange(marks, v, np.uint8(1)) == 0:
                if used < queue.size:
                    queue[used] = v
                used += 1
    return used
'''


PULL = '''

@compiled
def push_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state, params, marks, queue, used
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
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state, params, marks, queue,
    used
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
'''


SEEK = '''

@compiled
def seek_rows(
    vertices, begins, weight_begins, lengths, row, skip, edges, list_begins, list_ends, targets, weights, state, params, marks, queue, used
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
    first, last, begin, end, base, weight_base, active, all_active, list_begins, list_ends, targets, weights, state, params, marks, queue,
    used
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
'''


def loops(weighted: bool, pull: bool, prefetched: int) -> str:
    return (PULL if pull else LOOPS + SETTLE).format(
        prefetched=prefetched,
        first_weight_of_row="weight_at = weight_begins[row] + skip" if weighted else "",
        weight="weights[weight_at + j]" if weighted else "1",
        weight_of_range="weights[e - weight_base]" if weighted else "1",
    )


def versions() -> str:
    """A hash of everything outside the text that the machine code depends on."""
    ours = [(Path(__file__).parent / name).read_text() for name in ("atomics.py", "compile.py")]
    parts = [sys.version, numba.__version__, llvmlite.__version__, np.__version__, *ours]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def build(name: str, functions: str, weighted: bool, pull: bool, prefetched: int, folder: Path) -> ModuleType:
    """The module of a program's loops; the same text gives the same module, in this process and the next."""
    text = HEAD.format(name=name) + functions + loops(weighted, pull, prefetched) + (SEEK if "def found(" in functions else "")
    key = hashlib.sha256(text.encode()).hexdigest()[:24]
    module_name = f"isthmus_program_{key}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    path = written(folder / versions() / f"{module_name}.py", text)
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # before execution: Numba looks the functions up by module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def written(path: Path, text: str) -> Path:
    """Put the text at `path` unless it is there; a rewrite would change its time stamp and cost a compilation.

    Where the folder cannot be written, the module lives in a temporary one and is compiled again next time.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.read_text() == text:
            return path
        fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        fresh.write_text(text)
        fresh.replace(path)
    except OSError:
        TEMPORARY.append(tempfile.TemporaryDirectory(prefix="isthmus-"))  # gone with the process
        path = Path(TEMPORARY[-1].name) / path.name
        path.write_text(text)
    return path


def is_compiled(function: Any) -> bool:
    """Whether a loop has machine code in this process or on disk."""
    if function.signatures:
        return True
    cache = Path(function.py_func.__code__.co_filename).parent / "__pycache__"
    return any(cache.glob(f"{Path(function.py_func.__code__.co_filename).stem}.{function.py_func.__name__}-*.nbi"))


Failure = (numba.core.errors.NumbaError, numba.core.errors.UnsupportedBytecodeError)


TELLING = ("No implementation", "Use of unsupported", "Unknown attribute", "Cannot unify", "Untyped", "No conversion", "NameError")


def reason(error: BaseException) -> str:
    """The main line of a Numba error, without its hints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(TELLING)]
    others = [line for line in lines[1:] if not line.startswith(("-", "During", "File"))]
    return (telling[-1:] or others[:1] or lines[:1] or [type(error).__name__])[0]
