"""What a run works with: device, near memory, link, sides, engines, buffers, cache and queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.cache.partition_cache import PartitionCache
from isthmus.cache.vertex_cache import VERTEX_BYTES, VertexCache
from isthmus.engines.engine import Buffer, Engine, Means, Side
from isthmus.engines.registry import engine as engine_named
from isthmus.engines.unified import Unified
from isthmus.errors import OptionError, StoreError
from isthmus.graph.files import BLOCK, aligned_empty
from isthmus.graph.graph import Graph
from isthmus.graph.partition import cut, partition_bytes
from isthmus.graph.store import Store
from isthmus.link.calibrate import profile_of
from isthmus.link.device import PREFIX, Device, builtin, find
from isthmus.link.hints import Hint
from isthmus.link.link import Extents, Link, Moved
from isthmus.link.measure import Say
from isthmus.link.model import ModelLink
from isthmus.link.ram import RamLink
from isthmus.link.ssd import SsdLink
from isthmus.memory import format_size
from isthmus.policies import grus
from isthmus.policies.combine import TOGETHER
from isthmus.policies.recipes import Recipe
from isthmus.programs.program import Program, State
from isthmus.runtime.budget import BUFFERS, LEAST_BLOCKS, Near, plan
from isthmus.runtime.loop import Parts
from isthmus.runtime.rounds import Queue
from isthmus.threads import Team

DEVICES = ("auto", "cpu")  # and model:NAME
LEAST_PAGES = 64
AT_ONCE = 256 << 20  # bytes of edges that are loaded by one call: a tenth of a second, so that Ctrl-C is heard


def device_of(text: str) -> Device | None:
    """The modelled device that is asked for; None: this machine."""
    if text.startswith(PREFIX):
        return find(text)
    if text not in DEVICES:
        raise OptionError(f"device: expected one of {', '.join(DEVICES)} or {PREFIX}NAME, got {text!r}")
    return None


def name_of(text: str, model: Device | None) -> str:
    """What a summary calls the device: a built-in one by the name it was asked for, another by its own."""
    if model is None:
        return "cpu"
    return text if text.removeprefix(PREFIX) in builtin() else f"{PREFIX}{model.name}"


def near_memory(
    program: Program, graph: Graph, chosen: Recipe, model: Device | None, memory: str | int | None, threads: int, policy: str
) -> Near:
    """How a budget is split; a modelled device's own memory is the default."""
    used_once = (program.max_iter == 1 and not chosen.pages) or (chosen.cache == "vertices" and program.once)
    keeps = chosen.keeps and not program.hungry and not used_once
    index_bytes = VERTEX_BYTES if chosen.cache == "vertices" else 0
    if model is None:
        return plan(graph, program, memory, threads, policy, keeps, None, index_bytes, LEAST_PAGES * BLOCK if chosen.pages else 0)
    arrays = len(program.sides) * (2 if program.reads_weights() and graph.weighted else 1)
    pages = arrays * model.managed.page_bytes if chosen.pages else 0
    near = plan(graph, program, memory, threads, policy, keeps, model.near.bytes, index_bytes, pages)
    if pages and not near.resident:  # the last page of every array is a whole one, too
        near.cache += min(near.budget - near.peak, pages)
    if keeps and not near.resident and near.cache <= max(pages, index_bytes * graph.vertices):
        near.notes.append("the budget leaves no room to keep edges near")
    if near.budget > model.near.bytes:
        near.notes.append(f"the budget is more than the {format_size(model.near.bytes)} of {model.name}")
    return near


def page_bytes(near: Near, chosen: Recipe) -> int:
    """Near memory for the pages of a modelled link."""
    return near.cache if chosen.pages and not near.resident else 0


def open_link(
    graph: Graph, program: Program, verify: bool, far: str, may_measure: bool, say: Say, model: Device | None, page_bytes: int,
    hint: Hint,
) -> Link:
    """The link to the sections a program reads: targets, and weights where it does, of each side in turn.

    A disk nobody has measured yet is measured now if need be. Behind a modelled link they lie in host memory.
    """
    sides = [name if graph.directed else "out" for name in program.sides]
    kinds = ("targets", "weights") if program.reads_weights() and graph.weighted else ("targets",)
    names = [f"{side}.{kind}" for side in sides for kind in kinds]
    if model is not None:
        read = graph.store.read_checked if verify else graph.store.read
        return ModelLink([np.ascontiguousarray(read(name)) for name in names], model, page_bytes, hint)
    if isinstance(graph.store, Store) and far == "auto":
        return SsdLink(graph.store, names, profile_of(graph.store, may_measure, say), verify)
    return RamLink([np.asarray(graph.store.read(name)) for name in names])


