"""The loop: one iteration after another until nothing is active.

Cache, activity, policy, combine, schedule, engine, kernel, trace: each step is a part with an interface of its
own; this file only joins them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.engines.engine import Delivery, Engine, Rows, Side, Task
from isthmus.frontier import Activity, Frontier
from isthmus.link.link import Array, Link, Profile
from isthmus.policies.combine import combined
from isthmus.policies.correction import Observation, corrected
from isthmus.policies.policy import CACHE, FILTER, NAMES, NOTHING
from isthmus.policies.recipes import Recipe
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.checkpoint import Checkpoint
from isthmus.runtime.modelled import Modelled
from isthmus.runtime.pipeline import Pipeline
from isthmus.runtime.rounds import Queue
from isthmus.runtime.settle import Settling, worth_it
from isthmus.runtime.trace import Iteration, Trace
from isthmus.runtime.worker import ALONE, NEVER, Worker
from isthmus.schedule import contribution
from isthmus.schedule.plain import Schedule
from isthmus.threads import Team


@dataclass
class Parts:
    """What the loop joins."""

    sides: list[Side]
    link: Link
    engines: dict[str, Engine]
    cache: Cache
    recipe: Recipe
    schedule: Schedule
    pipeline: Pipeline
    worker: Worker
    team: Team
    room: int  # bytes of a buffer
    memory: Array | None  # what the buffers lie in, and more that may keep edges near
    profile: Profile  # the link's, corrected by what was seen
    modelled: Modelled | None = None  # on a modelled device
    queue: Queue | None = None  # runs whole partitions, where the recipe has one
    activity: Activity | None = None  # of the side whose partitions are queued
    checkpoint: Checkpoint | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)  # for records, which several members write


def run(
    program: Program, state: State, facts: Facts, frontier: Frontier, parts: Parts, trace: Trace,
    watch: Callable[[Iteration], None],
) -> None:  # fmt: skip
    """Iterate until the frontier is empty, the program has enough, or `max_iter` is reached."""
    first = number = parts.checkpoint.done if parts.checkpoint is not None else 0
    ahead = program.everyone and parts.recipe.ahead and parts.recipe.cache != "vertices"  # which says late what it lacks
    rounds = parts.recipe.rounds if may_rerun(program, parts) else NEVER
    recompute = parts.recipe.recompute and may_rerun(program, parts) and not program.levels and not rounds
    frontier.loose = bool(rounds) or recompute or parts.queue is not None
    if rounds or parts.queue is not None or not parts.recipe.turns:
        program.unordered(state)
    while frontier.any() and (program.max_iter is None or number < program.max_iter):
        record = Iteration(number, frontier.count)
        start = time.perf_counter()
        program.before(state, frontier, facts)
        parts.worker.choose_loops()
        sides = [side for name, side in zip(program.sides, parts.sides, strict=True) if name in program.following(state)]
        misses = serve(frontier, sides, parts, record)
        deciding = time.perf_counter()
        held, tasks, edges = plan(misses, sides, parts, record)
        tasks = ordered(program, state, misses, tasks, parts)
        record.decide += time.perf_counter() - deciding
        last = program.max_iter is not None and number + 1 == program.max_iter
        deliveries = itertools.chain(held, parts.pipeline.fetch(tasks, parts.schedule, misses, edges, ahead and not last and number > 0))
        again = once_more(parts) if recompute and link_bound(trace, edges) else worthwhile(rounds, parts)
        waited, worked = parts.worker.relax(deliveries, misses, partial(done, parts, record, misses), edges <= ALONE, again)
        record.wait += waited
        record.kernel += worked
        if parts.queue is not None and parts.activity is not None:
            parts.queue.run(misses, parts.activity, record)
        for _ in range(again.get("cache", 0)):
            if not serve_again(frontier, parts, record):
                break
        record.modelled = parts.modelled.iteration() if parts.modelled is not None else None
        number += 1
        more = program.after(state, frontier, facts, number)
        if not program.everyone:
            frontier.advance()
        record.seconds = time.perf_counter() - start
        trace.append(record)
        watch(record)
        if not more:
            break
        learn(parts, record)
        if parts.checkpoint is not None and parts.checkpoint.due():
            parts.checkpoint.write(number)
        if may_settle(program, parts) and worth_it(trace, parts.sides[0]):
            settle(program, state, frontier, parts, trace, watch)
            number = first + len(trace)
    parts.pipeline.drop_ahead()
    for delivery in parts.pipeline.unused:  # moved all the same
        trace.iterations[-1].delivered(delivery)


def once_more(parts: Parts) -> Mapping[str, int]:
    """One further round for deliveries that hold whole lists of many vertices besides the active ones."""
    return {name: 1 for name, engine in parts.engines.items() if engine.rereads_when_link_bound}


def worthwhile(rounds: Mapping[str, int], parts: Parts) -> Mapping[str, int]:
    """Further rounds by engine; only one, where the recipe looks at the device and that has more to do than the link."""
    device_bound = parts.recipe.worthwhile and parts.modelled is not None and not parts.modelled.link_bound
    return dict.fromkeys(rounds, 1) if device_bound else rounds


def link_bound(trace: Trace, edges: int) -> bool:
    """Whether the last iteration waited for the link longer than it would have worked on this one's active edges."""
    if not trace.iterations:
        return False
    last = trace.iterations[-1]
    return last.wait * last.active_edges > last.kernel * edges


