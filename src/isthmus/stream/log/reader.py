"""A stream's folder opened for reading, beside its writer: the snapshot of one batch, which does not change.

The writer may replace checkpoints and cut the log meanwhile. What is open stays readable, as its files stay; if
something is gone before it was opened, or a batch was read while it was written, reading begins again.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import StoreError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Edits
from isthmus.graph.graph import Graph
from isthmus.stream.log.program_record import requests_of
from isthmus.stream.log.records import Place
from isthmus.stream.log.recovery import Recovered, manifest_of, recovered
from isthmus.stream.log.segments import opened
from isthmus.stream.log.unlogged import Unlogged

if TYPE_CHECKING:
    from isthmus.stream.context import StreamContext

TRIES = 20
PAUSE = 0.05  # seconds between two tries


class ReadOnly(Unlogged):
    """The folder of a stream, to be read."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self._manifest = manifest_of(path)
        self._recovered: Recovered | None = None
        self.notes: list[str] = []

    def programs(self) -> list[Any]:
        return list(requests_of(self._manifest["programs"], str(self.path)))

    def changing(self, graph: Graph | None, context: StreamContext) -> AdvancingGraph:
        for left in reversed(range(TRIES)):
            before = os.listdir(self.path)
            try:
                found = recovered(self.path, int(self._manifest["seed"], 16), context)
                self._sync(found)
                break
            except StoreError:
                if not left or (left < TRIES - 3 and sorted(os.listdir(self.path)) == sorted(before)):
                    raise
                time.sleep(PAUSE)
        self._recovered = found
        self.notes += [note for note in found.notes if "recovered" not in note]
        return found.graph

    def _sync(self, found: Recovered) -> None:
        """What a reader saw must not be gone after a power cut. The writer may not have synced it yet."""
        if found.tail.path is not None:
            # a file system that is mounted read-only.
            with opened(found.tail.path) as file, contextlib.suppress(OSError):
                os.fsync(file)

    def append(self, number: int, edits: Edits, id: str | None, place: Place | None) -> None:
        raise StoreError(
            f"{self.path}: the stream was opened read-only; open it without read_only=True to apply batches"
        )

    def checkpoint(self, graph: AdvancingGraph) -> None:
        raise StoreError(f"{self.path}: the stream was opened read-only; its writer writes checkpoints")

    def facts(self) -> dict[str, Any]:
        assert self._recovered is not None
        return {"path": str(self.path), "batch": self._recovered.tail.number, "read_only": True}
