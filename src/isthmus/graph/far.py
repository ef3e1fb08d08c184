"""Far arrays of edges, in files of a store or in memory. A link is opened to some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.files import BLOCK, Array, OpenFile


@dataclass(frozen=True)
class FarArray:
    """Targets or weights of one side: `count` entries, those in gaps between lists included.

    Either `memory` holds them, or `file` does, in whole blocks, with the blocks' checksums in `sums`.
    """

    name: str
    dtype: Any
    count: int
    memory: Array | None = None
    file: OpenFile | None = None
    sums: OpenFile | None = None

    @property
    def bytes(self) -> int:
        return self.count * int(np.dtype(self.dtype).itemsize)

    @property
    def blocks(self) -> int:
        """Blocks that its file has."""
        return -(-self.bytes // BLOCK)

    def open_file(self) -> OpenFile:
        """The file; only for arrays that are in one."""
        if self.file is None:
            raise StoreError(f"{self.name} lies in memory, not in a file")
        return self.file

    def checksums(self, first: int, count: int) -> Array:
        """The stored checksums of `count` blocks of the file."""
        assert self.sums is not None
        sums = np.empty(count, "<u8")
        self.sums.read(sums.view(np.uint8).data, first * 8)
        return sums
