"""NumPy arrays as Arrow arrays, without a copy of the values.

`pyarrow.array` does the same, but it loads pandas where that is installed: 45 MB of memory that a budget does not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.store.files import Array


def numbers(values: Array, missing: Array | None = None) -> Any:
    """An Arrow array of numbers or truth values; null where `missing` is set."""
    import pyarrow as pa

    known = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing is not None and missing.any() else None
    data = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [known, pa.py_buffer(data)])


def texts(offsets: Array, data: Array) -> Any:
    """An Arrow array of strings: string i is data[offsets[i]:offsets[i + 1]], in UTF-8."""
    import pyarrow as pa

    return pa.LargeStringArray.from_buffers(
        offsets.size - 1, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)
    )
