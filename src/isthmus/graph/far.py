"""Far arrays of edges, in files of a store or in memory. A link is opened to some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.store.files import BLOCK, Array, OpenFile

if TYPE_CHECKING:
    from isthmus.graph.overlay.overlay import Patch


@dataclass(frozen=True)
class Bounds:
    """What the entries of an array may be: as unsigned integers of `width` bytes, under `mask`, at most `most`; `zero`
    counts as 0.

    `width` 0: anything.
    """

    width: int = 0
    mask: int = 0
    zero: int = 0
    most: int = 0

    def hold_for(self, data: Array) -> bool:
        """Whether all entries in `data`, an array of bytes, are within the bounds."""
        if not self.width:
            return True
        entries = data.view(f"u{self.width}")
        return bool((np.where(entries == self.zero, 0, entries & entries.dtype.type(self.mask)) <= self.most).all())


ANYTHING = Bounds()


def bounds_of_targets(dtype: Any, vertices: int) -> Bounds:
    """Targets are vertices."""
    width = int(np.dtype(dtype).itemsize)
    return Bounds(width, (1 << 8 * width) - 1, 0, max(vertices - 1, 0))


def bounds_of_weights(dtype: Any, negative: bool) -> Bounds:
    """Weights are finite, and below zero only where `negative` says so."""
    dtype = np.dtype(dtype)
    width, sign = int(dtype.itemsize), 1 << 8 * int(dtype.itemsize) - 1
    if dtype.kind == "i":
        return ANYTHING if negative else Bounds(width, 2 * sign - 1, 0, sign - 1)
    largest = int(np.array(np.finfo(dtype).max, dtype).view(f"u{width}"))
    # Minus zero is not below zero.
    return Bounds(width, sign - 1, 0, largest) if negative else Bounds(width, 2 * sign - 1, sign, largest)


@dataclass(frozen=True)
class FarArray:
    """Targets or weights of one side: `count` entries, those in gaps between lists included.

    Either `memory` holds them, or `file` does, in whole blocks. The blocks' checksums are in `sums`, whose own checksum
    is `digest`. With a `patch`, the file holds them as they were before some arcs were added and others removed.
    """

    name: str
    dtype: Any
    count: int
    memory: Array | None = None
    file: OpenFile | None = None
    sums: OpenFile | None = None
    digest: str = ""
    bounds: Bounds = ANYTHING
    patch: Patch | None = None

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
