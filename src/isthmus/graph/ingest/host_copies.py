"""Arrays on a GPU of CuPy, cuDF, Numba, PyTorch, and all others with `__cuda_array_interface__`."""

from __future__ import annotations

from typing import Any

import numpy as np

# How a library copies an array to the host. CuPy's comes last: `get` means something else for a column of a frame.
COPIES = ("to_numpy", "copy_to_host", "cpu", "get")


def lies_on_gpu(what: Any) -> bool:
    """Whether it is an array on a GPU. (A tensor on the host has the attribute, too, but refuses to give it.)"""
    return not isinstance(what, np.ndarray) and hasattr(what, "__cuda_array_interface__")


def is_gpu_frame(what: Any) -> bool:
    """Whether it is a table whose columns lie on a GPU."""
    names = getattr(what, "columns", None)
    if (
        names is None
        or isinstance(what, np.ndarray)
        or not hasattr(what, "__getitem__")
        or not hasattr(names, "__iter__")
    ):
        return False
    names = list(names)
    return bool(names) and (lies_on_gpu(what[names[0]]) or type(what).__module__.split(".")[0] == "cudf")


def to_host(array: Any) -> np.ndarray[Any, Any]:
    """A copy in host memory."""
    for name in COPIES:
        if hasattr(array, name):
            return np.asarray(getattr(array, name)())
    from isthmus.kernels.compile import cuda_module  # late: no run on the processor needs it

    return np.asarray(cuda_module.cuda().as_cuda_array(array).copy_to_host())
