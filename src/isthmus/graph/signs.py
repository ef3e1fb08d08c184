"""Signs of life: one thread renews all locks that this process holds, whatever the process is busy with. There is none without a lock.

A fork holds none of the locks: it begins with neither locks nor thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Protocol
from weakref import WeakSet

EVERY = 60.0  # seconds


class Held(Protocol):
    def sign(self) -> None: ...


class Signs:
    """The locks of a process, and the thread that renews them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._held: WeakSet[Held] = WeakSet()  # a lock that nobody has any more gives no signs
        self._changed = threading.Condition()
        self._runs = False

    def add(self, lock: Held) -> None:
        with self._changed:
            self._held.add(lock)
            if not self._runs:
                with contextlib.suppress(RuntimeError):  # no more threads: then whoever writes gives the signs, now and then
                    threading.Thread(target=self._run, name="lock-signs", daemon=True).start()
                    self._runs = True

    def remove(self, lock: Held) -> None:
        with self._changed:
            self._held.discard(lock)
            if not self._held:
                self._changed.notify()

    def _run(self) -> None:
        while held := self._next():
            for lock in held:
                lock.sign()

    def _next(self) -> list[Held]:
        """The locks, after a while; none: the thread ends."""
        with self._changed:
            if self._held:
                self._changed.wait(EVERY)
            held = list(self._held)
            self._runs = bool(held)
            return held


SIGNS = Signs()
os.register_at_fork(after_in_child=SIGNS.forget)