def serve(frontier: Frontier, sides: list[Side], parts: Parts, record: Iteration) -> Frontier:
    """Work on active vertices whose edges the cache holds; returns the others."""
    start = time.perf_counter()
    misses, hits = parts.cache.serve(frontier, sides[0])
    record.decide += time.perf_counter() - start
    first = next(hits, None)
    if first is not None:
        deliveries = counted(itertools.chain([first], hits), record)
        waited, worked = parts.worker.relax(deliveries, frontier, partial(done, parts, record, frontier), False)
        record.wait += waited
        record.kernel += worked
    start = time.perf_counter()
    parts.cache.refresh(frontier)
    record.decide += time.perf_counter() - start
    return misses


def serve_again(frontier: Frontier, parts: Parts, record: Iteration) -> bool:
    """Follow the vertices that the cache holds and that were marked meanwhile once more, without a transfer; False: there are none."""
    found = False
    for delivery in parts.cache.everything():
        marked = parts.worker.marked(delivery, frontier)
        if marked is None:
            continue
        found, delivery.edges = True, marked
        deliveries = counted(iter([delivery]), record)
        waited, worked = parts.worker.relax(deliveries, frontier, partial(done, parts, record, frontier), False)
        record.wait += waited
        record.kernel += worked
    return found


def counted(hits: Iterator[Delivery], record: Iteration) -> Iterator[Delivery]:
    """Deliveries out of the cache, counted as they are taken."""
    for delivery in hits:
        edges = delivery.edges
        assert isinstance(edges, Rows)
        count = int(edges.lengths.sum())
        record.hit_edges += count
        record.active_edges += count
        record.engines["cache"]["tasks"] += 1
        yield delivery


def learn(parts: Parts, record: Iteration) -> None:
    """Correct the link's rates by what this iteration saw."""
    if not parts.recipe.correct:
        return
    moved = {"bandwidth": 0, "request_rate": 0}
    for name, engine in parts.engines.items():
        if engine.observes in moved and name in record.engines:
            moved[engine.observes] += record.engines[name]["bytes"]
    seen = Observation(
        moved["bandwidth"], moved["request_rate"] // parts.link.profile.block, record.wait + record.kernel, record.wait
    )
    parts.profile = corrected(parts.link.profile, parts.profile, seen)


def may_rerun(program: Program, parts: Parts) -> bool:
    return program.reruns and program.order_free and program.max_iter is None and len(parts.sides) == 1


def may_settle(program: Program, parts: Parts) -> bool:
    return parts.recipe.settle and program.settles != 0 and program.max_iter is None and len(parts.sides) == 1 and parts.memory is not None


def settle(program: Program, state: State, frontier: Frontier, parts: Parts, trace: Trace, watch: Callable[[Iteration], None]) -> None:
    """Leave steps for standstills, as long as that pays."""
    assert parts.memory is not None
    parts.cache.forget()
    loop = parts.worker.settle
    program.unordered(state)
    settling = Settling(parts.sides[0], parts.link, parts.memory, state, program.settles, loop, parts.team, parts.checkpoint)
    settling.run(frontier, trace, watch)


