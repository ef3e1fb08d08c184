"""Checks of blocks that are read from files, before a kernel sees them.

If the run verifies, every block is compared with its checksum. Checksums can be forged, so the entries are
checked as well, whether or not the run verifies: targets must be vertices, and weights finite and not negative, unless
the graph has negative weights. Kernels then need no checks of their own.
"""

from __future__ import annotations

from dataclasses import astuple
from itertools import accumulate

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.far import FarArray
from isthmus.graph.store.blocks import FEW, check_table, damaged, wrong_sum
from isthmus.graph.store.files import BLOCK, Array
from isthmus.kernels.store.block_checksums import FINE, FIRST, NO_SUMS, SCRATCH, WRONG_ENTRY, WRONG_SUM, check_blocks

AT_ONCE = 1 << 20  # bytes read and then checked: they are still in the processor's cache


class BlockChecks:
    """The checks of some far arrays in files. Holds their tables of checksums: a 512th of the arrays' size."""

    def __init__(self, arrays: list[FarArray], verify: bool) -> None:
        self._arrays = arrays
        starts = list(accumulate((array.blocks for array in arrays), initial=0))
        self.sums = np.empty(starts[-1] if verify else 0, np.uint64)
        self.rules = np.empty((len(arrays), FIRST + 1), np.uint64)
        for array, rule, begin, end in zip(arrays, self.rules, starts, starts[1:], strict=False):
            rule[:] = np.array([*astuple(array.bounds), begin if verify else NO_SUMS], np.uint64)
            if verify:
                assert array.sums is not None
                check_table(array.sums, array.blocks, array.digest, self.sums[begin:end])

    def check(self, section: int, first: int, data: Array) -> None:
        """Check blocks of an array from block `first` on, which are in `data`, an array of bytes.

        Few blocks are checked without compiled code, so that the first run on a small graph has less to compile.
        """
        if data.size <= FEW * BLOCK:
            self._check_few(section, first, data)
            return
        status, block = check_blocks(
            data, 0, data.size, first, self.rules[section], self.sums, np.empty(SCRATCH, np.uint64)
        )
        if status != FINE:
            raise self.error(section, status, block)

    def _check_few(self, section: int, first: int, data: Array) -> None:
        array, begin = self._arrays[section], int(self.rules[section, FIRST])
        if begin != NO_SUMS:
            for block in damaged(data, self.sums[begin + first : begin + first + data.size // BLOCK])[:1]:
                raise self.error(section, WRONG_SUM, first + block)
        for at in range(0, data.size, BLOCK):
            if not array.bounds.hold_for(data[at : at + BLOCK]):
                raise self.error(section, WRONG_ENTRY, first + at // BLOCK)

    def error(self, section: int, status: int, block: int) -> StoreError:
        """The error for a block, by the status that a kernel returned."""
        array = self._arrays[section]
        path = array.open_file().path
        if status == WRONG_SUM:
            return wrong_sum(path, block)
        what = "a target is not a vertex" if array.name.endswith("targets") else "a weight is negative or not finite"
        return StoreError(f"{path}: block {block} at byte {block * BLOCK}: {what}; run isthmus verify")


def read_whole(array: FarArray, verify: bool) -> Array:
    """All entries of an array in a file, checked."""
    checks, file = BlockChecks([array], verify), array.open_file()
    data = np.empty(array.blocks * BLOCK, np.uint8)
    for at in range(0, data.size, AT_ONCE):
        piece = data[at : at + AT_ONCE]
        file.read(piece.data, at)
        checks.check(0, at // BLOCK, piece)
    return data[: array.bytes].view(array.dtype)
