"""Faults at system calls, by strace: it counts the calls of a process that touch files, makes one of them fail, or
sends a signal there.

strace counts the calls of every name and every thread apart: with `when=3`, the third `openat` fails, in each thread
that makes so many. So a call is known by its name and its number. The process waits until strace is attached to it
(`begin`).
"""

from __future__ import annotations

import collections
import errno
import mmap
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "openat,read,readv,pread64,preadv,preadv2,write,writev,pwrite64,pwritev,fsync,fdatasync,ftruncate,fallocate,flock,lseek,newfstatat,fstat,"
    "statx,getdents64,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,chmod,fchmod,fchmodat,linkat,io_setup,io_submit,io_getevents"
)
NEED_SPACE = (
    "openat",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "fsync",
    "fdatasync",
    "fallocate",
    "mkdir",
    "rename",
    "renameat2",
)
LINE = re.compile(r"(\d+) +(\w+)\(")
SECONDS = 20  # until strace must have attached itself


def available() -> bool:
    return shutil.which("strace") is not None


@dataclass(frozen=True)
class Strike:
    """What happens at a call: an error, at this one or at all from it on, or a signal."""

    call: str
    at: int
    kind: str = "once"  # or persistent, killed, or the name of a signal
    error: int = errno.EIO

    def options(self) -> list[str]:
        signals = {"killed": "SIGKILL"} | {each.name: each.name for each in signal.Signals}
        what = f"signal={signals[self.kind]}" if self.kind in signals else f"error={errno.errorcode[self.error]}"
        when = f"{self.at}+" if self.kind == "persistent" else str(self.at)
        return ["-e", f"inject={self.call}:{what}:when={when}"]


def strikes(counts: dict[str, int], signals: tuple[str, ...] = ("killed",)) -> list[Strike]:
    """All errors and signals at all calls."""
    found = []
    for call, count in sorted(counts.items()):
        errors = (errno.EIO, errno.ENOSPC) if call in NEED_SPACE else (errno.EIO,)
        for at in range(1, count + 1):
            found += [Strike(call, at, "once", error) for error in errors] + [
                Strike(call, at, kind) for kind in signals
            ]
    return found


class Tracer:
    """strace, attached to a fork of this process; without a strike, it notes the calls."""

    def __init__(self, strike: Strike | None, notes: Path | None = None) -> None:
        self._strike, self._notes = strike, notes
        # Seen by both processes; a pipe would have to be read, which is a call that is counted.
        self._attached = mmap.mmap(-1, 1)

    def begin(self) -> None:
        """In the fork: wait until the tracer is there."""
        while not self._attached[0]:
            time.sleep(0.0005)

    def attach(self, child: int) -> None:
        """In the parent: let the fork go on when it is traced."""
        options = [] if self._strike is None else self._strike.options()
        traced = CALLS if self._strike is None else self._strike.call
        command = [
            "strace",
            "-f",
            "-o",
            str(self._notes or os.devnull),
            "-e",
            f"trace={traced}",
            *options,
            "-p",
            str(child),
        ]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert b"attached" in line, line
        # it tells of every thread: a full pipe would stop it.
        self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._drain.start()
        self._attached[0] = 1

    def end(self) -> None:
        """When the process has ended."""
        self._process.wait(SECONDS)
        self._drain.join(SECONDS)  # a process that forks should have no thread


def counted(notes: Path) -> dict[str, int]:
    """How often each call was made, in the thread that made it most often."""
    found = collections.Counter(LINE.findall(notes.read_text()))
    most: dict[str, int] = {}
    for (_, call), count in found.items():
        most[call] = max(most.get(call, 0), count)
    return most
