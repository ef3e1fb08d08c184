"""The files of a log. A segment is named for the last batch before it: `log-000000000041` begins with batch 42.

A segment is only begun when all batches of the one before are on disk. So only the last one can have a torn tail: a
frame that a crash has left unfinished, which was never acknowledged. It is cut off. A frame that is damaged elsewhere,
or that a later frame knows to have been on disk, held an acknowledged batch: that is an error, with file and offset.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import StoreError
from isthmus.graph.store.files import fsync_folder, write_all
from isthmus.stream.log.frames import BATCH, BEGIN, Frame, framed, frames, synced_behind

NAMES = re.compile(r"log-(\d{12,20})")
HELP = "restore the folder from a copy, or start over in another one"


def name_of(number: int) -> str:
    return f"log-{number:012d}"


def found(folder: Path) -> list[tuple[int, Path]]:
    """The segments of a folder: the last batch before each, and its path, in order."""
    return numbered(folder, NAMES)


def numbered(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    """What has a name with a number: the numbers and paths, in order."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}") from error
    return sorted((int(match[1]), folder / match[0]) for match in map(pattern.fullmatch, names) if match)


@dataclass
class Tail:
    """Where a log ends: the next batch is written to `path`, at byte `end`. `torn`: bytes behind it, to be cut."""

    number: int  # of the last batch
    path: Path | None = None
    end: int = 0
    torn: int = 0
    unsure: int = 0  # from here on, nothing in the file says that it was on disk


class Reading:
    """The batches of a folder after batch `since`, in order. Afterwards `tail` is where they end."""

    def __init__(self, folder: Path, seed: int, since: int) -> None:
        self.folder, self.seed, self.since = folder, seed, since
        self.tail = Tail(since)

    def __iter__(self) -> Iterator[tuple[Frame, str]]:
        """Frames of batches, and where each lies, for messages."""
        segments = found(self.folder)
        older = [at for at, (before, _) in enumerate(segments) if before <= self.since]
        if not older:
            raise missing(self.folder, self.since + 1, segments[0][0] if segments else None)
        number = segments[older[-1]][0]
        # Those before it belong to older checkpoints.
        for at, (before, path) in enumerate(segments[older[-1] :], older[-1]):
            if before != number:
                raise missing(self.folder, number + 1, before)
            yield from self._batches(path, before, at == len(segments) - 1)
            number = self.tail.number
        if number < self.since:  # the checkpoint has more
            self.tail = Tail(self.since)

    def _batches(self, path: Path, before: int, is_last: bool) -> Iterator[tuple[Frame, str]]:
        """The batches of one segment that are not known yet."""
        number, end, synced = before, 0, before
        unsure: list[tuple[int, int]] = []  # batches that no frame knows to be on disk, and where they begin
        with opened(path) as file:
            size = os.fstat(file).st_size  # once: its writer may add to it meanwhile
            for frame in frames(file, self.seed, str(path), size):
                kind, expected = frame.header.kind, number + (frame.header.kind == BATCH)
                if (kind == BEGIN) != (frame.at == 0) or frame.header.number != expected:
                    raise StoreError(
                        f"{path}: byte {frame.at}: expected batch {expected}, found {frame.header.number}; {HELP}"
                    )
                synced = max(synced, frame.header.synced)
                unsure = [each for each in unsure if each[0] > synced]
                if kind == BATCH:
                    number = expected
                    unsure.append((number, frame.at))
                    if number > self.since:
                        yield frame, f"{path}: byte {frame.at}"
                end = frame.end
            torn = size - end
            if not is_last and (torn or not end):
                raise damaged(path, end, number + 1)
            if torn and synced_behind(file, self.seed, end, str(path), size) > number:
                raise damaged(path, end, number + 1)
        self.tail = Tail(number, path, end, torn, unsure[0][1] if unsure else end)


def damaged(path: Path, at: int, number: int) -> StoreError:
    return StoreError(f"{path}: byte {at}: batch {number} is damaged (its checksum does not match); {HELP}")


def missing(folder: Path, first: int, last: int | None) -> StoreError:
    which = f"batches {first} to {last}" if last is not None else f"all batches from {first} on"
    return StoreError(f"{folder}: the log lacks {which}: expected a file {name_of(first - 1)}; {HELP}")


@contextmanager
def opened(path: Path) -> Iterator[int]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def begin(folder: Path, seed: int, number: int, again: bool = False) -> int:
    """Make the segment that begins after batch `number`; it is on disk when this returns its open file.

    `again`: over one that a writer has left unfinished. Otherwise one that is there is another writer's, and may have
    its batches.
    """
    path = folder / name_of(number)
    file = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if again else os.O_EXCL) | os.O_NOFOLLOW, 0o644)
    try:
        write_all(file, memoryview(framed(seed, BEGIN, number, number)), 0, str(path))
        os.fsync(file)
        fsync_folder(folder)
    except BaseException:
        os.close(file)
        raise
    return file
