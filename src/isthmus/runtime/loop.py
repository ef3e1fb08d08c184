"""The loop: one iteration after another until nothing is active.

Cache, activity, policy, combine, schedule, engine, kernel, trace: each step is a part with an interface of its
own; this file only joins them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from isthmus.cache.cache import Cache
from isthmus.engines.engine import Delivery, Engine, Side, Task
from isthmus.frontier import Activity, Frontier
from isthmus.link.link import Array, Link
from isthmus.policies.policy import NAMES, NOTHING, Policy
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.pipeline import Pipeline
from isthmus.runtime.settle import Settling, worth_it
from isthmus.runtime.trace import Iteration, Trace
from isthmus.runtime.worker import ALONE, Worker
from isthmus.schedule.plain import Schedule
from isthmus.threads import Team


@dataclass
class Parts:
    """What the loop joins."""

    sides: list[Side]
    link: Link
    engines: dict[str, Engine]
    cache: Cache
    policy: Policy
    schedule: Schedule
    pipeline: Pipeline
    worker: Worker
    team: Team
    room: int  # bytes of a buffer
    memory: Array | None = None  # what the buffers lie in, and more that may keep edges near


def run(
    program: Program, state: State, facts: Facts, frontier: Frontier, parts: Parts, trace: Trace,
    watch: Callable[[Iteration], None],
) -> None:  # fmt: skip
    """Iterate until the frontier is empty, the program has enough, or `max_iter` is reached."""
    number = 0
    while frontier.any() and (program.max_iter is None or number < program.max_iter):
        record = Iteration(number, frontier.count)
        start = time.perf_counter()
        program.before(state, frontier, facts)
        sides = [side for name, side in zip(program.sides, parts.sides, strict=True) if name in program.following(state)]
        deciding = time.perf_counter()
        tasks, edges = plan(frontier, sides, parts, record)
        record.decide = time.perf_counter() - deciding

        deliveries = itertools.chain(
            parts.cache.serve(frontier), parts.pipeline.fetch(tasks, parts.schedule, frontier, edges)
        )
        parts.worker.seek(program.seeks(state))
        record.wait, record.kernel = parts.worker.relax(deliveries, frontier, partial(done, parts, record), edges <= ALONE)
        number += 1
        more = program.after(state, frontier, facts, number)
        if not program.everyone:
            frontier.advance()
        record.seconds = time.perf_counter() - start
        trace.append(record)
        watch(record)
        if not more:
            break
        if may_settle(program, parts) and worth_it(trace, parts.sides[0]):
            settle(program, state, frontier, parts, trace, watch)
            number = len(trace)


def may_settle(program: Program, parts: Parts) -> bool:
    return parts.policy.settles and program.settles != 0 and program.max_iter is None and len(parts.sides) == 1 and parts.memory is not None


def settle(program: Program, state: State, frontier: Frontier, parts: Parts, trace: Trace, watch: Callable[[Iteration], None]) -> None:
    """Leave steps for standstills, as long as that pays."""
    assert parts.memory is not None
    loop = parts.worker.settle
    settling = Settling(parts.sides[0], parts.link, parts.memory, state, program.settles, loop, parts.team)
    settling.run(frontier, trace, watch)
    program.unordered(state)


def done(parts: Parts, record: Iteration, delivery: Delivery) -> None:
    """A delivery has been worked on: count it, maybe keep some of it, free its buffer."""
    record.delivered(delivery)
    parts.cache.keep(delivery)
    parts.pipeline.give_back(delivery)


def plan(frontier: Frontier, sides: list[Side], parts: Parts, record: Iteration) -> tuple[list[Task], int]:
    """Activity to choices to tasks; also the number of active edges."""
    tasks: list[Task] = []
    for side in sides:
        if "resident" in parts.engines:
            everything = np.arange(len(side.partitions))
            record.active_edges += frontier.edges(side.offsets, parts.team)
            fresh = parts.engines["resident"].tasks(side, everything, parts.room)
        else:
            activity = activity_of(frontier, side, parts.team)
            record.active_edges += int(activity.edges.sum())
            fresh = combine(side, activity, parts, record)
        for task in fresh:
            record.engines[task.engine.name]["tasks"] += 1
        tasks += fresh
    return tasks, record.active_edges


def activity_of(frontier: Frontier, side: Side, team: Team) -> Activity:
    """Activity of a side; that of everyone is the same in every iteration."""
    if frontier.everyone and side.everyone is not None:
        return side.everyone
    activity = frontier.activity(side.partitions, side.offsets, side.width, side.weight_width, side.block, team)
    if frontier.everyone:
        side.everyone = activity
    return activity


def combine(side: Side, activity: Activity, parts: Parts, record: Iteration) -> list[Task]:
    """Ask the policy, and let each engine merge its partitions into few tasks."""
    choice = parts.policy.choose(activity, parts.link.profile, side.entry_bytes)
    record.chosen(choice)
    tasks: list[Task] = []
    for kind in np.unique(choice[choice != NOTHING]).tolist():
        chosen = np.flatnonzero(choice == kind)
        record.partitions[NAMES[kind]] = record.partitions.get(NAMES[kind], 0) + chosen.size
        fresh = parts.engines[NAMES[kind]].tasks(side, chosen, parts.room)
        if chosen.size == activity.active.size and len(fresh) == 1:
            fresh[0].whole = True
        tasks += fresh
    return tasks
