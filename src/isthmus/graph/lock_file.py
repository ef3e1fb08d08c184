"""A lock file: one writer at a time, also in a folder that several machines share.

Among the processes of one machine `flock` decides, and it ends with the process that has it. Some file systems do not tell other machines
of it. So the file names its holder: host, boot and process. The holder renews the time of the file while it works. A lock whose
holder is on another machine counts as held until it was not renewed for OLD seconds; process numbers of other machines mean nothing here.

Containers of one machine have different host names and the same boot id, so these are one machine. A host that was booted again is the
same machine, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from isthmus.errors import StoreError

OLD = 3600.0  # seconds; longer than a writer sorts between two pieces that it writes
RENEWED = 60.0  # seconds between two signs of life, at least
MOST = 512  # bytes of a lock file that are looked at
BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux only


@dataclass(frozen=True)
class Holder:
    """A process of some machine. `boot` is empty where the system has no boot id."""

    host: str
    boot: str
    process: int

    @classmethod
    def this(cls) -> Self:
        return cls(*machine(), os.getpid())

    @classmethod
    def read(cls, file: int) -> Self | None:
        """The holder that a lock file names; None: none, or not a whole name."""
        with contextlib.suppress(OSError, ValueError):
            host, boot, process, end = os.pread(file, MOST, 0).decode().split("\n")
            if host and not end:
                return cls(host, boot, int(process))
        return None

    def encode(self) -> bytes:
        return f"{self.host}\n{self.boot}\n{self.process}\n".encode()

    @property
    def is_here(self) -> bool:
        """Whether this is a process of this machine."""
        host, boot = machine()
        return self.host == host or (self.boot == boot != "")


@cache
def machine() -> tuple[str, str]:
    """Host name and boot id of this machine."""
    try:
        boot = BOOT.read_text().strip()
    except OSError:
        boot = ""
    return socket.gethostname() or "unnamed", boot


def machine_key() -> str:
    """Some letters for file names, which another machine hardly has."""
    host, boot = machine()
    return f"{zlib.crc32((boot or host).encode()):08x}"


class NoLockFile(StoreError):
    """The file cannot be made, or not locked."""


class LockFile:
    """Holds a lock file until `release`, which removes it. A process that is killed leaves the file, and on its own machine no lock."""

    def __init__(self, path: Path, what: Path, busy: str) -> None:
        """`what` and `busy`, for messages: what is locked, and what its holder does."""
        self.path, self._what, self._busy, self._renewed = path, what, busy, time.monotonic()
        self._process = os.getpid()
        while True:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                raise NoLockFile(f"{self.path.parent}: cannot write here: {error.strerror}") from error
            try:
                if self._took():
                    return
            except BlockingIOError:
                message = f"{self._what}: another process{self._elsewhere()} is {self._busy}"
                os.close(self._file)
                raise StoreError(message) from None
            except OSError as error:
                os.close(self._file)
                raise NoLockFile(f"{self.path}: cannot lock: {error.strerror}") from error
            except BaseException:  # it is held elsewhere; or Ctrl-C: this process may want it again
                os.close(self._file)
                raise
            os.close(self._file)  # the last holder removed it between our open and our lock

    def _took(self) -> bool:
        """Lock the open file; False if it has been removed meanwhile."""
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not self._is_there():
            return False
        self._refuse_if_held_elsewhere()
        with contextlib.suppress(OSError):  # a full disk: then only flock decides
            os.ftruncate(self._file, 0)
            os.write(self._file, Holder.this().encode())
        return True

    def _is_there(self) -> bool:
        """Whether the path names the file that we have open."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def _elsewhere(self) -> str:
        holder = Holder.read(self._file)
        return "" if holder is None or holder.is_here else f" (process {holder.process} on the host {holder.host})"

    def _refuse_if_held_elsewhere(self) -> None:
        """Raise StoreError if a process of another machine holds the lock, or was killed not long ago."""
        holder = Holder.read(self._file)
        age = time.time() - os.fstat(self._file).st_mtime
        if holder is None or holder.is_here or age >= OLD:
            return
        raise StoreError(
            f"{self._what}: process {holder.process} on the host {holder.host} is {self._busy}, or was killed there; its last sign of life "
            f"was {max(0, age) / 60:.0f} minutes ago. Wait for it; or, if it has ended, remove {self.path} and try again. After "
            f"{OLD / 60:.0f} minutes without a sign of life its lock no longer counts"
        )

    def renew(self) -> None:
        """Give a sign of life, now and then. Raises StoreError if another machine has taken the lock over meanwhile."""
        if time.monotonic() - self._renewed < RENEWED:
            return
        if not self._is_ours():
            raise StoreError(
                f"{self._what}: another process{self._elsewhere()} has taken over, or {self.path} was removed, since this one last wrote "
                "something. It must not write any more; open it again"
            )
        with contextlib.suppress(OSError):
            os.utime(self._file)
        self._renewed = time.monotonic()

    def _is_ours(self) -> bool:
        """Whether the file names us, or nobody: a full disk may leave no room for a name."""
        try:
            return self._is_there() and Holder.read(self._file) in (None, Holder.this())
        except OSError:  # nobody knows
            return True

    def release(self) -> None:
        if os.getpid() == self._process:  # not in a fork of the holder
            with contextlib.suppress(OSError):  # the next holder removes the file
                if self._is_ours():
                    self.path.unlink()
        os.close(self._file)
