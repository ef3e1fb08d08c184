"""Reader threads in front of a link. They fetch units for executors, one after another."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from isthmus.link.link import Link
from isthmus.runtime.executor.buffers import Stopped
from isthmus.threads import uninterrupted

Fetch = Callable[[], None]


class Readers:
    """As many threads as the link asks for. They start with the first unit and end with `close`."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._queue: queue.SimpleQueue[Fetch | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def send(self, fetch: Fetch) -> None:
        """Let a thread call `fetch`, which reports its own errors. It raises Stopped if the pool of buffers was
        closed.
        """
        if not self._threads:
            uninterrupted(self._start)
        self._queue.put(fetch)

    def _start(self) -> None:
        for number in range(self.link.readers):
            thread = threading.Thread(target=self._serve, name=f"isthmus-reader-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self) -> None:
        while (fetch := self._queue.get()) is not None:
            try:
                fetch()
            except Stopped:
                return
            del fetch  # release the state of a run before waiting

    def close(self) -> None:
        """Stop the threads and wait for them. Close the pool of buffers first, as they may be waiting for a buffer.

        Call it `uninterrupted`: until the threads have ended, they use the link and near memory.
        """
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads, self._queue = [], queue.SimpleQueue()  # units that nobody fetched hold the state of a run
