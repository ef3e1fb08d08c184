"""Measuring a disk by path or a GPU by name, for `isthmus.calibrate` and the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any, overload

from isthmus.devices.choose import device_named
from isthmus.errors import OptionError
from isthmus.link.link import Profile
from isthmus.link.profile.calibration import survey
from isthmus.progress import SILENT, Progress


@overload
def calibrate(path: str | Path = ".", progress: Progress = SILENT) -> Profile: ...
@overload
def calibrate(*, progress: Progress = SILENT, device: str) -> Any: ...


def calibrate(path: str | Path | None = None, progress: Progress = SILENT, *, device: str | None = None) -> Any:
    """Measure the disk that a folder or store lies on, or a GPU, in a few seconds, and remember it for later runs.

    path: a store, which is read, or a folder, where a temporary test file of up to 1 GB is written; by default the
    current folder.

    device: a GPU of this machine, such as "cuda:0", instead of a disk. What it costs is then returned in place of a
    profile, and `device="auto"` may choose it.
    """
    if device is None:
        return survey("." if path is None else path, progress)[1]
    if path is not None:
        raise OptionError(
            f"calibrate: expected path, to measure a disk, or device, to measure a GPU; got {path} and {device}"
        )
    return device_named(device).calibrate(progress)
