"""The heartbeat of locks: one thread renews all locks that this process holds, whatever else the process does.

It runs only while there are locks. A fork begins without the locks, and without the thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Protocol
from weakref import WeakSet

EVERY = 60.0  # seconds


class Held(Protocol):
    def beat(self) -> None: ...

    def forget(self) -> None: ...


class Heartbeat:
    """The locks of a process, and the thread that renews them."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._held: WeakSet[Held] = WeakSet()  # a lock without references is no longer renewed
        self._changed = threading.Condition()
        self._runs = False

    def forget(self) -> None:
        """In a fork: hold nothing."""
        held = self._held
        self._begin()
        with contextlib.suppress(RuntimeError):  # the fork was made while another thread added one
            for lock in list(held):
                lock.forget()

    def add(self, lock: Held) -> None:
        with self._changed:
            self._held.add(lock)
            if not self._runs:
                # The system has no more threads: then writers renew their locks themselves.
                with contextlib.suppress(RuntimeError):
                    threading.Thread(target=self._run, name="lock-heartbeat", daemon=True).start()
                    self._runs = True

    def remove(self, lock: Held) -> None:
        """Never waits: the collector may call it, through another thread, while this one adds a lock."""
        self._held.discard(lock)
        if self._changed.acquire(blocking=False):  # otherwise the thread finds out after its next wait
            try:
                if not self._held:
                    self._changed.notify()
            finally:
                self._changed.release()

    def _run(self) -> None:
        while True:
            # After an error, such as too little memory, some locks are renewed a minute later.
            with contextlib.suppress(Exception):
                if not self._renewed():
                    return

    def _renewed(self) -> bool:
        """Wait, then renew the locks; False if there are none, and the thread ends. The wait holds no reference."""
        with self._changed:
            if self._held:
                self._changed.wait(EVERY)
            held = list(self._held)
            self._runs = bool(held)
        for lock in held:
            lock.beat()
        return bool(held)


HEARTBEAT = Heartbeat()
os.register_at_fork(after_in_child=HEARTBEAT.forget)
