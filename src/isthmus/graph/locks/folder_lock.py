"""The lock of a folder: one process of a machine uses it at a time. It ends with the process; forks do not have it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from weakref import WeakSet

from isthmus.errors import StoreError

HELD: WeakSet[FolderLock] = WeakSet()


class FolderLock:
    """Holds a folder, made if it does not exist, until `release`. Some file systems do not lock folders at all."""

    _file, _process = -1, 0

    def __init__(self, path: Path, what: str, busy: str) -> None:
        """`what` and `busy`, for messages: the purpose of the folder, and why another process may hold it."""
        self._path, self._what, self._busy, self._process = path, what, busy, os.getpid()
        HELD.add(self)
        try:
            while not self._took():
                self.release()  # another process removed the folder between our open and our lock
        except BaseException:  # Ctrl-C too: this process may want it again
            self.release()
            raise

    def _took(self) -> bool:
        """Lock the folder; False if it has been removed meanwhile."""
        try:
            self._path.mkdir(exist_ok=True)
            self._file = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be used as a folder for {self._what}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{self._path}: {self._busy}") from None
        except OSError:
            return True  # a file system that does not lock folders
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.stat(self._path), os.fstat(self._file))
        return False

    def release(self) -> None:
        """Unlock the folder, also for forks that have it open."""
        file, self._file = self._file, -1
        if file >= 0:
            if os.getpid() == self._process:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)
            with contextlib.suppress(OSError):
                os.close(file)

    def __del__(self) -> None:
        self.release()


def forget() -> None:
    """In a fork: close its copies, which would keep the locks when their holder has been killed."""
    with contextlib.suppress(RuntimeError):  # the fork was made while another thread took one
        for lock in list(HELD):
            lock.release()


os.register_at_fork(after_in_child=forget)
