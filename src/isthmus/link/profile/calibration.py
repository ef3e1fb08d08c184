"""Disk profiles: measured once, kept in a file per file system, measured again on request or when that file is damaged.

A device number may name another disk after the next boot. So a disk is identified by the id of its file system, or by
its mount source if it has no id (network mounts).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isthmus import sizes
from isthmus.checks import path_of
from isthmus.errors import OptionError
from isthmus.graph.far import FarArray
from isthmus.graph.graph import open_graph
from isthmus.graph.store.files import BLOCK
from isthmus.graph.store.replacement import replacing
from isthmus.graph.store.store import is_store
from isthmus.kernels.compile.code_cache import cache_folder
from isthmus.link.link import Profile
from isthmus.link.profile.measurement import ROUNDS, Samples, Say, ignore, measure_folder, measure_stored
from isthmus.link.ssd import GUESS
from isthmus.progress import SILENT, Progress

VERSION = 2  # of the file of profiles; version 1 had no number and identified disks by device number
QUICK = 3  # rounds when a run must measure before it starts
WAIT = 60.0  # seconds for another process to finish measuring; it may have been stopped


@dataclass(frozen=True)
class Memory:
    """A profile and when it was measured, in seconds since 1970; None if that was not recorded."""

    profile: Profile
    when: float | None


def memory_file() -> Path:
    return cache_folder() / "links.json"


def survey(path: str | Path, progress: Progress = SILENT, say: Say = ignore) -> tuple[Samples, Profile]:
    """Measure a disk and remember its profile; `say` gets a note if the rates vary widely or the profile cannot be
    saved.
    """
    place = checked_place(path)
    with alone(say), contextlib.ExitStack() as stack:
        graph = stack.enter_context(open_graph(place)) if is_store(place) else None
        array = None if graph is None else largest(graph.snapshot.far("out", True))
        if array is not None and array.bytes >= sizes.now.least_trial:
            samples = measure_stored(array, ROUNDS, progress, say)
        else:
            samples = measure_folder(place, ROUNDS, progress, say)
        if not samples.steady:
            say(
                "the best round was far better than the median: the disk is busy, or caches what was read before; "
                "better calibrate again"
            )
        profile = samples.profile(name_of(place))
        if not remember(disk_of(place), profile):
            say(f"not remembered: {memory_file()} cannot be written; set ISTHMUS_CACHE to a folder that can")
    return samples, profile


def profile_of(arrays: list[FarArray], may_measure: bool = True, say: Say = ignore) -> Profile:
    """The remembered profile of the disk that a store's arrays lie on.

    If there is none, the disk is measured now; a small store, a run that needs no measurement, or a disk that cannot be
    told from others has a default profile.
    """
    array = largest(arrays)
    try:
        disk = disk_of(array.open_file().descriptor)
    except OSError:
        return GUESS
    if known := recall(disk):
        return known.profile
    if not may_measure or array.bytes < sizes.now.least_trial:
        return GUESS
    say("measuring the disk, once; isthmus calibrate does it again")
    with alone(say):
        if known := recall(disk):  # another process measured it while this one waited
            return known.profile
        samples = measure_stored(array, QUICK)
        profile = samples.profile(name_of(array.open_file().path.parent))
        if samples.steady:  # otherwise the next run tries again
            remember(disk, profile)
        return profile


def largest(arrays: list[FarArray]) -> FarArray:
    return max(arrays, key=lambda array: array.bytes)


def checked_place(path: str | Path) -> Path:
    place = path_of("calibrate", path)
    try:
        os.stat(place)
    except OSError as error:
        raise OptionError(f"{place}: {error.strerror}") from error
    if not place.is_dir():
        raise OptionError(f"{place}: expected a folder or a store, and this is a file")
    return place


def name_of(path: Path) -> str:
    place = path.resolve()
    return "disk at " + next(
        str(folder) for folder in (place, *place.parents) if folder.parent == folder or os.path.ismount(folder)
    )


def disk_of(place: Path | int) -> tuple[str, str]:
    """(A lasting name for the disk of a path or open file, its name in version 1 of the file of profiles)."""
    number = os.statvfs(place).f_fsid
    device = os.stat(place).st_dev
    return f"fs {number:x}" if number else mount_source(device) or str(device), str(device)


def mount_source(device: int) -> str:
    """'nfs4 server:/export': what the file system with a device number was mounted from."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            here, _, there = line.partition(" - ")
            if here.split()[2] == wanted:
                return " ".join(there.split()[:2])
    return ""


def recall(disk: tuple[str, str]) -> Memory | None:
    """The remembered profile of a disk; None if there is none or it is damaged."""
    known = memories()
    for name in disk:
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            return decode(known[name])
    return None


def memories() -> dict[str, Any]:
    """All entries of the file of profiles, as written; empty if the file is missing or damaged."""
    try:
        written = json.loads(memory_file().read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(written, dict):
        return {}
    disks = written if "version" not in written else written.get("disks") if written["version"] == VERSION else {}
    return disks if isinstance(disks, dict) else {}


def decode(entry: Any) -> Memory:
    """An entry as a profile with positive rates, or an error. Version 1 had no time, rates or compaction."""
    fields = dict(entry)
    when = fields.pop("when", None)
    fields["rates"] = tuple((depth, rate) for depth, rate in fields.get("rates", ()))
    profile = Profile(**fields)
    numbers = [
        profile.bandwidth,
        profile.request_rate,
        profile.compaction,
        *(number for pair in profile.rates for number in pair),
    ]
    if not isinstance(profile.name, str) or not isinstance(profile.measured, bool):
        raise TypeError(f"not a disk: {profile}")
    if not (
        all(0 < number < 1e15 for number in numbers) and profile.block == BLOCK and profile.depth in range(1, 1025)
    ):
        raise ValueError(f"not a disk: {profile}")
    if when is not None and not 0 <= float(when) < 1e12:
        raise ValueError(f"not a time: {when}")
    return Memory(profile, when if when is None else float(when))


def remember(disk: tuple[str, str], profile: Profile) -> bool:
    """Save a profile beside those of other disks; False if that fails. Call it inside `alone`."""
    return write({**without(disk), disk[0]: {"when": time.time(), **asdict(profile)}})


def forget(path: str | Path) -> bool:
    """Delete the profile of the disk of a folder or store; False if there was none."""
    disk = disk_of(checked_place(path))
    with alone():
        rest = without(disk)
        return len(rest) < len(memories()) and write(rest)


def without(disk: tuple[str, str]) -> dict[str, Any]:
    return {name: entry for name, entry in memories().items() if name not in disk}


def write(disks: dict[str, Any]) -> bool:
    """Replace the file of profiles in one step."""
    path = memory_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps({"version": VERSION, "disks": disks}, indent=1).encode())
    except OSError:
        return False
    return True


@contextlib.contextmanager
def alone(say: Say = ignore) -> Iterator[None]:
    """Let one process at a time measure and save its profile, so that it has the disk to itself.

    A process that has waited for WAIT seconds continues. If the folder cannot be locked, no process waits.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            cache_folder().mkdir(parents=True, exist_ok=True)
            folder = os.open(cache_folder(), os.O_RDONLY)
            stack.callback(os.close, folder)
            wait_for(folder, say)
        yield


def wait_for(folder: int, say: Say) -> None:
    start = time.monotonic()
    while not locked(folder) and time.monotonic() - start < WAIT:
        if say is not ignore:
            say("waiting: another process is measuring")
            say = ignore
        time.sleep(0.02)


def locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
