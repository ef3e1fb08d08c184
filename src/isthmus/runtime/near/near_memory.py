"""What a session keeps in near memory from run to run: lists, resident edges, and the parts that bring edges near.

`NearMemory` has the lists of the sides that were used and the resident edge arrays, by name. A `Pipeline` is made for a
program: its sides, and either the resident engine or a link with engines, buffers and a cache. A pipeline that moves
edges is kept, with its cache, for the next program that follows the same arrays with the same recipe.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.devices.cpu import DeviceMemory
from isthmus.engines.engine import BUFFERS, Buffer, Engine, Resources, Side
from isthmus.engines.registry import engine as engine_named
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut, partition_bytes
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import BLOCK
from isthmus.link.link import Array, Link, Moved
from isthmus.link.profile.measurement import Say
from isthmus.policies.combine import TOGETHER
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Program
from isthmus.runtime.executor.buffers import Buffers
from isthmus.runtime.executor.readers import Readers
from isthmus.runtime.near.budget import LEAST_BLOCKS, Split
from isthmus.threads import Team, uninterrupted


@dataclass
class Pipeline:
    """The parts that the loop uses. `memory` holds the buffers and, behind them, the edges that stay near."""

    sides: list[Side]
    link: Link
    engines: dict[str, Engine]
    buffers: Buffers
    readers: Readers
    memory: Array | None = None
    cache: Cache = field(default_factory=Cache)
    key: tuple[Any, ...] = ()  # a later program with the same key can use this pipeline

    @property
    def bytes(self) -> int:
        """Near memory that it takes."""
        return 0 if self.memory is None else int(self.memory.size)

    def close(self) -> None:
        """Stop all threads, and close the link, even if one of them fails. Call it `uninterrupted`."""
        with contextlib.ExitStack() as last:
            last.callback(self.link.close)
            for engine in self.engines.values():
                last.callback(engine.close)
            last.callback(self.readers.close)
            self.buffers.close()


class NearMemory:
    """The lists and edges of one snapshot that are near, on a device. Not thread-safe."""

    def __init__(self, device: DeviceMemory, team: Team) -> None:
        self.device, self._team = device, team
        self._lists: dict[str, Lists] = {}  # by side, the least recently used first
        self._arrays: dict[str, Array] = {}  # resident edges by the name of their array, in the same order
        self._pipeline: Pipeline | None = None  # the one that moves edges
        self.loaded = Moved()  # since the current run began
        self.in_use = False  # set when a run begins to use what is near

    @property
    def _snapshot(self) -> Snapshot:
        return self.device.snapshot

    def follow(self, snapshot: Snapshot) -> None:
        """Serve this snapshot from now on; what is near of another one is dropped."""
        if snapshot is not self.device.snapshot:
            self.close()
            self.device.snapshot = snapshot

    def count_anew(self) -> Moved:
        """Start a new count of loaded bytes, and return it."""
        self.loaded = Moved()
        return self.loaded

    def needs(self, program: Program) -> list[FarArray]:
        """The far arrays that a program follows: targets, and weights where it reads them, of each side in turn."""
        weights = program.reads_weights()
        return [array for side in program.sides for array in self._snapshot.far(side, weights)]

    def release(self, program: Program, split: Split, recipe: Recipe) -> int:
        """Free what this program does not need, unless the budget has memory for it; returns the bytes of what stays
        though the program does not need it.
        """
        needed = {array.name for array in self.needs(program)}
        sides = {self._snapshot.stored(side) for side in program.sides}
        spare = 0 if program.needs_spare_memory else split.budget - split.peak
        if self._pipeline is not None and (split.resident or self._key(program, split, recipe) != self._pipeline.key):
            if not split.resident or self._pipeline.bytes > spare:
                self._drop_pipeline()
            else:
                spare -= self._pipeline.bytes
        for name in [name for name in reversed(self._arrays) if name not in needed or not split.resident]:
            if self._stays(self._arrays[name].nbytes, spare):
                spare -= self._arrays[name].nbytes
            else:
                del self._arrays[name]
                self.device.release(name)
        for name in [name for name in reversed(self._lists) if name not in sides]:
            if self._stays(8 * len(self._lists[name]), spare):
                spare -= 8 * len(self._lists[name])
            else:
                del self._lists[name]
        self.device.keep_lists(self._lists.values())
        return 0 if program.needs_spare_memory else split.budget - split.peak - spare

    def _stays(self, size: int, spare: int) -> bool:
        """Whether an array that is not needed stays in the spare bytes: not if the graph holds it anyway."""
        return size <= spare and (self._snapshot.on_disk or self.device.holds_copies)

    def prepare(self, program: Program, split: Split, recipe: Recipe, say: Say) -> Pipeline:
        """The pipeline for a program. Loads the edges that must be near and are not."""
        self.in_use = True
        self.device.begin_thread()
        if split.resident:
            pipeline = self._near_pipeline(program)
        else:
            pipeline = self._pipeline = self._pipeline or self._far_pipeline(program, split, recipe, say)
        self._keep_far()
        return pipeline

    def reuse_split(self, program: Program, split: Split, recipe: Recipe) -> Split:
        """The split with the sizes of the current pipeline, if this program can use that pipeline: its edges then stay
        near.
        """
        if self._pipeline is None or split.resident:
            return split
        *same, edges, cache = self._pipeline.key
        own = split.edges + split.cache
        most = own if program.needs_spare_memory else own + split.budget - split.peak
        enough = 2 * (edges + cache) >= own and 2 * cache >= split.cache
        if same != list(self._key(program, split, recipe)[:-2]) or edges + cache > most or not enough:
            return split
        return replace(split, edges=edges, cache=cache)

    def _key(self, program: Program, split: Split, recipe: Recipe) -> tuple[Any, ...]:
        return tuple(array.name for array in self.needs(program)), program.sides, recipe, split.edges, split.cache

    def drop(self) -> None:
        """Close the pipeline that moves edges, and forget what links have counted: after a run that failed, they may be
        inconsistent.
        """
        self._drop_pipeline()
        self.device.drop_counts()

    def close(self) -> None:
        """Let go of everything. Call it `uninterrupted`."""
        with contextlib.ExitStack() as last:
            last.callback(self.device.close)
            for held in (self._arrays, self._lists):
                last.callback(held.clear)
            self._drop_pipeline()

    def _drop_pipeline(self) -> None:
        uninterrupted(self._close_pipeline)

    def _close_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None  # first, so that nothing uses it any more if closing fails
        if pipeline is not None:
            pipeline.close()

    def _keep_far(self) -> None:
        """Free the far arrays that no link uses any more."""
        if self._pipeline is None:
            self.device.keep_far((), False)
        else:
            names, _, recipe, *_ = self._pipeline.key
            self.device.keep_far(names, recipe.pages)

    def lists(self, side: str) -> Lists:
        name = self._snapshot.stored(side)
        if name not in self._lists:
            self._lists[name] = self._snapshot.lists(side, self.device.verify)
            if self._snapshot.path and self.device.counts_lists:
                self.loaded.add(Moved(self._lists[name].begins.nbytes + 8))
        self._lists[name] = self._lists.pop(name)  # the most recently used now
        return self._lists[name]

    def _side(self, side: str, index: int, program: Program, partition: int, link: Link) -> Side:
        snapshot, lists = self._snapshot, self.lists(side)
        weighted = program.reads_weights() and snapshot.weighted
        width, weight_width = snapshot.target_bytes, snapshot.weight_bytes if weighted else 0
        return Side(
            snapshot.stored(side),
            lists,
            cut(lists, width + weight_width, partition),
            width,
            weight_width,
            snapshot.target_dtype,
            snapshot.weight_dtype if weighted else None,
            index * (2 if weighted else 1),
            link.profile.block,
            link.shares,
        )

    def _near_pipeline(self, program: Program) -> Pipeline:
        """A pipeline with all edges of the program's sides in near memory."""
        arrays = self.needs(program)
        missing = [array for array in arrays if array.name not in self._arrays]
        link = self.device.near_link(arrays)
        loaded, moved = self.device.load(missing, arrays, link)
        self._arrays |= loaded
        self.loaded.add(moved)
        for array in arrays:
            self._arrays[array.name] = self._arrays.pop(array.name)
        entry = sum(np.dtype(array.dtype).itemsize for array in arrays) // len(program.sides)
        partition = partition_bytes(self._snapshot.slots(program.sides[0]) * entry)
        sides = [self._side(name, index, program, partition, link) for index, name in enumerate(program.sides)]
        resources = Resources(link, sides, self._team.size, np.empty(0, np.uint8), lambda side: self._whole(side))
        engines = {"resident": engine_named("resident").make(resources)}
        return Pipeline(sides, link, engines, Buffers([]), Readers(link))

    def _whole(self, side: Side) -> tuple[Array, Array | None]:
        """A side's resident targets and weights."""
        weights = self._arrays[f"{side.name}.weights"] if side.weight_width else None
        return self._arrays[f"{side.name}.targets"], weights

    def _far_pipeline(self, program: Program, split: Split, recipe: Recipe, say: Say) -> Pipeline:
        """A pipeline that moves edges: link, engines, buffers and cache."""
        link = self.device.far_link(self.needs(program), recipe, split.cache if recipe.pages else 0, say)
        try:
            return self._filled(program, split, recipe, link)
        except BaseException:
            link.close()
            raise

    def _filled(self, program: Program, split: Split, recipe: Recipe, link: Link) -> Pipeline:
        snapshot, block = self._snapshot, link.profile.block
        most = split.edges // BUFFERS
        if recipe.combine == "neighbours":
            most = most // TOGETHER - 2 * BLOCK  # so that TOGETHER partitions fit in a buffer, wherever blocks begin
        weighted = program.reads_weights() and snapshot.weighted
        entry = (snapshot.target_bytes, snapshot.weight_bytes if weighted else 0)
        partition = partition_bytes(snapshot.slots(program.sides[0]) * sum(entry), most)
        sides = [self._side(name, index, program, partition, link) for index, name in enumerate(program.sides)]
        size = max(split.edges // BUFFERS // block, LEAST_BLOCKS) * block
        cached = split.cache if self.device.takes_pages or not recipe.pages else 0
        memory = link.near(BUFFERS * size + cached)
        buffers = Buffers([Buffer(memory[k * size : (k + 1) * size], entry, block) for k in range(BUFFERS)])
        rest = memory[BUFFERS * size :]
        resources = Resources(link, sides, self._team.size, rest, self._whole, recipe.merge, recipe.hint.evicts)
        engines = {name: engine_named(name).make(resources) for name in recipe.policy.engines}
        cache, key = self.device.cache(recipe, sides, rest, link), self._key(program, split, recipe)
        return Pipeline(sides, link, engines, buffers, Readers(link), memory, cache, key)
