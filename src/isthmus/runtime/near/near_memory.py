"""What a session keeps in near memory from run to run: lists, resident edges, and the parts that bring edges near.

`NearMemory` has the lists of the sides that were used and the resident edge arrays, by name. A `Pipeline` is made for a
program: its sides, and either the resident engine or a link with engines, buffers and a cache. A pipeline that moves
edges is kept, with its cache, for the next program that follows the same arrays with the same recipe.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.cache.list_cache import HERE, ListCache
from isthmus.cache.partition_cache import PartitionCache
from isthmus.cache.ranking import RANKINGS
from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.disk_link import CudaDiskLink
from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.devices.cuda.host_memory import FarMemory
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.cuda.list_cache import on_card
from isthmus.devices.model.figures import Device
from isthmus.devices.model.link import ModelLink
from isthmus.engines.engine import Buffer, Engine, Resources, Side
from isthmus.engines.registry import engine as engine_named
from isthmus.errors import NotOnGpu
from isthmus.graph.far import FarArray
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut, partition_bytes
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.link.hints import Hint
from isthmus.link.link import CHANNELS, Array, Link, Moved
from isthmus.link.near import NearLink
from isthmus.link.open import in_files, open_link
from isthmus.link.profile.measurement import Say
from isthmus.memory import DEFAULT_SHARE, available
from isthmus.policies.combine import TOGETHER
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Program
from isthmus.runtime.executor.buffers import Buffers
from isthmus.runtime.executor.executor import Executor
from isthmus.runtime.near.budget import BUFFERS, LEAST_BLOCKS, Split
from isthmus.runtime.near.whole_arrays import read_array
from isthmus.threads import Team, uninterrupted


@dataclass
class Pipeline:
    """The parts that the loop uses. `memory` holds the buffers and, behind them, the edges that stay near."""

    sides: list[Side]
    link: Link
    engines: dict[str, Engine]
    buffers: Buffers
    executor: Executor
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
            last.callback(self.executor.close)
            self.buffers.close()


class Residency(Protocol):
    """What is near of a changing graph from snapshot to snapshot; it has memory of its own."""

    def link(self, names: list[str], arrays: list[Array]) -> ModelLink:
        """A link to a snapshot's far arrays."""

    def cache(self, sides: list[Side]) -> Cache:
        """The cache for a pipeline with these sides."""

    def shared(self, array: Array) -> Shared | None:
        """The memory of a card where an array of a program's state lies; None: the array is only on the host."""

    def positions(self, lists: Lists) -> tuple[Array, Array] | None:
        """Where lists begin and end, in a card's memory; None: they are only on the host."""

    def close(self) -> None:
        """Free its memory, once or again; no pipeline uses it any more."""


