"""Threads that stay in one kernel together and meet there: under a microsecond, where leaving and coming back takes fifty.

The gate is an array of 64-bit words that all members share, zeros at first. Every member must be on a thread of its own
(`Team.gang`), and call `meet` as often as the others. Words that different members write stand on cache lines of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32

from isthmus.kernels.atomics import atomic_add, atomic_load, fence
from isthmus.kernels.compile import c_function, inline

LINE = 8  # words of a cache line
ARRIVED, ABANDONED, FREE = 0, LINE, 2 * LINE
SPINS = 4096  # looks before the processor is offered to others: some microseconds

sched_yield = c_function("sched_yield", int32)


def gate(lines: int = 0) -> Any:
    """A gate nobody has come to yet, with `lines` cache lines of the kernel's own from FREE on."""
    return np.zeros(FREE + lines * LINE, np.int64)


def abandon(gate: Any) -> None:
    """Let nobody wait any more."""
    gate[ABANDONED] = 1


@inline
def meet(gate: Any, members: Any, times: Any) -> Any:
    """Wait until all members came for the `times`-th time; what they wrote before is there after. False: somebody will not come."""
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
