"""Buffers of near memory that deliveries are read into. Their number is fixed, so readers that are too far ahead
wait.
"""

from __future__ import annotations

import queue

from isthmus.engines.engine import Buffer


class Stopped(Exception):
    """The pool was closed while a reader waited for a buffer."""


class Buffers:
    """A thread-safe pool of buffers."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self._count = len(buffers)
        self.room = min((buffer.bytes.size for buffer in buffers), default=0)  # bytes of each
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        for buffer in buffers:
            self._free.put(buffer)

    def take(self) -> Buffer:
        """A buffer to fill; waits until one is given back. Raises Stopped when the pool was closed."""
        buffer = self._free.get()
        if buffer is None:
            self._free.put(None)  # for the next thread that waits
            raise Stopped
        return buffer

    def give_back(self, buffer: Buffer | None) -> None:
        """Return a buffer to the pool."""
        if buffer is not None:
            self._free.put(buffer)

    def close(self) -> None:
        """Stop all threads that wait for a buffer, and those that ask later."""
        while not self._free.empty():
            self._free.get()
        self._free.put(None)