class NearMemory:
    """The lists and edges of one snapshot that are near. Not thread-safe."""

    def __init__(
        self, snapshot: Snapshot, team: Team, model: Device | None, verify: bool, far: str, card: Card | None = None
    ) -> None:
        """`card`: the GPU of this machine that `model` describes; None: that is a modelled one."""
        self._snapshot, self._team, self._model, self._verify, self._far, self._card = (
            snapshot,
            team,
            model,
            verify,
            far,
            card,
        )
        self._lists: dict[str, Lists] = {}  # by side, the least recently used first
        self._arrays: dict[str, Array] = {}  # resident edges by the name of their array, in the same order
        self._pipeline: Pipeline | None = None  # the one that moves edges
        # in front of resident edges, by the names of their arrays.
        self._model_links: dict[tuple[str, ...], ModelLink] = {}
        self.loaded = Moved()  # since the current run began
        self.in_use = False  # set when a run begins to use what is near
        self.residency: Residency | None = None  # of a stream on a device
        if card is not None:
            self._far_memory, self.card_lists = FarMemory(card), CardLists(card)

    def follow(self, snapshot: Snapshot) -> None:
        """Serve this snapshot from now on; what is near of another one is let go."""
        if snapshot is not self._snapshot:
            self.close()
            self._snapshot = snapshot

    def count_anew(self) -> Moved:
        """Start a new count of loaded bytes, and return it."""
        self.loaded = Moved()
        return self.loaded

    def needs(self, program: Program) -> list[FarArray]:
        """The far arrays that a program follows: targets, and weights where it reads them, of each side in turn."""
        weights = program.reads_weights()
        return [array for side in program.sides for array in self._snapshot.far(side, weights)]

    def release(self, program: Program, split: Split, recipe: Recipe) -> int:
        """Free what this program does not need and the budget has no room for; returns the bytes that it does not need
        and that stay.
        """
        wanted = {array.name for array in self.needs(program)}
        sides = {self._snapshot.stored(side) for side in program.sides}
        spare = 0 if program.needs_spare_memory else split.budget - split.peak
        if self._pipeline is not None and (split.resident or self._key(program, split, recipe) != self._pipeline.key):
            if not split.resident or self._pipeline.bytes > spare:
                self._drop_pipeline()
            else:
                spare -= self._pipeline.bytes
        for name in [name for name in reversed(self._arrays) if name not in wanted or not split.resident]:
            spare = self._keep_or_drop(self._arrays, name, self._arrays[name].nbytes, spare)
        for name in [name for name in reversed(self._lists) if name not in sides]:
            spare = self._keep_or_drop(self._lists, name, 8 * len(self._lists[name]), spare)
        if self._card is not None:
            self.card_lists.keep_only(self._lists.values())
        return 0 if program.needs_spare_memory else split.budget - split.peak - spare

    def _keep_or_drop(self, held: dict[str, Any], name: str, size: int, spare: int) -> int:
        """Keep an array if it fits in the spare bytes, else drop it; returns the spare bytes left.

        An array of a graph in memory is always dropped, as the graph holds it anyway, but for what lies on a GPU.
        """
        if size <= spare and (self._snapshot.on_disk or self._card is not None):
            return spare - size
        del held[name]
        for names, link in self._model_links.items():
            if isinstance(link, CudaLink) and held is self._arrays and name in names:
                link.let_go(names.index(name))
        return spare

    def prepare(self, program: Program, split: Split, recipe: Recipe, say: Say) -> Pipeline:
        """The pipeline for a program. Loads the edges that must be near and are not."""
        self.in_use = True
        if self._card is not None:
            self._card.begin_thread()
        if split.resident:
            pipeline = self._near_pipeline(program)
        else:
            pipeline = self._pipeline = self._pipeline or self._far_pipeline(program, split, recipe, say)
        self._let_far_memory_go()
        return pipeline

    def reuse_split(self, program: Program, split: Split, recipe: Recipe) -> Split:
        """The split with the sizes of the current pipeline, if this program can use that pipeline: its edges then stay
        near.
        """
        if self._pipeline is None or split.resident:
            return split
        *same, edges, cache = self._pipeline.key
        own = split.edges + split.cache
        room = own if program.needs_spare_memory else own + split.budget - split.peak
        enough = 2 * (edges + cache) >= own and 2 * cache >= split.cache
        if same != list(self._key(program, split, recipe)[:-2]) or edges + cache > room or not enough:
            return split
        return replace(split, edges=edges, cache=cache)

    def _key(self, program: Program, split: Split, recipe: Recipe) -> tuple[Any, ...]:
        return tuple(array.name for array in self.needs(program)), program.sides, recipe, split.edges, split.cache

    def drop(self) -> None:
        """Close the pipeline that moves edges, and forget what links have counted: after a run that failed, they may be
        inconsistent.
        """
        self._drop_pipeline()
        for link in self._model_links.values():
            for channel in range(CHANNELS):
                link.take(channel)

    def close(self) -> None:
        """Let go of everything. Call it `uninterrupted`."""
        with contextlib.ExitStack() as last:
            if self._card is not None:
                last.callback(self._far_memory.close)
                last.callback(self.card_lists.close)
            for held in (self._arrays, self._lists, self._model_links):
                last.callback(held.clear)
            for link in self._model_links.values():
                last.callback(link.close)
            self._drop_pipeline()

    def _drop_pipeline(self) -> None:
        uninterrupted(self._close_pipeline)

    def _close_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None  # first, so that nothing uses it any more if closing fails
        if pipeline is not None:
            pipeline.close()

    def _let_far_memory_go(self, but: Collection[tuple[str, bool]] = ()) -> None:
        """Free the far arrays that no link uses any more, but for some that a link will use."""
        if self._card is not None:
            used = {(name, False) for names in self._model_links for name in names}
            if self._pipeline is not None:
                names, _, recipe, *_ = self._pipeline.key
                used.update((name, recipe.pages) for name in names)
            self._far_memory.keep_only(used.union(but))

    def lists(self, side: str) -> Lists:
        name = self._snapshot.stored(side)
        if name not in self._lists:
            self._lists[name] = self._snapshot.lists(side, self._verify)
            if self._snapshot.path and self._model is None:  # a modelled device's link carries edges alone
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
        link = NearLink() if self._model is None else self._resident_link(arrays)
        self._load(missing, arrays, link)
        for array in arrays:
            self._arrays[array.name] = self._arrays.pop(array.name)
        entry = sum(np.dtype(array.dtype).itemsize for array in arrays) // len(program.sides)
        partition = partition_bytes(self._snapshot.slots(program.sides[0]) * entry)
        sides = [self._side(name, index, program, partition, link) for index, name in enumerate(program.sides)]
        resources = Resources(link, sides, self._team.size, np.empty(0, np.uint8), lambda side: self._whole(side))
        engines = {"resident": engine_named("resident").make(resources)}
        return Pipeline(sides, link, engines, Buffers([]), Executor(link, self._team))

    def _whole(self, side: Side) -> tuple[Array, Array | None]:
        """A side's resident targets and weights."""
        weights = self._arrays[f"{side.name}.weights"] if side.weight_width else None
        return self._arrays[f"{side.name}.targets"], weights

    def _load(self, missing: list[FarArray], arrays: list[FarArray], link: Link) -> None:
        """Bring whole arrays near."""
        if isinstance(link, ModelLink):
            for array in missing:
                self._arrays[array.name] = link.whole(arrays.index(array)).view(array.dtype)
            self.loaded.add(link.take())
        elif in_files(missing):
            disk = open_link(self._snapshot, missing, "auto", self._verify, may_measure=False)
            try:
                for index, array in enumerate(missing):
                    memory = aligned_empty(array.blocks * BLOCK, np.uint8)
                    self.loaded.add(read_array(self._team, array, index, disk, memory))
                    self._arrays[array.name] = memory[: array.bytes].view(array.dtype)
            finally:
                uninterrupted(disk.close)
        else:
            self._arrays |= {array.name: self._snapshot.whole(array, self._verify) for array in missing}

    def _model_link(self, arrays: list[FarArray], page_bytes: int = 0, hint: Hint = Hint.NONE) -> ModelLink:
        """A modelled link in front of arrays, which lie in host memory."""
        assert self._model is not None
        self._let_far_memory_go({(array.name, page_bytes > 0) for array in arrays})
        if self._card is not None and self._stays_on_disk(arrays, page_bytes > 0):
            if page_bytes:
                raise NotOnGpu(
                    "policy: pages of managed memory need all edges in host memory; give another recipe, or a "
                    "smaller graph"
                )
            disk = open_link(self._snapshot, arrays, "auto", self._verify)
            return opened_on_disk(arrays, disk, self._model, self._card)
        if self._card is not None and self.residency is None:
            try:
                return CudaLink(
                    self._reachable(arrays, page_bytes > 0), self._model, self._card, page_bytes, hint, self._team.size
                )
            except BaseException:
                self._let_far_memory_go()
                raise
        whole = [np.ascontiguousarray(self._snapshot.whole(array, self._verify)) for array in arrays]
        if self.residency is not None:
            return self.residency.link([array.name for array in arrays], whole)
        return ModelLink(whole, self._model, page_bytes, hint)

    def _reachable(self, arrays: list[FarArray], managed: bool) -> list[Shared]:
        """Arrays in memory that a GPU's kernels reach; those that links hold already are shared with them."""
        far = self._far_memory
        missing = [array for array in arrays if not far.holds(array.name, managed)]
        if in_files(missing):
            disk = open_link(self._snapshot, missing, "auto", self._verify, may_measure=False)
            try:
                for index, array in enumerate(missing):
                    far.read(
                        array.name,
                        array.bytes,
                        partial(read_array, self._team, array, index, disk, directly=not managed),
                        managed,
                    )
            finally:
                uninterrupted(disk.close)
        else:
            for array in missing:
                far.lock(array.name, np.ascontiguousarray(self._snapshot.whole(array, self._verify)), managed)
        return [far.of_name(array.name, managed) for array in arrays]

    def _stays_on_disk(self, arrays: list[FarArray], managed: bool) -> bool:
        """Whether a GPU gets these arrays from disk: if the host has no room for those that it does not hold yet, or on
        request.
        """
        if not in_files(arrays) or self._far == "ram":
            return False
        missing = sum(array.bytes for array in arrays if not self._far_memory.holds(array.name, managed))
        return self._far == "disk" or missing > DEFAULT_SHARE * available()

    def _resident_link(self, arrays: list[FarArray]) -> ModelLink:
        names = tuple(array.name for array in arrays)
        if names not in self._model_links:
            self._model_links[names] = self._model_link(arrays)
        return self._model_links[names]

    def _far_pipeline(self, program: Program, split: Split, recipe: Recipe, say: Say) -> Pipeline:
        """A pipeline that moves edges: link, engines, buffers and cache."""
        arrays = self.needs(program)
        if self._model is not None:
            link: Link = self._model_link(arrays, split.cache if recipe.pages else 0, recipe.hint)
        else:
            link = open_link(self._snapshot, arrays, self._far, self._verify, True, say)
        try:
            return self._filled(program, split, recipe, link)
        except BaseException:
            link.close()
            raise

    def _filled(self, program: Program, split: Split, recipe: Recipe, link: Link) -> Pipeline:
        snapshot, block = self._snapshot, link.profile.block
        most = split.edges // BUFFERS
        if recipe.combine == "neighbours":
            # so that TOGETHER partitions fit in a buffer, wherever their blocks begin.
            most = most // TOGETHER - 2 * BLOCK
        weighted = program.reads_weights() and snapshot.weighted
        entry = (snapshot.target_bytes, snapshot.weight_bytes if weighted else 0)
        partition = partition_bytes(snapshot.slots(program.sides[0]) * sum(entry), most)
        sides = [self._side(name, index, program, partition, link) for index, name in enumerate(program.sides)]
        size = max(split.edges // BUFFERS // block, LEAST_BLOCKS) * block
        pages_of_card = recipe.pages and self._card is not None  # the driver itself takes memory for them
        memory = link.near(BUFFERS * size + (0 if pages_of_card else split.cache))
        buffers = Buffers([Buffer(memory[k * size : (k + 1) * size], entry, block) for k in range(BUFFERS)])
        rest = memory[BUFFERS * size :]
        resources = Resources(link, sides, self._team.size, rest, self._whole, recipe.merge, recipe.hint.evicts)
        engines = {name: engine_named(name).make(resources) for name in recipe.policy.engines}
        cache = (
            make_cache(split, recipe, sides, rest, self._team, link)
            if self.residency is None
            else self.residency.cache(sides)
        )
        return Pipeline(
            sides, link, engines, buffers, Executor(link, self._team), memory, cache, self._key(program, split, recipe)
        )


def opened_on_disk(arrays: list[FarArray], disk: Link, model: Device, card: Card) -> CudaDiskLink:
    """A link from a disk to a card; if it cannot be opened, the disk is closed."""
    try:
        return CudaDiskLink(arrays, disk, model, card)
    except BaseException:
        disk.close()
        raise


def make_cache(split: Split, recipe: Recipe, sides: list[Side], memory: Array, team: Team, link: Link) -> Cache:
    """The cache of the recipe, or one that keeps nothing."""
    if not split.cache:
        return Cache()
    side = sides[0]
    if recipe.cache == "partitions" and not (recipe.queue and len(sides) == 1):  # the queue keeps its own
        return PartitionCache(sides, memory, side.block)
    if recipe.cache in RANKINGS and len(sides) == 1:
        dtypes = (side.target_dtype, side.weight_dtype if side.weight_width else None)
        place = on_card(link) if isinstance(link, CudaLink) else HERE
        return ListCache([side.name], [side.lists], memory, dtypes, team, RANKINGS[recipe.cache], place=place)
    return Cache()
