"""Who holds a lock file: a process of some machine.

Containers of one machine have different host names and the same boot id, so these are one machine. A host that was booted again is the same
machine, too; but another machine may have the same host name. So a holder with our host name and another boot id was here only
if it gave its last sign of life before this machine was booted.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

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
        with contextlib.suppress(ValueError):
            host, boot, process, end = os.pread(file, MOST, 0).decode().split("\n")
            if host and not end:
                return cls(host, boot, int(process))
        return None

    def encode(self) -> bytes:
        return f"{self.host}\n{self.boot}\n{self.process}\n".encode()

    def is_here(self, seen: float) -> bool:
        """Whether this is, or was, a process of this machine. `seen`: when it gave its last sign of life."""
        host, boot = machine()
        if self.boot and boot:
            return self.boot == boot or (self.host == host and seen < time.time() - clock())
        return self.host == host

    def may_run(self) -> bool:
        """Whether a process that is here may still run. Process numbers of other containers tell nothing."""
        host, boot = machine()
        if self.boot != boot:
            return not (self.boot and boot)  # booted since
        return self.host != host or is_alive(self.process)


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
