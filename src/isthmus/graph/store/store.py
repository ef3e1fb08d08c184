"""The on-disk graph store, for reading: a folder of raw arrays with a manifest and block checksums.

What is read is compared with its checksums, unless the store was opened or is read with `verify=False`.

Files are read by `pread` and not memory-mapped: truncating a mapped file kills the process, while `pread` only returns
fewer bytes. All files are opened at once and stay open, so a reader keeps its graph even while a writer replaces the
folder. A pickled store is opened again by its path, and only if the same contents are still there; one in memory is
pickled with its arrays.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Self

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.store.blocks import check_table, damaged, wrong_sum
from isthmus.graph.store.files import BLOCK, Array, OpenFile, address, is_address, padded
from isthmus.graph.store.manifest import MAX_BYTES, NAME, Manifest, decode
from isthmus.graph.store.sealed_json import digest

SUFFIX = ".isthmus"
CHECKSUMS = ".xxh3"  # section NAME has its block checksums in NAME.xxh3
AT_ONCE = 256  # blocks read and then hashed: they are still in the processor's cache


class Store:
    """An open store. Sections are read by name and element range."""

    def __init__(self, path: str | Path, verify: bool = True) -> None:
        self._files: dict[str, OpenFile] = {}
        self._bound: set[str] = set()  # sections whose tables of checksums were compared with the manifest
        self.path, self.verify = Path(path), verify
        while True:
            folder = self._open_folder()
            try:
                self.manifest = self._open_all(folder)
                return
            except BaseException as error:
                self.close()
                if not isinstance(error, StoreError) or not self._was_replaced(folder):
                    raise
            finally:
                os.close(folder)

    def _open_folder(self) -> int:
        """Open the store's folder. Files are opened relative to it: a writer may put another store at the path."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if is_address(self.path):
                raise StoreError(
                    f"{address(self.path)}: is an address, expected a store on this machine; download it first"
                ) from None
            raise StoreError(f"{self.path}: no such store") from None
        except NotADirectoryError:
            raise StoreError(
                f"{self.path}: is a file, expected a store, which is a folder; "
                "isthmus ingest (from Python isthmus.ingest or isthmus.read) reads a graph from a file"
            ) from None
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error

    def _was_replaced(self, folder: int) -> bool:
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(folder))
        except OSError:
            return False

    def _open_all(self, folder: int) -> Manifest:
        manifest = self._read_manifest(folder)
        for name, section in manifest.sections.items():
            self._open(folder, name, padded(section.bytes))
            self._open(folder, name + CHECKSUMS, section.blocks * 8)
        return manifest

    def _read_manifest(self, folder: int) -> Manifest:
        path = self.path / NAME
        try:
            with open(os.open(NAME, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
                data = file.read(MAX_BYTES + 1) or b""
        except FileNotFoundError:
            hint = (
                "; it is the log of a stream: isthmus.stream(log=...) opens it"
                if (self.path / "stream.json").exists()
                else ""
            )
            raise StoreError(f"{self.path}: is not an Isthmus store (no {NAME}){hint}") from None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise StoreError(f"{path}: too large for a manifest")
        return decode(data, str(path))

    def _open(self, folder: int, name: str, size: int) -> None:
        path = self.path / name
        try:
            self._files[name] = OpenFile(os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder), path)
            found = os.fstat(self._files[name].descriptor)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path}: is not a file")
        if found.st_size != size:
            raise StoreError(
                f"{path}: expected {size} bytes by the manifest, found {found.st_size}; the store is damaged"
            )

    def file(self, name: str) -> OpenFile:
        """The open file of a section, or of its checksums."""
        if name not in self._files:
            raise StoreError(f"{self.path}: {name.removesuffix(CHECKSUMS)} cannot be read; the store is closed")
        return self._files[name]

    def _read(self, name: str, array: Array, offset: int) -> None:
        self.file(name).read(array.view(np.uint8).data, offset)

    def moved_to(self, path: Path) -> None:
        """Set the store's new path after a rename, for messages."""
        self.path = path
        for name, file in self._files.items():
            file.path = path / name

    def only(self, *prefixes: str) -> Self:
        """A store of the sections with these prefixes, readable also after this one is closed."""
        part = object.__new__(type(self))
        part.path, part.manifest, part.verify, part._bound = self.path, self.manifest, self.verify, self._bound
        part._files = {name: file for name, file in self._files.items() if name.startswith(prefixes)}
        return part

    def read(self, name: str, start: int = 0, stop: int | None = None, verify: bool | None = None) -> Array:
        """Elements start:stop of a section, in a new array. `verify`: compare checksums; None: as the store does."""
        section = self.manifest.sections[name]
        stop = section.count if stop is None else stop
        if not 0 <= start <= stop <= section.count:
            raise StoreError(
                f"{self.path}: {name} has {section.count} entries, asked for {start}:{stop}; run isthmus verify"
            )
        dtype = np.dtype(section.dtype).newbyteorder("<")
        if (self.verify if verify is None else verify) and start < stop:
            first, last = start * dtype.itemsize // BLOCK, (stop * dtype.itemsize - 1) // BLOCK
            data = self._read_checked(name, first, last - first + 1)
            return np.frombuffer(data, dtype, stop - start, start * dtype.itemsize - first * BLOCK)
        array = np.empty(stop - start, dtype)
        self._read(name, array, start * array.itemsize)
        return array

    def _read_checked(self, name: str, first: int, count: int) -> Array:
        """Whole blocks of a section, after they were compared with their checksums."""
        section = self.manifest.sections[name]
        if name not in self._bound:
            check_table(self.file(name + CHECKSUMS), section.blocks, section.checksums)
            self._bound.add(name)
        data, sums = np.empty(count * BLOCK, np.uint8), self.read_checksums(name, first, count)
        for at in range(0, count, AT_ONCE):
            piece = data[at * BLOCK : (at + AT_ONCE) * BLOCK]
            self._read(name, piece, (first + at) * BLOCK)
            for block in damaged(piece, sums[at : at + AT_ONCE]):
                raise wrong_sum(self.path / name, first + at + block)
        return data

    def read_blocks(self, name: str, first: int, count: int) -> Array:
        """The bytes of `count` whole blocks of a section's file, not compared with their checksums."""
        data = np.empty(count * BLOCK, np.uint8)
        self._read(name, data, first * BLOCK)
        return data

    def read_checksums(self, name: str, first: int, count: int) -> Array:
        """The stored checksums of `count` blocks of a section."""
        sums = np.empty(count, "<u8")
        self._read(name + CHECKSUMS, sums, first * 8)
        return sums

    def identity(self) -> str:
        """A text that is equal for stores with the same contents and different for others."""
        return identity_of(self.manifest, {name: section.checksums for name, section in self.manifest.sections.items()})

    def __reduce__(self) -> Any:
        """How it is pickled. The numbers of open files mean other files, or none, in another process."""
        if not self.path.exists():
            raise StoreError(
                f"{self.path}: cannot be pickled, as no other process finds it: it has no name any more; save the graph"
            )
        return reopened, (os.path.abspath(self.path), self.identity())

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.sections

    def close(self) -> None:
        """Release all files; those without other references are closed."""
        self._files = {}

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __str__(self) -> str:
        return str(self.path)


