"""A stream with a log in a folder: what was acknowledged is there again when it is opened the next time.

    stream.json                 which graph it began with, which programs, the seed of the log's checksums
    checkpoint-000000000042/    the graph after batch 42; two are kept
    log-000000000040            the batches since

The folder has one writer, which locks it and has the file `.writer.lock` there, for writers on other machines
(`graph/locks/lock_file.py`). Readers need no lock (`reader.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus import __version__
from isthmus.errors import OptionError, StoreError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Edits
from isthmus.graph.graph import Graph, open_graph
from isthmus.graph.locks.folder_lock import FolderLock
from isthmus.graph.locks.holder import clock
from isthmus.graph.locks.lock_file import RENEWED, LockFile, NoLockFile
from isthmus.graph.overlay import merged_store
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.graph.store.files import fsync_folder
from isthmus.graph.store.replacement import remove_abandoned, replacing
from isthmus.graph.store.sealed_json import sealed
from isthmus.graph.store.store import is_store
from isthmus.memory import parse_size
from isthmus.messages import option
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.input.sources import Updates
from isthmus.stream.log import segments, stream_checkpoints
from isthmus.stream.log.acknowledged import Acknowledged, Progress
from isthmus.stream.log.frames import HEADER
from isthmus.stream.log.log_writer import LogWriter
from isthmus.stream.log.program_record import record_of, requests_of
from isthmus.stream.log.records import Place, encode
from isthmus.stream.log.recovery import FORMAT, NAME, VERSION, Recovered, manifest_of, recovered
from isthmus.stream.log.unlogged import Unlogged
from isthmus.threads import uninterrupted

if TYPE_CHECKING:
    from isthmus.stream.context import StreamContext

LEAST_LOG = 64 << 20  # bytes of log that are worth a checkpoint
KEPT = 2  # checkpoints
LOCK = ".writer.lock"


class Logged(Unlogged):
    """The writer of a folder. `graph`: what the stream is to begin with; None: the folder has it."""

    def __init__(self, path: Path, graph: Graph | None, log_size: int | None = None) -> None:
        self.path: Path = path
        self._limit = log_size
        if is_store(path):
            raise OptionError(f"log: {path} is a store; name a folder of its own")
        self._lock: FolderLock | None = None
        self._lock_file: LockFile | None = None
        self._taking, self._tried = threading.Lock(), 0.0  # guards taking the lock file later; when that was last tried
        self._lost: str | None = None  # why this writer must not write any more
        self._writer: LogWriter | None = None
        self.notes: list[str] = []
        self._manifest: dict[str, Any] = {}
        self._acknowledged = Acknowledged()
        self._recovered: Recovered | None = None
        self._since = 0  # bytes of log after the last checkpoint
        self._written, self._seconds = 0, 0.0  # checkpoints
        try:
            uninterrupted(self._take_lock)  # Ctrl-C must not leave it taken
            self._open(graph)
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        self._lock = FolderLock(self.path, "a log", "another stream is writing to this log")
        self._take_lock_file()

    def _take_lock_file(self) -> None:
        self._tried = clock()
        try:
            self._lock_file = LockFile(self.path / LOCK, self.path, "writing to this log")
        except NoLockFile as error:
            if not error.is_full:  # otherwise only the lock of the folder decides, until the disk has space
                raise

    def _look(self, now: bool = False) -> None:
        """Give a sign of life, now and then, or `now`. Raises StoreError, from then on, if another writer has taken the
        folder over.
        """
        if self._lost is not None:
            raise StoreError(self._lost)
        try:
            held = self._lock_file or self._taken_later()
            if held is not None:
                held.renew(now)
        except NoLockFile:
            pass  # still no space
        except StoreError as error:
            self._lost = str(error)
            raise

    def _taken_later(self) -> LockFile | None:
        """The lock file, if the disk was full when the stream was opened, and has space now."""
        with self._taking:
            if self._lock is None:
                raise StoreError(f"{self.path}: the stream is closed")
            if self._lock_file is None and clock() - self._tried >= RENEWED:
                uninterrupted(self._take_lock_file)
            return self._lock_file

    def _open(self, graph: Graph | None) -> None:
        self._is_new = not (self.path / NAME).exists()
        if not self._is_new:
            self._manifest = manifest_of(self.path)
            if graph is not None and identity(graph) != self._manifest["graph"]:
                theirs = self._manifest["from"]
                raise StoreError(
                    f"{self.path}: this log began with {theirs}, and {graph} is another graph; name another folder"
                )
            return
        if graph is None:
            raise StoreError(f"{self.path}: there is no log to go on with (no {NAME}); give a graph to begin with")
        try:
            foreign = sorted(name for name in os.listdir(self.path) if not ours(name))
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        if foreign:
            raise StoreError(
                f"{self.path}: is not the folder of a log, since it contains {foreign[0]}; name a new or empty folder"
            )
        if has_batches(self.path):
            raise StoreError(
                f"{self.path}: has batches, and its {NAME} is missing; restore that from a copy, or name another folder"
            )
        self._manifest = {"seed": secrets.token_hex(8), "graph": identity(graph), "from": str(graph), "programs": []}

    def programs(self) -> list[Any]:
        """The programs of the last time, as the folder records them."""
        return list(requests_of(self._manifest["programs"], str(self.path)))

    def changing(self, graph: Graph | None, context: StreamContext) -> AdvancingGraph:
        if self._is_new:
            return self._merging_here(super().changing(graph, context))
        stream_checkpoints.clear(self.path)
        merged_store.sweep(self.path)
        remove_abandoned(self.path / NAME)
        found = self._recovered = recovered(self.path, self._seed, context)
        self._acknowledged, self._since = found.acknowledged, found.bytes
        self.notes += found.notes
        return self._merging_here(found.graph)

    def _merging_here(self, graph: AdvancingGraph) -> AdvancingGraph:
        if isinstance(graph, OverlayGraph):
            graph.folder = self.path
        return graph

    @property
    def _seed(self) -> int:
        return int(self._manifest["seed"], 16)

    def begin(self, graph: AdvancingGraph, programs: Mapping[str, Any]) -> None:
        # First answers may have taken hours, and what another writer has added must not be cut off.
        self._look(now=True)
        recorded = [record_of(requested) for requested in programs.values()]
        if self._recovered is None:
            self._begin_anew(graph)
        else:
            self._writer = LogWriter(self.path, self._seed, self._recovered.tail, self._look)
            if not self._recovered.damaged:
                with contextlib.suppress(OSError, StoreError):
                    self._cut()  # what a writer that was killed, or failed, has left
        if self._recovered is None or recorded != self._manifest["programs"]:
            self._manifest["programs"] = recorded
            self._write_manifest()

    def _begin_anew(self, graph: AdvancingGraph) -> None:
        """The folder is one of a log when it has its manifest, which is written last."""
        try:
            for name in os.listdir(self.path):  # of a stream that was killed before it began
                if segments.NAMES.fullmatch(name):
                    os.unlink(self.path / name)
                elif stream_checkpoints.NAMES.fullmatch(name):
                    stream_checkpoints.discard(self.path / name)
            stream_checkpoints.write(self.path, graph, self._acknowledged.as_json(), lambda: self._look(True))
            self._writer = LogWriter(self.path, self._seed, segments.Tail(graph.number), self._look)
            fsync_folder(self.path.absolute().parent)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot begin a log: {error.strerror}") from error

    def _write_manifest(self) -> None:
        body = {"format": FORMAT, "version": VERSION, "isthmus": __version__, **self._manifest}
        try:
            with replacing(self.path / NAME) as file:
                file.write(sealed(body))
        except OSError as error:
            raise StoreError(f"{self.path / NAME}: cannot write: {error.strerror}") from error

    def append(self, number: int, edits: Edits, id: str | None, place: Place | None) -> None:
        assert self._writer is not None
        self._writer.check()
        self._look()
        content, checksum = encode(edits, id, place)
        self._writer.append(number, content)
        self._since += len(content)
        self._acknowledged.add(number, checksum, id, place)

    def repeats(self, edits: Edits, id: str | None) -> int | None:
        if id is None:
            return None
        if not isinstance(id, str):
            raise OptionError(f"id: expected a text, got {id!r}")
        return self._acknowledged.number_of(id, encode(edits)[1])

    def wait(self, number: int) -> None:
        assert self._writer is not None
        self._writer.wait(number)

    def settle(self) -> None:
        if self._writer is not None:
            self._writer.settle()

    def progress(self, source: Updates, updates: Any, kinds: Kinds) -> Any:
        if source.is_pipe or not isinstance(updates, str | Path):
            return None
        counted = Progress(str(Path(updates).resolve()))
        place = self._acknowledged.place_of(counted.name)
        if place is not None:
            counted.skip(source, place, kinds)
            self.notes.append(f"{source.name}: {place.rows} rows were applied before, and are passed over")
        return counted

    def is_long(self, graph: AdvancingGraph) -> bool:
        return self._since > (max(LEAST_LOG, graph.snapshot.edge_bytes // 2) if self._limit is None else self._limit)

    def shorten(self, graph: AdvancingGraph) -> None:
        if not self.is_long(graph):  # another thread has written a checkpoint meanwhile
            return
        try:
            self.checkpoint(graph)
        except Exception as error:  # of any kind: the batch was acknowledged, and its sender must not try again
            self.notes.append(str(error) or type(error).__name__)

    def checkpoint(self, graph: AdvancingGraph) -> None:
        """Write a checkpoint, then cut the log."""
        assert self._writer is not None
        start = time.monotonic()
        self._since = 0  # also after a failure: the next try is due when as much was written again
        self._writer.check()
        try:
            self._look(now=True)
            self._writer.settle()
            self._discard_if_damaged(graph.number)
            if all(number != graph.number for number, _ in stream_checkpoints.found(self.path)):
                written = stream_checkpoints.write(
                    self.path, graph, self._acknowledged.as_json(), lambda: self._look(True)
                )
                if isinstance(graph, OverlayGraph):  # its changes need not be in memory any more
                    with open_graph(written / stream_checkpoints.GRAPH) as stored:
                        graph.go_on_with(stored)
            self._writer.roll()
            self._look(now=True)
            self._cut()
            self._written += 1
        except (OSError, StoreError) as error:
            raise StoreError(f"a checkpoint of batch {graph.number} could not be completed: {error}") from error
        self._seconds += time.monotonic() - start

    def _discard_if_damaged(self, number: int) -> None:
        """Remove what would be in the way of a sound checkpoint of this batch."""
        damaged = self._recovered.damaged if self._recovered is not None else set()
        if number in damaged:
            stream_checkpoints.discard(self.path / f"checkpoint-{number:012d}")
            damaged.discard(number)

    def _cut(self) -> None:
        """Remove all checkpoints but the last sound ones, and the segments that none of them needs."""
        damaged = self._recovered.damaged if self._recovered is not None else set()
        sound = [number for number, _ in stream_checkpoints.found(self.path) if number not in damaged]
        stay = sound[-KEPT:]
        for number, path in stream_checkpoints.found(self.path):
            if number not in stay:
                stream_checkpoints.discard(path)
        known = segments.found(self.path)
        for (_, path), (following, _) in pairwise(known):
            if following <= stay[0]:
                os.unlink(path)

    def facts(self) -> dict[str, Any]:
        assert self._writer is not None
        found = self._recovered
        return {
            "path": str(self.path),
            "batch": self._writer.synced,
            "syncs": self._writer.syncs,
            "checkpoints": self._written,
            "checkpoint_seconds": self._seconds,
            "recovered": None if found is None else found.as_dict(),
        }

    def close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            uninterrupted(self._release)  # also after a second Ctrl-C

    def _release(self) -> None:
        """Give up the locks; and the folder, if nothing was begun in it."""
        with self._taking:
            if self._lock_file is not None:
                self._lock_file.release()
                self._lock_file = None
            if self._lock is not None:
                if self._writer is None:
                    with contextlib.suppress(OSError):
                        self.path.rmdir()
                self._lock.release()
                self._lock = None


def has_batches(folder: Path) -> bool:
    """Whether a folder holds more than what a stream leaves that was killed before it began."""
    if any(number for number, _ in [*stream_checkpoints.found(folder), *segments.found(folder)]):
        return True
    return any(path.stat().st_size > HEADER for _, path in segments.found(folder))


def ours(name: str) -> bool:
    """Whether a stream makes files or folders of this name."""
    others = re.compile(rf"{stream_checkpoints.WRITING.pattern}|\.{re.escape(NAME)}\.\d+\.tmp|{re.escape(LOCK)}")
    patterns = (segments.NAMES, stream_checkpoints.NAMES, merged_store.LEFT, others)
    return any(pattern.fullmatch(name) for pattern in patterns)


def identity(graph: Graph) -> str:
    """The same for graphs with the same contents."""
    if not isinstance(graph, AdvancingGraph):
        return graph.snapshot.identity()
    with graph.frozen() as frozen:
        return frozen.snapshot.identity()


def log_size_of(given: Any) -> int | None:
    """Bytes of log after which a checkpoint is written."""
    if given is None:
        return None
    size = parse_size(given)
    if size <= 0:
        raise OptionError(f"{option('log_size')}: expected a size such as 64MB, got {given!r}")
    return size
