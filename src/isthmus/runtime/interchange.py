"""A result as other libraries read it: as an Arrow stream of all columns, or as an array of the main one (NumPy, DLPack).

Numbers are handed over without a copy where they are stored in natural order and need no conversion; a consumer keeps them alive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

Array = np.ndarray[Any, Any]


class Interchange(ABC):
    """The protocols of a result, made from its batches and its main column."""

    @abstractmethod
    def filled(self, name: str | None = None) -> Array:
        """A column as a plain array."""

    @abstractmethod
    def _batches(self) -> Iterator[Any]: ...

    @abstractmethod
    def _batch(self, begin: int, end: int) -> Any: ...

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All columns as an Arrow stream, by which pyarrow, pandas, polars, DuckDB and others read them; batches are made when taken."""
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
        return self.filled().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.filled().__dlpack_device__()
