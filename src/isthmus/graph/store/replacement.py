"""Files that are replaced in one step: readers see the old contents or the new, and a failure leaves the old.

The new contents go to a temporary file beside the target. It is created anew and never through a symbolic link, so no
other file can be overwritten through its name. Its writer holds a lock on it, by which the next writer of the same
target knows the temporary files of killed writers, and removes them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isthmus.graph.store.files import NotUndone, exchanged, fsync_folder, sync_or_undo


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write the new contents of `path` to. They take its place when the block ends without an error."""
    remove_abandoned(path)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    file = os.fdopen(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb")
    try:
        with file:
            lock(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            put_into_place(fresh, path)
    except NotUndone:
        raise  # `fresh` is the old file; the next writer removes it
    except BaseException:
        with contextlib.suppress(OSError):  # a read-only folder refuses this too
            fresh.unlink(missing_ok=True)
        raise


def put_into_place(fresh: Path, path: Path) -> None:
    """Rename a file, and sync that. If it cannot be synced, undo it; what was replaced is only removed afterwards.

    A file system that cannot exchange files in one step replaces the old file for good.
    """
    if not os.path.lexists(path):
        os.replace(fresh, path)
        sync_or_undo(path.parent, lambda: os.replace(path, fresh))
    elif not path.is_dir() and exchanged(fresh, path):
        sync_or_undo(path.parent, lambda: exchange_back(fresh, path))
        with contextlib.suppress(OSError):  # the next writer removes it
            fresh.unlink()
    else:
        os.replace(fresh, path)
        fsync_folder(path.parent)


def exchange_back(fresh: Path, path: Path) -> None:
    if not exchanged(fresh, path):
        raise OSError(errno.EIO, "the old file cannot be put back")


def remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` that no process is writing."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.\d+\.tmp")
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(path.parent)):
            with contextlib.suppress(OSError):  # it is being written, or is a symbolic link, or is not ours to remove
                file = os.open(path.with_name(name), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if lock(file):
                        os.unlink(path.with_name(name))
                finally:
                    os.close(file)


def lock(file: int) -> bool:
    """Lock an open file; False if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
