"""A barrier for threads inside one kernel: under a microsecond, where leaving and re-entering a kernel takes fifty.

The gate is an array of 64-bit words that all members share, initially zeros. Every member must run on its own thread
(`Team.gang`), and call `meet` as often as the others. Words that different members write are on separate cache lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32

from isthmus.kernels.compile.atomics import atomic_add, atomic_load, fence
from isthmus.kernels.compile.kernel import c_function, inline

LINE = 8  # words of a cache line
ARRIVED, ABANDONED, FREE = 0, LINE, 2 * LINE
SPINS = 4096  # checks before the thread yields the processor: some microseconds

sched_yield = c_function("sched_yield", int32)


def gate(lines: int = 0) -> Any:
    """A new gate, with `lines` cache lines for the kernel's own use from FREE on."""
    return np.zeros(FREE + lines * LINE, np.int64)


def abandon(gate: Any) -> None:
    """End all waiting: a `meet` that waits for a missing member returns False."""
    gate[ABANDONED] = 1


@inline
def meet(gate: Any, members: Any, times: Any) -> Any:
    """Wait for all members, for the `times`-th time; what they wrote before is visible after. False: the gate was
    abandoned.
    """
    fence()
    atomic_add(gate, ARRIVED, 1)
    spins = 0
    while atomic_load(gate, ARRIVED) < times * members:
        spins += 1
        if spins > SPINS:
            if atomic_load(gate, ABANDONED) != 0:
                return False
            sched_yield()
    fence()
    return True
