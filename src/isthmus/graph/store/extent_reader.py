"""Reading extents of files: O_DIRECT reads into aligned memory, many in flight, bypassing the page cache.

If the file system refuses O_DIRECT, reads go through the page cache and their pages are dropped afterwards, to respect
the memory budget; the reader's notes say so. If native asynchronous I/O is missing, threads read instead. A read that
fails or is short is repeated as a plain read through the page cache. That read either succeeds or raises an error with
file and offset. All reads of a small graph are plain ones: its first run then has less to compile.

It reads the files that the arrays have open. Their path may name another graph by now, if a writer replaced them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.far import FarArray
from isthmus.graph.store.block_checks import BlockChecks
from isthmus.graph.store.files import BLOCK, DIRECT, Array, read_into
from isthmus.kernels.store.aio import FAILED, REFUSED, Ring
from isthmus.threads import uninterrupted

DEPTH = 128  # reads in flight; 4 KB reads reached their highest rate there
THREADS = 32  # reader threads if asynchronous I/O is missing


@dataclass
class Extents:
    """Byte ranges of far sections and where they go in a near buffer. All multiples of the link's block."""

    sections: Array  # index of the section each extent is in
    offsets: Array  # bytes from the section's start
    lengths: Array
    places: Array  # bytes from the buffer's start

    @property
    def bytes(self) -> int:
        return int(self.lengths.sum())

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        return self.sections, self.offsets, self.lengths, self.places

    def each(self) -> Iterator[tuple[int, int, int, int]]:
        """(section, offset, length, place) of every extent."""
        return zip(*(column.tolist() for column in self.columns), strict=True)


class ExtentReader:
    """Reads arrays in files, `depth` requests in flight per channel. Checks every block (`block_checks.py`)."""

    def __init__(self, arrays: list[FarArray], depth: int, channels: int, verify: bool = True) -> None:
        self.notes: list[str] = []
        self._depth, self._ring_count = depth, channels
        self._held, self._checks = [array.open_file() for array in arrays], BlockChecks(arrays, verify)
        self._files: list[int] = []
        self._rings: list[Ring] = []
        self._threads: ThreadPoolExecutor | None = None
        self._direct = bool(DIRECT)
        self._plain = sum(array.bytes for array in arrays) <= sizes.now.few_bytes
        try:
            uninterrupted(self._open_all)
        except BaseException:
            self.close()
            raise
        self._descriptors = np.array(self._files, np.int64)

    def _open_all(self) -> None:
        for number in range(len(self._held)):
            self._files.append(self._open(number))
        try:
            for _ in range(0 if self._plain else self._ring_count):
                self._rings.append(Ring(self._depth))
        except OSError as error:
            while self._rings:
                self._rings.pop().close()
            threads = min(THREADS, self._depth)
            self._threads = ThreadPoolExecutor(threads, thread_name_prefix="isthmus-read")
            self.notes.append(f"no asynchronous I/O ({error.strerror or error}): {threads} threads read instead")

    def _open(self, number: int) -> int:
        file = self._held[number]
        if self._direct:
            with contextlib.suppress(OSError):
                return file.open_again(os.O_RDONLY | DIRECT)
            self._direct = False
            self.notes.append(
                f"{file.path.parent}: direct reads refused; reading through the page cache and dropping what was read"
            )
        try:
            return file.open_again(os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{file.path}: {error.strerror}") from error

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        """Read extents of whole blocks into an aligned buffer; returns the requests. One thread per channel."""
        if not self._files:
            raise StoreError("the graph is closed")
        if self._plain:
            self._move_plainly(extents, buffer)
            return int(extents.sections.size)
        if self._rings:
            requests = self._move_by_ring(extents, buffer.view(np.uint8), self._rings[channel])
        else:
            requests = self._move_by_threads(extents, buffer)
        if not self._direct:
            self._drop(self._files, extents)
        return requests

    def _move_by_ring(self, extents: Extents, buffer: Array, ring: Ring) -> int:
        status, requests, section, block, found = ring.read(
            self._descriptors,
            extents.sections,
            extents.offsets,
            extents.lengths,
            extents.places,
            buffer,
            sizes.now.largest_read,
            self._checks.rules,
            self._checks.sums,
        )
        if status == REFUSED:
            raise self._checks.error(section, found, block)
        if status == FAILED:
            self._move_plainly(extents, buffer)
        return requests

    def _parts(self, files: list[int], extents: Extents, buffer: Array) -> list[tuple[int, memoryview, int, str]]:
        view = buffer.view(np.uint8).data
        return [
            (files[section], view[place : place + length], offset, str(self._held[section].path))
            for section, offset, length, place in extents.each()
        ]

    def _move_plainly(self, extents: Extents, buffer: Array) -> None:
        """Read through the page cache: a direct read past the end of a truncated file would only report "invalid"."""
        files = [file.descriptor for file in self._held]
        for part in self._parts(files, extents, buffer):
            read_into(*part)
        self._drop(files, extents)
        self._check(extents, buffer)

    def _move_by_threads(self, extents: Extents, buffer: Array) -> int:
        assert self._threads is not None
        pieces = [
            (file, view[at : at + sizes.now.largest_read], offset + at, name)
            for file, view, offset, name in self._parts(self._files, extents, buffer)
            for at in range(0, len(view), sizes.now.largest_read)
        ]
        try:
            for _ in self._threads.map(lambda part: read_into(*part), pieces):
                pass
        except StoreError:
            self._move_plainly(extents, buffer)
        else:
            self._check(extents, buffer)
        return len(pieces)

    def _drop(self, files: list[int], extents: Extents) -> None:
        """Drop the blocks that were read from the page cache."""
        offsets, ends = extents.offsets, extents.offsets + extents.lengths
        for section in np.unique(extents.sections):
            mine = extents.sections == section
            begin, end = int(offsets[mine].min()), int(ends[mine].max())
            os.posix_fadvise(files[section], begin, end - begin, os.POSIX_FADV_DONTNEED)

    def _check(self, extents: Extents, buffer: Array) -> None:
        near = buffer.view(np.uint8)
        for section, offset, length, place in extents.each():
            self._checks.check(section, offset // BLOCK, near[place : place + length])

    def close(self) -> None:
        while self._rings:
            self._rings.pop().close()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        while self._files:
            os.close(self._files.pop())
        self._held, self._checks = [], BlockChecks([], False)  # an error raised here may keep the reader alive
