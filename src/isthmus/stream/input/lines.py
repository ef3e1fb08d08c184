"""Whole lines from a file or a pipe, some at a time."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.reading.text_lines import Lines

MOST_WAITING = 64 << 20  # bytes read from a pipe ahead of use; beyond that its writer waits
LONGEST_LINE = 16 << 20  # bytes
NEWLINE = 10
MARK = b"\xef\xbb\xbf"  # byte order mark


class LineSource(ABC):
    """Blocks of whole lines. `taken`: how many lines were taken so far."""

    taken = 0
    arrived: float | None = None  # when the last line that was taken arrived

    @abstractmethod
    def take(self, count: int, seconds: float | None) -> bytes | None:
        """At most `count` lines; fewer at the end, or `seconds` after the first arrived. None: no more."""

    @abstractmethod
    def put_back(self, line: bytes) -> None:
        """Have the line that was taken last be taken again."""

    def close(self) -> None:  # noqa: B027  # a file is closed when its lines end
        """Stop reading."""


def cut_lines(block: bytes, count: int) -> int:
    """Where the first `count` lines of a block end; the end of its last whole line if there are fewer."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE)
    return int(ends[min(count, ends.size) - 1]) + 1 if ends.size else 0


class FileLines(LineSource):
    """Lines of a file, decompressed on the way."""

    def __init__(self, path: Path) -> None:
        self._blocks: Iterator[tuple[Any, int]] = iter(Lines(path, 200))
        self._held: deque[bytes] = deque()
        self._lines = 0

    def take(self, count: int, seconds: float | None) -> bytes | None:
        while self._lines < count:
            found = next(self._blocks, None)
            if found is None:
                break
            self._held.append(found[0].tobytes())
            self._lines += self._held[-1].count(b"\n")
        if not self._held:
            return None
        block = b"".join(self._held)
        end = cut_lines(block, count)
        taken, rest = block[:end], block[end:]
        self._held = deque([rest] if rest else [])
        got = min(count, self._lines)
        self._lines -= got
        self.taken += got
        return taken

    def put_back(self, line: bytes) -> None:
        self._held.appendleft(line)
        self._lines += 1
        self.taken -= 1


class PipeLines(LineSource):
    """Lines of a pipe, read by a thread as they arrive. A last line without an end counts as a line."""

    def __init__(self, file: int, name: str, own: bool = False) -> None:
        self._file, self._name, self._own = file, name, own  # own: the file is closed at its end
        self._changed = threading.Condition()
        self._data = bytearray()  # whole lines and the beginning of another
        self._lines = 0
        self._times: deque[tuple[int, float]] = deque()  # (bytes that had arrived since the beginning, when)
        self._total = self._gone = 0
        self._ended = self._closed = False
        self._error: BaseException | None = None
        threading.Thread(target=self._read, name="updates", daemon=True).start()

    def _read(self) -> None:
        try:
            while data := os.read(self._file, 1 << 20):
                with self._changed:
                    if self._closed:
                        return
                    self._data += data
                    self._lines += data.count(b"\n")
                    self._total += len(data)
                    self._times.append((self._total, time.monotonic()))
                    self._changed.notify_all()
                    while len(self._data) > MOST_WAITING and self._lines and not self._closed:
                        self._changed.wait()
                    if not self._lines and len(self._data) > LONGEST_LINE:
                        raise BatchError(
                            f"{self._name}: a line is longer than {LONGEST_LINE} bytes; expected JSON lines or CSV"
                        )
        except (OSError, BatchError) as error:
            self._error = error
        if self._own:
            os.close(self._file)
        with self._changed:
            self._ended = True
            if self._data and self._data[-1] != NEWLINE:
                self._data += b"\n"
                self._lines += 1
            self._changed.notify_all()

    def take(self, count: int, seconds: float | None) -> bytes | None:
        with self._changed:
            while self._lines < count and not self._ended:
                left = None
                if self._lines and seconds is not None:
                    left = self._times[0][1] + seconds - time.monotonic()
                    if left <= 0:
                        break
                self._changed.wait(left)
            if not self._lines:
                if self._error is not None:
                    raise self._error
                return None
            return self._cut(count)

    def _cut(self, count: int) -> bytes:
        end = cut_lines(bytes(self._data), count)
        taken = bytes(self._data[:end])
        del self._data[:end]
        got = min(count, self._lines)
        self._lines -= got
        self._gone += end
        while self._times:
            arrived = self._times[0]
            self.arrived = arrived[1]
            if arrived[0] > self._gone:
                break
            self._times.popleft()
        if self.taken == 0 and taken.startswith(MARK):
            taken = taken[len(MARK) :]
        self.taken += got
        self._changed.notify_all()
        return taken

    def put_back(self, line: bytes) -> None:
        with self._changed:
            self._data[:0] = line
            self._lines += 1
            self._gone -= len(line)
            if self.arrived is not None:
                self._times.appendleft((self._gone + len(line), self.arrived))
            self.taken -= 1

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
