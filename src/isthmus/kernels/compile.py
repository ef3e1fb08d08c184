"""How kernels are compiled: without the GIL, kept on disk, and C functions callable from inside them."""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

U64 = numba.uint64


class KeptCode(FunctionCache):  # type: ignore[misc]
    """Machine code on disk, found again without making the compiler ready.

    Numba first loads everything it can compile, and SciPy for its BLAS: half a second, which a function that is there
    already has no use for. Compiling makes the compiler ready by itself.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # memory management, which machine code calls
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Any) -> Any:
    """Compile `function` on first call, release the GIL while it runs, keep the machine code on disk."""
    return compiled(function, {})


def quick_kernel(function: Any) -> Any:
    """As `kernel`, with multiplications and additions fused, and no check for a divisor of zero."""
    return compiled(function, {"error_model": "numpy", "fastmath": {"contract"}})


def inline(function: Any) -> Any:
    """Compile a small function that kernels call; LLVM inlines it."""
    return compiled(function, {"inline": "never"})


def program_kernel(function: Any) -> Any:
    """A function of a program's own module: divides by zero as NumPy does."""
    return compiled(function, {"error_model": "numpy"})


def compiled(function: Any, options: dict[str, Any]) -> Any:
    try:
        dispatcher = numba.njit(nogil=True, cache=True, **options)(function)
        dispatcher._cache = KeptCode(dispatcher.py_func)
        return dispatcher
    except RuntimeError:  # no folder to keep machine code in: neither beside the source nor in the user's cache
        return numba.njit(nogil=True, **options)(function)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """A libc function by name. Unlike a ctypes pointer it leaves the calling kernel cacheable."""
    return types.ExternalFunction(name, result(*arguments))
