"""What stands before the kernels: names that they use, for a GPU and for this machine's processor.

Kernels are one text. Two things differ between targets, and are here:

| | GPU, and numba-cuda's simulator | processor |
|---|---|---|
| atomics | `cuda.atomic`, as functions with the names of kernels.atomics | kernels.atomics |
| threads | each gets its number from the grid | a loop runs one after the other |

On the processor kernels run without a GPU at full speed, for tests of everything but the hardware. The simulator has
neither shuffles nor `syncwarp`, so kernels need none: threads meet only at the end of a launch.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from types import ModuleType
from typing import Any

from isthmus.kernels.compile import cuda_module
from isthmus.kernels.loops.skeleton import BUILDING, executed

COMMON = """
inf = np.inf
int64 = np.int64
INT_MAX = np.iinfo(np.int64).max
INT_MIN = np.iinfo(np.int64).min
"""
GPU = (
    '''"""Written by Isthmus for {name}, for a GPU."""
import math

import numpy as np

from isthmus.kernels.compile.cuda_module import cuda as chosen
from isthmus.devices.cuda.kernels.head import gpu_inline as called
from isthmus.devices.cuda.kernels.head import gpu_kernel as compiled

cuda = chosen()
'''
    + COMMON
    + """

@called
def atomic_add(array, index, value):
    return cuda.atomic.add(array, index, value)


@called
def atomic_min(array, index, value):
    return cuda.atomic.min(array, index, value)


@called
def atomic_max(array, index, value):
    return cuda.atomic.max(array, index, value)


@called
def atomic_or(array, index, value):
    return cuda.atomic.or_(array, index, value)


@called
def atomic_exchange(array, index, value):
    return cuda.atomic.exch(array, index, value)


@called
def atomic_cas(array, index, expected, value):
    return cuda.atomic.cas(array, index, expected, value)


@called
def atomic_load(array, index):
    return cuda.atomic.or_(array, index, 0)


@called
def fence():
    cuda.threadfence()


@called
def lowest_bit(word):
    return np.int64(cuda.popc(word ^ (word - np.uint64(1)))) - 1


@called
def prefetch(array, index):
    pass

"""
)
PROCESSOR = (
    '''"""Written by Isthmus for {name}, as for a GPU."""
import math

import numpy as np

from isthmus.kernels.compile.atomics import atomic_add, atomic_cas, atomic_exchange, atomic_load
from isthmus.kernels.compile.atomics import atomic_max, atomic_min, atomic_or
from isthmus.kernels.compile.atomics import fence, lowest_bit, prefetch
from isthmus.kernels.compile.kernel import program_inline as called
from isthmus.kernels.compile.kernel import program_kernel as compiled
'''
    + COMMON
)
GPU_ENTRY = """

@compiled
def {verb}({arguments}):
    {verb}_share(np.int64(cuda.grid(1)), np.int64(cuda.gridsize(1)), {arguments})
"""
PROCESSOR_ENTRY = """

@compiled
def {verb}(threads, {arguments}):
    for thread in range(threads):
        {verb}_share(np.int64(thread), np.int64(threads), {arguments})
"""


def gpu_inline(function: Any) -> Any:
    """A function that kernels call. It is inlined before types are inferred: otherwise numba-cuda would ask a driver
    for its device.

    The simulator runs it as it stands, with the `cuda` of the kernel that calls it.
    """
    return function if cuda_module.simulated() else cuda_module.cuda().jit(device=True, inline="always")(function)


def gpu_kernel(function: Any) -> Any:
    return cuda_module.cuda().jit(function)


def arguments_of(verb: str, text: str) -> str:
    """The arguments of a kernel beside its thread's number and the number of threads, as its text has them."""
    inside = text.split(f"def {verb}_share(")[1].split("):")[0]
    names = [name.strip() for name in inside.replace("\n", " ").split(",") if name.strip()]
    return ", ".join(names[2:])


def text_of(function: Any) -> str:
    """A function of the processor's kernels as a text that kernels call: without what it says about types."""
    tree = ast.parse(inspect.getsource(function.py_func))
    (node,) = tree.body
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list, node.returns = [ast.Name("called")], None
    for argument in node.args.args:
        argument.annotation = None
    return f"\n\n{ast.unparse(tree)}\n"


def module_of(name: str, text: str, gpu: bool) -> ModuleType:
    """The module with the kernels of a text: for each function `verb_share(thread, threads, ...)` a kernel `verb(...)`.

    The same text gives the same module. On the processor a kernel has the number of threads as its first argument.
    """
    module_name, whole = written(name, text, gpu)
    with BUILDING:
        return sys.modules.get(module_name) or executed(module_name, whole)


def known(name: str, text: str) -> ModuleType | None:
    """The module of a text for a GPU, if this process has it."""
    return sys.modules.get(written(name, text, True)[0])


def written(name: str, text: str, gpu: bool) -> tuple[str, str]:
    """The name of the module of a text, and its source."""
    verbs = [
        line.split("_share(")[0].removeprefix("def ")
        for line in text.splitlines()
        if line.startswith("def ") and "_share(" in line
    ]
    whole = (GPU if gpu else PROCESSOR).format(name=name) + text
    for verb in verbs:
        whole += (GPU_ENTRY if gpu else PROCESSOR_ENTRY).format(verb=verb, arguments=arguments_of(verb, text))
    return f"isthmus_{'cuda' if gpu else 'threads'}_{hashlib.sha256(whole.encode()).hexdigest()[:24]}", whole
