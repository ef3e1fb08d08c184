"""One pass: runs one program on the edges and memory of a session, and collects its columns and figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isthmus.devices.cpu import RunParts
from isthmus.devices.run_clock import RunClock
from isthmus.engines.engine import BUFFERS
from isthmus.engines.resident import Resident
from isthmus.errors import BudgetError, StoreError
from isthmus.kernels.compile.compile_clock import COMPILING, clock, telling
from isthmus.link.link import Moved
from isthmus.link.profile.measurement import ignore
from isthmus.memory import peak_rss
from isthmus.messages import option
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Facts, NearEdges, Program, State
from isthmus.runtime.checkpoint.checkpoint import Checkpoint
from isthmus.runtime.compiled_program import compile_program
from isthmus.runtime.executor.resident_partitions import StayingPartitions
from isthmus.runtime.loop import Loop, may_rerun
from isthmus.runtime.near.budget import LEAST_BLOCKS, Split, split_for
from isthmus.runtime.near.near_memory import Pipeline
from isthmus.runtime.near.prefetch import prefetch
from isthmus.runtime.options import Watch
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace

if TYPE_CHECKING:
    from isthmus.runtime.session import Session


@dataclass
class Execution:
    """The outcome of a pass: its columns, figures, trace and times."""

    program: Program
    split: Split
    columns: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    seconds: dict[str, float] = field(default_factory=dict)
    edge_bytes: int = 0
    loaded: Moved = field(default_factory=Moved)  # before the first iteration, to have edges near
    back_bytes: int | None = None  # from a modelled device to its host
    # Uploaded to a GPU, beside edges: which vertices are active, where lists are, where caches put them.
    row_bytes: int | None = None


def recipe_for(program: Program, session: Session) -> Recipe:
    return session.device.recipe(session.settings.policy, session.settings.without, program)


def session_split(program: Program, session: Session) -> Split:
    """Split the session's budget for a program, or raise BudgetError."""
    graph, settings = session.graph.snapshot, session.settings
    if "in" in program.sides and not graph.has_in_edges:
        again = f"ingest it again without {option('in_edges', False)}"
        raise StoreError(f"{program.name} follows in-edges, and {graph} was stored without them; {again}")
    chosen = recipe_for(program, session)
    split = split_for(program, graph, chosen, session.device, settings.memory, session.team.size, settings.policy)
    if not split.resident and settings.far == "auto" and session.near_memory.device.is_near_already:
        if settings.memory is not None and settings.policy == "auto":
            instead = f"ingest it into a store, or raise {option('memory')}"
            raise BudgetError(f"{graph} is in memory already and does not fit the budget; {instead}")
        split.resident = True
    if chosen.order == "contribution" and graph.order != "hub" and not split.resident:
        instead = f"ingest it with {option('order', 'hub')}"
        split.notes.append(
            f"this graph is in natural order, so {chosen.name} cannot run hubs first, as published; {instead}"
        )
    return split


@dataclass
class Times:
    """When the parts of a pass ended, by the clock that stands still while kernels are compiled."""

    start: float = field(default_factory=lambda: clock())
    whole: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=lambda: COMPILING.seconds)
    loading: float = 0.0
    loaded: float = 0.0
    ready: float = 0.0
    finished: float = 0.0

    def seconds(self, trace: Trace) -> dict[str, float]:
        total, compiled = time.perf_counter() - self.whole, COMPILING.seconds - self.compiled
        load, kernels = self.loaded - self.loading, total - compiled - (clock() - self.start)
        return {
            "total": total,
            "compile": compiled,
            "set_up": self.ready - self.start - load + kernels,
            "load": load,
            "iterate": self.finished - self.ready,
            "wait": trace.total("wait"),
            "kernel": trace.total("kernel"),
        }


def execute(
    program: Program, session: Session, watch: Watch, say: Callable[[str], None] | None, saved: Checkpoint | None
) -> Execution:
    """Run a program. `say` gets messages about slow steps, such as kernels that have to be compiled."""
    with telling(program.name, say):
        times, near, recipe = Times(), session.near_memory, recipe_for(program, session)
        split = near.reuse_split(program, session_split(program, session), recipe)
        held = near.release(program, split, recipe)
        spare = max(0, split.budget - split.peak - held)
        if saved is not None:
            spare = saved.spare(split, session.settings.memory)
        run = Execution(program, split, trace=Trace(notes=[*session.notes, *split.notes]), loaded=near.count_anew())
        facts = facts_of(session, program, spare, recipe)
        state, frontier = program.begin(facts), near.device.frontier()
        frontier.start(state.start)
        if saved is not None:
            saved.begin(state, facts, frontier, run.trace, say or ignore)
        times.loading = clock()
        pipeline = near.prepare(program, split, recipe, say or ignore)
        times.loaded = clock()
        run.trace.notes += pipeline.link.notes
        run_clock = near.device.clock(pipeline.link, recipe, sum(len(side.partitions) for side in pipeline.sides))
        brought = bring(run, pipeline, recipe, state, run_clock)
        times.ready = clock()
        fresh = split.resident and (saved is None or saved.done == 0)
        if fresh and session.device.solves and solved(program, state, facts, pipeline, run.trace, watch):
            if saved is not None:
                saved.needless()
        else:
            module = compile_program(program, facts, state, pipeline.sides[0])
            times.ready = clock()
            least_again = run_clock.least_again(pipeline.sides[0])
            sides, link, cache = pipeline.sides, pipeline.link, pipeline.cache
            parts = RunParts(program, state, facts, frontier, sides, link, cache, module, recipe, least_again)
            with near.device.running(parts) as worker:
                given = (program, state, facts, frontier, pipeline, recipe, worker, session.team, run.trace, watch)
                loop = Loop(*given, run_clock, checkpoint=saved)
                loop.staying = stay(loop, split)
                loop.begin()
                loop.run()
                run.row_bytes = worker.uploaded_bytes
            count_brought(run.trace, brought)
        times.finished = clock()
        state.over = True  # no copies: they might not fit the budget
        run.columns = program.result(state, facts)
        run.edge_bytes = sum(side.lists.slots * side.entry_bytes for side in pipeline.sides)
        run.seconds = {**times.seconds(run.trace), **run_clock.figures(run.trace.total("modelled"))}
        run.figures, run.back_bytes = program.summary(run.columns, state), run_clock.back_bytes
        return run


