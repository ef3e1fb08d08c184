"""Settling: partitions that are run until nothing changes inside, as units of a schedule
(`schedule/settling_order.py`).

A run of a partition follows its marked vertices inside it until no value changes (`kernels/loops/settle.py`). A mark on
a vertex of another partition makes that partition pending. The answer must not depend on the order of propagation
(`Program.settles`). Settling pays where a partition is a neighbourhood, as in road networks in natural order. Elsewhere
a load leads to little work: `pays` detects that, and the loop goes back to plain iterations.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Held
from isthmus.cache.partition_places import KeptPartitions
from isthmus.devices.worker import Piece
from isthmus.engines.engine import Delivery, Rows, Side, Task
from isthmus.frontier import Frontier
from isthmus.graph.partition import joined
from isthmus.kernels.compile.compile_clock import clock
from isthmus.kernels.loops import urgency
from isthmus.link.link import Array, Link
from isthmus.policies.policy import CACHE, FILTER, NOTHING
from isthmus.programs.program import State
from isthmus.runtime.executor.executor import Executor
from isthmus.runtime.executor.readers import Readers
from isthmus.runtime.executor.work import StayingWork
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace
from isthmus.schedule import schedule, settling_order
from isthmus.schedule.schedule import UnitStates
from isthmus.threads import Team

STEPS = 8  # plain iterations before the loop checks whether to settle
FEW_EDGES = 64  # a graph has long paths if those iterations followed less than a 64th of its edges
TRIED = 64  # loads before `pays` judges
# in mean weight ÷ mean degree (of 16, 32 and 64 the fastest on a 4000² grid); edges sampled for it.
STEP, LOOKED_AT = 32.0, 1 << 14
PLACES = 8  # of near memory; neighbouring partitions share one, as larger pieces follow fewer edges twice
NO_WEIGHTS = np.empty(0, np.int32)
NO_ROWS = Rows(*(np.empty(0, np.int64) for _ in range(4)))
Settle = Callable[..., tuple[int, int, int]]


def should_settle(trace: Trace, side: Side) -> bool:
    """Whether to settle: the graph has long paths, judging by the iterations so far, and no vertex is split over
    partitions.
    """
    parts = side.partitions
    if len(trace) != STEPS or len(parts) < 2 or trace.total("active_edges") * FEW_EDGES > side.lists.arcs:
        return False
    return bool((parts.first[1:] >= parts.last[:-1]).all())


def pieces_per_place(side: Side, size: int, members: int) -> int:
    """How many neighbouring partitions fit in about `size` bytes, as do the queues of the members that run them; at
    least one.
    """
    parts = side.partitions
    edges = int(parts.slots.max()) * side.entry_bytes + 2 * side.block
    return max(1, min(size // edges, size // (members * pile_bytes(int((parts.last - parts.first).max())))))


def pile_bytes(vertices: int) -> int:
    return -(-13 * vertices // 64) * 64


def make_piles(memory: Array, vertices: int) -> tuple[Array, Array, Array]:
    """A mark and three places in queues for every vertex, in the memory given."""
    queues = memory[: 12 * vertices].view(np.uint32)
    marks = memory[12 * vertices : 13 * vertices]
    marks[:] = 0
    return marks, queues[:vertices], queues[vertices:]


NO_STARTS = np.empty(0, np.uint32)


class SettlingPartitions(StayingWork):
    """The pending vertices by partition, and the near partitions, which take all memory for edges."""

    def __init__(
        self, side: Side, link: Link, memory: Array, state: State, sign: int, settle: Settle, team: Team
    ) -> None:
        self._link, self._state, self._sign, self._settle, self._team = link, state, sign, settle, team
        self._pieces = pieces_per_place(side, memory.size // (PLACES + 1), team.size)
        self._choices = np.zeros(len(side.partitions), np.uint8)  # for the current record of the trace
        self._side = side = dataclasses.replace(side, partitions=joined(side.partitions, self._pieces))
        parts = side.partitions
        widest = int((parts.last - parts.first).max())
        pile = pile_bytes(widest)
        rest = (memory.size - team.size * pile) // 64 * 64
        if rest > memory.size // 2:  # the queues fit behind the partitions
            memory, piles = memory[:rest], memory[rest:]
        else:
            piles = np.empty(team.size * pile, np.uint8)
        self._kept = KeptPartitions(side, link, memory)
        self._piles = [make_piles(piles[m * pile : (m + 1) * pile], widest) for m in range(team.size)]
        self._outer = [np.empty(sizes.now.settled_outer, np.uint32) for _ in range(team.size)]
        self._delta = np.inf
        self._held = Held()
        self._lock = threading.Lock()  # for urgencies and the record
        self._came: set[int] = set()  # partitions that were fetched and have not yet run
        # of runs: member, names in `outer`, vertices, edges, seconds.
        self._found: dict[int, tuple[int, int, int, int, float]] = {}
        self._units = UnitStates(len(parts))
        self._units.pending[:] = schedule.NOTHING
        self._units.free = self._kept.room
        self.loads = self.followed = 0

    def begin(self, frontier: Frontier) -> None:
        """Take over from the loop. From now on the frontier's marks are the pending vertices, updated in place."""
        self.frontier, self._marks = frontier, frontier.marks
        frontier.list, frontier.all_active = None, False
        self._look_everywhere()

    def run(self, readers: Readers, record: Iteration) -> None:
        """Run some partitions; `record` becomes an iteration of the trace."""
        self._record, units = record, self._units
        self._choices[:] = NOTHING
        start = clock()
        order = settling_order.Settling(self._team.size, units.total_runs + sizes.now.settled_record)
        Executor(order, self, self, units, readers).run(self._team)
        record.chosen(self._choices)
        record.wait = max(0.0, clock() - start - record.kernel - record.decide)  # also time without a unit to run

    @property
    def pending(self) -> bool:
        """Whether any partition is pending."""
        return bool((self._units.pending < schedule.NOTHING).any())

    def pays(self) -> bool:
        """Whether reading whole partitions was cheaper than one request for each vertex that was followed."""
        if self.loads < TRIED:
            return True
        profile = self._link.profile
        return bool(profile.seconds(self.loads * self._kept.size, self.loads) < 2 * profile.seconds(0, self.followed))

    def reserve(self, unit: int) -> None:
        self._kept.reserve(unit, set(), np.empty(0))

    def evict(self, unit: int) -> None:
        self._kept.evict(unit)

    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        start = clock()
        moved, requests = self._kept.read(unit, channel)
        if np.isinf(self._delta) and self._side.weight_width and self._side.partitions.arcs[unit]:
            self._delta = self._step(unit)
        self._came.add(unit)
        with self._lock:
            self._record.fetched("filter", moved, requests, clock() - start)
        return iter(())

    def near_delivery(self, unit: int) -> Delivery:
        place = self._kept.place(unit)
        return Delivery(Task(self._held, self._side, np.array([unit])), place.targets, place.weights, NO_ROWS)

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        """A single piece: one member runs a whole partition."""
        unit = int(delivery.task.partitions[0])
        parts, place, lists = self._side.partitions, self._kept.place(unit), self._side.lists
        weights = NO_WEIGHTS if place.weights is None else place.weights
        self._units.pending[unit] = schedule.NOTHING

        def work(member: int) -> None:
            start = clock()
            used, vertices, edges = self._settle(
                parts.first[unit],
                parts.last[unit],
                NO_STARTS,
                place.base,
                place.weight_base,
                sizes.now.settled_edges,
                self._sign,
                self._delta,
                lists.begins,
                lists.ends,
                place.targets,
                weights,
                self._state.arrays,
                self._state.params,
                self._marks,
                *self._piles[member],
                self._outer[member],
                0,
            )
            self._found[unit] = member, used, vertices, edges, clock() - start

        return [work]

    def finished(self, unit: int, delivery: Delivery) -> None:
        """Note the partitions that became pending, and count the work."""
        start = clock()
        member, used, vertices, edges, seconds = self._found.pop(unit)
        far = unit in self._came
        self._came.discard(unit)
        parts, pending = self._side.partitions, self._units.pending
        given = (self._state.arrays[0], self._sign, self._marks, pending)
        with self._lock:
            if used > self._outer[member].size:
                self._look_everywhere()
            else:
                urgency.note_rows(self._outer[member][:used], parts.first, parts.last, *given)
                # Still has marked vertices.
                urgency.note_range(parts.first[unit], parts.last[unit], parts.first, parts.last, *given)
            self.loads += far
            self.followed += vertices
            if vertices:
                self._choices[unit * self._pieces : (unit + 1) * self._pieces] = FILTER if far else CACHE
            self._record.worked(far, seconds / self._team.size, vertices, edges)
            self._record.decide += (clock() - start) / self._team.size

    def _step(self, unit: int) -> float:
        """The range of values that counts as equally urgent: STEP times the mean weight of sampled edges ÷ the mean
        degree.
        """
        parts, place, lists = self._side.partitions, self._kept.place(unit), self._side.lists
        assert place.weights is not None
        begins, ends = (bounds[parts.first[unit] : parts.last[unit]] for bounds in lists.arrays)
        few = np.cumsum(ends - begins) <= LOOKED_AT
        at = [
            slice(begin - place.weight_base, end - place.weight_base)
            for begin, end in zip(begins[few], ends[few], strict=True)
        ]
        weights = np.concatenate([place.weights[each] for each in at]) if at else place.weights[:0]
        mean = float(np.abs(weights).mean()) if weights.size else 1.0
        return max(STEP * mean / max(lists.arcs / max(len(lists), 1), 1.0), 1e-300)

    def _look_everywhere(self) -> None:
        """Compute the urgency of all partitions from the marks."""
        parts, pending = self._side.partitions, self._units.pending
        urgency.note_range(
            0, len(self._side.lists), parts.first, parts.last, self._state.arrays[0], self._sign, self._marks, pending
        )
