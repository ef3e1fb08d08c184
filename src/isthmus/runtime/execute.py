"""Setting a run up and taking it down: budget, link, engines, kernels, then the loop, then the result."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.cache.partition_cache import PartitionCache
from isthmus.cache.vertex_cache import VERTEX_BYTES, VertexCache
from isthmus.engines.compaction import Compaction
from isthmus.engines.engine import Buffer, Engine, Side
from isthmus.engines.filter import Filter
from isthmus.engines.resident import Resident
from isthmus.engines.unified import Unified
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.errors import BudgetError, OptionError, ProgramError, StoreError
from isthmus.frontier import Frontier
from isthmus.graph.files import BLOCK, aligned_empty
from isthmus.graph.graph import Graph
from isthmus.graph.partition import cut, partition_bytes
from isthmus.graph.store import Store
from isthmus.kernels import skeleton
from isthmus.link.calibrate import cache_folder, profile_of
from isthmus.link.device import PREFIX, Device, builtin, find
from isthmus.link.hints import Hint
from isthmus.link.link import Extents, Link, Moved
from isthmus.link.measure import Say, ignore
from isthmus.link.model import ModelLink
from isthmus.link.pages import Pages
from isthmus.link.ram import RamLink
from isthmus.link.ssd import SsdLink
from isthmus.memory import format_size, peak_rss
from isthmus.policies import grus
from isthmus.policies.hytgraph import TOGETHER
from isthmus.policies.recipes import Recipe, recipe
from isthmus.programs.program import Facts, NearEdges, Program, State
from isthmus.runtime.budget import BUFFERS, LEAST_BLOCKS, Near, plan
from isthmus.runtime.checkpoint import Checkpoints, checkpointed
from isthmus.runtime.loop import Parts, may_rerun, run
from isthmus.runtime.modelled import Modelled
from isthmus.runtime.pipeline import Pipeline
from isthmus.runtime.result import Result
from isthmus.runtime.rounds import Queue
from isthmus.runtime.trace import Iteration, Trace
from isthmus.runtime.worker import Worker
from isthmus.schedule.plain import Plain
from isthmus.threads import Team

Watch = Callable[[Iteration], None]
Rehearse = Callable[[Program, Near], None]
DEVICES = ("auto", "cpu")  # and model:NAME
LEAST_PAGES = 64
AT_ONCE = 256 << 20  # bytes of edges that are loaded by one call: a tenth of a second, so that Ctrl-C is heard


class Rehearsed(Exception):
    """A run was not to go further than its plan."""


def quiet(iteration: Iteration) -> None:
    pass


@checkpointed
def execute(
    program: Program, graph: Graph, *, device: str = "auto", memory: str | int | None = None, policy: str = "auto",
    threads: int | None = None, verify: bool = False, watch: Watch = quiet, say: Callable[[str], None] | None = None,
    far: str = "auto", rehearse: Rehearse | None = None, without: tuple[str, ...] = (), checkpoint: Checkpoints | None = None,
) -> Result:  # fmt: skip
    """Run `program` on `graph`. These options change speed, never answers.

    `far` says where edges wait: "auto", or "ram" to copy them out of memory as if it were far (for tests). `rehearse` is
    told what would be done, and Rehearsed is raised instead of doing it. `without` switches parts of a recipe off. As
    `checkpoint` callers give a folder, see `checkpointed`.
    """
    model = device_of(device)
    if far not in ("auto", "ram"):
        raise OptionError(f"far: expected auto or ram, got {far!r}")
    chosen = recipe(policy, without, 0 if model is None else len(program.sides), program.levels)
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        team = Team(threads)
        stack.callback(team.close)
        check_sides(program, graph)
        near = near_memory(program, graph, chosen, model, memory, team.size, policy)
        if graph.path is None and not near.resident and far == "auto" and model is None:
            if memory is not None and policy == "auto":
                raise BudgetError(f"{graph} is in memory already and does not fit the budget; ingest it into a store, or raise --memory")
            near.resident = True
        if rehearse is not None:
            rehearse(program, near)
            raise Rehearsed
        saved = None if checkpoint is None else checkpoint.next_pass(program)
        spare = max(0, near.budget - near.peak) if saved is None else saved.spare(near, memory)
        trace = Trace(notes=list(near.notes))
        link = open_link(graph, program, verify, far, not near.resident, say or ignore, model, page_bytes(near, chosen), chosen.hint)
        stack.callback(link.close)
        sides = [make_side(graph, program, name, index, near, link, chosen, verify) for index, name in enumerate(program.sides)]
        facts = Facts(
            graph.vertices, sides[0].offsets, sides[0].weight_dtype, graph.ids.number,
            lambda: graph.store.read("order.to_natural") if graph.order == "hub" else None, graph.directed, team,
            lambda: out_degrees(graph), tuple(side.offsets for side in sides), spare,
        )  # fmt: skip
        frontier = Frontier(graph.vertices, team.size)
        state = program.begin(facts)
        frontier.start(state.start)
        if saved is not None:
            saved.begin(state, facts, frontier, trace, say or ignore)
        loading = time.perf_counter()
        engines, buffers, room_for_edges = make_engines(near, chosen, sides, link, graph, team.size)
        for engine in engines.values():
            stack.callback(engine.close)
        ready = time.perf_counter()
        trace.notes += link.notes
        modelled = None
        if isinstance(link, ModelLink):
            modelled = Modelled(link, chosen, graph.vertices, sum(len(side.partitions) for side in sides))
            modelled.brought(link.take())
        prefetched = prefetch(engines["unified"], chosen, sides, near, state) if "unified" in engines and chosen.prefetch else None
        if modelled is not None:
            modelled.brought(prefetched)
        fresh = modelled is None and (saved is None or saved.done == 0)
        if near.resident and fresh and solved(program, state, facts, sides[0], engines["resident"], trace, watch):
            if saved is not None:
                saved.needless()
        else:
            module = compile_program(program, facts, state, sides[0], say)
            ready = time.perf_counter()
            pipeline = Pipeline(link, buffers)
            stack.callback(pipeline.close)
            room = min((buffer.bytes.size for buffer in buffers), default=0)
            worker = Worker(module, program, state, team)
            cache = make_cache(near, chosen, program, sides, room_for_edges, team)
            parts = Parts(
                sides, link, engines, cache, chosen, Plain(), pipeline, worker, team, room, room_for_edges, link.profile, modelled
            )
            parts.checkpoint = saved
            if chosen.queue and not near.resident and may_rerun(program, parts):
                queue = make_queue(near, chosen, parts)
                stack.callback(queue.close)
                parts.queue = queue if queue.works else None
            run(program, state, facts, frontier, parts, trace, watch)
            if prefetched is not None and prefetched.requests and trace.iterations:
                use = trace.iterations[0].engines["unified"]
                use["bytes"], use["requests"] = use["bytes"] + prefetched.bytes, use["requests"] + prefetched.requests
        finished = time.perf_counter()
        columns = program.result(state, facts)
        seconds = {
            "total": time.perf_counter() - start,
            "set_up": loading - start,
            "load": ready - loading,
            "iterate": finished - ready,
            "wait": trace.total("wait"),
            "kernel": trace.total("kernel"),
        }
        if modelled is not None:
            seconds["modelled"] = modelled.set_up + sum(iteration.modelled or 0.0 for iteration in trace)
        summary = summarise(program, graph, name_of(device, model), policy, near, trace, seconds, sides)
        if isinstance(link, ModelLink):
            summary["transfer"]["back_bytes"] = link.total.back_bytes
        summary["result"] = program.summary(columns, state)
        return Result(program.name, graph, columns, trace, summary)


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
    keeps = chosen.keeps and not program.hungry and not (chosen.cache == "vertices" and program.once)
    index_bytes = VERTEX_BYTES if chosen.cache == "vertices" else 0
    if model is None:
        return plan(graph, program, memory, threads, policy, keeps, None, index_bytes)
    near = plan(graph, program, memory, threads, policy, keeps, model.near.bytes, index_bytes)
    if chosen.pages and not near.resident:  # the last page of every array is a whole one, too
        arrays = len(program.sides) * (2 if program.reads_weights() and graph.weighted else 1)
        near.cache += min(near.budget - near.peak, arrays * model.managed.page_bytes)
    if near.budget > model.near.bytes:
        near.notes.append(f"the budget is more than the {format_size(model.near.bytes)} of {model.name}")
    return near


def page_bytes(near: Near, chosen: Recipe) -> int:
    """Near memory for the pages of a modelled link."""
    return max(near.cache, LEAST_PAGES * BLOCK) if chosen.pages and not near.resident else 0


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


def solved(program: Program, state: State, facts: Facts, side: Side, engine: Engine, trace: Trace, watch: Watch) -> bool:
    """Let the program use a kernel of its own, if it has one for edges that are all near."""
    assert isinstance(engine, Resident)
    clock = time.perf_counter()

    def seen(active: int, edges: int) -> None:
        nonlocal clock
        now = time.perf_counter()
        record = Iteration(len(trace), active, edges, now - clock, kernel=now - clock)
        record.engines["resident"]["tasks"] += 1
        trace.append(record)
        watch(record)
        clock = now

    return program.solve(state, facts, NearEdges(side.offsets, *engine.arrays[side.name]), seen)


def check_sides(program: Program, graph: Graph) -> None:
    if "in" in program.sides and not graph.has_in_edges:
        raise StoreError(f"{program.name} follows in-edges, and {graph} was stored without them; ingest it again without --no-in-edges")


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


def out_degrees(graph: Graph) -> Any:
    """Out-degrees, read piece by piece: the offsets of the other side may be all that fits beside them."""
    degrees = np.empty(graph.vertices, np.uint32)
    for first in range(0, graph.vertices, 1 << 20):
        last = min(first + (1 << 20), graph.vertices)
        degrees[first:last] = np.diff(graph.store.read("out.offsets", first, last + 1))
    return degrees


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


def make_engines(
    near: Near, chosen: Recipe, sides: list[Side], link: Link, graph: Graph, threads: int
) -> tuple[dict[str, Engine], list[Buffer], Any]:
    """Either all edges near, or the engines that bring them, buffers to bring them to, and the memory these lie in.

    The buffers come first in that memory; what is behind them may keep edges near.
    """
    if near.resident:
        return {"resident": Resident({side.name: load(graph, side, link) for side in sides})}, [], None
    block = link.profile.block
    size = buffer_bytes(near, block)
    entry = (sides[0].width, sides[0].weight_width)
    memory = aligned_empty(BUFFERS * size + near.cache, np.uint8)  # not touched before it is used
    buffers = [Buffer(memory[k * size : (k + 1) * size], entry, block) for k in range(BUFFERS)]
    gap = link.profile.break_even_gap if chosen.merge else 0
    engines: dict[str, Engine] = {
        "filter": Filter(), "zero_copy": ZeroCopy(gap), "compaction": Compaction(threads, link.profile.break_even_gap),
    }  # fmt: skip
    if chosen.pages and isinstance(link, ModelLink):
        engines["unified"] = Unified(link)
    elif chosen.pages:
        widths = [width for side in sides for width in (side.width, side.weight_width) if width]
        pages = memory[BUFFERS * size :] if near.cache >= LEAST_PAGES * block else aligned_empty(LEAST_PAGES * block, np.uint8)
        engines["unified"] = Unified(Pages(link, [graph.arcs * width for width in widths], pages, chosen.hint.evicts))
    return engines, buffers, memory


def buffer_bytes(near: Near, block: int) -> int:
    return max(near.edges // BUFFERS // block, LEAST_BLOCKS) * block


def make_queue(near: Near, chosen: Recipe, parts: Parts) -> Queue:
    """Whole partitions lie behind the buffers."""
    assert parts.memory is not None
    rest = parts.memory[BUFFERS * buffer_bytes(near, parts.sides[0].block) :]
    stays = chosen.cache != "none"
    return Queue(parts.sides[0], parts.link, rest, parts.worker, parts.engines["filter"], stays, parts.modelled)


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


def compile_program(program: Program, facts: Facts, state: Any, side: Side, say: Callable[[str], None] | None) -> Any:
    """The program's loops, compiled or found on disk; says so when it has to compile."""
    weighted = side.weight_width > 0
    module = skeleton.build(program.name, program.functions(facts), weighted, program.pulls, program.touched, kernels_folder())
    if say is not None and not skeleton.is_compiled(module.push_rows):
        say(f"compiling {program.name} (once; kept in {kernels_folder()})")
    nothing = np.empty(0, np.int64)
    weights = np.empty(0, side.weight_dtype if weighted else np.int32)
    none = np.zeros(1, np.int64)
    marks, queue = np.empty(0, np.uint8), np.empty(0, np.uint32)
    targets = np.empty(0, side.target_dtype)
    own = program.loops(state) or ()
    try:
        for loop in [*(getattr(module, name) for name in ("push_rows", "seek_rows") if hasattr(module, name)), *own[:1]]:
            loop(
                np.empty(0, np.uint32), nothing, nothing, nothing, none[0], none[0], none[0], facts.offsets, targets, weights,
                state.arrays, state.params, marks, queue, none[0],
            )  # fmt: skip
        for loop in [*(getattr(module, name) for name in ("push_range", "seek_range") if hasattr(module, name)), *own[1:]]:
            loop(
                none[0], none[0], none[0], none[0], none[0], none[0], marks, False, facts.offsets, targets, weights,
                state.arrays, state.params, marks, queue, none[0],
            )  # fmt: skip
    except skeleton.Failure as error:
        raise ProgramError(program.explain(skeleton.reason(error))) from error
    return module


