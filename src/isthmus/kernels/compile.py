"""How kernels are compiled: without the GIL, kept on disk, and C functions callable from inside them."""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types

U64 = numba.uint64


def kernel(function: Any) -> Any:
    """Compile `function` on first call, release the GIL while it runs, keep the machine code on disk."""
    return numba.njit(nogil=True, cache=True)(function)


def inline(function: Any) -> Any:
    """Compile a small function that kernels call; LLVM inlines it."""
    return numba.njit(nogil=True, cache=True, inline="never")(function)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """A libc function by name. Unlike a ctypes pointer it leaves the calling kernel cacheable."""
    return types.ExternalFunction(name, result(*arguments))
