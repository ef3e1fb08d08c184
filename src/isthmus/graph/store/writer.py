"""Writing a store so that a crash, a full disk or Ctrl-C leaves the target path as it was.

Sections grow at the end, in any interleaving, under a temporary folder beside the target. `commit` syncs them,
writes the manifest and renames the store into place; an existing store is exchanged in one step.
"""

from __future__ import annotations

import os
import secrets
from array import array
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.locks.holder import machine_key
from isthmus.graph.locks.lock_file import LockFile
from isthmus.graph.store.blocks import checksums
from isthmus.graph.store.files import (
    BLOCK,
    Array,
    NotUndone,
    aligned_empty,
    exchanged,
    fsync_folder,
    open_direct,
    refuse_address,
    remove_folder,
    sync_or_undo,
    write_all,
)
from isthmus.graph.store.manifest import NAME, Manifest, Section
from isthmus.graph.store.sealed_json import digest
from isthmus.graph.store.store import CHECKSUMS, SUFFIX, MemoryStore, Store
from isthmus.memory import Budget, format_size
from isthmus.messages import option
from isthmus.threads import uninterrupted

STAGING = 4 << 20  # one direct write; larger ones were no faster
ASIDE = "replaced"  # the old store's name in the work folder during an exchange in two steps


class Writer(Protocol):
    """Collects the growing sections of a graph and turns them into a store."""

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
        self._sums.frombytes(checksums(self._staging[:size]).tobytes())
        write_all(self._file, self._staging.data[:size], self._written, str(self.path))
        self._written += size
        self._filled = 0

    def finish(self) -> Section:
        """Pad and write the last block, write the checksums, sync both."""
        tail = -self._filled % BLOCK
        self._staging[self._filled : self._filled + tail] = 0
        if self._filled:
            self._flush(self._filled + tail)
        try:
            os.fsync(self._file)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot sync: {error.strerror}") from error
        table = np.frombuffer(self._sums, np.uint64).astype("<u8").tobytes()
        write_synced(self.path.with_name(self.path.name + CHECKSUMS), table)
        self.close()
        return Section(self.dtype.name, self.count, digest(table))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        self.close()
        self.path.unlink()


def write_synced(path: Path, data: bytes) -> None:
    """Write a small file and sync it."""
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: cannot write: {error.strerror}") from error


class WriterLock(LockFile):
    """Allows one writer per path. Its file is beside the store."""

    def __init__(self, target: Path) -> None:
        super().__init__(target.with_name(f".{target.name}.lock"), target, "writing this store")


