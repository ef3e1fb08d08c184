"""Kernels whose time is measured by `devices/cuda/measurement.py`: two that read far memory, by lines or by pages, and
a program that pushes.

The program is a search from all vertices: every edge reads a value at random, and the first one to a vertex writes it
and marks the vertex. It sends its parameter, a smaller one in every run, so that every run writes anew. The processor's
loops run the same text (`kernels/loops/skeleton.py`).
"""

from __future__ import annotations

import itertools
from types import ModuleType

from isthmus.devices.cuda.kernels import skeleton
from isthmus.devices.cuda.kernels.head import module_of
from isthmus.devices.cuda.kernels.skeleton import WARP
from isthmus.kernels.loops import skeleton as processor

NUMBERS = itertools.count()
FUNCTIONS = """
@called
def source(u, degree, state, params):
    return min(state[0][u], params[0])


@called
def edge(x, u, v, w, state, params):
    return atomic_min(state[0], v, x) > x
"""
READ = (
    f"""

WARP = {WARP}
"""
    + '''

@called
def read_lines_share(thread, threads, far, lines, entries, step, sums):
    """Every warp reads the first `entries` of a line of WARP entries, then of one far away; `lines` is a power of
    two, `step` odd.
    """
    lane, warps = thread % WARP, threads // WARP
    total = np.int64(0)
    if thread < warps * WARP and lane < entries:
        for k in range(thread // WARP, lines, warps):
            total += np.int64(far[((k * step) & (lines - 1)) * WARP + lane])
    sums[thread] = total


@called
def chase_share(thread, threads, links, steps, sums):
    """One thread goes from entry to entry, each of which says where the next one is: so it waits for every page."""
    if thread == 0:
        at = np.int64(0)
        for _ in range(steps):
            at = np.int64(links[at])
        sums[0] = at
'''
)


def build_reading(gpu: bool = True) -> ModuleType:
    """The kernels `read_lines` and `chase`."""
    return module_of(fresh_name(gpu), READ, gpu)


def build_pushing(gpu: bool = True) -> ModuleType:
    """The kernel `push` of the program that is measured."""
    return skeleton.build(fresh_name(gpu), FUNCTIONS, False, False, gpu)


def fresh_name(gpu: bool) -> str:
    """For a GPU another one in every call, so that kernels are compiled anew: how long that takes is measured, too."""
    return f"measuring {next(NUMBERS)}" if gpu else "measuring"


def processor_loops() -> ModuleType:
    """The same program for the processor: `push_range`."""
    return processor.build("measuring", FUNCTIONS, False, False, 0)