def done(parts: Parts, record: Iteration, frontier: Frontier, delivery: Delivery) -> None:
    """A delivery has been worked on: maybe keep some of it, free its buffer, count it."""
    parts.cache.keep(delivery)
    parts.pipeline.give_back(delivery)
    with parts.lock:
        record.delivered(delivery)
        if parts.modelled is not None:
            parts.modelled.worked(delivery, frontier)


def plan(frontier: Frontier, sides: list[Side], parts: Parts, record: Iteration) -> tuple[list[Delivery], list[Task], int]:
    """Activity to choices to tasks; also what partitions the cache holds, and the number of active edges."""
    held: list[Delivery] = []
    tasks: list[Task] = []
    for side in sides:
        if "resident" in parts.engines:
            everything = np.arange(len(side.partitions))
            record.active_edges += frontier.edges(side.offsets, parts.team)
            fresh = parts.engines["resident"].tasks(side, everything, parts.room)
        else:
            activity = activity_of(frontier, side, parts.team)
            near, others = parts.cache.held(side, activity, frontier)
            record.active_edges += int(activity.edges.sum())
            record.hit_edges += int(activity.edges.sum() - others.edges.sum()) if near else 0
            held += near
            parts.activity = activity
            fresh = combine(side, activity, others, parts, record)
        for task in fresh + [delivery.task for delivery in held if delivery.task.side is side]:
            record.engines[task.engine.name]["tasks"] += 1
        tasks += fresh
    return held, tasks, record.active_edges


def activity_of(frontier: Frontier, side: Side, team: Team) -> Activity:
    """Activity of a side; that of everyone is the same in every iteration."""
    if frontier.everyone and side.everyone is not None:
        return side.everyone
    activity = frontier.activity(side.partitions, side.offsets, side.width, side.weight_width, side.block, team, side.shares)
    if frontier.everyone:
        side.everyone = activity
    return activity


def combine(side: Side, activity: Activity, others: Activity, parts: Parts, record: Iteration) -> list[Task]:
    """Ask the policy about those that are not held, and let each engine merge its partitions into few tasks."""
    profile = parts.profile
    if parts.recipe.worthwhile and parts.modelled is not None:
        profile = parts.modelled.profile(parts.room, others, side.entry_bytes)
    choice = parts.recipe.policy.choose(replace(others, last_edges=side.last_edges), profile, side.entry_bytes)
    side.last_edges = activity.edges
    if parts.queue is not None:
        choice = parts.queue.take(choice, activity)
    choice = np.where((activity.edges > 0) & (others.edges == 0), CACHE, choice)
    record.chosen(choice)
    for kind in np.unique(choice[choice != NOTHING]).tolist():
        record.partitions[NAMES[kind]] = record.partitions.get(NAMES[kind], 0) + int(np.count_nonzero(choice == kind))
    choice[choice == CACHE] = NOTHING
    if parts.queue is not None:
        choice[choice == FILTER] = NOTHING
    groups = combined(parts.recipe.combine, choice)
    tasks: list[Task] = []
    for kind, begin, end in zip(groups.choices.tolist(), groups.cuts[:-1].tolist(), groups.cuts[1:].tolist(), strict=True):
        tasks += parts.engines[NAMES[kind]].tasks(side, groups.partitions[begin:end], parts.room)
    if len(tasks) == 1 and tasks[0].partitions.size == activity.active.size:
        tasks[0].whole = True
    return tasks


def ordered(program: Program, state: State, frontier: Frontier, tasks: list[Task], parts: Parts) -> list[Task]:
    """Tasks by what they contribute, where the recipe has it so and the program can tell."""
    known = program.contribution(state) if parts.recipe.order == "contribution" and len(tasks) > 1 else None
    if known is None:
        return tasks
    by_side = {
        side.name: contribution.priorities(frontier, side.partitions, side.offsets, *known, parts.team)
        for side in {task.side.name: task.side for task in tasks}.values()
    }
    stages = np.array([task.engine.stage for task in tasks])
    priorities = np.array([by_side[task.side.name][task.partitions].sum() for task in tasks])
    return [tasks[k] for k in contribution.order(stages, priorities).tolist()]