class StoreWriter:
    """Writes a store at `path`. Use as a context manager: leaving without `commit` removes every trace.

    A work folder beside the target holds the growing store and all scratch files.
    """

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        self.target = Path(os.path.realpath(path))  # a symbolic link stays; the store it points to is replaced
        refuse_address(path, "a store")
        if Path(path).suffix != SUFFIX:
            raise OptionError(f"a store's name ends in {SUFFIX}: {path} does not")
        self._overwrite = overwrite
        self._replaced_stays = False  # until the next writer removes it
        try:
            if not self.target.parent.is_dir():
                raise StoreError(f"{self.target.parent}: no such folder")
            self._check_target()
        except OSError as error:
            raise StoreError(f"{self.target.parent}: cannot write here: {error.strerror}") from error
        self._lock: WriterLock | None = None
        self._sections: dict[str, SectionFile] = {}
        # a writer that was replaced must not remove its successor's.
        unique = f"{os.getpid()}-{machine_key()}-{secrets.token_hex(4)}"
        self.folder: Path | None = self.target.with_name(self._work_name + unique)
        self._store = self.folder / "store"
        try:
            uninterrupted(self._take_lock)  # Ctrl-C must not leave it taken
            self._recover()
            self._check_target()
            self.folder.mkdir()  # not through a symbolic link: then it exists
            self._store.mkdir()
        except OSError as error:
            self._abandon()
            raise StoreError(f"{self.target.parent}: cannot write here: {error.strerror}") from error
        except BaseException:
            self._abandon()
            raise

    def _take_lock(self) -> None:
        self._lock = WriterLock(self.target)

    def _renew_lock(self, now: bool = False) -> None:
        assert self._lock is not None
        self._lock.renew(now)

    @property
    def _work_name(self) -> str:
        return f".{self.target.name}.tmp-"

    def _check_target(self) -> None:
        if not os.path.lexists(self.target):
            return
        if not self._overwrite:
            raise StoreError(f"{self.target}: exists already; give {option('overwrite', True)} to replace it")
        if not (self.target / NAME).is_file():
            raise StoreError(f"{self.target}: exists and is not an Isthmus store; not replacing it")

    def _recover(self) -> None:
        """Remove the work folders of killed writers of the same path; no writer uses them, since we hold the lock."""
        for work in self.target.parent.iterdir():
            if work.name.startswith(self._work_name):
                if not os.path.lexists(self.target) and (work / ASIDE).is_dir():
                    os.rename(work / ASIDE, self.target)  # the writer was killed during an exchange in two steps
                if work.is_symlink():
                    work.unlink()
                remove_folder(work)

    def section(self, name: str, dtype: Any, at_most: int) -> None:
        """Start a section, again if it was started before; `at_most` is unused here, since a file can grow."""
        if name in self._sections:
            self._sections.pop(name).remove()
        self._sections[name] = SectionFile(self._store / name, dtype)

    def append(self, name: str, array: Array) -> None:
        self._renew_lock()
        self._sections[name].append(array)

    def commit(self, manifest: Manifest) -> Store:
        """Put the finished store at its path in one step. Afterwards the sections cannot grow."""
        sections = {name: file.finish() for name, file in self._sections.items()}
        write_synced(self._store / NAME, replace(manifest, sections=sections).encode())
        store = Store(self._store)  # before the rename, so that a failure leaves the target unchanged
        try:
            fsync_folder(self._store)
            self._renew_lock(now=True)
            self._put_into_place()
        except OSError as error:
            self._replaced_stays = isinstance(error, NotUndone)
            raise StoreError(f"{self.target}: cannot put the finished store into place: {error.strerror}") from error
        store.moved_to(self.target)
        return store

    def _put_into_place(self) -> None:
        """Rename the store and sync it; rename it back if that fails. The replaced store is removed afterwards."""
        if os.path.lexists(self.target):
            exchange(self._store, self.target)
            sync_or_undo(self.target.parent, lambda: exchange(self._store, self.target))
        else:
            os.rename(self._store, self.target)
            sync_or_undo(self.target.parent, lambda: os.rename(self.target, self._store))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for file in self._sections.values():
                file.close()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        assert self.folder is not None
        try:
            if not self._replaced_stays:
                remove_folder(self.folder)  # after an exchange it holds the replaced store
        finally:
            if self._lock is not None:
                uninterrupted(self._lock.release)  # also after a second Ctrl-C


def exchange(new: Path, old: Path) -> None:
    """Swap two folders, in one step if the file system can, so that `old` always exists."""
    if exchanged(new, old):
        return
    # The file system cannot exchange: the path is missing for a moment.
    aside = new.with_name(ASIDE)
    try:
        os.rename(old, aside)
        os.rename(new, old)
        os.rename(aside, new)
    except BaseException:  # Ctrl-C too
        if not os.path.lexists(old):
            os.rename(aside, old)
        elif os.path.lexists(aside):  # `new` is in place
            os.rename(old, new)
            os.rename(aside, old)
        raise


class MemoryWriter:
    """Collects the sections in RAM, within the budget."""

    folder: Path | None = None

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._arrays: dict[str, Array] = {}
        self._filled: dict[str, int] = {}

    def section(self, name: str, dtype: Any, at_most: int) -> None:
        """Start a section of at most `at_most` entries; unused memory is never allocated by the system."""
        self._arrays[name] = aligned_empty(at_most, dtype)  # so that a GPU can read it where it is
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
