"""The holder of a lock file: a process of some machine.

Containers of one machine have different host names and the same boot id, so these are one machine. A host that was
booted again is the same machine, too; but another machine may have the same host name. So a holder with our host name
and another boot id was here only if it last renewed the lock before this machine was booted.

Two processes of one machine may see one folder through two mounts, which then do not know of each other's locks. So a
name also has the device number of the mount, and a random number for holders of which all else is equal.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

MOST = 1024  # bytes of a lock file that are looked at
BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux only
NUMBERS = Path("/proc/self/ns/pid")  # Linux only: which process numbers this process sees


@dataclass(frozen=True)
class Holder:
    """A process of some machine. `boot` and `numbers` are empty on systems without them."""

    host: str
    boot: str
    numbers: str  # which of the machine's namespaces the process number is of
    process: int
    device: int = 0  # of the mount through which it sees the lock file
    key: str = ""  # drawn at random

    @classmethod
    def this(cls, device: int = 0) -> Self:
        return cls(*machine(), numbers(), os.getpid(), device, secrets.token_hex(4))

    @classmethod
    def read(cls, file: int) -> Self | None:
        """The holder that a lock file names; None: none, or not a whole name."""
        with contextlib.suppress(ValueError):
            host, boot, numbers, process, device, key, end = os.pread(file, MOST, 0).decode().split("\n")
            if host and not end:
                return cls(host, boot, numbers, int(process), int(device), key)
        return None

    def encode(self) -> bytes:
        return f"{self.host}\n{self.boot}\n{self.numbers}\n{self.process}\n{self.device}\n{self.key}\n".encode()

    def is_here(self, seen: float) -> bool:
        """Whether this is, or was, a process of this machine. `seen`: when it last renewed the lock."""
        host, boot = machine()
        if self.boot and boot:
            return self.boot == boot or (self.host == host and seen < time.time() - clock())
        return self.host == host

    def may_run(self) -> bool:
        """Whether a process that is here may still run. Process numbers of other containers mean nothing here."""
        host, boot = machine()
        if self.boot != boot:
            return not (self.boot and boot)  # booted since
        return self.host != host or self.numbers != numbers() or is_alive(self.process)

    def shares_locks(self, device: int) -> bool:
        """Whether flock works between us and a holder of this machine: on one device, or before the last boot."""
        return self.device == device or self.boot != machine()[1]

    def is_this_process(self) -> bool:
        return (self.host, self.boot) == machine() and self.numbers == numbers() and self.process == os.getpid()


@cache
def machine() -> tuple[str, str]:
    """Host name and boot id of this machine."""
    try:
        boot = BOOT.read_text().strip()
    except OSError:
        boot = ""
    return socket.gethostname() or "unnamed", boot


def numbers() -> str:
    """A name for the process numbers that this process sees, which differ from container to container."""
    try:
        return str(NUMBERS.stat().st_ino)
    except OSError:
        return ""


def machine_key() -> str:
    """Some letters for file names, which another machine hardly has."""
    host, boot = machine()
    return f"{zlib.crc32((boot or host).encode()):08x}"


def is_alive(process: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def clock() -> float:
    """Seconds that also pass while the machine is suspended; since it was booted, where there are boot ids."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
