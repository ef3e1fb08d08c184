"""A device: this machine's processor, which writes down every read of edges.

`device="recorder"` runs as `cpu` does; `device="recorder:reads.csv"` also appends a line for each read to a file.
"""

from __future__ import annotations

import threading
from pathlib import Path

from isthmus.devices.cpu import Cpu, DeviceMemory
from isthmus.devices.device import DeviceInfo
from isthmus.graph.far import FarArray
from isthmus.graph.snapshot import Snapshot
from isthmus.link.link import Array, Extents, Link
from isthmus.link.profile.measurement import Say
from isthmus.link.requests import ListSpans
from isthmus.policies.recipe import Recipe
from isthmus.threads import Team


class Recorder(Cpu):
    """The processor; `reads` has (array, first byte, bytes) of every read."""

    kind = name = "recorder"

    def __init__(self, file: str | None = None) -> None:
        self.file, self.reads = file, list[tuple[str, int, int]]()

    @classmethod
    def open(cls, argument: str | None) -> Recorder:
        return cls(argument)

    @classmethod
    def listed(cls) -> list[DeviceInfo]:
        return [DeviceInfo(cls.kind, "the processor, with a record of every read of edges")]

    def memory(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> RecorderMemory:
        return RecorderMemory(self, snapshot, team, verify, far)


class RecorderMemory(DeviceMemory):
    """What the device holds for a session: its links record what they move."""

    def __init__(self, device: Recorder, snapshot: Snapshot, team: Team, verify: bool, far: str) -> None:
        super().__init__(snapshot, team, verify, far)
        self._device = device

    def far_link(self, arrays: list[FarArray], recipe: Recipe, page_bytes: int, say: Say) -> Link:
        return Recording(super().far_link(arrays, recipe, page_bytes, say), arrays, self._device)


class Recording(Link):
    """A link in front of another."""

    def __init__(self, link: Link, arrays: list[FarArray], device: Recorder) -> None:
        self._link, self._names, self._device = link, [array.name for array in arrays], device
        self.profile, self.notes = link.profile, link.notes
        self._lock = threading.Lock()  # several readers use a link

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        self._record(extents)
        return self._link.move(extents, buffer, channel)

    def gather(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        self._record(extents)
        return self._link.gather(extents, buffer, lists, channel)

    def _record(self, extents: Extents) -> None:
        columns = (extents.sections.tolist(), extents.offsets.tolist(), extents.lengths.tolist())
        reads = [(self._names[section], begin, size) for section, begin, size in zip(*columns, strict=True)]
        with self._lock:
            self._device.reads += reads
            if self._device.file is not None:
                with Path(self._device.file).open("a") as file:
                    file.writelines(f"{name},{begin},{size}\n" for name, begin, size in reads)

    def close(self) -> None:
        self._link.close()
