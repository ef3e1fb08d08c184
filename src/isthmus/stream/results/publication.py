"""What readers of a stream see of a program: the arrays of the last batch, and what later batches replaced.

A batch works on arrays of its own. At its end the published arrays are brought up to date, in a moment; a reader waits
for that moment only. `arrays_at` gives the arrays as they were after an earlier batch, as long as a result of that
batch is in use. What a batch replaces is noted before it is replaced, so older results are right wherever an interrupt
comes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from isthmus.graph.changing.change import Change
from isthmus.stream.maintain.maintained import Array, Differences
from isthmus.stream.results.live_result import LiveResult

if TYPE_CHECKING:
    from isthmus.stream.maintain.maintained import Maintained


class Publication:
    """The published state of one program."""

    def __init__(self, program: Maintained) -> None:
        self.program = program
        self.lock = threading.Lock()
        self._number = program.graph.number
        self._replaced: deque[tuple[int, tuple[Differences, ...]]] = deque()  # by batch, the oldest first
        self._older: weakref.WeakSet[LiveResult] = weakref.WeakSet()
        self.current = self._tracked(
            LiveResult(self, self._number, program.facts(), program.graph.snapshot, program.reached())
        )

    def _tracked(self, result: LiveResult) -> LiveResult:
        self._older.add(result)
        return result

    def take(self, change: Change) -> None:
        """Bring the published arrays up to date, while removed vertices still have their numbers."""
        with self.lock:
            if change.added.size or change.removed.size:  # numbers get another meaning
                for result in list(self._older):
                    if not result.is_made:
                        result.make(self.arrays_at(result.number))
                self._replaced.clear()
            before = self.arrays_at(self._number) if change.removed.size else None
            self._taken = self.program.unpublished()
            if not change.removed.size:
                # First: Ctrl-C in between must not change older results.
                self._replaced.append((change.number, self._taken))
            self.program.publish(self._taken)
            whole = self.program.compares_whole or change.added.size or change.removed.size
            self._earlier = self.current.as_earlier(before) if whole else None
            self._naming = self.program.graph.changing_ids.naming

    def present(self, change: Change) -> None:
        """Let readers see the state after a batch."""
        with self.lock:
            self._number = change.number
            about = self.program.facts(), self.program.graph.snapshot, self.program.reached()
            self.current = self._tracked(
                LiveResult(self, change.number, *about, self._taken, self._naming, self._earlier)
            )
            self._make_older()
            oldest = min((result.number for result in self._older if not result.is_made), default=change.number)
            while self._replaced and self._replaced[0][0] <= oldest:
                self._replaced.popleft()

    def _make_older(self) -> None:
        """Make the older results that are in use, once the replaced values for them are more than their own."""
        replaced_values = sum(differences.vertices.size for _, replaced in self._replaced for differences in replaced)
        if replaced_values > self.program.graph.vertices * len(self.program.published()):
            for result in list(self._older):
                if not result.is_made and result is not self.current:
                    result.make(self.arrays_at(result.number))

    def arrays_at(self, number: int) -> tuple[Array, ...]:
        """Copies of the published arrays as they were after batch `number`."""
        arrays = tuple(array.copy() for array in self.program.published())
        for batch, replaced in reversed(self._replaced):
            if batch > number:
                for array, differences in zip(arrays, replaced, strict=True):
                    array[differences.vertices] = differences.old
        return arrays
