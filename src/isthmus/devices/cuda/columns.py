"""Columns of a result as arrays on the GPU that computed them, for CuPy, cuDF, PyTorch and others.

A column that is an array of the program's state still lies there when the run has ended, and is handed over as it is.
Others, such as those of a graph in hub order or that name vertices, are made on the host and copied to the GPU when
they are first asked for. Either way the memory belongs to the result: it is freed when the result and all arrays made
of it are gone. Programs no longer write into it. A user who writes into it changes the GPU's copy of the result, not
the host's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.dlpack import CODES, CPU, capsule
from isthmus.devices.cuda.gpu_space import taken
from isthmus.errors import OptionError
from isthmus.programs.algorithm import Rows

Array = np.ndarray[Any, Any]


class GpuArray:
    """An array on a GPU. `cupy.asarray`, `cudf.Series`, `torch.as_tensor` and `from_dlpack` of any library read it
    without a copy.
    """

    def __init__(self, card: Card, memory: Any, host: Array) -> None:
        """`host` has the same values, `memory` is the GPU's."""
        self._card, self._memory, self._host = card, memory, host
        self.shape, self.dtype = host.shape, host.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"<GpuArray: {self.shape[0]} x {self.dtype} on {self._card.name}>"

    @property
    def _pointer(self) -> int:
        return self._card.pointer(self._memory) if self._host.size else 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the protocol. All work on the memory has ended, so there is no stream to wait for."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._pointer, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule; with `dl_device=(1, 0)` of the values in host memory."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if tuple(dl_device) == (CPU, 0):
                return self._host.__dlpack__()
            raise BufferError(f"{self._card.name}: cannot hand an array over to DLPack device {dl_device}")
        if copy:
            raise BufferError("copies are made by the library that asks; call it without copy=True")
        return capsule(self._pointer, self.shape, self.dtype, self.__dlpack_device__(), self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._card.dlpack_device


class GpuColumns:
    """What a GPU holds of a result: of the (host's, GPU's) arrays of the program's state in `left` those that are
    columns.
    """

    def __init__(self, card: Card, left: list[tuple[Array, Shared]], columns: dict[str, Array]) -> None:
        self._card = card
        self._state = [(host, shared) for host, shared in left if any(column is host for column in columns.values())]
        self._made: dict[str, GpuArray] = {}

    def column(self, result: Any, name: str | None) -> GpuArray:
        """A column on the GPU, or the main one, as `filled` gives it to the host."""
        # The values for inputs are no single column.
        key = f"{name or ''}" if result.rows is Rows.INPUTS else name or result.main
        if key not in self._made:
            self._made[key] = self._array(result.filled(name), key)
        return self._made[key]

    def _array(self, filled: Array, name: str) -> GpuArray:
        for host, shared in self._state:
            if filled.ctypes.data == host.ctypes.data and (filled.dtype, filled.shape) == (host.dtype, host.shape):
                return GpuArray(self._card, shared, filled)
        if filled.dtype.kind not in CODES:
            raise OptionError(
                f"on_gpu: column {name} has values that a GPU's arrays cannot hold, such as strings or None"
            )
        return GpuArray(self._card, uploaded(self._card, np.ascontiguousarray(filled)), filled)


def uploaded(card: Card, array: Array) -> Any:
    """A copy in the GPU's memory, freed with its last reference."""
    stream = taken(card, card.stream)
    near = taken(card, card.near, array.size, array.dtype)
    card.copy(near, array.reshape(-1), stream)
    card.drain(stream)
    card.keep(near)
    return near
