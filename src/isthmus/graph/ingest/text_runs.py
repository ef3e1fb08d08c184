"""Sorting strings that do not fit in memory: sorted runs go to a scratch file and are merged.

Everything goes by bytes, not by number, as one string may be as long as a thousand others. A merge step takes from
every run the strings up to the smallest last string of the loaded blocks, and sorts them together: all that is smaller
has been read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus import sizes
from isthmus.graph.export import arrow
from isthmus.graph.store.files import Array, Scratch, aligned_empty

FAN = 32  # runs of a level; they are then merged into one run of the next level
SHARE = 5  # a run takes this part of the memory: strings, joined, sorted, without repetitions, and their places
ROW_BYTES = 24  # of memory for a string, besides its text: an offset and a place in two orders
LARGEST_BLOCK = 4 << 20
Block = tuple[int, int, int]  # places of a block's offsets and text in the scratch file, number of strings


def text_of(names: Any) -> tuple[Array, Array]:
    """(Offsets of the strings, all bytes) of a pyarrow large_binary array."""
    _, offsets, data = names.buffers()
    starts = np.frombuffer(offsets, np.int64)[names.offset : names.offset + len(names) + 1]
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def bytes_of(names: Any) -> int:
    starts, _ = text_of(names)
    return int(starts[-1] - starts[0]) + ROW_BYTES * len(names)


class TextRuns:
    """Takes strings in any order, returns them sorted bytewise and without repetitions, in `memory` bytes."""

    def __init__(self, memory: int, folder: Path) -> None:
        self._folder = folder
        self._run_bytes = memory // SHARE
        self._block_bytes = min(max(memory // (4 * FAN), sizes.now.name_block), LARGEST_BLOCK)
        self._staged: list[Any] = []
        self._staged_bytes = 0
        self._levels: list[list[list[Block]]] = []  # runs by level
        self._scratch: Scratch | None = None
        self.most = self.text_bytes = 0  # bounds of the number of different strings, and of their text

    def add(self, names: Any) -> None:
        """Add the strings of a large_binary array."""
        size = bytes_of(names)
        if self._staged and self._staged_bytes + size > self._run_bytes:
            self._close_run()
        self._staged.append(names)
        self._staged_bytes += size
        self.most += len(names)
        self.text_bytes += size - ROW_BYTES * len(names)

    def _take_staged(self) -> Any:
        """The staged strings, sorted."""
        names = pa.concat_arrays([*self._staged, pa.nulls(0, pa.large_binary())])
        self._staged, self._staged_bytes = [], 0
        return distinct(names)

    def _close_run(self) -> None:
        self._keep_run(list(self._spill(self._take_staged())), 0)

    def _keep_run(self, run: list[Block], level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        runs = self._levels[level]
        runs.append(run)
        if len(runs) == FAN:
            self._keep_run([block for names in self._merged(runs) for block in self._spill(names)], level + 1)
            runs.clear()

    def _spill(self, names: Any) -> Iterator[Block]:
        """Write sorted strings to the scratch file, block by block."""
        if self._scratch is None:
            self._scratch = Scratch(self._folder)
        for block in by_bytes(names, self._block_bytes):
            starts, text = text_of(block)
            places = [self._append(column) for column in (starts - starts[0], text[starts[0] : starts[-1]])]
            yield places[0], places[1], len(block)

    def _append(self, column: Array) -> int:
        assert self._scratch is not None
        out = aligned_empty(column.size, column.dtype)
        out[:] = column
        return self._scratch.append(out) if column.size else 0

    def _blocks(self, run: list[Block]) -> Iterator[Any]:
        assert self._scratch is not None
        for offsets_at, text_at, count in run:
            offsets = self._scratch.read(offsets_at, count + 1, np.int64)
            text = self._scratch.read(text_at, int(offsets[-1]), np.uint8)
            yield pa.LargeBinaryArray.from_buffers(
                pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
            )

    def sorted(self) -> Iterator[Any]:
        """All strings, ascending, as large_binary arrays."""
        if self._levels:
            self._close_run()
            found = self._merged([run for runs in self._levels for run in runs])
        else:
            found = iter([self._take_staged()])
        for names in found:
            yield from by_bytes(names, LARGEST_BLOCK)

    def _merged(self, runs: list[list[Block]]) -> Iterator[Any]:
        rests = [self._blocks(run) for run in runs]
        heads = [next(rest, None) for rest in rests]
        while any(head is not None for head in heads):
            bound = min(head[len(head) - 1].as_py() for head in heads if head is not None)
            taken = []
            for k, head in enumerate(heads):
                count = 0 if head is None else up_to(head, bound)
                if head is None or not count:
                    continue
                taken.append(head.slice(0, count))
                heads[k] = head.slice(count) if count < len(head) else next(rests[k], None)
            yield distinct(pa.concat_arrays(taken))

    def close(self) -> None:
        self._staged, self._levels = [], []
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


def distinct(names: Any) -> Any:
    """Sorted bytewise, without repetitions."""
    ascending = names.take(pc.sort_indices(names))
    if len(ascending) < 2:
        return ascending
    fresh = pc.not_equal(ascending.slice(1), ascending.slice(0, len(ascending) - 1))
    return (
        ascending
        if pc.all(fresh).as_py()
        else ascending.filter(pa.concat_arrays([arrow.numbers(np.ones(1, bool)), fresh]))
    )


def up_to(names: Any, bound: bytes) -> int:
    """How many of the sorted strings are at most `bound`."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if names[middle].as_py() <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def by_bytes(names: Any, size: int) -> Iterator[Any]:
    """Slices of at most `size` bytes, or of one string."""
    ends = text_of(names)[0][1:] + ROW_BYTES * np.arange(1, len(names) + 1)
    begin = 0
    while begin < len(names):
        start = int(ends[begin - 1]) if begin else int(text_of(names)[0][0])
        end = max(begin + 1, int(np.searchsorted(ends, start + size, "right")))
        yield names.slice(begin, end - begin)
        begin = end
