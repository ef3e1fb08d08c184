"""The SSD link: O_DIRECT reads into aligned memory, many in flight, around the page cache.

Where the file system refuses O_DIRECT, reads go through the page cache and what they leave there is dropped
again, so that the memory budget stays honest; the link's notes say so. Where native asynchronous I/O is
missing, threads read instead. A read that fails or is short is repeated plainly, which either succeeds or gives
the error its file and offset.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from isthmus.errors import StoreError
from isthmus.graph.files import BLOCK, DIRECT, read_into
from isthmus.graph.store import Store
from isthmus.kernels.aio import DONE, Ring
from isthmus.link.link import Array, Extents, Link, Profile

DEPTH = 128  # reads in flight; a 4 KB read reached its highest rate there
PIECE = 4 << 20  # largest single read: as fast as dd bs=4M, and small enough to stay responsive
CHANNELS = 2  # one for the reader thread, one for reads the main thread does itself


class SsdLink(Link):
    """Reads the given sections of a store."""

    def __init__(self, store: Store, sections: list[str], profile: Profile, verify: bool = False) -> None:
        self.profile = profile
        self.notes = []
        self._store, self._names, self._verify = store, sections, verify
        self._files: list[int] = []
        self._rings: list[Ring] = []
        self._threads: ThreadPoolExecutor | None = None
        self._direct = bool(DIRECT)
        try:
            for name in sections:
                self._files.append(self._open(store.path / name))
            for _ in range(CHANNELS):
                self._rings.append(Ring(DEPTH))
        except OSError as error:
            self._rings = []
            self._threads = ThreadPoolExecutor(32, thread_name_prefix="isthmus-read")
            self.notes.append(f"no asynchronous I/O ({error.strerror or error}): 32 threads read instead")
        self._descriptors = np.array(self._files, np.int64)

    def _open(self, path: Path) -> int:
        if self._direct:
            with contextlib.suppress(OSError):
                return os.open(path, os.O_RDONLY | DIRECT)
            self._direct = False
            self.notes.append(f"{path.parent}: direct reads refused; reading through the page cache and dropping it behind")
        try:
            return os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        if self._rings:
            addresses = extents.places + buffer.ctypes.data
            files = self._descriptors[extents.sections]
            status, requests = self._rings[channel].read(files, extents.offsets, extents.lengths, addresses, PIECE)
            if status != DONE:
                self._move_plainly(extents, buffer)
        else:
            requests = self._move_by_threads(extents, buffer)
        if not self._direct:
            self._drop(extents)
        if self._verify:
            self._check(extents, buffer)
        return requests

    def _parts(self, extents: Extents, buffer: Array) -> list[tuple[int, memoryview, int, str]]:
        view = memoryview(buffer.view(np.uint8))
        columns = (extents.sections, extents.offsets, extents.lengths, extents.places)
        return [
            (self._files[section], view[place : place + length], offset, str(self._store.path / self._names[section]))
            for section, offset, length, place in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _move_plainly(self, extents: Extents, buffer: Array) -> None:
        for part in self._parts(extents, buffer):
            read_into(part[0], part[1], part[2], part[3])

    def _move_by_threads(self, extents: Extents, buffer: Array) -> int:
        assert self._threads is not None
        pieces = [
            (file, view[at : at + PIECE], offset + at, name)
            for file, view, offset, name in self._parts(extents, buffer)
            for at in range(0, len(view), PIECE)
        ]
        for _ in self._threads.map(lambda part: read_into(*part), pieces):
            pass
        return len(pieces)

    def _drop(self, extents: Extents) -> None:
        """Leave nothing of what was read in the page cache."""
        for section in np.unique(extents.sections):
            mine = extents.sections == section
            begin = int(extents.offsets[mine].min())
            end = int((extents.offsets[mine] + extents.lengths[mine]).max())
            os.posix_fadvise(self._files[section], begin, end - begin, os.POSIX_FADV_DONTNEED)

    def _check(self, extents: Extents, buffer: Array) -> None:
        """Compare every block read with its checksum."""
        hash_block: Any = xxhash.xxh3_64_intdigest
        view = memoryview(buffer.view(np.uint8))
        for i in range(extents.lengths.size):
            name = self._names[extents.sections[i]]
            first, count = int(extents.offsets[i]) // BLOCK, int(extents.lengths[i]) // BLOCK
            sums = self._store.read_checksums(name, first, count)
            place = int(extents.places[i])
            for k in range(count):
                at = place + k * BLOCK
                if hash_block(view[at : at + BLOCK]) != int(sums[k]):
                    where = (first + k) * BLOCK
                    raise StoreError(f"{self._store.path / name}: block {first + k} at byte {where}: the checksum does not match")

    def close(self) -> None:
        for ring in self._rings:
            ring.close()
        self._rings = []
        if self._threads is not None:
            self._threads.shutdown()
        for file in self._files:
            os.close(file)
        self._files = []