def facts_of(session: Session, program: Program, spare: int, chosen: Recipe) -> Facts:
    graph = session.graph.snapshot
    lists = tuple(session.near_memory.lists(side) for side in program.sides)
    weight_dtype = graph.weight_dtype if program.reads_weights() else None
    return Facts(
        graph.vertices,
        lists[0],
        weight_dtype,
        graph.ids.number,
        graph.naturals,
        graph.directed,
        session.team,
        graph.out_degrees,
        lists,
        spare,
        chosen.best_first,
    )


def bring(run: Execution, pipeline: Pipeline, chosen: Recipe, state: State, run_clock: RunClock) -> dict[str, Moved]:
    """Transfers before the first iteration, by engine: all edges, where that counts, or prefetched pages."""
    found = run_clock.loaded(run.loaded) if "resident" in pipeline.engines else {}
    if "unified" in pipeline.engines and chosen.prefetch:
        found["unified"] = prefetch(pipeline, chosen, run.split, state)
    for moved in found.values():
        run_clock.brought(moved)
    return found


def count_brought(trace: Trace, brought: dict[str, Moved]) -> None:
    """Count transfers before the first iteration as part of it."""
    for name, moved in brought.items() if trace.iterations else ():
        use = trace.iterations[0].engines[name]
        use["bytes"], use["requests"] = use["bytes"] + moved.bytes, use["requests"] + moved.requests


def stay(loop: Loop, split: Split) -> StayingPartitions | None:
    """Scaph's partitions that stay near, in the memory behind the buffers; None if the recipe has none or there is no
    room.
    """
    pipeline, chosen = loop.pipeline, loop.recipe
    if not chosen.queue or split.resident or len(pipeline.sides) > 1:
        return None
    assert pipeline.memory is not None
    block = pipeline.sides[0].block
    rest = pipeline.memory[BUFFERS * max(split.edges // BUFFERS // block, LEAST_BLOCKS) * block :]
    staying = StayingPartitions(
        pipeline.sides[0],
        pipeline.link,
        rest,
        loop.worker,
        pipeline.engines["filter"],
        chosen.cache != "none",
        loop.clock,
        may_rerun(loop.program, pipeline.sides),
    )
    if staying.works:
        return staying
    loop.trace.notes.append("the budget leaves no room for two whole partitions, so none is kept near or run again")
    return None


def solved(program: Program, state: State, facts: Facts, pipeline: Pipeline, trace: Trace, watch: Watch) -> bool:
    """Solve with the program's own kernel for resident edges; False if it has none."""
    engine, side = pipeline.engines["resident"], pipeline.sides[0]
    assert isinstance(engine, Resident)
    since = clock()

    def seen(active: int, edges: int) -> None:
        nonlocal since
        now = clock()
        record = Iteration(len(trace), active, edges, now - since, kernel=now - since)
        record.engines["resident"]["tasks"] += 1
        trace.append(record)
        watch(record)
        since = now

    return program.solve(state, facts, NearEdges(side.lists, *engine.arrays[side.name]), seen)


def summary_of(run: Execution, session: Session) -> dict[str, Any]:
    """The machine-readable summary of one pass."""
    graph, split, trace = session.graph.snapshot, run.split, run.trace
    moved, requests = trace.total("bytes"), trace.total("requests")
    found: dict[str, Any] = {
        "algorithm": run.program.name,
        "graph": {
            "path": str(graph.path) if graph.path else None,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "arcs": graph.arcs,
            "edge_bytes": run.edge_bytes,
        },
        "device": session.device.name,
        "policy": "resident" if split.resident else session.settings.policy,
        "memory": {"budget": split.budget, "near_peak": split.peak, "rss_peak": peak_rss(), "split": split.as_dict()},
        "seconds": run.seconds,
        "iterations": len(trace),
        "load": {"bytes": run.loaded.bytes, "requests": run.loaded.requests},
        "transfer": {"bytes": moved, "requests": requests, "ratio": moved / run.edge_bytes if run.edge_bytes else 0.0},
        "engines": trace.engines(),
        "cache": {
            "hit_edges": trace.total("hit_edges"),
            "miss_edges": trace.total("active_edges") - trace.total("hit_edges"),
        },
        "notes": trace.notes,
        "result": run.figures,
    }
    if run.back_bytes is not None:
        found["transfer"]["back_bytes"] = run.back_bytes
    if run.row_bytes is not None:
        found["transfer"]["row_bytes"] = run.row_bytes
    return found
