"""A result as other libraries read it: as an Arrow stream of all columns, or as an array of the main one (NumPy,
DLPack, CUDA).

Numbers are handed over without a copy where they are stored in natural order and need no conversion; a consumer keeps
them alive. After a run on a GPU, DLPack hands over the array there, and libraries of the host take `__array__`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

Array = np.ndarray[Any, Any]


class Interchange(ABC):
    """The protocols of a result, made from its batches and its main column."""

    gpu: Any

    @abstractmethod
    def on_gpu(self, name: str | None = None) -> Any:
        """A column as an array on a GPU."""

    @abstractmethod
    def filled(self, name: str | None = None) -> Array:
        """A column as a plain array."""

    @abstractmethod
    def _batches(self) -> Iterator[Any]: ...

    @abstractmethod
    def _batch(self, begin: int, end: int) -> Any: ...

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All columns as an Arrow stream, by which pyarrow, pandas, polars, DuckDB and others read them; batches are
        made when taken.
        """
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._batch(0, 0).schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def write_csv(self, file: BinaryIO) -> None:
        """Write all columns to an open binary file as CSV, batch by batch."""
        import pyarrow.csv as pc

        with pc.CSVWriter(file, self._batch(0, 0).schema) as writer:
            for batch in self._batches():
                writer.write_batch(batch)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The main column, as `filled` returns it."""
        return np.array(self.filled(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """The main column, as `filled` returns it: numpy.from_dlpack, torch.from_dlpack and others read it."""
        return self._lent().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._lent().__dlpack_device__()
        return device

    def _lent(self) -> Any:
        """The main column where it was computed."""
        return self.filled() if self.gpu is None else self.on_gpu()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The main column of a run on a GPU, as CuPy, Numba and others read it; others have no such attribute."""
        if self.gpu is None:
            raise AttributeError(f"{type(self).__name__} has no __cuda_array_interface__: the run was not on a GPU")
        protocol: dict[str, Any] = self.on_gpu().__cuda_array_interface__
        return protocol
