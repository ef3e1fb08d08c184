"""Kernels compiled and linked for an architecture, without a GPU or its driver: what the compiler says about registers
and spills.

libNVVM makes PTX of what Numba has lowered, nvJitLink makes a cubin of it. Occupancy is the share of a multiprocessor's
threads that can be resident with that number of registers each, for blocks of `BLOCK` threads; kernels use no shared
memory.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any

import numba

from isthmus.devices.cuda.kernels.skeleton import BLOCK, WARP
from isthmus.kernels.compile import cuda_module

# Threads and blocks that a multiprocessor holds: CUDA Programming Guide, technical specifications per compute
# capability
RESIDENT = {(7, 5): (1024, 16), (8, 0): (2048, 32), (9, 0): (2048, 32), (12, 0): (1536, 24)}
# of a multiprocessor, and how many a warp takes at a time; the same for all of these.
REGISTERS, REGISTER_UNIT = 1 << 16, 256


@dataclass(frozen=True)
class Built:
    """A kernel for an architecture."""

    kernel: str
    capability: tuple[int, int]
    registers: int
    spill_bytes: int
    stack_bytes: int
    ptx: str
    cubin: bytes

    @property
    def architecture(self) -> str:
        return f"sm_{self.capability[0]}{self.capability[1]}"

    @property
    def occupancy(self) -> float:
        return occupancy(self.registers, self.capability)


def occupancy(registers: int, capability: tuple[int, int]) -> float:
    """The share of a multiprocessor's threads that are resident in blocks of BLOCK threads."""
    threads, blocks = RESIDENT[capability]
    of_warp = -(-max(1, registers) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    warps = REGISTERS // of_warp
    return min(threads // BLOCK, blocks, warps // (BLOCK // WARP)) * BLOCK / threads


def build(name: str, kernel: Any, arguments: tuple[Any, ...], capability: tuple[int, int]) -> Built:
    """Compile a kernel for arguments like these."""
    types = tuple(numba.typeof(each) for each in arguments)
    ptx, _ = cuda_module.cuda().compile(kernel.py_func, types, device=False, abi="numba", cc=capability)
    core = importlib.import_module("cuda.core")
    options = core.LinkerOptions(arch=f"sm_{capability[0]}{capability[1]}", ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=options)
    cubin = linker.link("cubin").code
    log = linker.get_info_log()
    linker.close()
    stack, stores, loads = numbers(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    (registers,) = numbers(r"Used (\d+) registers", log)
    return Built(name, capability, registers, stores + loads, stack, ptx, bytes(cubin))


def numbers(pattern: str, log: str) -> list[int]:
    found = re.search(pattern, log)
    if found is None:
        raise ValueError(f"expected {pattern} in what the linker says, got {log!r:.500}")
    return [int(each) for each in found.groups()]
