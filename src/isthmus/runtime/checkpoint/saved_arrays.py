"""Plain values and arrays saved in a folder: a JSON manifest, and one file of all arrays, each starting at a block
boundary.

Everything has a checksum. Nothing is pickled, so loading runs no saved code. Only the user can write the files, and
files that others can write are not read. Arrays are written from, and read into, their own memory, piece by piece.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import OptionError, StoreError
from isthmus.graph.store.blocks import damaged
from isthmus.graph.store.files import BLOCK, Array, fsync_folder, padded, read_into
from isthmus.graph.store.sealed_json import digest, sealed, unsealed
from isthmus.graph.store.writer import STAGING, SectionFile, write_synced
from isthmus.kernels.compile.code_cache import trouble_with

FORMAT, VERSION = "isthmus-checkpoint", 1
NAME, ARRAYS, CHECKSUMS = "manifest.json", "arrays", ".xxh3"
FILES = (NAME, ARRAYS, ARRAYS + CHECKSUMS)
KINDS = "biufc"  # numbers of any width; objects could only be pickled
ANEW = "give --restart (restart=True) to start over"
LINE = 200  # letters of an error that are shown
PADDING = np.zeros(BLOCK, np.uint8)
MEMBERS = {"bytes": int, "checksums": str, "arrays": list, "value": dict}  # that every manifest has
WRONG = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)  # what a wrong structure leads to


def encode(value: Any, where: str, arrays: list[Array]) -> Any:
    """`value` as JSON. Arrays are appended to `arrays` and replaced by their places; types that JSON would merge are
    tagged.
    """
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return {"scalar": encode(value.item(), where, arrays), "dtype": value.dtype.str}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, list | tuple):
        items = [encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(item, f"{where}.{key}", arrays) for key, item in value.items()}}
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
    raise OptionError(f"{where} is {what}, which cannot be saved; override Program.remember and Program.recall")


def write(folder: Path, facts: dict[str, Any], value: Any) -> None:
    """Save `value` in a new folder, with `facts` in the manifest. After a power cut either everything is there or the
    manifest is not.
    """
    arrays: list[Array] = []
    tree = encode(value, "value", arrays)
    folder.mkdir(0o700)
    file, places = SectionFile(folder / ARRAYS, np.uint8), []
    try:
        for array in arrays:
            places.append({"dtype": array.dtype.str, "shape": list(array.shape), "at": file.count})
            file.append(as_bytes(np.ascontiguousarray(array)))
            file.append(PADDING[: -file.count % BLOCK])
        section = file.finish()
    finally:
        file.close()
    body = {"format": FORMAT, "version": VERSION, **facts, "bytes": section.count, "checksums": section.checksums}
    write_synced(folder / NAME, sealed({**body, "arrays": places, "value": tree}))
    for name in FILES:
        os.chmod(folder / name, 0o600)
    fsync_folder(folder)


def as_bytes(array: Array) -> Array:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def brief(error: Exception) -> str:
    """An error on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= LINE else text[:LINE] + ' ...'}"


