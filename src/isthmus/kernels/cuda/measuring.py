"""Kernels whose time is measured by `link/measure_card.py`: one that reads far memory line by line, and a program that pushes.

The program is a search from all vertices: every edge reads a value at random, and at first writes it too. The processor's loops run the
same text (`kernels/skeleton.py`).
"""

from __future__ import annotations

from types import ModuleType

from isthmus.kernels import skeleton as processor
from isthmus.kernels.cuda import skeleton
from isthmus.kernels.cuda.head import module_of
from isthmus.kernels.cuda.skeleton import WARP

FUNCTIONS = '''
@called
def source(u, degree, state, params):
    return state[0][u] + 1


@called
def edge(x, u, v, w, state, params):
    return atomic_min(state[0], v, x) > x
'''
READ = f'''

WARP = {WARP}
''' + '''

@called
def read_lines_share(thread, threads, far, lines, entries, step, sums):
    """Every warp reads the first `entries` of a line of WARP entries, then of one far away; `lines` is a power of two, `step` odd."""
    lane, warps = thread % WARP, threads // WARP
    total = np.int64(0)
    if thread < warps * WARP and lane < entries:
        for k in range(thread // WARP, lines, warps):
            total += np.int64(far[((k * step) & (lines - 1)) * WARP + lane])
    sums[thread] = total
'''


def build_reading(gpu: bool = True) -> ModuleType:
    """The kernel `read_lines`."""
    return module_of("measuring", READ, gpu)


def build_pushing(gpu: bool = True) -> ModuleType:
    """The kernel `push` of the program that is measured."""
    return skeleton.build("measuring", FUNCTIONS, False, False, gpu)


def processor_loops() -> ModuleType:
    """The same program for the processor: `push_range`."""
    return processor.build("measuring", FUNCTIONS, False, False, 0)
