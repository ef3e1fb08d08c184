"""A lock file: one writer at a time, also in a folder that several machines share.

Among the processes of one machine `flock` decides, and it ends with the process that has it. Some file systems do not tell other machines
of it, and some have none. So the file names its holder: host, boot and process (`holder.py`). While the lock is held, the time of the
file is renewed (`signs.py`). A lock whose holder is on another machine counts as held until it was not renewed for OLD seconds; process
numbers of other machines mean nothing here.

A holder that was stopped for longer may have been replaced. So it looks (`renew`) before it does what cannot be undone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from pathlib import Path

from isthmus.errors import StoreError
from isthmus.graph.holder import Holder, clock
from isthmus.graph.signs import SIGNS

OLD = 3600.0  # seconds
RENEWED = 60.0  # seconds between two signs of life, at least
FULL = (errno.ENOSPC, errno.EDQUOT)
NO_FLOCK = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems that have none


class NoLockFile(StoreError):
    """The file cannot be made, or not locked."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for it."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in FULL


class LockFile:
    """Holds a lock file until `release`, which removes it. A process that is killed leaves the file, and on its own machine no lock."""

    def __init__(self, path: Path, what: Path, busy: str) -> None:
        """`what` and `busy`, for messages: what is locked, and what its holder does."""
        self.path, self._what, self._busy, self._renewed = path, what, busy, clock()
        self._process = os.getpid()
        self._is_named = False  # the file has our name
        self._found: Holder | None = None  # the name that it has as long as there is no room for ours
        self._closing = threading.Lock()
        while not self._try():
            pass  # the last holder removed the file between our open and our lock

    def _try(self) -> bool:
        """Open the file and lock it; False if it has been removed meanwhile."""
        made = self._open()
        try:
            if self._took():
                SIGNS.add(self)
                return True
        except StoreError:  # another process has it
            os.close(self._file)
            raise
        except BaseException as error:  # Ctrl-C, too: this process may want it again
            SIGNS.remove(self)
            self._undo(made)
            if isinstance(error, OSError):
                raise NoLockFile(f"{self.path}: cannot lock: {error.strerror}") from error
            raise
        os.close(self._file)
        return False

    def _open(self) -> bool:
        """Open the file; whether it had to be made."""
        while True:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
                return True
            except FileExistsError:
                with contextlib.suppress(FileNotFoundError):
                    self._open_old()
                    return False
            except OSError as error:
                raise NoLockFile(f"{self.path.parent}: cannot write here: {error.strerror}") from error

    def _open_old(self) -> None:
        """Open a file that is there. One that cannot be written, as of another user, may still tell who holds it."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    self._refuse_if_held(False)
                finally:
                    os.close(self._file)
            raise NoLockFile(
                f"{self.path}: cannot write: {error.strerror}. If nobody is {self._busy}, remove this file and try again"
            ) from error

    def _took(self) -> bool:
        """Lock the open file; False if it has been removed meanwhile."""
        flocked = self._flocked()
        if not self._is_there():
            return False
        self._refuse_if_held(flocked)
        try:
            self._write_name()
        except OSError as error:
            if error.errno not in FULL:
                raise
            # On this machine flock decides; elsewhere the old name counts, with a new sign of life.
            with contextlib.suppress(OSError):
                os.utime(self._file)
            return True
        if Holder.read(self._file) != Holder.this():
            raise StoreError(self._another())
        return self._is_there()

    def _flocked(self) -> bool:
        """Lock the open file; False if the file system has no such locks. Raises StoreError if another process has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(self._another()) from None
        except OSError as error:
            if error.errno not in NO_FLOCK:
                raise
            return False
        return True

    def _write_name(self) -> None:
        """Over the old name, which stays if there is no room."""
        name = Holder.this().encode()
        try:
            if os.pwrite(self._file, name, 0) < len(name):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.ftruncate(self._file, len(name))
        except OSError:
            self._found = Holder.read(self._file)
            raise
        self._is_named = True
        os.fsync(self._file)

    def _undo(self, made: bool) -> None:
        with contextlib.suppress(OSError):
            if made and self._is_ours():
                self.path.unlink()
        os.close(self._file)

    def _is_there(self) -> bool:
        """Whether the path names the file that we have open."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def _seen(self) -> float:
        """When the holder gave its last sign of life; a time in the future is now."""
        return min(os.fstat(self._file).st_mtime, time.time())

    def _another(self) -> str:
        return f"{self._what}: another process{self._elsewhere()} is {self._busy}"

    def _elsewhere(self) -> str:
        with contextlib.suppress(OSError):
            holder = Holder.read(self._file)
            if holder is not None and not holder.is_here(self._seen()):
                return f" (process {holder.process} on the host {holder.host})"
        return ""

    def _refuse_if_held(self, flocked: bool) -> None:
        """Raise StoreError if a process that flock does not tell of holds the lock, or was killed not long ago."""
        holder, seen = Holder.read(self._file), self._seen()
        age = time.time() - seen
        if holder is None or age >= OLD or (holder.is_here(seen) and (flocked or not holder.may_run())):
            return
        raise StoreError(
            f"{self._what}: process {holder.process} on the host {holder.host} is {self._busy}, or was killed there; its last sign of life "
            f"was {age / 60:.0f} minutes ago. Wait for it; or, if it has ended, remove {self.path} and try again. After "
            f"{OLD / 60:.0f} minutes without a sign of life its lock no longer counts"
        )

    def renew(self, now: bool = False) -> None:
        """Give a sign of life, now and then, or `now`. Raises StoreError if another machine has taken the lock over meanwhile."""
        if not now and clock() - self._renewed < RENEWED:
            return
        if not self._is_ours():
            raise StoreError(
                f"{self._what}: another process{self._elsewhere()} has taken over, or {self.path} was removed, since this one last wrote "
                "something. It must not write any more; open it again"
            )
        with contextlib.suppress(OSError):
            os.utime(self._file)
            if not self._is_named:
                self._write_name()  # perhaps there is room now
        self._renewed = clock()

    def sign(self) -> None:
        """What `renew` does, for a thread that nobody waits for: a holder that was replaced is told by its own call."""
        with self._closing, contextlib.suppress(StoreError, OSError):
            if self._file >= 0:
                self.renew()

    def _is_ours(self) -> bool:
        """Whether the file names us; or, if there was no room for a name, what it named before."""
        try:
            return self._is_there() and Holder.read(self._file) == (Holder.this() if self._is_named else self._found)
        except OSError:  # nobody knows
            return True

    def release(self) -> None:
        SIGNS.remove(self)
        if os.getpid() != self._process:  # a fork of the holder
            os.close(self._file)
            return
        with self._closing:
            try:
                with contextlib.suppress(OSError):  # the next holder removes the file
                    if self._is_ours():
                        self.path.unlink()
            finally:
                os.close(self._file)
                self._file = -1
