"""A lock file: one writer at a time, also in a folder that several machines share.

Among the processes of one machine `flock` decides, and it ends with the process that has it. Some file systems do not
show it to other machines, and some have none. So the file names its holder: host, boot, process and mount
(`holder.py`). While the lock is held, the time of the file is renewed (`heartbeat.py`). A lock whose holder is
elsewhere, where `flock` may not be seen, counts as held until it was not renewed for OLD seconds.

A holder that was stopped for longer may have been replaced. So it calls `renew` before steps that cannot be undone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
import threading
import time
from pathlib import Path

from isthmus.errors import StoreError
from isthmus.graph.locks.heartbeat import HEARTBEAT
from isthmus.graph.locks.holder import Holder, clock

OLD = 3600.0  # seconds
RENEWED = 60.0  # seconds between two renewals, at least
FULL = (errno.ENOSPC, errno.EDQUOT)
NO_FLOCK = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems that have none
GONE = (errno.ENOENT, errno.ESTALE, errno.ELOOP)  # the file was removed; by another machine; is a symbolic link now


class NoLockFile(StoreError):
    """The file cannot be made, or not locked."""

    @property
    def is_full(self) -> bool:
        """Whether the disk is full."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in FULL


class LockFile:
    """Holds a lock file until `release`, which removes it. A killed process leaves the file, without its `flock`."""

    _file, _process = -1, 0

    def __init__(self, path: Path, what: Path, busy: str) -> None:
        """`what` and `busy`, for messages: the locked thing, and the activity of its holder."""
        self.path, self._what, self._busy, self._renewed = path, what, busy, clock()
        self._process = os.getpid()
        self._name = Holder.this()
        self._is_named = False  # the file has our name
        self._is_held = False
        self._is_lost = False  # another process was found to have it
        self._found: Holder | None = None  # the name in the file while the disk is too full for ours
        self._closing = threading.RLock()  # the collector may release a lock while its heartbeat runs
        HEARTBEAT.add(self)  # before the lock is there: a fork must find it
        try:
            while not self._try():
                pass  # the last holder removed the file between our open and our lock
        except BaseException:
            HEARTBEAT.remove(self)
            raise

    def _try(self) -> bool:
        """Open the file and lock it; False if it has been removed meanwhile."""
        made = self._open()
        try:
            if self._took():
                self._is_held = True
                return True
        except StoreError:  # another process has it
            self._close()
            raise
        except BaseException as error:  # Ctrl-C, too: this process may want it again
            self._undo(made)
            if isinstance(error, OSError):
                raise NoLockFile(f"{self.path}: cannot lock: {error.strerror}") from error
            raise
        self._close()
        return False

    def _open(self) -> bool:
        """Open the file; whether it had to be made."""
        while True:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
                return True
            except FileExistsError:
                if self._opened_old():
                    return False
            except OSError as error:
                raise NoLockFile(f"{self.path.parent}: cannot write here: {error.strerror}") from error

    def _opened_old(self) -> bool:
        """Open an existing file; False if it was removed meanwhile. A file that we may only read is removed."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            if self._removed_old():
                return False
            instead = f"If no process is {self._busy}, remove this file and try again"
            raise NoLockFile(f"{self.path}: cannot write: {error.strerror}. {instead}") from error

    def _removed_old(self) -> bool:
        """Remove a file that we may only read; False if it cannot be. Raises StoreError if its holder may run."""
        try:
            self._file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            return isinstance(error, FileNotFoundError)
        try:
            flocked = self._flocked((*NO_FLOCK, errno.EBADF))  # NFS locks no file that is only read
            self._refuse_if_held(flocked)
            if flocked and self._is_there():
                self.path.unlink()
            return flocked
        except OSError:
            return False
        finally:
            self._close()

    def _took(self) -> bool:
        """Lock the open file; False if it has been removed meanwhile."""
        flocked = self._flocked()
        if not self._is_there():
            return False
        self._refuse_if_held(flocked)
        self._name = Holder.this(os.fstat(self._file).st_dev)
        try:
            self._write_name()
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._keep_name(error)
            return True
        if Holder.read(self._file) != self._name:
            raise StoreError(self._another())
        return self._is_there()

    def _keep_name(self, error: OSError) -> None:
        """Keep the name that is in the file, as the disk is too full for ours, and renew the file.

        On this machine flock decides; other machines see the old name. But if its holder is on another machine and
        was only suspended, it must not find its own name.
        """
        if self._found is not None and not self._is_local(self._found, self._seen()):
            raise StoreError(
                f"{self._what}: the lock of process {self._found.process} on the host {self._found.host} has expired, "
                f"but the disk has no space to take it over ({error.strerror}); free some, and try again"
            ) from error
        with contextlib.suppress(OSError):
            os.utime(self._file)

    def _flocked(self, none: tuple[int, ...] = NO_FLOCK) -> bool:
        """Lock the open file; False if the file system has no locks (errors `none`). StoreError: another has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(self._another()) from None
        except OSError as error:
            if error.errno not in none:
                raise
            return False
        return True

    def _write_name(self) -> None:
        """Write our name over the old one, which stays if the disk is full."""
        name = self._name.encode()
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
        self._close()

    def _close(self) -> None:
        """Close the file. Its holder unlocks it first, also for forks that have it open; a fork does not."""
        self._is_held = False
        file, self._file = self._file, -1
        if file >= 0:
            if os.getpid() == self._process:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)
            with contextlib.suppress(OSError):  # NFS may report here what it could not write
                os.close(file)

    def _is_there(self) -> bool:
        """Whether the path names the file that we have open."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def _seen(self) -> float:
        """When the holder last renewed the file."""
        return os.fstat(self._file).st_mtime

    def _is_local(self, holder: Holder, seen: float) -> bool:
        """Whether a holder is on this machine, and sees our flock, as we see its."""
        return holder.is_here(seen) and holder.shares_locks(os.fstat(self._file).st_dev)

    def _another(self) -> str:
        """A message that names the holder of the lock."""
        holder = None
        with contextlib.suppress(OSError):
            holder = Holder.read(self._file)
        if holder is not None and holder.is_this_process():
            return f"{self._what}: this process is {self._busy} already"
        return f"{self._what}: another process{self._whose(holder)} is {self._busy}"

    def _whose(self, holder: Holder | None) -> str:
        if holder is None:
            return ""
        with contextlib.suppress(OSError):
            if holder.is_here(self._seen()):
                return f" (process {holder.process})"
        return f" (process {holder.process} on the host {holder.host})"

    def _refuse_if_held(self, flocked: bool) -> None:
        """Raise StoreError if the file names a holder that may run, and that flock cannot see."""
        holder, seen = Holder.read(self._file), self._seen()
        if (
            holder is None
            or (flocked and self._is_local(holder, seen))
            or (holder.is_here(seen) and not holder.may_run())
        ):
            return
        age = self._now() - seen
        if age >= OLD:
            return
        if age < -RENEWED:  # a time in the future would never get old; a holder that runs renews it soon
            with contextlib.suppress(OSError):
                os.utime(self._file)
        raise StoreError(
            f"{self._what}: process {holder.process} on the host {holder.host} is {self._busy}, or was killed there; "
            f"its last heartbeat was {max(0.0, age) / 60:.0f} minutes ago. Wait for it; or, if it has "
            f"ended{self._or_copied(holder, seen)}, remove {self.path} and try again. "
            f"After {OLD / 60:.0f} minutes without a heartbeat its lock no longer counts"
        )

    def _or_copied(self, holder: Holder, seen: float) -> str:
        """For a message: a process of this machine may hold the lock of which this file is a copy."""
        return " or writes to the folder that this one was copied from" if holder.is_here(seen) else ""

    def _now(self) -> float:
        """The time by the clock of the file system, which also dates renewals."""
        try:
            with tempfile.TemporaryFile(dir=self.path.parent) as file:
                return os.fstat(file.fileno()).st_mtime
        except OSError:
            return time.time()

    def renew(self, now: bool = False) -> None:
        """Renew the file, if the last time is long ago, or `now`. StoreError: another process has taken over."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{self._what}: only process {self._process}, which took the lock and was then forked, can write"
            )
        if self._file < 0:
            raise StoreError(f"{self._what}: the lock was released; start again")
        looked = clock()  # before the look: a process may be stopped right after it
        if not now and looked - self._renewed < RENEWED and not self._is_lost:
            return
        if self._is_lost or not self._is_ours():
            self._is_lost = True
            raise StoreError(
                f"{self._what}: this process no longer holds the lock: another process{self._taker()} has taken over, "
                f"or {self.path} was removed. Start again"
            )
        with contextlib.suppress(OSError):
            os.utime(self._file)
            if not self._is_named:
                self._write_name()  # perhaps the disk has space now
        self._renewed = looked

    def _taker(self) -> str:
        """The holder that has replaced us, for a message."""
        with contextlib.suppress(OSError):
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                return self._whose(Holder.read(file))
            finally:
                os.close(file)
        return ""

    def beat(self) -> None:
        """Renew the lock from the thread of the heartbeat; a lost lock raises an error only in the holder's `renew`."""
        with self._closing, contextlib.suppress(StoreError, OSError):
            if self._is_held:
                self.renew()

    def _is_ours(self) -> bool:
        """Whether the file at our path is ours: it has our name or, if the disk was full, the name from before.

        It is opened anew, since NFS may show an open file as it was a minute ago.
        """
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if not os.path.samestat(os.fstat(file), os.fstat(self._file)):
                    return False
                found = Holder.read(file)
                # a thread may just be writing our name.
                return found == self._name or (found == self._found and not self._is_named)
            finally:
                os.close(file)
        except OSError as error:  # otherwise we cannot know
            return error.errno not in GONE

    def release(self) -> None:
        HEARTBEAT.remove(self)
        if os.getpid() != self._process:  # a fork of the holder
            self.forget()
            return
        with self._closing:
            try:
                with contextlib.suppress(OSError):  # the next holder removes the file
                    if self._file >= 0 and self._is_ours():
                        self.path.unlink()
            finally:
                self._close()

    def forget(self) -> None:
        """In a fork: close its copy of the file, which would keep the lock when the holder has been killed."""
        self._close()

    def __del__(self) -> None:
        """Unlock a lock that was not released, as after two interrupts. Other machines respect the file for an hour."""
        self._close()
