"""The SSD link: O_DIRECT reads into aligned memory, many in flight, around the page cache.

Where the file system refuses O_DIRECT, reads go through the page cache and what they leave there is dropped
again, so that the memory budget stays honest; the link's notes say so. Where native asynchronous I/O is
missing, threads read instead. A read that fails or is short is repeated plainly, through the page cache, which
either succeeds or gives the error its file and offset.

The files are those that the store has open, not what its path names by now: a writer may have put another graph
there.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xxhash

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.files import BLOCK, DIRECT, read_into
from isthmus.graph.store import Store
from isthmus.kernels.aio import DONE, Ring
from isthmus.link.link import Array, Extents, Link, Profile

DEPTH = 128  # reads in flight; a 4 KB read reached its highest rate there
CHANNELS = 3  # two for reader threads, one for reads the main thread does itself
THREADS = 32  # that read where asynchronous I/O is missing
GUESS = Profile("a disk not measured", 1.5e9, 100e3, BLOCK, DEPTH, False)


class OpenFiles(Protocol):
    """What a link needs of a store unless it verifies: open files by section name."""

    path: Path
    _files: dict[str, int]


def open_file(store: OpenFiles, name: str) -> int:
    """The descriptor that the store itself reads a section with."""
    if name not in store._files:
        raise StoreError(f"{store.path}: {name} cannot be read; the store is closed")
    return store._files[name]


def open_again(store: OpenFiles, name: str, flags: int) -> int:
    """A second descriptor for a section that the store has open."""
    held = open_file(store, name)
    try:
        return os.open(f"/proc/self/fd/{held}", flags)
    except FileNotFoundError:  # no /proc
        file = os.open(store.path / name, flags)
    if os.path.samestat(os.fstat(file), os.fstat(held)):
        return file
    os.close(file)
    raise StoreError(f"{store.path / name}: was replaced by another store; open it again")


class SsdLink(Link):
    """Reads the given sections of a store, with as many requests in flight as the profile says."""

    def __init__(self, store: OpenFiles, sections: list[str], profile: Profile, verify: bool = False) -> None:
        self.profile = profile
        self.notes = []
        self._store, self._names, self._verify = store, sections, verify
        self._files: list[int] = []
        self._rings: list[Ring] = []
        self._threads: ThreadPoolExecutor | None = None
        self._direct = bool(DIRECT)
        try:
            for name in sections:
                self._files.append(self._open(store, name))
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

    def _open(self, store: OpenFiles, name: str) -> int:
        if self._direct:
            with contextlib.suppress(OSError):
                return open_again(store, name, os.O_RDONLY | DIRECT)
            self._direct = False
            self.notes.append(f"{store.path}: direct reads refused; reading through the page cache and dropping it behind")
        try:
            return open_again(store, name, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{store.path / name}: {error.strerror}") from error

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
            (files[section], view[place : place + length], offset, str(self._store.path / self._names[section]))
            for section, offset, length, place in zip(*(column.tolist() for column in extents.columns), strict=True)
        ]

    def _move_plainly(self, extents: Extents, buffer: Array) -> None:
        """Through the page cache: a direct read behind the end of a truncated file would only say "invalid"."""
        files = [open_file(self._store, name) for name in self._names]
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
        """Leave nothing of what was read in the page cache."""
        for section in np.unique(extents.sections):
            mine = extents.sections == section
            begin = int(extents.offsets[mine].min())
            end = int((extents.offsets[mine] + extents.lengths[mine]).max())
            os.posix_fadvise(files[section], begin, end - begin, os.POSIX_FADV_DONTNEED)

    def _check(self, extents: Extents, buffer: Array) -> None:
        """Compare every block read with its checksum."""
        assert isinstance(self._store, Store)
        hash_block: Any = xxhash.xxh3_64_intdigest
        view = buffer.view(np.uint8).data
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
            self._threads.shutdown(cancel_futures=True)
        for file in self._files:
            os.close(file)
        self._files = []