def make_side(graph: Graph, program: Program, name: str, index: int, near: Near, link: Link, chosen: Recipe, verify: bool) -> Side:
    stored = name if graph.directed else "out"
    sections = graph.store.manifest.sections
    weighted = program.reads_weights() and graph.weighted
    read = graph.store.read_checked if verify else graph.store.read
    offsets = np.ascontiguousarray(read(f"{stored}.offsets"), np.int64)
    if offsets[0] != 0 or offsets[-1] != graph.arcs or (offsets[1:] < offsets[:-1]).any():
        raise StoreError(f"{graph.store}: section {stored}.offsets does not ascend from 0 to {graph.arcs}; run isthmus verify")
    target = np.dtype(sections[f"{stored}.targets"].dtype)
    weight = np.dtype(sections[f"{stored}.weights"].dtype) if weighted else None
    entry = target.itemsize + (weight.itemsize if weight else 0)
    most = near.edges // BUFFERS
    if chosen.combine == "neighbours":
        most = most // TOGETHER - 2 * BLOCK  # so that a buffer holds as many, wherever their blocks begin
    size = partition_bytes(graph.arcs * entry, most)
    return Side(
        stored, offsets, cut(offsets, entry, size), target.itemsize, weight.itemsize if weight else 0, target, weight,
        index * (2 if weighted else 1), link.profile.block, link.shares,
    )  # fmt: skip


def make_engines(
    near: Near, chosen: Recipe, sides: list[Side], link: Link, graph: Graph, threads: int
) -> tuple[dict[str, Engine], list[Buffer], Any]:
    """Either all edges near, or the engines that the policy may choose, buffers to bring edges to, and the memory these lie in.

    The buffers come first in that memory; what is behind them may keep edges near.
    """
    means = Means(link, sides, threads, np.empty(0, np.uint8), lambda side: load(graph, side, link), chosen.merge, chosen.hint.evicts)
    if near.resident:
        return {"resident": engine_named("resident").make(means)}, [], None
    block = link.profile.block
    size = buffer_bytes(near, block)
    entry = (sides[0].width, sides[0].weight_width)
    memory = aligned_empty(BUFFERS * size + near.cache, np.uint8)  # not touched before it is used
    buffers = [Buffer(memory[k * size : (k + 1) * size], entry, block) for k in range(BUFFERS)]
    means = replace(means, memory=memory[BUFFERS * size :])
    engines = {name: engine_named(name).make(means) for name in chosen.policy.engines}
    return engines, buffers, memory


def buffer_bytes(near: Near, block: int) -> int:
    return max(near.edges // BUFFERS // block, LEAST_BLOCKS) * block


def load(graph: Graph, side: Side, link: Link) -> tuple[Any, Any]:
    """A side's targets and weights, whole."""
    arrays: list[Any] = [None, None]
    for index, what in enumerate(("targets", "weights") if side.weight_width else ("targets",)):
        name = f"{side.name}.{what}"
        if isinstance(link, ModelLink):
            arrays[index] = link.whole(side.first_section + index).view(graph.store.manifest.sections[name].dtype)
            continue
        if not isinstance(graph.store, Store):
            arrays[index] = graph.store.read(name)
            continue
        section = graph.store.manifest.sections[name]
        array = aligned_empty(section.blocks * 4096, np.uint8)
        for at in range(0, array.size if section.bytes else 0, AT_ONCE):
            where = np.array([at])
            link.move(Extents(np.array([side.first_section + index]), where, np.array([min(AT_ONCE, array.size - at)]), where), array, 1)
        arrays[index] = array[: section.bytes].view(section.dtype)
    return arrays[0], arrays[1]


def make_cache(near: Near, chosen: Recipe, program: Program, sides: list[Side], memory: Any, team: Team) -> Cache:
    """What keeps edges near besides the buffers."""
    if near.resident or not near.cache:
        return Cache()
    block = sides[0].block
    rest = memory[BUFFERS * buffer_bytes(near, block) :]
    if chosen.cache == "partitions" and not chosen.queue:
        return PartitionCache(sides, rest, block)
    if chosen.cache == "vertices" and len(sides) == 1:
        return VertexCache(sides[0], rest, team)
    return Cache()


def make_queue(near: Near, chosen: Recipe, parts: Parts) -> Queue:
    """Whole partitions lie behind the buffers."""
    assert parts.memory is not None
    rest = parts.memory[BUFFERS * buffer_bytes(near, parts.sides[0].block) :]
    stays = chosen.cache != "none"
    return Queue(parts.sides[0], parts.link, rest, parts.worker, parts.engines["filter"], stays, parts.modelled)


def prefetch(engine: Engine, chosen: Recipe, sides: list[Side], near: Near, state: State) -> Moved:
    """Fill pages before the start: with everything that a hint says is to come, or with Grus's region of every side."""
    assert isinstance(engine, Unified)
    moved = Moved()
    for side in sides:
        if chosen.hint.prefetches:
            moved.add(engine.prefetch(side, 0, int(side.offsets[-1])))
            continue
        parts, searches = side.partitions, state.start is not None
        sizes = np.array([near.state + near.frontier, near.offsets, int(side.offsets[-1]) * side.entry_bytes])
        tau = grus.TAU_SEARCH if searches else grus.TAU_EVERYONE
        room = int(grus.prefetched(sizes, near.peak - near.edges, tau)[2]) // len(sides)
        source = None
        if searches and state.start is not None and state.start.size and len(parts):
            source = min(int(np.searchsorted(parts.last, state.start[0], "right")), len(parts) - 1)
        chosen_parts = np.flatnonzero(grus.region(parts.arcs * side.entry_bytes, room, source))
        if chosen_parts.size:
            moved.add(engine.prefetch(side, int(parts.cuts[chosen_parts[0]]), int(parts.cuts[chosen_parts[-1] + 1])))
    return moved
