"""The loop: one iteration after another until no vertex is active.

Cache, activity, policy, combine, schedule, engine, kernel, trace: each step is a part with its own interface, and this
file connects them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from isthmus import sizes
from isthmus.devices.run_clock import RunClock
from isthmus.devices.worker import Worker
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Activity, Frontier
from isthmus.kernels.compile.compile_clock import clock
from isthmus.policies.combine import combined
from isthmus.policies.policy import CACHE, FILTER, NAMES, NOTHING
from isthmus.policies.rate_correction import Observation, corrected
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.checkpoint.checkpoint import Checkpoint
from isthmus.runtime.executor.executor import Executor, InlineExecutor
from isthmus.runtime.executor.resident_partitions import StayingPartitions
from isthmus.runtime.executor.settling_partitions import SettlingPartitions, should_settle
from isthmus.runtime.executor.task_work import HeldWork, TaskWork
from isthmus.runtime.near.near_memory import Pipeline
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace
from isthmus.schedule import contribution
from isthmus.schedule.plain import Plain
from isthmus.schedule.schedule import UnitStates
from isthmus.threads import Team


@dataclass
class Loop:
    """Iterates a program over the edges that a pipeline brings near."""

    program: Program
    state: State
    facts: Facts
    frontier: Frontier
    pipeline: Pipeline
    recipe: Recipe
    worker: Worker
    team: Team
    trace: Trace
    watch: Callable[[Iteration], None]
    clock: RunClock
    staying: StayingPartitions | None = None  # for recipes whose partitions stay near and run again
    checkpoint: Checkpoint | None = None
    settling: SettlingPartitions | None = None  # set while the loop settles partitions
    ahead: Executor | None = None  # fetches the units of the next iteration while this one runs

    def begin(self) -> None:
        """Prepare what is the same in all iterations."""
        program, recipe = self.program, self.recipe
        self.profile = self.pipeline.link.profile  # corrected by observed rates during the run
        self.number = self.first = self.checkpoint.done if self.checkpoint is not None else 0
        self.unused: list[Delivery] = []  # fetched ahead but not needed
        for side in self.pipeline.sides:
            side.last_edges = None  # those of an earlier run say nothing about this one
        reruns = may_rerun(program, self.pipeline.sides)
        self.again: Mapping[str, int] = recipe.further_runs if reruns else {}
        self.recompute = recipe.recompute and reruns and not program.levels and not self.again
        settles = recipe.settle and program.settles != 0 and program.max_iter is None
        self.may_settle = settles and len(self.pipeline.sides) == 1 and self.pipeline.memory is not None
        queue = self.staying is not None and reruns
        self.frontier.loose = bool(self.again) or self.recompute or queue
        if not recipe.bottom_up:
            program.top_down(self.state)
        if self.again or queue:
            program.unordered(self.state)

    def run(self) -> None:
        """Iterate until the frontier is empty, the program stops, or `max_iter` is reached."""
        more = True
        while more and self.frontier.any() and self.number != self.program.max_iter:
            record, start = Iteration(self.number, self.frontier.count), clock()
            if self.settling is not None:
                self.settle(record)
            else:
                more = self.step(record)
            self.number += 1
            record.seconds = clock() - start
            record.done = self.program.share_done(self.state, self.number)
            self.trace.append(record)
            self.watch(record)
            if more:
                self.look_back(record)
        self.drop_ahead()
        for delivery in self.unused:  # their bytes moved, so they count
            self.trace.iterations[-1].delivered(delivery)

    def step(self, record: Iteration) -> bool:
        """Run one iteration; False: the program stops."""
        self.program.before(self.state, self.frontier, self.facts)
        self.worker.choose_loops()
        self.sides = self.followed()
        misses = self.serve(record)
        tasks, held = self.choose(misses, record)
        if self.staying is None:
            self.carry_out(tasks, held, misses, record)
        else:
            self.run_staying(self.staying, tasks, held, misses, record)
        self.serve_again(record)
        record.modelled = self.clock.iteration()
        more = self.program.after(self.state, self.frontier, self.facts, self.number + 1)
        if not self.program.all_active:
            self.frontier.advance()
        return more

    def look_back(self, record: Iteration) -> None:
        """Between two iterations: correct rates, write a checkpoint if one is due, and choose how to continue."""
        self.learn(record)
        if self.checkpoint is not None and self.checkpoint.due():
            self.checkpoint.write(self.number)
        if self.settling is None and self.may_settle and should_settle(self.trace, self.pipeline.sides[0]):
            self.begin_to_settle()

    # Cached lists, served before any transfer

    def followed(self) -> list[Side]:
        """The sides that this iteration follows."""
        following = self.program.following(self.state)
        return [side for name, side in zip(self.program.sides, self.pipeline.sides, strict=True) if name in following]

    def serve(self, record: Iteration) -> Frontier:
        """Run the active vertices whose lists are in the cache; returns a frontier of the others."""
        start = clock()
        misses, hits = self.pipeline.cache.serve(self.frontier, self.sides[0])
        if (first := next(hits, None)) is not None:
            record.decide += clock() - start
            self.run_held(itertools.chain([first], hits), record)
            start = clock()
        self.pipeline.cache.refresh(self.frontier)
        record.decide += clock() - start
        return misses

    def serve_again(self, record: Iteration) -> None:
        """Run cached vertices that were marked during this iteration once more, without a transfer."""
        if "cache" not in self.again:
            return
        for _ in range(self.further_runs().get("cache", 0)):
            marked = [delivery for delivery in self.pipeline.cache.everything() if self.take_marked(delivery)]
            if not marked:
                break
            self.run_held(iter(marked), record)

    def take_marked(self, delivery: Delivery) -> bool:
        marked = self.worker.marked(delivery, self.frontier)
        if marked is not None:
            delivery.edges = marked
        return marked is not None

    def run_held(self, hits: Iterator[Delivery], record: Iteration) -> None:
        """Run deliveries from the cache, of which there is at least one."""
        deliveries = self.counted(hits, record)
        all_of_them = itertools.chain([next(deliveries)], deliveries)  # the edges of the first say how many threads run
        work = HeldWork(all_of_them, self.frontier, self.pipeline, record, self.unused, self.clock)
        schedule = Plain([0], alone=self.clock.in_order)
        self.execute(InlineExecutor(schedule, work, self.worker, UnitStates(1), self.pipeline.readers), record)

    def counted(self, hits: Iterator[Delivery], record: Iteration) -> Iterator[Delivery]:
        """Deliveries from the cache, counted as they are taken."""
        for delivery in hits:
            edges = delivery.edges
            assert isinstance(edges, Rows)
            count = int(edges.lengths.sum())
            record.hit_edges += count
            record.active_edges += count
            record.engines["cache"]["tasks"] += 1
            yield delivery

    # Activity, policy, combine

    def choose(self, frontier: Frontier, record: Iteration) -> tuple[list[Task], list[Delivery]]:
        """The tasks of this iteration, in the order they run, and deliveries of partitions that the cache holds."""
        start = clock()
        tasks: list[Task] = []
        held: list[Delivery] = []
        for side in self.sides:
            fresh, near = (
                self.resident(frontier, side, record)
                if "resident" in self.pipeline.engines
                else self.far(frontier, side, record)
            )
            for task in fresh + [delivery.task for delivery in near]:
                record.engines[task.engine.name]["tasks"] += 1
            tasks += fresh
            held += near
        tasks = self.ordered(tasks, frontier)
        record.decide += clock() - start
        return tasks, held

    def resident(self, frontier: Frontier, side: Side, record: Iteration) -> tuple[list[Task], list[Delivery]]:
        record.active_edges += frontier.edges(side.lists, self.team)
        return self.pipeline.engines["resident"].tasks(side, np.arange(len(side.partitions)), 0), []

    def far(self, frontier: Frontier, side: Side, record: Iteration) -> tuple[list[Task], list[Delivery]]:
        activity = self.activity(frontier, side)
        near, others = self.pipeline.cache.held(side, activity, frontier)
        record.active_edges += int(activity.edges.sum())
        record.hit_edges += int(activity.edges.sum() - others.edges.sum()) if near else 0
        return self.combine(side, activity, others, record), near

    def activity(self, frontier: Frontier, side: Side) -> Activity:
        """Activity of a side. It is computed once if all vertices are always active."""
        if frontier.all_active and side.all_active is not None:
            return side.all_active
        activity = frontier.activity(
            side.partitions, side.lists, side.width, side.weight_width, side.block, self.team, side.shares
        )
        if frontier.all_active:
            side.all_active = activity
        return activity

    def combine(self, side: Side, activity: Activity, others: Activity, record: Iteration) -> list[Task]:
        """Let the policy choose engines for partitions that are not cached, and let each engine merge its partitions
        into few tasks.
        """
        profile = self.clock.profile(self.profile, self.pipeline.buffers.room, others, side.entry_bytes)
        choice = self.recipe.policy.choose(replace(others, last_edges=side.last_edges), profile, side.entry_bytes)
        side.last_edges = activity.edges
        if self.staying is not None:
            choice = np.where(self.staying.near_ones & (activity.edges > 0), CACHE, choice)
            self.high_value, self.active = (choice == CACHE) | (choice == FILTER), activity
        choice = np.where((activity.edges > 0) & (others.edges == 0), CACHE, choice)
        record.chosen(choice)
        for kind in np.unique(choice[choice != NOTHING]).tolist():
            record.partitions[NAMES[kind]] = record.partitions.get(NAMES[kind], 0) + int(
                np.count_nonzero(choice == kind)
            )
        choice[choice == CACHE] = NOTHING
        if self.staying is not None:
            choice[choice == FILTER] = NOTHING
        groups = combined(self.recipe.combine, choice)
        tasks: list[Task] = []
        for kind, begin, end in zip(
            groups.choices.tolist(), groups.cuts[:-1].tolist(), groups.cuts[1:].tolist(), strict=True
        ):
            tasks += self.pipeline.engines[NAMES[kind]].tasks(
                side, groups.partitions[begin:end], self.pipeline.buffers.room
            )
        if len(tasks) == 1 and tasks[0].partitions.size == activity.active.size:
            tasks[0].all_active = True
        return tasks

    def ordered(self, tasks: list[Task], frontier: Frontier) -> list[Task]:
        """Tasks in order of contribution, if the recipe asks for it: by deltas, or as they are stored, in hub order."""
        if self.recipe.order != "contribution" or len(tasks) < 2:
            return tasks
        stages, deltas = np.array([task.engine.stage for task in tasks]), self.program.contribution(self.state)
        if deltas is None:
            return [tasks[k] for k in contribution.order(stages).tolist()]
        by_side = {
            side.name: contribution.priorities(frontier, side.partitions, side.lists, deltas, self.team)
            for side in {task.side.name: task.side for task in tasks}.values()
        }
        priorities = np.array([by_side[task.side.name][task.partitions].sum() for task in tasks])
        return [tasks[k] for k in contribution.order(stages, priorities).tolist()]

    # Schedule, engines, kernel

    def carry_out(self, tasks: list[Task], held: list[Delivery], frontier: Frontier, record: Iteration) -> None:
        """Run the cached deliveries, and fetch and run the tasks."""
        if not tasks and not held:
            return
        further = self.further_runs(record)
        again = [further.get(unit.engine.name, 0) for unit in tasks + [delivery.task for delivery in held]]
        schedule = Plain(range(len(tasks)), again, self.clock.in_order)
        work = TaskWork(tasks, held, frontier, self.pipeline, record, self.unused, self.clock)
        parts = schedule, work, self.worker, UnitStates(len(again)), self.pipeline.readers
        little = len(again) == 1 and record.active_edges <= sizes.now.few_edges
        ahead = self.fetches_ahead()
        executor, self.ahead = self.ahead, None
        if executor is None or not executor.continue_with(schedule, work):
            inline = (little or "resident" in self.pipeline.engines) and not ahead
            executor = InlineExecutor(*parts) if inline else Executor(*parts)
        if ahead:
            self.ahead = executor.fetch_ahead()
        self.execute(executor, record)

    def execute(self, executor: Executor, record: Iteration) -> None:
        """Carry out a schedule: by one thread if there are few edges."""
        waited, worked = executor.run(self.team if record.active_edges > sizes.now.alone else None)
        record.wait += waited
        record.kernel += worked

    def drop_ahead(self) -> None:
        """Drop the units that were fetched ahead."""
        executor, self.ahead = self.ahead, None
        if executor is not None:
            executor.drop()

    def fetches_ahead(self) -> bool:
        """Whether the next iteration needs the same edges. A cache of lists reports misses only after serving, so never
        with one.
        """
        if (
            not self.program.all_active
            or not self.recipe.ahead
            or self.recipe.keeps_lists
            or "resident" in self.pipeline.engines
        ):
            return False
        return self.number > 0 and self.number + 1 != self.program.max_iter

    def run_staying(
        self, staying: StayingPartitions, tasks: list[Task], held: list[Delivery], frontier: Frontier, record: Iteration
    ) -> None:
        """Run the partitions of a recipe that keeps them near, some of them several times. The tasks, of packed lists,
        run before them or, on a modelled device, beside them.
        """
        packed = None
        if self.clock.in_order and self.recipe.overlap:
            packed = TaskWork(tasks, held, frontier, self.pipeline, record, self.unused)
        else:
            self.carry_out(tasks, held, frontier, record)
        staying.run(self.high_value, frontier, self.active, record, self.pipeline.readers, self.team, packed)

    def further_runs(self, record: Iteration | None = None) -> Mapping[str, int]:
        """How many further runs a delivery gets, by engine."""
        if record is not None and self.recompute and self.link_bound(record.active_edges):
            return {name: 1 for name, engine in self.pipeline.engines.items() if engine.rereads_when_link_bound}
        return dict.fromkeys(self.again, 1) if self.clock.device_bound else self.again

    def link_bound(self, edges: int) -> bool:
        """Whether the I/O wait of the last iteration was longer than the compute time of this one's active edges would
        be.
        """
        if not self.trace.iterations:
            return False
        last = self.trace.iterations[-1]
        return last.wait * last.active_edges > last.kernel * edges

    def learn(self, record: Iteration) -> None:
        """Correct the link's rates by those observed in this iteration."""
        if not self.recipe.correct:
            return
        moved = {"bandwidth": 0, "request_rate": 0}
        for name, engine in self.pipeline.engines.items():
            if engine.observes in moved and name in record.engines:
                moved[engine.observes] += record.engines[name]["bytes"]
        calibrated = self.pipeline.link.profile
        seen = Observation(
            moved["bandwidth"], moved["request_rate"] // calibrated.block, record.wait + record.kernel, record.wait
        )
        self.profile = corrected(calibrated, self.profile, seen)

    # Settling: partitions run until nothing changes inside

    def begin_to_settle(self) -> None:
        """Switch from iterations to settling. Settling uses all memory for edges, so the cache is emptied."""
        pipeline, memory = self.pipeline, self.pipeline.memory
        assert memory is not None
        self.drop_ahead()
        pipeline.cache.forget()
        self.program.unordered(self.state)
        self.settling = SettlingPartitions(
            pipeline.sides[0], pipeline.link, memory, self.state, self.program.settles, self.worker.settle, self.team
        )
        self.settling.begin(self.frontier)

    def settle(self, record: Iteration) -> None:
        """Settle some partitions, and go back to plain iterations when that no longer pays."""
        assert self.settling is not None
        record.active_vertices = 0
        self.program.tighten(self.state)
        self.settling.run(self.pipeline.readers, record)
        left = self.settling.pending
        self.frontier.count = int(np.count_nonzero(self.frontier.marks)) if left else 0
        if left and not self.settling.pays():
            self.settling = None


def may_rerun(program: Program, sides: list[Side]) -> bool:
    return program.reruns and program.order_free and program.max_iter is None and len(sides) == 1
