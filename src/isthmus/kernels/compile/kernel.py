"""Compilation of kernels: they run without the GIL, their machine code is kept on disk, and they can call C
functions.
"""

from __future__ import annotations

import hashlib
import linecache
import pickle
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import event as events
from numba.core import types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from isthmus.kernels.compile import code_cache, compile_clock

U64 = numba.uint64
VERSIONS = "\0".join([sys.version, numba.__version__, llvmlite.__version__, np.__version__])


class KeptCode(NullCache):  # type: ignore[misc]
    """A function's machine code on disk, a file per signature and processor, loaded without starting the compiler.

    Numba's own cache would first load its whole compiler, and SciPy for its BLAS: half a second that kept code does not
    need. It unpickles whatever it finds beside the source. And it does not see changes in functions of other files that
    were compiled in.
    """

    def __init__(self, function: Any) -> None:
        if function.__closure__ is not None:
            raise TypeError(
                f"{function.__qualname__}: a kernel must not be a closure, since its machine code is kept under "
                f"its name"
            )
        self._name = f"{function.__module__}.{function.__qualname__}"
        code = function.__code__
        self._source = f"{VERSIONS}\0{stamp(code.co_filename)}\0{code.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(code_cache.kernels_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with compile_clock.PREPARING:
            rtsys.initialize(target_context)  # memory management, which the machine code calls
            name = self._file(sig, target_context.codegen())
            content = code_cache.read(name)
            if content is None:
                return None
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception:  # the file is undamaged, but cannot be used in this process
                code_cache.remove(name)
                return None

    def save_overload(self, sig: Any, data: Any) -> None:
        # an address or a large array as a constant, which another process cannot use.
        if data.library.has_dynamic_globals:
            return
        with compile_clock.COMPILING:
            try:
                code_cache.write(self._file(sig, data.codegen), dumps(data._reduce()))
            except OSError as error:
                if not code_cache.trouble():  # otherwise the user has been told
                    failure = (
                        f"cannot be kept in {code_cache.kernels_folder()}: {error.strerror}; the next run "
                        f"compiles again"
                    )
                    compile_clock.tell(lambda what: f"compiled kernels {failure}")

    def _file(self, sig: Any, codegen: Any) -> str:
        key = f"{self._source}\0{sig}\0{codegen.magic_tuple()}"  # the last is the processor
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.code"


@cache
def stamp(path: str) -> str:
    """A hash of a source file and of the kernels' files that it imports: code from them may be compiled in."""
    text = "".join(linecache.getlines(path))
    if not text:
        raise FileNotFoundError(f"{path}: kernels need their source")
    others = [stamp(str(file)) for file in imported_kernels(text)]
    return hashlib.sha256("\0".join([text, *others]).encode()).hexdigest()


def imported_kernels(text: str) -> list[Path]:
    """The files of kernels that a source text imports, or imports functions from."""
    kernels, found = Path(__file__).parent.parent, []
    for module, names in re.findall(r"^from isthmus\.kernels\.([\w.]+) import ([^\n(]+|\([^)]*\))", text, re.MULTILINE):
        place = kernels / module.replace(".", "/")
        files = (
            [place / f"{name}.py" for name in re.findall(r"\w+", names)]
            if place.is_dir()
            else [place.with_suffix(".py")]
        )
        found += [file for file in files if file.exists()]
    return found


class Compilation(events.Listener):  # type: ignore[misc]
    """Numba calls it when it starts and ends to compile one of our kernels, with its compiler lock held."""

    def on_start(self, event: Any) -> None:
        if is_ours(event):
            compile_clock.COMPILING.__enter__()
            compile_clock.tell(lambda what: f"compiling {what} ({outlook()})")

    def on_end(self, event: Any) -> None:
        if is_ours(event):
            compile_clock.COMPILING.__exit__()


def is_ours(event: Any) -> bool:
    """Other packages may use Numba in the same process, also with dispatchers that have no cache."""
    return isinstance(getattr(event.data["dispatcher"], "_cache", None), KeptCode)


def outlook() -> str:
    """Whether the next run will find what is compiled now, as text for people."""
    if trouble := code_cache.trouble():
        return f"in every run: {trouble}; set ISTHMUS_CACHE to a folder of your own"
    return f"once; kept in {code_cache.kernels_folder()}"


events.register("numba:compile", Compilation())


def kernel(function: Any) -> Any:
    """Compile `function` on first call, release the GIL while it runs, keep the machine code on disk."""
    return compiled(function, {})


def quick_kernel(function: Any) -> Any:
    """As `kernel`, with fused multiply-add and no check for division by zero."""
    return compiled(function, {"error_model": "numpy", "fastmath": {"contract"}})


def inline(function: Any) -> Any:
    """Compile a small function that only kernels call; LLVM inlines it. It compiles sooner, as Python cannot call
    it.
    """
    return compiled(function, {"inline": "never", "no_cpython_wrapper": True})


def program_kernel(function: Any) -> Any:
    """Compile a function of a program's own module; division by zero works as in NumPy."""
    return compiled(function, {"error_model": "numpy"})


def program_inline(function: Any) -> Any:
    """As `inline`, for a function of a program's own module that its loops call.

    It cannot make arrays. So it need not count references to those it gets: atomic additions for each array and edge,
    to counters that all threads share. (LLVM removes them only from functions without loops.)
    """
    return compiled(function, {"error_model": "numpy", "no_cpython_wrapper": True, "_nrt": False})


def edge_loop(function: Any) -> Any:
    """As `program_inline`, for a loop over one list: always inlined, since a call per vertex would cost a tenth."""
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "_nrt": False, "forceinline": True}
    return compiled(function, options)


def compiled(function: Any, options: dict[str, Any]) -> Any:
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = KeptCode(function)
    return dispatcher


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """A libc function by name. Unlike a ctypes pointer it leaves the calling kernel cacheable."""
    return types.ExternalFunction(name, result(*arguments))