class MemoryStore:
    """The same sections held in RAM, for graphs that are never written to disk."""

    path: Path | None = None

    def __init__(self, manifest: Manifest, arrays: dict[str, Array]) -> None:
        self.manifest = manifest
        self._arrays = arrays

    def read(self, name: str, start: int = 0, stop: int | None = None, verify: bool | None = None) -> Array:
        """Elements start:stop of a section: a view. There is nothing to verify: memory has no checksums.

        It must not be written to. It is not marked read-only, since kernels would then be compiled a second time for
        it.
        """
        if name not in self._arrays and name in self.manifest.sections:
            raise StoreError(f"{name} cannot be read; the graph is closed")
        return self._arrays[name][start:stop]

    def only(self, *prefixes: str) -> MemoryStore:
        """A store of the sections with these prefixes, readable also after this one is closed."""
        return MemoryStore(
            self.manifest, {name: array for name, array in self._arrays.items() if name.startswith(prefixes)}
        )

    def identity(self) -> str:
        """A text that is equal for stores with the same contents and different for others."""
        return identity_of(
            self.manifest, {name: digest(np.ascontiguousarray(array)) for name, array in self._arrays.items()}
        )

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.sections

    def close(self) -> None:
        self._arrays = {}

    def __repr__(self) -> str:
        return "MemoryStore()"

    def __str__(self) -> str:
        return "the graph in memory"


def identity_of(manifest: Manifest, checksums: dict[str, str]) -> str:
    return digest(repr([manifest.directed, *sorted(checksums.items())]).encode())


def reopened(path: str, identity: str) -> Store:
    """Open a store that was pickled, or raise StoreError if its path has other contents by now."""
    store = Store(path)
    if store.identity() != identity:
        store.close()
        raise StoreError(f"{path}: holds another graph than when it was pickled; open it with isthmus.open")
    return store


def is_store(path: Path) -> bool:
    """Whether a folder looks like a store."""
    return (path / NAME).exists()
