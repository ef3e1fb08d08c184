"""Writing a store so that a crash, a full disk or Ctrl-C leaves the target path as it was.

Sections grow at the end, in any interleaving, under a temporary folder beside the target. `commit` syncs them,
writes the manifest and renames the folder into place, exchanging it in one step with what stood there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
from array import array
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import xxhash

from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.files import BLOCK, Array, aligned_empty, fsync_folder, open_direct, write_all
from isthmus.graph.manifest import NAME, Manifest, Section, digest
from isthmus.graph.store import CHECKSUMS, SUFFIX, MemoryStore, Store
from isthmus.memory import Budget, format_size

STAGING = 4 << 20  # one direct write; larger ones were no faster
RENAME_EXCHANGE, AT_FDCWD = 2, -100


class Writer(Protocol):
    """Takes the sections of a graph as they grow and turns them into a store."""

    folder: Path | None  # where scratch files go; None: nowhere, stay in memory

    def append(self, name: str, array: Array) -> None: ...
    def section(self, name: str, dtype: Any, at_most: int) -> None: ...
    def commit(self, manifest: Manifest) -> Store | MemoryStore: ...


class SectionFile:
    """One growing section: staged in aligned memory, hashed by block, written directly."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.count = 0
        self._staging = aligned_empty(STAGING, np.uint8)
        self._filled = 0
        self._written = 0
        self._sums = array("Q")
        try:
            self._file = open_direct(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise StoreError(f"{path}: cannot create: {error.strerror}") from error

    def append(self, values: Array) -> None:
        data = np.ascontiguousarray(values, self.dtype).view(np.uint8).reshape(-1)
        self.count += data.size // self.dtype.itemsize
        done = 0
        while done < data.size:
            step = min(STAGING - self._filled, data.size - done)
            self._staging[self._filled : self._filled + step] = data[done : done + step]
            self._filled += step
            done += step
            if self._filled == STAGING:
                self._flush(STAGING)

    def _flush(self, size: int) -> None:
        data = memoryview(self._staging)[:size]
        hash_block = xxhash.xxh3_64_intdigest
        self._sums.extend([hash_block(data[at : at + BLOCK]) for at in range(0, size, BLOCK)])
        write_all(self._file, data, self._written, str(self.path))
        self._written += size
        self._filled = 0

    def finish(self) -> Section:
        """Pad and write the last block, write the checksums, sync both."""
        tail = -self._filled % BLOCK
        self._staging[self._filled : self._filled + tail] = 0
        if self._filled:
            self._flush(self._filled + tail)
        os.fsync(self._file)
        table = np.frombuffer(self._sums, np.uint64).astype("<u8").tobytes()
        write_synced(self.path.with_name(self.path.name + CHECKSUMS), table)
        self.close()
        return Section(self.dtype.name, self.count, digest(table))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def write_synced(path: Path, data: bytes) -> None:
    """Write a small file and sync it."""
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: cannot write: {error.strerror}") from error


class WriterLock:
    """At most one writer for a path. The lock file goes away with the lock; a killed writer leaves no lock."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.lock")
        while True:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise StoreError(f"{target.parent}: cannot write here: {error.strerror}") from error
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._file)
                raise StoreError(f"{target}: another process is writing this store") from None
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self.path).st_ino == os.fstat(self._file).st_ino:
                    return
            os.close(self._file)  # the last holder removed it between our open and our lock

    def release(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        os.close(self._file)


class StoreWriter:
    """Writes a store at `path`. Use as a context manager: leaving without `commit` removes every trace."""

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        self.target = Path(os.path.abspath(path))
        if self.target.suffix != SUFFIX:
            raise OptionError(f"a store's name ends in {SUFFIX}: {path} does not")
        if not self.target.parent.is_dir():
            raise StoreError(f"{self.target.parent}: no such folder")
        self._overwrite = overwrite
        self._check_target()
        self._lock = WriterLock(self.target)
        self._sections: dict[str, SectionFile] = {}
        try:
            self._check_target()
            self._remove_abandoned()
            self.folder: Path | None = self.target.with_name(f".{self.target.name}.tmp-{os.getpid()}")
            self.folder.mkdir()
        except OSError as error:
            self._lock.release()
            raise StoreError(f"{self.target.parent}: cannot write here: {error.strerror}") from error
        except StoreError:
            self._lock.release()
            raise

    def _check_target(self) -> None:
        if not os.path.lexists(self.target):
            return
        if not self._overwrite:
            raise StoreError(f"{self.target}: exists already; give --overwrite to replace it")
        if not (self.target / NAME).is_file():
            raise StoreError(f"{self.target}: exists and is not an Isthmus store; not replacing it")

    def _remove_abandoned(self) -> None:
        """What a killed writer of the same path left; we hold the lock, so nobody uses it."""
        for leftover in self.target.parent.glob(f".{self.target.name}.tmp-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def section(self, name: str, dtype: Any, at_most: int) -> None:
        """Begin a section; `at_most` is unused here, a file can grow."""
        assert self.folder is not None
        self._sections[name] = SectionFile(self.folder / name, dtype)

    def append(self, name: str, array: Array) -> None:
        self._sections[name].append(array)

    def commit(self, manifest: Manifest) -> Store:
        """Make the store appear at its path, whole. Afterwards the sections cannot grow."""
        assert self.folder is not None
        sections = {name: file.finish() for name, file in self._sections.items()}
        write_synced(self.folder / NAME, replace(manifest, sections=sections).encode())
        fsync_folder(self.folder)
        try:
            if os.path.lexists(self.target):
                exchange(self.folder, self.target)
            else:
                os.rename(self.folder, self.target)
        except OSError as error:
            raise StoreError(f"{self.target}: cannot rename the finished store into place: {error.strerror}") from error
        fsync_folder(self.target.parent)
        return Store(self.target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._sections.values():
            file.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)  # after an exchange: the store that was replaced
        self._lock.release()


def exchange(new: Path, old: Path) -> None:
    """Swap two folders in one step, so that `old` is at no moment missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = -1
    if hasattr(libc, "renameat2"):
        done = libc.renameat2(AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(old), RENAME_EXCHANGE)
    if done != 0:  # a file system without exchange: the path is missing for a moment
        aside = new.with_name(new.name + "-old")
        os.rename(old, aside)
        try:
            os.rename(new, old)
        except OSError:
            os.rename(aside, old)
            raise
        os.rename(aside, new)


class MemoryWriter:
    """Collects the sections in RAM, within the budget."""

    folder: Path | None = None

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._arrays: dict[str, Array] = {}
        self._filled: dict[str, int] = {}

    def section(self, name: str, dtype: Any, at_most: int) -> None:
        """Begin a section of at most `at_most` entries; untouched memory costs nothing."""
        self._arrays[name] = np.empty(at_most, dtype)
        self._filled[name] = 0

    def append(self, name: str, array: Array) -> None:
        if not self._budget.take(array.size * self._arrays[name].itemsize):
            raise BudgetError(
                f"the graph does not fit the budget of {format_size(self._budget.limit)}; "
                "ingest it into a store instead: isthmus.ingest(source, 'name.isthmus')"
            )
        start = self._filled[name]
        self._filled[name] = start + array.size
        self._arrays[name][start : start + array.size] = array

    def commit(self, manifest: Manifest) -> MemoryStore:
        arrays = {name: array[: self._filled[name]] for name, array in self._arrays.items()}
        sections = {name: Section(array.dtype.name, array.size) for name, array in arrays.items()}
        return MemoryStore(replace(manifest, sections=sections), arrays)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass
