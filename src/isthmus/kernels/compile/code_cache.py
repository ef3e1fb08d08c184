"""Machine code that is kept between runs: one file per compiled function, types and processor, below the user's
cache folder.

The name of a file has a hash of all that its code depends on: the source file of the function and those of the kernels
that it imports, the versions of Python, Numba, llvmlite and NumPy, the types, and the processor (`kernel.py`). So
versions of the package, and different machines, can share the folder.

Loading machine code runs it. So a file is read only if it and its folder belong to this user and nobody else can write
them, and only after its checksum was compared. A damaged file is removed, and its function compiled again. Where no
file can be kept, functions are compiled in memory, for one process. Files that were not used for two months are
removed: they are of older versions, or of programs that nobody runs any more. Everything here is safe to delete.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MARK = b"isthmus machine code 1\n"
DIGEST = hashlib.sha256().digest_size
DAY = 24 * 3600.0
UNUSED = 60 * DAY  # seconds after which a file is removed
OURS = (".code", ".tmp")  # how the names of our files end; nothing else is removed
NOWHERE = Path(os.devnull)  # no folder can be made below it


class UnsafeError(OSError):
    """A folder or file that others could have written."""


def cache_folder() -> Path:
    """The folder where Isthmus keeps data between runs."""
    if chosen := os.environ.get("ISTHMUS_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "isthmus"
    try:
        return Path.home() / ".cache" / "isthmus"
    except RuntimeError:  # a user without a home, as in some containers
        return NOWHERE / "isthmus"


@cache  # decided once
def kernels_folder() -> Path:
    """The folder of machine code."""
    return cache_folder() / "kernels"


def read(name: str) -> bytes | None:
    """The content of a file; None if there is none that can be used. A file that is damaged or of another owner is
    removed.
    """
    try:
        with opened_folder() as folder:
            content = content_of(name, folder)
            if content is None:
                os.unlink(name, dir_fd=folder)
            return content
    except OSError:
        return None


def content_of(name: str, folder: int) -> bytes | None:
    """The content of a file; None if it is damaged or not ours."""
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(file, "rb") as opened:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or trouble_with(facts):
            return None
        whole = opened.read()
        if time.time() - facts.st_mtime > DAY:
            with contextlib.suppress(OSError):
                os.utime(file)  # it is in use
    digest, content = whole[len(MARK) : len(MARK) + DIGEST], whole[len(MARK) + DIGEST :]
    return content if whole.startswith(MARK) and digest == digest_of(name, content) else None


def write(name: str, content: bytes) -> None:
    """Keep a file, replacing another of that name in one step. Raises OSError."""
    fresh = f"{uuid.uuid4().hex}.tmp"
    make_folder()
    with opened_folder() as folder:
        remove_unused(folder)
        try:
            file = os.open(
                fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder
            )
            with open(file, "wb") as opened:
                opened.write(MARK + digest_of(name, content) + content)
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=folder)


def remove_unused(folder: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process was quicker, or it is no file of ours
                if entry.name.endswith(OURS) and time.time() - entry.stat(follow_symlinks=False).st_mtime > UNUSED:
                    os.unlink(entry.name, dir_fd=folder)


def remove(name: str) -> None:
    with contextlib.suppress(OSError), opened_folder() as folder:
        os.unlink(name, dir_fd=folder)


def digest_of(name: str, content: bytes) -> bytes:
    """A checksum over the name too, so that a file under a wrong name is found."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def make_folder() -> None:
    folder = kernels_folder()
    if not folder.is_dir():
        folder.parent.mkdir(0o700, parents=True, exist_ok=True)
        folder.mkdir(0o700, exist_ok=True)


@contextlib.contextmanager
def opened_folder() -> Iterator[int]:
    """A descriptor of the folder, which stays the same folder whatever happens to its name. Raises OSError."""
    folder = os.open(kernels_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if trouble := trouble_with(os.fstat(folder)):
            raise UnsafeError(trouble)
        yield folder
    finally:
        os.close(folder)


def trouble_with(facts: os.stat_result) -> str:
    """Why a folder or file cannot be trusted, or ''."""
    if facts.st_uid != os.geteuid():
        return f"belongs to another user (uid {facts.st_uid})"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by other users (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""


def trouble() -> str:
    """Why code that is compiled now cannot be kept for the next run, or ''."""
    place = kernels_folder()
    if place.is_relative_to(NOWHERE / "isthmus"):
        return "there is no home folder"
    try:
        make_folder()
        with opened_folder() as folder:
            return "" if os.access(".", os.W_OK, dir_fd=folder) else f"{place} cannot be written"
    except UnsafeError as error:
        return f"{place} {error}, so nothing in it is used"
    except OSError as error:
        return f"{place} cannot be used ({error.strerror})"
