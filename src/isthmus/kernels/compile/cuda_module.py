"""The one place that imports `cuda`: from numba-cuda or, if ISTHMUS_CUDA=mlir, from its successor numba-cuda-mlir.

Both are extras, so nothing here is imported before a GPU is asked for. With NUMBA_ENABLE_CUDASIM=1 numba-cuda is a
simulator: it runs the same kernels in Python threads, on this machine's memory. (numba-cuda-mlir has none.)
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

PACKAGES = {
    "numba": ("numba_cuda", "numba.cuda", "numba-cuda"),
    "mlir": ("numba_cuda_mlir", "numba_cuda_mlir.cuda", "numba-cuda-mlir"),
}
CHOICE = "ISTHMUS_CUDA"  # the variable that asks for one of them
NO_LIBRARY = ("libcuda", "driver library cannot be found")  # in numba-cuda's text if there is no driver
INIT = "Error at driver init"  # before any other text of it
DRIVER_ERRORS = {"CudaDriverError", "CudaSupportError", "CUDAError"}  # classes of numba-cuda, and of cuda.core below it
LEAST = (7, 5)  # compute capability: the oldest that CUDA 13 compiles for


@dataclass(frozen=True)
class Found:
    """A GPU of this machine; `trouble`: why it cannot be used, or an empty text."""

    number: int
    name: str
    capability: tuple[int, int]
    trouble: str = ""


def package() -> tuple[str, str, str]:
    """The package that is asked for, its module with `cuda`, and its name in the registry."""
    return PACKAGES.get(os.environ.get(CHOICE, "numba"), PACKAGES["numba"])


def missing() -> str:
    """Why there is no `cuda` to import; an empty text if there is."""
    asked = os.environ.get(CHOICE, "numba")
    if asked not in PACKAGES:
        return f"{CHOICE}: expected {' or '.join(PACKAGES)}, got {asked!r}"
    top, _, name = package()
    if importlib.util.find_spec(top) is None:
        return f"{name} is not installed; install {'isthmus[cuda]' if asked == 'numba' else f'it, or unset {CHOICE}'}"
    return ""


@cache
def cuda() -> Any:
    """The module `cuda`. Call it only if nothing is `missing`."""
    return importlib.import_module(package()[1])


@cache
def compute() -> Any:
    """The module `cuda.compute` of cuda-cccl, for prefix sums on a GPU. Without a driver it has no functions."""
    return importlib.import_module("cuda.compute")


@cache
def driver() -> Any:
    """The driver's own functions, for what numba-cuda does not offer; its bindings come with numba-cuda."""
    return importlib.import_module("cuda.bindings.driver")


def simulated() -> bool:
    """Whether `cuda` is numba-cuda's simulator."""
    return package() == PACKAGES["numba"] and bool(importlib.import_module("numba").config.ENABLE_CUDASIM)


def found() -> tuple[list[Found], str]:
    """The GPUs of this machine; and why there is none, or an empty text."""
    trouble = missing()
    if trouble:
        return [], trouble
    if simulated():
        return [Found(0, "numba-cuda's simulator", (0, 0))], ""
    try:
        gpus = list(cuda().gpus)
        return [of(number, gpu) for number, gpu in enumerate(gpus)], "" if gpus else "the driver finds no GPU"
    except Exception as error:  # numba-cuda raises errors of several packages, depending on what is missing
        return [], reason(error)


def of(number: int, gpu: Any) -> Found:
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else str(gpu.name)
    capability = tuple(gpu.compute_capability)
    trouble = ""
    if capability < LEAST:
        trouble = f"expected compute capability {LEAST[0]}.{LEAST[1]} or newer"
    elif not gpu.CONCURRENT_MANAGED_ACCESS:
        trouble = "its driver lets the host and kernels use managed memory only in turn, as in WSL"
    return Found(number, name, capability, trouble)


def reason(error: BaseException) -> str:
    """The main line of an error of the driver."""
    text = str(error)
    if any(words in text for words in NO_LIBRARY):
        return "no NVIDIA driver was found (libcuda.so cannot be loaded)"
    lines = [line.strip(" :.") for line in text.strip().removeprefix(INIT).splitlines()]
    return next(filter(None, lines), type(error).__name__)


def of_driver(error: BaseException) -> bool:
    """Whether an error comes from the driver. Its class is known by name, as nothing of CUDA may have been imported."""
    return any(kind.__name__ in DRIVER_ERRORS for kind in type(error).__mro__)
