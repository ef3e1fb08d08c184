"""Compilation of kernels: they run without the GIL, are cached on disk, and can call C functions."""

from __future__ import annotations

from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

U64 = numba.uint64


class KeptCode(FunctionCache):  # type: ignore[misc]
    """Machine code on disk, loaded without starting the compiler.

    Numba would first load its whole compiler, and SciPy for its BLAS: half a second that a cached function does not
    need. The compiler still starts by itself when a function must be compiled.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # memory management, which the machine code calls
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Any) -> Any:
    """Compile `function` on first call, release the GIL while it runs, keep the machine code on disk."""
    return compiled(function, {})


def quick_kernel(function: Any) -> Any:
    """As `kernel`, with fused multiply-add and no check for division by zero."""
    return compiled(function, {"error_model": "numpy", "fastmath": {"contract"}})


def inline(function: Any) -> Any:
    """Compile a small function that only kernels call; LLVM inlines it. Without a way in from Python it compiles sooner."""
    return compiled(function, {"inline": "never", "no_cpython_wrapper": True})


def program_kernel(function: Any) -> Any:
    """Compile a function of a program's own module; division by zero works as in NumPy."""
    return compiled(function, {"error_model": "numpy"})


def program_inline(function: Any) -> Any:
    """As `inline`, for a function of a program's own module that its loops call."""
    return compiled(function, {"error_model": "numpy", "no_cpython_wrapper": True})


def compiled(function: Any, options: dict[str, Any]) -> Any:
    try:
        dispatcher = numba.njit(nogil=True, cache=True, no_cfunc_wrapper=True, **options)(function)
        dispatcher._cache = KeptCode(dispatcher.py_func)
        return dispatcher
    except RuntimeError:  # no writable folder for machine code, neither beside the source nor in the user's cache
        return numba.njit(nogil=True, **options)(function)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """A libc function by name. Unlike a ctypes pointer it leaves the calling kernel cacheable."""
    return types.ExternalFunction(name, result(*arguments))
