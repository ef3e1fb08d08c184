"""The SSD link: O_DIRECT reads into aligned memory, many in flight, bypassing the page cache.

If the file system refuses O_DIRECT, reads go through the page cache and their pages are dropped afterwards, to
respect the memory budget; the link's notes say so. If native asynchronous I/O is missing, threads read instead. A
read that fails or is short is repeated as a plain read through the page cache. That read either succeeds or raises an error
with file and offset.

The link reads the files that the snapshot has open. Their path may name another graph by now, if a writer replaced them.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xxhash

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.far import FarArray
from isthmus.graph.files import BLOCK, DIRECT, read_into
from isthmus.kernels.aio import DONE, Ring
from isthmus.link.link import CHANNELS, Array, Extents, Link, Profile

DEPTH = 128  # reads in flight; 4 KB reads reached their highest rate there
THREADS = 32  # reader threads if asynchronous I/O is missing
GUESS = Profile("a disk not measured", 1.5e9, 100e3, BLOCK, DEPTH, False)


class SsdLink(Link):
    """Reads arrays in files, with as many requests in flight as the profile says."""

    def __init__(self, arrays: list[FarArray], profile: Profile, verify: bool = False) -> None:
        self.profile = profile
        self.notes = []
        self._arrays, self._held, self._verify = arrays, [array.open_file() for array in arrays], verify
        self._files: list[int] = []
        self._rings: list[Ring] = []
        self._threads: ThreadPoolExecutor | None = None
        self._direct = bool(DIRECT)
        try:
            for number in range(len(arrays)):
                self._files.append(self._open(number))
        except BaseException:
            self.close()
            raise
        try:
            for _ in range(CHANNELS):
                self._rings.append(Ring(profile.depth))
        except OSError as error:
            while self._rings:
                self._rings.pop().close()
            threads = min(THREADS, profile.depth)
            self._threads = ThreadPoolExecutor(threads, thread_name_prefix="isthmus-read")
            self.notes.append(f"no asynchronous I/O ({error.strerror or error}): {threads} threads read instead")
        self._descriptors = np.array(self._files, np.int64)

    def _open(self, number: int) -> int:
        file = self._held[number]
        if self._direct:
            with contextlib.suppress(OSError):
                return file.open_again(os.O_RDONLY | DIRECT)
            self._direct = False
            self.notes.append(f"{file.path.parent}: direct reads refused; reading through the page cache and dropping what was read")
        try:
            return file.open_again(os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{file.path}: {error.strerror}") from error

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        if self._rings:
            addresses = extents.places + buffer.ctypes.data
            files = self._descriptors[extents.sections]
            status, requests = self._rings[channel].read(files, extents.offsets, extents.lengths, addresses, sizes.now.largest_read)
            if status != DONE:
                self._move_plainly(extents, buffer)
        else:
            requests = self._move_by_threads(extents, buffer)
        if not self._direct:
            self._drop(self._files, extents)
        if self._verify:
            self._check(extents, buffer)
        return requests

    def _parts(self, files: list[int], extents: Extents, buffer: Array) -> list[tuple[int, memoryview, int, str]]:
        view = buffer.view(np.uint8).data
        return [
            (files[section], view[place : place + length], offset, str(self._held[section].path))
            for section, offset, length, place in zip(*(column.tolist() for column in extents.columns), strict=True)
        ]

    def _move_plainly(self, extents: Extents, buffer: Array) -> None:
        """Read through the page cache: a direct read past the end of a truncated file would only report "invalid"."""
        files = [file.descriptor for file in self._held]
        for part in self._parts(files, extents, buffer):
            read_into(*part)
        self._drop(files, extents)

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
        return len(pieces)

    def _drop(self, files: list[int], extents: Extents) -> None:
        """Drop what was read from the page cache."""
        for section in np.unique(extents.sections):
            mine = extents.sections == section
            begin = int(extents.offsets[mine].min())
            end = int((extents.offsets[mine] + extents.lengths[mine]).max())
            os.posix_fadvise(files[section], begin, end - begin, os.POSIX_FADV_DONTNEED)

    def _check(self, extents: Extents, buffer: Array) -> None:
        """Compare every block read with its checksum."""
        hash_block: Any = xxhash.xxh3_64_intdigest
        view = buffer.view(np.uint8).data
        for i in range(extents.lengths.size):
            section = int(extents.sections[i])
            first, count = int(extents.offsets[i]) // BLOCK, int(extents.lengths[i]) // BLOCK
            sums = self._arrays[section].checksums(first, count)
            place = int(extents.places[i])
            for k in range(count):
                at = place + k * BLOCK
                if hash_block(view[at : at + BLOCK]) != int(sums[k]):
                    where = (first + k) * BLOCK
                    raise StoreError(f"{self._held[section].path}: block {first + k} at byte {where}: the checksum does not match")

    def close(self) -> None:
        for ring in self._rings:
            ring.close()
        self._rings = []
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for file in self._files:
            os.close(file)
        self._files, self._arrays, self._held = [], [], []  # an error raised here may keep the link alive
