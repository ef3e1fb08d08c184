"""The on-disk graph store, for reading: a folder of raw arrays with a manifest and block checksums.

Files are read by `pread` and not memory-mapped: truncating a mapped file kills the process, while `pread` only returns
fewer bytes. All files are opened at once and stay open, so a reader keeps its graph even while a writer replaces the folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Self

import numpy as np
import xxhash

from isthmus.errors import StoreError
from isthmus.graph.files import BLOCK, Array, OpenFile, is_address, padded
from isthmus.graph.manifest import MAX_BYTES, NAME, Manifest, decode

SUFFIX = ".isthmus"
CHECKSUMS = ".xxh3"  # section NAME has its block checksums in NAME.xxh3


class Store:
    """An open store. Sections are read by name and element range."""

    def __init__(self, path: str | Path) -> None:
        self._files: dict[str, OpenFile] = {}
        self.path = Path(path)
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
        """Open the store's folder. All files are opened relative to it, since a writer may put another store at the path."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            what = "is an address, expected a store on this machine" if is_address(self.path) else "no such store"
            raise StoreError(f"{self.path}: {what}") from None
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
            raise StoreError(f"{self.path}: is not an Isthmus store (no {NAME})") from None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise StoreError(f"{path}: too large for a manifest")
        return decode(data, str(path))

    def _open(self, folder: int, name: str, size: int) -> None:
        path = self.path / name
        try:
            self._files[name] = OpenFile(os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder), path)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        found = os.fstat(self._files[name].descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path}: is not a file")
        if found.st_size != size:
            raise StoreError(f"{path}: expected {size} bytes by the manifest, found {found.st_size}; the store is damaged")

    def file(self, name: str) -> OpenFile:
        """The open file of a section, or of its checksums."""
        if name not in self._files:
            raise StoreError(f"{self.path}: {name} cannot be read; the store is closed")
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
        part.path, part.manifest = self.path, self.manifest
        part._files = {name: file for name, file in self._files.items() if name.startswith(prefixes)}
        return part

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Elements start:stop of a section, in a new array."""
        section = self.manifest.sections[name]
        stop = section.count if stop is None else stop
        if not 0 <= start <= stop <= section.count:
            raise StoreError(f"{self.path}: {name} has {section.count} entries, asked for {start}:{stop}")
        array = np.empty(stop - start, np.dtype(section.dtype).newbyteorder("<"))
        self._read(name, array, start * array.itemsize)
        return array

    def read_checked(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Like `read`, but compares every block with its checksum."""
        section = self.manifest.sections[name]
        stop = section.count if stop is None else stop
        if start >= stop:
            return self.read(name, start, stop)
        dtype = np.dtype(section.dtype).newbyteorder("<")
        first, last = start * dtype.itemsize // BLOCK, (stop * dtype.itemsize - 1) // BLOCK
        data = self.read_blocks(name, first, last - first + 1)
        for block, expected in enumerate(self.read_checksums(name, first, last - first + 1).tolist(), first):
            at = (block - first) * BLOCK
            if xxhash.xxh3_64_intdigest(data[at : at + BLOCK]) != expected:
                raise StoreError(f"{self.path / name}: block {block} at byte {block * BLOCK}: the checksum does not match")
        return np.frombuffer(data, dtype, stop - start, start * dtype.itemsize - first * BLOCK)

    def read_blocks(self, name: str, first: int, count: int) -> memoryview:
        """`count` whole blocks of a section's file."""
        data = np.empty(count * BLOCK, np.uint8)
        self._read(name, data, first * BLOCK)
        return data.data

    def read_checksums(self, name: str, first: int, count: int) -> Array:
        """The stored checksums of `count` blocks of a section."""
        sums = np.empty(count, "<u8")
        self._read(name + CHECKSUMS, sums, first * 8)
        return sums

    def read_table(self, name: str) -> bytes:
        """A section's whole table of checksums, as stored."""
        data = np.empty(self.manifest.sections[name].blocks * 8, np.uint8)
        self._read(name + CHECKSUMS, data, 0)
        return data.tobytes()

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.sections

    def close(self) -> None:
        """Release all files; those without other references are closed."""
        self._files = {}

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"


class MemoryStore:
    """The same sections held in RAM, for graphs that are never written to disk."""

    path: Path | None = None

    def __init__(self, manifest: Manifest, arrays: dict[str, Array]) -> None:
        self.manifest = manifest
        self._arrays = arrays

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Elements start:stop of a section: a read-only view."""
        if name not in self._arrays and name in self.manifest.sections:
            raise StoreError(f"{name} cannot be read; the graph is closed")
        view = self._arrays[name][start:stop]
        view.flags.writeable = False
        return view

    def read_checked(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """The same as `read`: memory has no checksums."""
        return self.read(name, start, stop)

    def only(self, *prefixes: str) -> MemoryStore:
        """A store of the sections with these prefixes, readable also after this one is closed."""
        return MemoryStore(self.manifest, {name: array for name, array in self._arrays.items() if name.startswith(prefixes)})

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.sections

    def close(self) -> None:
        self._arrays = {}

    def __repr__(self) -> str:
        return "MemoryStore()"


def is_store(path: Path) -> bool:
    """Whether a folder looks like a store."""
    return (path / NAME).exists()
