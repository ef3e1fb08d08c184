"""Streams in forks of this process, which has loaded and compiled everything already: with a fault at one of their
calls.

A fork reports through shared memory how far it came and how it ended.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import struct
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.log_streams import Scenario, Streams
from tests.faults.tracing import Tracer

import isthmus as ist

CALLS = (
    "open",
    "pwrite",
    "preadv",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "mkdir",
    "unlink",
    "rmdir",
    "ftruncate",
    "listdir",
)
INTERRUPTS = ("interrupted", "moment", "SIGINT")
PATIENCE = 90.0  # seconds until a stream counts as hanging
FACTS = struct.Struct("<qqq")  # the last acknowledged batch, how the stream ended, its calls
DONE, REFUSED, BROKEN = 1, 2, 3


@dataclass
class Fault:
    """What happens at the call of this number; none at a negative one. `later`, `moment`: killed, or Ctrl-C, after so
    many milliseconds.
    """

    at: int
    kind: str = "once"
    error: int = errno.EIO


def inject(fault: Fault, count: Callable[[int], None]) -> None:
    """Replace the calls of this process; tell their number."""
    calls = 0

    def wrapped(name: str, really: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            count(calls)
            if calls == fault.at and fault.kind in ("killed", "torn"):
                if fault.kind == "torn" and name == "pwrite":
                    really(args[0], bytes(args[1])[: len(args[1]) // 2], args[2])
                elif fault.kind == "torn":
                    really(*args, **more)
                os.kill(os.getpid(), signal.SIGKILL)
            elif calls == fault.at and fault.kind == "interrupted":
                os.kill(os.getpid(), signal.SIGINT)
                return really(*args, **more)
            elif (calls == fault.at and fault.kind == "once") or (
                0 <= fault.at <= calls and fault.kind == "persistent"
            ):
                raise OSError(fault.error, os.strerror(fault.error))
            return really(*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name, getattr(os, name)))


class Shared:
    """What a fork tells of itself: numbers and a text, in memory that both processes see."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 16)
        self.acknowledged = self.end = self.calls = 0

    def tell(self, **facts: int) -> None:
        for name, value in facts.items():
            setattr(self, name, value)
        FACTS.pack_into(self._memory, 0, self.acknowledged, self.end, self.calls)

    def say(self, text: str) -> None:
        data = text.encode()[-60_000:]
        self._memory[FACTS.size : FACTS.size + len(data)] = data

    def read(self) -> str:
        self.acknowledged, self.end, self.calls = FACTS.unpack_from(self._memory)
        return bytes(self._memory[FACTS.size :]).rstrip(b"\0").decode(errors="replace")


def forked(
    streams: Streams, scenario: Scenario, folder: Path, fault: Fault | Tracer, kind: str
) -> tuple[Shared, str, bool]:
    """Run a scenario in a fork: what it told, what it said, and whether it hung."""
    shared = Shared()
    child = os.fork()
    if child == 0:
        live_in_fork(streams, scenario, folder, fault, kind, shared)
    if isinstance(fault, Tracer):
        fault.attach(child)
    hung = (
        not ended(child, fault.at / 1000 if isinstance(fault, Fault) and kind == "later" else PATIENCE)
        and kind != "later"
    )
    if isinstance(fault, Tracer):
        fault.end()
    return shared, shared.read(), hung


def live_in_fork(
    streams: Streams, scenario: Scenario, folder: Path, fault: Fault | Tracer, kind: str, shared: Shared
) -> None:
    """In the fork: run the scenario, and tell how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    work = streams.persevere if kind in INTERRUPTS else streams.work
    try:
        if isinstance(fault, Tracer):
            fault.begin()
        else:
            inject(fault, lambda calls: shared.tell(calls=calls))
            signal.setitimer(signal.ITIMER_REAL, fault.at / 1000 if kind == "moment" else 0)
        work(folder, scenario, lambda number: shared.tell(acknowledged=number))
        signal.setitimer(signal.ITIMER_REAL, 0)
        shared.tell(end=DONE)
    except ist.IsthmusError as error:
        shared.say(str(error))
        shared.tell(end=REFUSED)
    except BaseException:
        shared.say(traceback.format_exc())
        shared.tell(end=BROKEN)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # as nothing else ends a process whose calls all fail


def ended(child: int, patience: float) -> bool:
    """Whether a process ended in time; it is killed otherwise. Time in which this process was stopped does not
    count.
    """
    waited, last = 0.0, time.monotonic()
    while waited < patience:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
        now = time.monotonic()
        waited, last = waited + min(now - last, 0.1), now
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