def kernels_folder() -> Path:
    return cache_folder() / "kernels"


def summarise(
    program: Program, graph: Graph, device: str, policy: str, near: Near, trace: Trace, seconds: dict[str, float], sides: list[Side]
) -> dict[str, Any]:
    """The machine-readable summary that DESIGN fixes."""
    edge_bytes = sum(graph.arcs * side.entry_bytes for side in sides)
    moved, requests = trace.total("bytes"), trace.total("requests")
    return {
        "algorithm": program.name,
        "graph": {
            "path": str(graph.path) if graph.path else None, "vertices": graph.vertices, "edges": graph.edges, "arcs": graph.arcs,
            "edge_bytes": edge_bytes,
        },
        "device": device,
        "policy": "resident" if near.resident else policy,
        "memory": {"budget": near.budget, "near_peak": near.peak, "rss_peak": peak_rss(), "split": near.as_dict()},
        "seconds": seconds,
        "iterations": len(trace),
        "transfer": {"bytes": moved, "requests": requests, "ratio": moved / edge_bytes if edge_bytes else 0.0},
        "engines": trace.engines(),
        "cache": {"hit_edges": trace.total("hit_edges"), "miss_edges": trace.total("active_edges") - trace.total("hit_edges")},
        "notes": trace.notes,
    }
