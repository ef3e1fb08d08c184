"""The write-ahead log of a stream, for writing: a batch is acknowledged when it is on disk.

`append` writes a batch at the end of the log before anything is changed in memory (or, if a program may fail on it,
when all have computed). A thread syncs what was written, while the batch is applied; `wait` returns when it is on disk.
What other threads append meanwhile goes to disk with the next sync, all of it at once (group commit).

- A batch that cannot be written, on a full disk for example, is refused, and cut off again.
- If a sync fails, it is unknown what is on disk (the system may drop what it could not write), so it is not tried
  again. The stream is read-only from then on. Opened again, it reads from disk what is there.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from isthmus.errors import StoreError
from isthmus.graph.store.files import write_all
from isthmus.stream.log.frames import BATCH, HEADER, MARK, framed, read
from isthmus.stream.log.segments import Tail, begin, name_of

SEGMENT = 64 << 20  # bytes after which a new segment is begun


class LogWriter:
    """Appends batches to the last segment of a folder."""

    def __init__(self, folder: Path, seed: int, tail: Tail, look: Callable[[bool], None] = lambda now: None) -> None:
        """`look(now)` raises StoreError if another writer has taken the folder over. Without `now` it checks at most
        once a minute.
        """
        self.folder, self.seed, self._look = folder, seed, look
        self.number = self.synced = tail.number
        self._process = os.getpid()
        self.syncs = 0
        self._file, self._path, self._end = -1, folder, 0
        self._writing = threading.Lock()  # of the end of the file
        self._changed = threading.Condition()  # of `number`, `synced`, `_failure`, `_closing`
        self._failure: str | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        try:
            self._open(tail)
        except OSError as error:
            raise StoreError(f"{tail.path or folder}: cannot write the log: {error.strerror}") from error

    def _open(self, tail: Tail) -> None:
        """Go on where the log ends. Its tail is cut, and what was read from it synced: it counts as acknowledged from
        now on.
        """
        if tail.path is None or not tail.end:
            self._begin(tail.number, tail.path is not None)
            return
        self._file, self._path, self._end = os.open(tail.path, os.O_RDWR | os.O_NOFOLLOW), tail.path, tail.end
        try:
            if tail.torn:
                os.ftruncate(self._file, tail.end)
            # A sync that failed may have left good bytes in memory and others on disk. Written again, they get there.
            unsure = read(self._file, tail.unsure, tail.end - tail.unsure, str(tail.path))
            write_all(self._file, memoryview(unsure), tail.unsure, str(tail.path))
            os.fsync(self._file)
        except BaseException:
            self._close_file()
            raise

    def _begin(self, number: int, again: bool = False) -> None:
        file = begin(self.folder, self.seed, number, again)
        self._close_file()
        self._file, self._path, self._end = file, self.folder / name_of(number), HEADER

    def append(self, number: int, content: bytes) -> None:
        """Write a batch. It is on disk when `wait(number)` returns. Raises StoreError; then nothing was written."""
        self.check()
        if self._end >= SEGMENT:
            self.roll()
        if self._thread is None:
            thread = threading.Thread(target=self._sync, name="log", daemon=True)
            thread.start()
            self._thread = thread
        with self._writing:
            self.check()  # it may have been closed meanwhile
            end = self._end
            try:
                self._write(framed(self.seed, BATCH, number, self.synced, content))
                with self._changed:
                    self.number = number
                    self._changed.notify_all()
            except StoreError as error:
                raise StoreError(f"the batch was not applied: {error}") from error
            except BaseException:
                if self._end != end and self.number != number:  # a second frame of this number must not follow
                    self._fail("an interrupt or an error cut off the writing of a batch")
                raise

    def _write(self, frame: bytes) -> None:
        """Add a frame, whole or not at all."""
        try:
            write_all(self._file, memoryview(frame), self._end, str(self._path))
        except BaseException:  # Ctrl-C too
            try:
                os.ftruncate(self._file, self._end)
            except OSError as another:
                self._fail(f"{self._path}: an unfinished batch cannot be cut off: {another.strerror}")
            raise
        self._end += len(frame)

    def roll(self) -> None:
        """Begin a new segment, when all of this one is on disk."""
        self.check()
        self.settle()
        if self._end == HEADER:
            return
        with self._writing:
            if not self._is_ours(now=True):
                self.check()
            try:
                self._begin(self.number)
            except FileExistsError:
                self._fail(f"{self.folder / name_of(self.number)}: exists already; another writer has made it")
            except (OSError, StoreError) as error:
                self._fail(
                    f"{self.folder}: cannot begin a new file of the log: {getattr(error, 'strerror', None) or error}"
                )
            except BaseException:  # the new file may be there: batches must not go on in the old one
                self._fail("an interrupt cut off the beginning of a new file of the log")
                raise
        self.check()

    def wait(self, number: int) -> None:
        """Return when batch `number` is on disk; StoreError if it does not get there."""
        with self._changed:
            while self.synced < number:
                if self._failure is not None:
                    raise StoreError(
                        f"batch {number} was not acknowledged: {self._failure}; it may or may not be there when the "
                        f"stream is opened again"
                    )
                self._changed.wait()

    def settle(self) -> None:
        """Wait until all that was appended is on disk."""
        self.wait(self.number)

    def check(self) -> None:
        """Raise StoreError if nothing can be written any more."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.folder}: only process {self._process}, which opened the stream and was then forked, can "
                f"write to it"
            )
        with self._changed:
            if self._failure is not None:
                raise StoreError(f"the stream is read-only: {self._failure}; open it again")
            if self._closing:
                raise StoreError(f"{self.folder}: the stream is closed")

    def _fail(self, why: str) -> None:
        with self._changed:
            self._failure = self._failure or why
            self._changed.notify_all()

    def _sync(self) -> None:
        """In a thread: sync whatever was appended, until the log is closed."""
        while True:
            with self._changed:
                while self.number == self.synced and not self._closing and self._failure is None:
                    self._changed.wait()
                if self._failure is not None or self.number == self.synced:
                    return
                upto = self.number
            try:
                (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._file)
                if not self._is_ours():  # a sync may take hours, as on a machine that sleeps meanwhile
                    return
                self._mark(upto)
            except Exception as error:  # of any kind: others wait for this thread
                self._fail(f"{self._path}: cannot be synced: {getattr(error, 'strerror', None) or error}")
                return
            with self._changed:
                self.synced, self.syncs = upto, self.syncs + 1
                self._changed.notify_all()

    def _is_ours(self, now: bool = False) -> bool:
        """Whether no other writer has taken the folder over. Otherwise nothing is written any more."""
        try:
            self._look(now)
        except StoreError as error:
            self._fail(str(error))
            return False
        return True

    def _mark(self, synced: int) -> None:
        """Note that batches up to `synced` are on disk, so that damage to the last of them is not taken for a torn
        tail.
        """
        with self._writing, contextlib.suppress(StoreError):
            self._write(framed(self.seed, MARK, self.number, synced))

    def close(self) -> None:
        """Sync what was appended, and end. In a fork of the writer's process, only its copy of the file is closed."""
        if os.getpid() != self._process:
            self._close_file()
            return
        with self._writing, self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._close_file()

    def _close_file(self) -> None:
        """What matters was synced, so an error, as NFS may report here, is none."""
        file, self._file = self._file, -1
        if file >= 0:
            with contextlib.suppress(OSError):
                os.close(file)
