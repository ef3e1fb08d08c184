"""Merges the changes of a stream on disk into a new store, in a thread of its own, while batches go on.

1. The thread writes the snapshot of some batch into a new store (`graph/overlay/merged_store.py`). Snapshots do not
   change, so it needs no lock.
2. It opens that store as a changing graph, and applies the batches that came meanwhile to it.
3. When it has all of them, the stream takes over its store and its overlay, between two batches.

If a merge fails, for example on a full disk, the stream goes on with its old store and overlay, and tries again when
more changes have come. When changes fill all the memory that there is for them, a batch waits for a merge; if that
fails, the batch is refused.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque

from isthmus.errors import BudgetError
from isthmus.graph.changing.change import Edits
from isthmus.graph.overlay.merged_store import scratch_store
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.memory import format_size
from isthmus.messages import option

FULL = 1.5  # times the capacity for changes: batches then wait for the merge
# After a failure, the next try comes with an eighth of the capacity in further changes, then with a quarter, and so on.
AGAIN = 8
# Seconds between tries while no batch can be applied; the first, doubled up to the last.
PAUSE, LONGEST = 1.0, 60.0


class Merger:
    """Merges a graph when its changes take more than `capacity` bytes. Its methods are called with the graph's lock
    held.
    """

    def __init__(self, graph: OverlayGraph, capacity: int) -> None:
        self._graph, self.capacity = graph, capacity
        self.due = capacity  # bytes of changes at which a merge begins
        self._thread: threading.Thread | None = None
        self._backlog: deque[Edits] = deque()  # batches that the new graph lacks
        self._ready: OverlayGraph | None = None
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self._failures = self._refusals = 0  # since the last merge that succeeded
        self._not_before = 0.0  # when a refused batch may try again
        self.merges = 0
        self.notes: list[str] = []

    def reserve(self) -> None:
        """Before a batch: merge first if earlier changes fill their memory; BudgetError if that fails."""
        if self._graph.changes_bytes <= FULL * self.capacity or self._stopped.is_set():
            return
        if self._thread is None and time.monotonic() >= self._not_before:
            self._try()
        self.finish()
        if self._failures and self._graph.changes_bytes > FULL * self.capacity:
            if time.monotonic() >= self._not_before:
                self._not_before = time.monotonic() + min(LONGEST, PAUSE * 2 ** min(self._refusals, 10))
                self._refusals += 1
            pause = math.ceil(self._not_before - time.monotonic())
            raise BudgetError(
                f"the batch was not applied: {format_size(self._graph.changes_bytes)} of earlier changes fill the "
                f"memory that there is for "
                f"them, and they could not be merged into a new store in {self._graph.folder}: {self._failure}. Make "
                f"room there, or "
                f"allow writing, and apply the batch again in {pause} s; or save the graph elsewhere and open it with "
                f"a larger {option('memory')}"
            )

    def applied(self, edits: Edits) -> None:
        """A batch was applied."""
        if self._stopped.is_set():
            return
        if self._thread is not None:
            self._backlog.append(edits)
            self._look()
        if self._thread is None and self._graph.changes_bytes > self.due:
            self._try()

    def _try(self) -> None:
        try:
            self._begin()
        except Exception as error:  # no file can be opened, or no thread be started: batches can go on all the same
            self._put_off(error)

    def _begin(self) -> None:
        graph, snapshot, reader = self._graph, self._graph.snapshot, self._graph.apart()
        self._ready, self._failure = None, None
        self._backlog.clear()

        def work() -> None:
            try:
                try:
                    stored = scratch_store(snapshot, reader, graph.folder, self._stopped.is_set)
                finally:
                    reader.close()
                with stored:
                    fresh = OverlayGraph(stored, 1, snapshot.number, graph.team.size)
                self._ready = fresh
                while self._backlog and not self._stopped.is_set():
                    fresh.apply(self._backlog.popleft())
            except Exception as error:  # any error: the stream can go on without a merge
                self._failure = error

        thread = threading.Thread(target=work, name="isthmus-merge", daemon=True)
        try:
            thread.start()
        except BaseException:
            reader.close()
            raise
        self._thread = thread

    def _look(self) -> None:
        """Take over the new graph, if it is finished."""
        if self._thread is None or self._thread.is_alive():
            return
        fresh, self._ready, self._thread = self._ready, None, None
        if self._failure is None and fresh is not None:
            try:
                while self._backlog:  # what came since it last looked
                    fresh.apply(self._backlog.popleft())
                self._graph.go_on_from(fresh)
                self.merges += 1
                self.due, self._failures, self._refusals, self._not_before = self.capacity, 0, 0, 0.0
                return
            except Exception as error:
                self._failure = error
        if fresh is not None:
            fresh.close()
        self._put_off(self._failure)

    def _put_off(self, failure: Exception | None) -> None:
        """Try again later, and tell the first failure of several in a row."""
        self._failure = failure
        self.due = self._graph.changes_bytes + self.capacity * 2 ** min(self._failures, 10) // AGAIN
        if not self._failures:
            self.notes.append(f"changes could not be merged into a new store, and stay in memory: {failure}")
        self._failures += 1

    def finish(self) -> None:
        """Wait for a merge that is under way, and take it over."""
        if self._thread is not None:
            self._thread.join()
            self._look()

    def close(self) -> None:
        """Stop the thread, and wait for its end: at most until it has written some lists, or opened the new store. That
        is dropped.
        """
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            if self._ready is not None:
                self._ready.close()
            self._thread = self._ready = None
