"""A run from its options to its result: what it works with is set up, then the loop runs, then it is summed up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.engines.engine import Engine, Side
from isthmus.engines.resident import Resident
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.frontier import Frontier
from isthmus.graph.graph import Graph
from isthmus.link.link import Link, Moved
from isthmus.link.measure import ignore
from isthmus.link.model import ModelLink
from isthmus.memory import peak_rss
from isthmus.policies.recipes import Recipe, recipe
from isthmus.programs.program import Facts, NearEdges, Program, State
from isthmus.runtime.budget import Near
from isthmus.runtime.checkpoint import Checkpoints, checkpointed
from isthmus.runtime.compiled import compile_program
from isthmus.runtime.loop import Parts, may_rerun, run
from isthmus.runtime.modelled import Modelled
from isthmus.runtime.pipeline import Pipeline
from isthmus.runtime.result import Result
from isthmus.runtime.setup import (
    device_of,
    make_cache,
    make_engines,
    make_queue,
    make_side,
    name_of,
    near_memory,
    open_link,
    page_bytes,
    prefetch,
)
from isthmus.runtime.trace import Iteration, Trace
from isthmus.runtime.worker import Worker
from isthmus.schedule.plain import Plain
from isthmus.threads import Team

Watch = Callable[[Iteration], None]
Rehearse = Callable[[Program, Near], None]


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
        brought = bring(link, engines, chosen, sides, near, state, modelled)
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
            least_again = modelled.least_again(sides[0]) if modelled is not None and chosen.worthwhile else 0
            worker = Worker(module, program, state, team, least_again)
            cache = make_cache(near, chosen, program, sides, room_for_edges, team)
            parts = Parts(
                sides, link, engines, cache, chosen, Plain(), pipeline, worker, team, room, room_for_edges, link.profile, modelled
            )
            parts.checkpoint = saved
            if chosen.queue and not near.resident and may_rerun(program, parts):
                queue = make_queue(near, chosen, parts)
                stack.callback(queue.close)
                parts.queue = queue if queue.works else None
                if parts.queue is None:
                    trace.notes.append("the budget leaves no room for two whole partitions: none stays, and none runs again")
            run(program, state, facts, frontier, parts, trace, watch)
            if trace.iterations:
                for name, moved in brought.items():
                    use = trace.iterations[0].engines[name]
                    use["bytes"], use["requests"] = use["bytes"] + moved.bytes, use["requests"] + moved.requests
        finished = time.perf_counter()
        state.over = True  # no copies: they might not fit the budget
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


def bring(
    link: Link, engines: dict[str, Engine], chosen: Recipe, sides: list[Side], near: Near, state: State, modelled: Modelled | None
) -> dict[str, Moved]:
    """What crosses the link before the first iteration, by engine: all edges of a modelled device that holds them, or pages."""
    found: dict[str, Moved] = {}
    if isinstance(link, ModelLink) and "resident" in engines:
        found["resident"] = link.take()
    if "unified" in engines and chosen.prefetch:
        found["unified"] = prefetch(engines["unified"], chosen, sides, near, state)
    if modelled is not None:
        for moved in found.values():
            modelled.brought(moved)
    return found


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


def out_degrees(graph: Graph) -> Any:
    """Out-degrees, read piece by piece: the offsets of the other side may be all that fits beside them."""
    degrees = np.empty(graph.vertices, np.uint32)
    for first in range(0, graph.vertices, 1 << 20):
        last = min(first + (1 << 20), graph.vertices)
        degrees[first:last] = np.diff(graph.store.read("out.offsets", first, last + 1))
    return degrees


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
