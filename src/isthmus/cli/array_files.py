"""Reads the array files that commands take: .npy and .npz, never pickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from isthmus.errors import GraphFormatError, OptionError


def read_array(path: Path) -> Any:
    """The array of a .npy file, mapped: its values are read when they are used."""
    array = loaded(path, mmap_mode="r")
    if hasattr(array, "files"):
        array.close()
        raise GraphFormatError(f"{path}: expected one array (.npy), got an archive of several")
    return array


def read_arrays(path: Path, needed: str, *others: str) -> dict[str, Any]:
    """Arrays of a .npz file by name. `needed` must be there, `others` may."""
    archive = loaded(path)
    if not hasattr(archive, "files"):
        raise GraphFormatError(f"{path}: expected an archive (.npz) with an array {needed!r}, got a single array")
    with archive:
        if needed not in archive.files:
            raise GraphFormatError(f"{path}: expected an array {needed!r}, got {', '.join(archive.files) or 'none'}")
        try:
            return {name: archive[name] for name in (needed, *others) if name in archive.files}
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise GraphFormatError(f"{path}: cannot read its arrays: {error}") from error


def loaded(path: Path, **options: Any) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False, **options)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise GraphFormatError(f"{path}: expected a NumPy file (.npy or .npz) of numbers") from error


def read_sizes(text: str) -> list[int]:
    """64,32,10 as numbers."""
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise OptionError(f"layers: expected sizes such as 64,32,10, got {text!r}")
    return [int(word) for word in words]
