"""Memory handed to another library by DLPack: a capsule with a pointer, a shape, a type and a device.

The layout is that of dlpack.h (DLManagedTensor), which all versions of the protocol accept. The consumer calls
`deleter` when it needs the memory no more; until then `HELD` keeps the owner alive. A capsule that nobody consumed
frees it when it goes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CPU, CUDA = 1, 2  # kinds of device
NAME = b"dltensor"  # of a capsule that was not consumed
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # of types, by the kind that NumPy calls them


class Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


HELD: dict[int, tuple[Any, ...]] = {}  # by the address of what a capsule points to: the structure, its shape, the owner
api = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose functions others may declare otherwise
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = (
    ctypes.py_object,
    (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
)
api.PyCapsule_IsValid.restype, api.PyCapsule_IsValid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = (
    ctypes.c_void_p,
    (ctypes.c_void_p, ctypes.c_char_p),
)


@Deleter
def deleter(address: int) -> None:
    HELD.pop(address, None)


@Deleter
def dropped(capsule: int) -> None:
    """A capsule goes; if it was consumed it has another name, and its consumer calls `deleter`."""
    if api.PyCapsule_IsValid(capsule, NAME):
        HELD.pop(api.PyCapsule_GetPointer(capsule, NAME), None)


def capsule(pointer: int, shape: tuple[int, ...], dtype: Any, device: tuple[int, int], owner: Any) -> Any:
    """A capsule for contiguous memory, which `owner` keeps alive."""
    dtype = np.dtype(dtype)
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    kind = Type(CODES[dtype.kind], 8 * dtype.itemsize, 1)
    managed = Managed(Tensor(pointer, Device(*device), len(shape), kind, sizes, None, 0), None, deleter)
    address = ctypes.addressof(managed)
    HELD[address] = managed, sizes, owner
    return api.PyCapsule_New(address, NAME, ctypes.cast(dropped, ctypes.c_void_p))
