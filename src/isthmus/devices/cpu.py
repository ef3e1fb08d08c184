"""This machine's processor: near memory is RAM, far memory a store on disk.

`DeviceMemory` is what a device holds for one session. The processor's is the plain case, which other devices extend:
arrays are those of the host, links read files, and nothing has to be moved before a program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Cache
from isthmus.cache.list_cache import HERE, ListCache
from isthmus.cache.partition_cache import PartitionCache
from isthmus.cache.ranking import RANKINGS
from isthmus.devices.device import Device, DeviceInfo
from isthmus.devices.run_clock import RunClock
from isthmus.devices.worker import Worker
from isthmus.engines.engine import Side
from isthmus.errors import OptionError
from isthmus.frontier import Frontier
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.link.link import CHANNELS, Array, Link, Moved, Profile
from isthmus.link.near import NearLink
from isthmus.link.open import in_files, known_profile, open_link
from isthmus.link.profile.measurement import Say
from isthmus.link.whole_arrays import read_array
from isthmus.memory import DEFAULT_SHARE, available, format_size
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Facts, Program, State
from isthmus.threads import Team, default_threads, uninterrupted

ENOUGH = 4 << 20  # bytes of a buffer; larger ones read a little faster, but a cache saves more with the same memory
LEAST_PAGES = 64  # of 4 KB, where lists are read through pages


class Cpu(Device):
    """This machine's processor."""

    kind = name = "cpu"

    @classmethod
    def open(cls, argument: str | None) -> Cpu:
        if argument is not None:
            raise OptionError(f"device: expected {cls.kind}, got {cls.kind}:{argument}")
        return cls()

    @classmethod
    def listed(cls) -> list[DeviceInfo]:
        return [DeviceInfo(cls.kind, f"{default_threads()} threads, {format_size(available())} of memory available")]

    def memory(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> DeviceMemory:
        return DeviceMemory(snapshot, team, verify, far)

    def default_budget(self) -> int:
        return int(available() * DEFAULT_SHARE)

    def buffer_bytes(self) -> tuple[int, int]:
        return sizes.now.least_buffer, ENOUGH

    def page_bytes(self, program: Program, graph: Snapshot) -> int:
        return LEAST_PAGES * BLOCK

    def table_bytes(self, program: Program, graph: Snapshot) -> int:
        """The checksums of edges in files, and the staging buffers of changed ones."""
        weights = program.reads_weights()
        return sum(checksum_bytes(graph, side, weights) for side in program.sides) + graph.staging_bytes

    def profile(self, snapshot: Snapshot) -> Profile:
        return known_profile(snapshot.far("out", True))

    def profile_text(self, profile: Profile) -> str:
        return f"{profile}{'' if profile.measured else ' (not measured)'}"

    def plan_note(self, snapshot: Snapshot, profile: Profile) -> str:
        if snapshot.path is None or profile.measured:
            return ""
        again = f"isthmus calibrate {snapshot.path}"
        return f"the disk has not been measured, so seconds are guesses; {again} measures it"


def checksum_bytes(graph: Snapshot, side: str, weights: bool) -> int:
    """Bytes of the tables of checksums that a link to a side's arrays holds."""
    return 8 * sum(array.blocks for array in graph.far(side, weights) if array.file is not None)


@dataclass
class RunParts:
    """What a worker is made from: a program with its state, and the parts that bring its edges near."""

    program: Program
    state: State
    facts: Facts
    frontier: Frontier
    sides: list[Side]
    link: Link
    cache: Cache
    module: ModuleType  # the program's loops, compiled for the processor
    recipe: Recipe
    least_again: int  # the fewest edges for which a further run pays


class DeviceMemory:
    """What a device holds for a session. Not thread-safe."""

    holds_copies = False  # what is near is not the graph's own memory, so that it is worth keeping
    counts_lists = True  # positions of lists that are read from disk count as loaded
    takes_pages = True  # pages lie in the memory that a link gives; otherwise the driver takes memory for them

    def __init__(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> None:
        self.snapshot, self._team, self.verify, self._far = snapshot, team, verify, far
        self.residency: Any = None  # of a stream: what stays near from batch to batch, with memory of its own

    @property
    def is_near_already(self) -> bool:
        """Whether the graph's own arrays are near memory, so that nothing has to be moved."""
        return not self.snapshot.on_disk

    def begin_thread(self) -> None:
        """A thread calls this before it uses the device for the first time."""

    # Links and edges

    def far_link(self, arrays: list[FarArray], recipe: Recipe, page_bytes: int, say: Say) -> Link:
        """A link to arrays that are moved as they are needed; `page_bytes` of near memory hold its pages."""
        return open_link(self.snapshot, arrays, self._far, self.verify, True, say)

    def near_link(self, arrays: list[FarArray]) -> Link:
        """A link to arrays that stay near."""
        return NearLink()

    def load(self, missing: list[FarArray], arrays: list[FarArray], link: Link) -> tuple[dict[str, Array], Moved]:
        """Bring whole arrays near: those that are missing of the arrays of a link."""
        moved, found = Moved(), {}
        if not in_files(missing):
            return {array.name: self.snapshot.whole(array, self.verify) for array in missing}, moved
        disk = open_link(self.snapshot, missing, "auto", self.verify, may_measure=False)
        try:
            for index, array in enumerate(missing):
                memory = aligned_empty(array.blocks * BLOCK, np.uint8)
                moved.add(read_array(self._team, array, index, disk, memory))
                found[array.name] = memory[: array.bytes].view(array.dtype)
        finally:
            uninterrupted(disk.close)
        return found, moved

    def release(self, name: str) -> None:
        """A whole array is no longer needed near."""

    def keep_lists(self, lists: Iterable[Lists]) -> None:
        """Only the positions of these lists are still needed."""

    def keep_far(self, names: Iterable[str], pages: bool) -> None:
        """The link that moves edges uses these arrays, with `pages` of managed memory; others are not needed by it."""

    def drop_counts(self) -> None:
        """Forget what links to near arrays have counted: after a run that failed, it may be inconsistent."""

    # Parts of a run

    def frontier(self) -> Frontier:
        return Frontier(self.snapshot.vertices, self._team.size)

    def cache(self, recipe: Recipe, sides: list[Side], memory: Array, link: Link) -> Cache:
        """The cache of the recipe in this memory, or one that keeps nothing."""
        side = sides[0]
        if not memory.size:
            return Cache()
        if recipe.cache == "partitions" and not (recipe.queue and len(sides) == 1):  # the queue keeps its own
            return PartitionCache(sides, memory, side.block)
        if recipe.cache in RANKINGS and len(sides) == 1:
            dtypes = (side.target_dtype, side.weight_dtype if side.weight_width else None)
            given = ([side.name], [side.lists], memory, dtypes, self._team, RANKINGS[recipe.cache])
            return ListCache(*given, place=self.cache_place(link))
        return Cache()

    def cache_place(self, link: Link) -> Any:
        """Where the lists of a cache lie, and what moves them there."""
        return HERE

    def clock(self, link: Link, recipe: Recipe, partitions: int) -> RunClock:
        """The clock of a run."""
        return RunClock()

    @contextmanager
    def running(self, parts: RunParts) -> Iterator[Worker]:
        """While inside, the device has the state and the frontier where its worker needs them."""
        yield Worker(parts.module, parts.program, parts.state, self._team, parts.least_again)

    def result_columns(self, columns: dict[str, Array]) -> Any:
        """What the device still holds of a result's columns after the last run; None: nothing."""
        return None

    def close(self) -> None:
        """Free all that is near of the snapshot; another one may follow. Call it `uninterrupted`."""

    def end(self) -> None:
        """The session ends: free also what outlives a snapshot, once or again."""


def forget_counts(link: Link) -> None:
    for channel in range(CHANNELS):
        link.take(channel)
