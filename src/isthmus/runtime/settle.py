"""Working partitions to a standstill: for graphs with long paths, whose iterations would read little at a time, often.

Instead of one step everywhere, everything in one partition after another: vertices are followed inside until
nothing changes, and what crosses over waits at its own partition. Partitions that are near go first, the most
urgent before the others; a far one is brought when no near one is waiting, or when it will be by all appearances, and
stays while there is room. So a wave rolls over a road network reading it about once. Any order of propagation must do (`Program.settles`).

Pays where partitions are neighbourhoods, as in road networks stored in a natural order. Where they are not, a load
does little work, which `pays` notices: the loop then goes on in steps.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections.abc import Callable

import numpy as np

from isthmus.cache.partitions import KeptPartitions
from isthmus.engines.engine import Side
from isthmus.frontier import Frontier
from isthmus.graph.partition import joined
from isthmus.kernels import traversal, urgency
from isthmus.link.link import Array, Link
from isthmus.policies.policy import CACHE, FILTER, NOTHING
from isthmus.programs.program import State
from isthmus.runtime.checkpoint import Checkpoint
from isthmus.runtime.trace import Iteration, Trace
from isthmus.threads import Team

STEPS = 8  # iterations of the plain loop before the question is asked
FEW_EDGES = 64  # a graph has long paths when those steps followed less than a 64th of its edges
MOST = 1 << 22  # edges followed in one call: some tens of milliseconds, so that Ctrl-C is heard
OUTER = 1 << 16  # vertices elsewhere that one call may name
TRIED = 64  # loads after which it must have paid
CHANNELS = 3  # of the link
STEP, LOOKED_AT = 32.0, 1 << 14  # in weights of an edge over a mean degree; of 16, 32 and 64 the fastest on a 4000² grid
PLACES = 8  # that near memory is parted into; neighbouring partitions share one, for less is followed twice in larger pieces
RECORD = 64  # partitions worked on between two records of the trace
NO_WEIGHTS = np.empty(0, np.int32)
Settle = Callable[..., tuple[int, int, int]]


def worth_it(trace: Trace, side: Side) -> bool:
    """Whether the iterations so far are those of a graph with long paths, none of whose vertices is cut in two."""
    parts = side.partitions
    if len(trace) != STEPS or len(parts) < 2 or trace.total("active_edges") * FEW_EDGES > side.lists.arcs:
        return False
    return bool((parts.first[1:] >= parts.last[:-1]).all())


def pieces_per_place(side: Side, size: int, members: int) -> int:
    """How many neighbouring partitions, and the piles of members who work on them, need at most about `size` bytes each; at least one."""
    parts = side.partitions
    edges = int(parts.slots.max()) * side.entry_bytes + 2 * side.block
    return max(1, min(size // edges, size // (members * pile_bytes(int((parts.last - parts.first).max())))))


def pile_bytes(vertices: int) -> int:
    return -(-13 * vertices // 64) * 64


def make_piles(memory: Array, vertices: int) -> tuple[Array, Array, Array]:
    """A byte and three places in queues for every vertex, in the memory given."""
    queues = memory[: 12 * vertices].view(np.uint32)
    marks = memory[12 * vertices : 13 * vertices]
    marks[:] = 0
    return marks, queues[:vertices], queues[vertices:]


class Settling:
    """One run's pending vertices by partition, and the partitions that are near. Shared by the members of a team."""

    def __init__(
        self, side: Side, link: Link, memory: Array, state: State, sign: int, settle: Settle, team: Team, checkpoint: Checkpoint | None
    ) -> None:
        self._link, self._state, self._sign, self._settle, self._team = link, state, sign, settle, team
        self._checkpoint = checkpoint
        self._pieces = pieces_per_place(side, memory.size // (PLACES + 1), team.size)
        self._choices = np.zeros(len(side.partitions), np.uint8)  # of the record being made
        self._side = side = dataclasses.replace(side, partitions=joined(side.partitions, self._pieces))
        parts = side.partitions
        widest = int((parts.last - parts.first).max())
        pile = pile_bytes(widest)
        rest = (memory.size - team.size * pile) // 64 * 64
        if rest > memory.size // 2:  # piles lie behind the partitions, where there is room
            memory, piles = memory[:rest], memory[rest:]
        else:
            piles = np.empty(team.size * pile, np.uint8)
        self._kept = KeptPartitions(side, link, memory)
        self._piles = [make_piles(piles[m * pile : (m + 1) * pile], widest) for m in range(team.size)]
        self._outer = [np.empty(OUTER, np.uint32) for _ in range(team.size)]
        self._urgency = np.full(len(parts), np.inf)  # sign * value of the most urgent pending vertex; inf: none
        self._delta = np.inf
        self._changed = threading.Condition()  # guards everything below, and the urgencies
        self._busy: set[int] = set()
        self._latest = (-1, -1)  # the last two that were brought
        self._brought = np.zeros(len(parts), np.bool_)
        self._guess: int | None = None  # brought ahead, and nothing waits there yet
        self._over = self._paused = False
        self._channels: queue.SimpleQueue[int] = queue.SimpleQueue()
        for channel in range(CHANNELS):
            self._channels.put(channel)
        self._works = 0
        self.loads = self.followed = 0

    def run(self, frontier: Frontier, trace: Trace, watch: Callable[[Iteration], None]) -> bool:
        """Go on until nothing is pending; False: it does not pay, and the frontier says what is left."""
        self._marks, self._trace, self._watch = frontier.marks, trace, watch
        self._frontier = frontier
        frontier.list, frontier.everyone = None, False
        self._look_everywhere()
        self._fresh_record()
        self._team.run(self._member)
        self._publish()
        left = (self._urgency < np.inf).any()
        frontier.count = int(np.count_nonzero(frontier.marks)) if left else 0
        return not left

    def pays(self) -> bool:
        """Whether reading whole partitions was cheaper than one request for each vertex that was followed."""
        if self.loads < TRIED:
            return True
        profile = self._link.profile
        return bool(profile.seconds(self.loads * self._kept.size, self.loads) < 2 * profile.seconds(0, self.followed))

    def _member(self, number: int) -> None:
        try:
            while (taken := self._take()) is not None:
                self._work(*taken, number)
                with self._changed:
                    if number == 0 and self._works >= RECORD:
                        self._publish()
                        self._save()
                    self._over = self._over or not self.pays()
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _take(self) -> tuple[int, bool] | None:
        """The partition to work on next and whether it is far, with a place reserved; None: there is nothing more to do."""
        with self._changed:
            while not self._over:
                p = None if self._paused else self._most_urgent()
                if p is None and not self._busy and not self._paused:
                    return None
                guess = self._foreseen() if p is None and not self._paused else None
                p = guess if p is None else p
                if p is not None:
                    far = p not in self._kept
                    if not far or self._kept.reserve(p, self._busy, self._urgency < np.inf):
                        if far:
                            self._latest, self._brought[p] = (self._latest[1], p), True
                        if far or p == self._guess:
                            self._guess = guess
                        self._busy.add(p)
                        self._urgency[p] = np.inf
                        return p, far
                self._changed.wait()
        return None

    def _foreseen(self) -> int | None:
        """Where nothing waits, who will: the next in a row of two that were, if it was never brought and a place is idle."""
        before, latest = self._latest
        p = 2 * latest - before
        if self._guess is not None or abs(latest - before) != 1 or not 0 <= p < self._brought.size or self._brought[p]:
            return None
        idle = self._kept.free or any(kept not in self._busy and self._urgency[kept] == np.inf for kept in self._kept)
        return p if idle else None

    def _most_urgent(self) -> int | None:
        """Among those nobody works on: of the near ones, or if none is pending, of all."""
        waiting = self._urgency.copy()
        waiting[list(self._busy)] = np.inf
        near = np.fromiter(self._kept, np.int64)
        if near.size:
            p = int(near[waiting[near].argmin()])
            if waiting[p] < np.inf:
                return p
        p = int(waiting.argmin())
        return p if waiting[p] < np.inf else None

    def _work(self, p: int, far: bool, member: int) -> None:
        moved = requests = 0
        start = time.perf_counter()
        if far:
            channel = self._channels.get()
            try:
                moved, requests = self._kept.read(p, channel)
            finally:  # others may be waiting for it
                self._channels.put(channel)
            if np.isinf(self._delta) and self._side.weight_width and self._side.partitions.arcs[p]:
                self._delta = self._step(p)
        reading = time.perf_counter() - start
        used, vertices, edges = self._follow(p, member)
        done = time.perf_counter()
        with self._changed:
            self._busy.discard(p)
            self._kept.use(p)
            parts, state = self._side.partitions, (self._state.arrays[0], self._sign, self._marks, self._urgency)
            if used > OUTER:
                self._look_everywhere()
            else:
                urgency.note_rows(self._outer[member][:used], parts.first, parts.last, *state)
                urgency.note_range(parts.first[p], parts.last[p], parts.first, parts.last, *state)  # cut short, or marked meanwhile
            self._works += 1
            self.loads += far
            self.followed += vertices
            if vertices:
                self._choices[p * self._pieces : (p + 1) * self._pieces] = FILTER if far else CACHE
            self._record.worked(far, moved, requests, reading, (done - start - reading) / self._team.size, vertices, edges)
            self._record.decide += (time.perf_counter() - done) / self._team.size
            self._changed.notify_all()

    def _follow(self, p: int, member: int) -> tuple[int, int, int]:
        parts, place = self._side.partitions, self._kept.place(p)
        weights = NO_WEIGHTS if place.weights is None else place.weights
        return self._settle(
            parts.first[p], parts.last[p], place.base, place.weight_base, MOST, self._sign, self._delta,
            *self._side.lists.arrays, place.targets, weights, self._state.arrays, self._state.params,
            self._marks, *self._piles[member], self._outer[member], 0,
        )  # fmt: skip

    def _step(self, p: int) -> float:
        """How much further than the most urgent counts as urgent too: weights of a few edges over a mean degree."""
        parts, place = self._side.partitions, self._kept.place(p)
        assert place.weights is not None
        lists = self._side.lists
        mean = traversal.mean_weight(place.weights, *lists.arrays, parts.first[p], parts.last[p], place.weight_base, 1, LOOKED_AT)
        return max(STEP * float(mean) / max(lists.arcs / len(lists), 1.0), 1e-300)

    def _look_everywhere(self) -> None:
        """Urgencies from the marks alone."""
        parts = self._side.partitions
        urgency.note_range(
            0, len(self._side.lists), parts.first, parts.last, self._state.arrays[0], self._sign, self._marks, self._urgency
        )

    def _save(self) -> None:
        """Write a checkpoint when one is due and nobody works any more: then the marks say all that is pending."""
        if self._checkpoint is None or not self._checkpoint.due():
            return
        self._paused = True
        while self._busy and not self._over:
            self._changed.wait()
        if not self._over:
            self._frontier.count = int(np.count_nonzero(self._marks))
            self._checkpoint.write(self._checkpoint.done + len(self._trace))
        self._paused = False
        self._changed.notify_all()

    def _fresh_record(self) -> None:
        self._record, self._works, self._clock = Iteration(len(self._trace), 0), 0, time.perf_counter()

    def _publish(self) -> None:
        """What happened since the last time becomes an iteration of the trace."""
        if self._works:
            record = self._record
            record.seconds = time.perf_counter() - self._clock
            record.chosen(self._choices)
            self._choices[:] = NOTHING
            record.wait = max(0.0, record.seconds - record.kernel - record.decide)  # reading, or nothing to work on
            self._trace.append(self._record)
            self._watch(self._record)
        self._fresh_record()