class Saved:
    """What `write` left in a folder. `facts` is the manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check_owner()
        self.facts = unsealed(folder / NAME, FORMAT, VERSION, ANEW)
        self.need(self.facts, MEMBERS)

    def _check_owner(self) -> None:
        """Raise StoreError if another user can have written something here: a checkpoint decides what a run
        computes.
        """
        for path in (self.folder, *(self.folder / name for name in FILES)):
            try:
                facts = os.lstat(path)
            except OSError:
                continue  # there is an error when it is read
            if stat.S_ISLNK(facts.st_mode) or (trouble := trouble_with(facts)):
                why = "is a symbolic link" if stat.S_ISLNK(facts.st_mode) else trouble
                raise StoreError(
                    f"{path}: {why}, so it is not used; if you trust it, make a copy of {self.folder} that only you "
                    f"can write"
                )

    def need(self, facts: dict[str, Any], members: dict[str, type]) -> None:
        """Raise StoreError unless `facts` has these members, of these types."""
        for name, kind in members.items():
            if not isinstance(facts.get(name), kind) or isinstance(facts.get(name), bool):
                raise StoreError(f"{self.folder / NAME}: expected a member {name!r} of type {kind.__name__}; {ANEW}")

    def load(self, fresh: Any) -> Any:
        """The value that was saved. Arrays are read into those that `fresh` has in the same places, if it has any."""
        try:
            self._file = os.open(self.folder / ARRAYS, os.O_RDONLY)
        except OSError as error:
            raise StoreError(f"{self.folder / ARRAYS}: {error.strerror}; {ANEW}") from error
        try:
            if os.fstat(self._file).st_size != padded(self.facts["bytes"]):
                raise self._damaged(f"does not have the {padded(self.facts['bytes'])} bytes that it was written with")
            self._sums = self._read_checksums()
            return self._decode(self.facts["value"], fresh)
        except WRONG as error:
            raise self.misshapen(error) from error
        finally:
            os.close(self._file)

    def _read_checksums(self) -> Array:
        path = self.folder / (ARRAYS + CHECKSUMS)
        try:
            table = path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; {ANEW}") from error
        if digest(table) != self.facts["checksums"]:
            raise StoreError(f"{path}: is damaged (its checksum does not match); {ANEW}")
        return np.frombuffer(table, "<u8")

    def misshapen(self, error: Exception) -> StoreError:
        """The error for a checkpoint whose parts do not have the structure that this run expects."""
        return StoreError(f"{self.folder / NAME}: does not describe the state of this run ({brief(error)}); {ANEW}")

    def failed(self, error: Exception) -> StoreError:
        """The error for a run that failed after it had resumed."""
        return StoreError(f"the run that resumed from {self.folder} failed ({brief(error)}); {ANEW}")

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{self.folder / ARRAYS}: {what}; {ANEW}")

    def _decode(self, value: Any, fresh: Any) -> Any:
        if isinstance(value, list):
            return [
                self._decode(item, fresh[i] if isinstance(fresh, list) and i < len(fresh) else None)
                for i, item in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self._read(self.facts["arrays"][value["array"]], fresh)
        if "tuple" in value:
            return tuple(self._decode(value["tuple"], list(fresh) if isinstance(fresh, tuple) else None))
        if "scalar" in value:
            return np.dtype(value["dtype"]).type(self._decode(value["scalar"], None))
        if "float" in value:
            return float(value["float"])
        return {
            key: self._decode(item, fresh.get(key) if isinstance(fresh, dict) else None)
            for key, item in value["dict"].items()
        }

    def _read(self, place: dict[str, Any], fresh: Any) -> Array:
        """One array, into `fresh` if that is an array, which must then have the same shape and type."""
        dtype, shape = np.dtype(place["dtype"]), tuple(place["shape"])
        if isinstance(fresh, np.ndarray) and (fresh.dtype, fresh.shape) != (dtype, shape):
            raise self._damaged(
                f"has an array {dtype}{list(shape)} where this run has {fresh.dtype}{list(fresh.shape)}"
            )
        if dtype.kind not in KINDS or min(shape, default=0) < 0 or place["at"] < 0 or place["at"] % BLOCK:
            raise ValueError(f"an array of {dtype}{list(shape)} at byte {place['at']}")
        if place["at"] + math.prod(shape) * dtype.itemsize > self.facts["bytes"]:
            raise ValueError(f"an array of {dtype}{list(shape)} at byte {place['at']} of {self.facts['bytes']}")
        fits = isinstance(fresh, np.ndarray) and fresh.flags.c_contiguous and fresh.flags.writeable
        array: Array = fresh if fits else np.empty(shape, dtype)
        self._fill(as_bytes(array), place["at"])
        return array

    def _fill(self, memory: Array, at: int) -> None:
        """Read into `memory` from byte `at` on, and compare every block with its checksum."""
        piece = np.empty(min(STAGING, padded(memory.size)), np.uint8)
        for done in range(0, memory.size, STAGING):
            size = min(STAGING, memory.size - done)
            blocks = piece[: padded(size)]
            read_into(self._file, blocks.data, at + done, str(self.folder / ARRAYS))
            first = (at + done) // BLOCK
            for block in damaged(blocks, self._sums[first : first + blocks.size // BLOCK]):
                raise self._damaged(f"is damaged at byte {(first + block) * BLOCK} (the checksum does not match)")
            memory[done : done + size] = piece[:size]
