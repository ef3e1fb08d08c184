"""The on-disk graph store, for reading: a folder of raw arrays with a manifest and block checksums.

Nothing is mapped: a file truncated under a mapping kills the process, `pread` merely comes back short. All
files are opened at once and stay open, so a reader keeps its graph even while a writer replaces the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.files import BLOCK, Array, padded, read_into
from isthmus.graph.manifest import MAX_BYTES, NAME, Manifest, decode

SUFFIX = ".isthmus"
CHECKSUMS = ".xxh3"  # section NAME has its block checksums in NAME.xxh3


class Store:
    """An open store. Sections are read by name and element range."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files: dict[str, int] = {}
        self.manifest = self._read_manifest()
        try:
            for name, section in self.manifest.sections.items():
                self._open(name, padded(section.bytes))
                self._open(name + CHECKSUMS, section.blocks * 8)
        except BaseException:
            self.close()
            raise

    def _read_manifest(self) -> Manifest:
        path = self.path / NAME
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            what = "is not an Isthmus store (no manifest.json)" if self.path.exists() else "no such store"
            raise StoreError(f"{self.path}: {what}") from None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise StoreError(f"{path}: larger than any manifest")
        return decode(data, str(path))

    def _open(self, name: str, size: int) -> None:
        path = self.path / name
        try:
            self._files[name] = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        actual = os.fstat(self._files[name]).st_size
        if actual != size:
            raise StoreError(f"{path}: expected {size} bytes by the manifest, found {actual}; the store is damaged")

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Elements start:stop of a section, in a new array."""
        section = self.manifest.sections[name]
        stop = section.count if stop is None else stop
        if not 0 <= start <= stop <= section.count:
            raise StoreError(f"{self.path}: {name} has {section.count} entries, asked for {start}:{stop}")
        array = np.empty(stop - start, np.dtype(section.dtype).newbyteorder("<"))
        read_into(self._files[name], memoryview(array.view(np.uint8)), start * array.itemsize, str(self.path / name))
        return array

    def read_blocks(self, name: str, first: int, count: int) -> tuple[memoryview, Array]:
        """`count` whole blocks of a section's file, and the checksums they should have."""
        data = np.empty(count * BLOCK, np.uint8)
        read_into(self._files[name], memoryview(data), first * BLOCK, str(self.path / name))
        sums = np.empty(count, "<u8")
        table = name + CHECKSUMS
        read_into(self._files[table], memoryview(sums.view(np.uint8)), first * 8, str(self.path / table))
        return memoryview(data), sums

    def read_table(self, name: str) -> bytes:
        """A section's whole table of checksums, as stored."""
        data = np.empty(self.manifest.sections[name].blocks * 8, np.uint8)
        table = name + CHECKSUMS
        read_into(self._files[table], memoryview(data), 0, str(self.path / table))
        return data.tobytes()

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.sections

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"


class MemoryStore:
    """The same sections held in RAM, for graphs that never touch a disk."""

    path: Path | None = None

    def __init__(self, manifest: Manifest, arrays: dict[str, Array]) -> None:
        self.manifest = manifest
        self._arrays = arrays

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        view: Any = self._arrays[name][start:stop]
        view.flags.writeable = False
        return view

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def close(self) -> None:
        self._arrays = {}

    def __repr__(self) -> str:
        return "MemoryStore()"
