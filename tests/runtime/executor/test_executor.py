"""Carrying out schedules: each unit fetched and run, in order; nothing hangs, nothing is lost, whatever goes wrong.

Of `runtime/executor/executor.py`, `runtime/executor/readers.py` and `runtime/executor/clocked_executor.py`.
"""

from __future__ import annotations

import faulthandler
import itertools
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest
from tests import sides

import isthmus as ist
from isthmus.cache.cache import Cache
from isthmus.engines.compaction import Compaction
from isthmus.engines.engine import Delivery, Rows, Task
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.errors import StoreError
from isthmus.link.link import Link
from isthmus.link.ssd import SsdLink
from isthmus.runtime.executor.buffers import Buffers
from isthmus.runtime.executor.clocked_executor import ClockedExecutor, Transfers
from isthmus.runtime.executor.executor import Executor, InlineExecutor
from isthmus.runtime.executor.readers import Readers
from isthmus.runtime.executor.task_work import TaskWork
from isthmus.runtime.executor.work import StayingWork, Work
from isthmus.runtime.near.near_memory import Pipeline
from isthmus.runtime.trace.iteration import Iteration
from isthmus.schedule.levels import Levels
from isthmus.schedule.plain import Plain
from isthmus.schedule.schedule import NEAR, RUNNING, UnitStates
from isthmus.schedule.settling_order import NOTHING, Settling
from isthmus.threads import Team, uninterrupted

DEGREES = [30] * 30 + [500] + [0] * 10 + [7] * 60
EVERYONE = range(len(DEGREES))


@pytest.fixture(autouse=True)
def none_left(sized):
    """No reader outlives a test, and a test that hangs ends with a traceback. However few edges, readers read them."""
    sized(few_edges=0)
    faulthandler.dump_traceback_later(115, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("isthmus-reader")] == []


class Watched(Link):
    """Another link that counts, can be held up, and can fail."""

    def __init__(self, link):
        self.link, self.profile, self.notes = link, link.profile, []
        self.moves, self.bytes = 0, 0
        self.fails_at = None
        self.open = threading.Event()
        self.open.set()
        self._lock = threading.Lock()

    def move(self, extents, buffer, channel=0):
        self.open.wait()
        with self._lock:
            self.moves += 1
            self.bytes += extents.bytes
            if self.fails_at is not None and self.moves >= self.fails_at:
                raise StoreError("out.targets: byte 0: gone")
        return self.link.move(extents, buffer, channel)

    def close(self):
        self.open.set()


class Edges:
    """A worker that notes the edges of every delivery, in pieces of one vertex range each."""

    def __init__(self):
        self.found, self.held, self.slow = sides.Edges(), 0, lambda: None
        self._lock = threading.Lock()

    def pieces(self, delivery, frontier):
        def work(member):
            self.slow()
            with self._lock:
                self.found += sides.edges_of(delivery, frontier)

        return [work]

    def again(self, delivery, frontier):
        return []


class Threads:
    """Readers and a team that carry out one schedule after another."""

    def __init__(self, link, team):
        self.link, self.team, self.readers = link, team, Readers(link)
        self.ahead = None

    def begun(self, kind, schedule, work, runner, units):
        return kind(schedule, work, runner or work, units, self.readers)

    def carry_out(self, schedule, work, units, ahead=False, runner=None, here=False):
        executor, self.ahead = self.ahead, None
        if executor is None or not executor.continue_with(schedule, work):
            executor = self.begun(InlineExecutor if here else Executor, schedule, work, runner, units)
        if ahead:
            self.ahead = executor.fetch_ahead()
        return executor.run(self.team)

    def drop_ahead(self):
        executor, self.ahead = self.ahead, None
        if executor is not None:
            executor.drop()

    @property
    def names(self):
        """Of the readers that live."""
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("isthmus-reader")]


class Counted(Cache):
    """Holds nothing, and notes what it is offered."""

    def __init__(self, done):
        self.keep = done.append


class Run:
    """An executor over made-up edges, one iteration after another."""

    def __init__(self, blocks=64, buffers=4, engine=None, threads=1):
        self.far = sides.far(DEGREES)
        self.link = Watched(self.far.link)
        self.count = buffers
        self.buffers = Buffers([self.far.buffer(blocks) for _ in range(buffers)])
        self.team = Team(threads)
        self.executor = Threads(self.link, self.team)
        self.engine = engine or Filter()
        self.frontier = self.far.frontier(None)
        self.room = (blocks - 12) * sides.BLOCK
        self.worker = Edges()
        self.done, self.unused = [], []

    def tasks(self, chosen=None):
        every = np.arange(len(self.far.side.partitions))
        return self.engine.tasks(self.far.side, every if chosen is None else np.array(chosen), self.room)

    def carry_out(self, ahead=True, chosen=None, here=False):
        """One iteration; the edges that came."""
        self.worker.found, tasks = sides.Edges(), self.tasks(chosen)
        self.done.clear()
        cache, readers = Counted(self.done), self.executor.readers
        pipeline = Pipeline([self.far.side], self.link, {}, self.buffers, readers, cache=cache)
        work = TaskWork(tasks, [], self.frontier, pipeline, Iteration(0, 0), self.unused)
        given = Plain(range(len(tasks))), work, UnitStates(len(tasks))
        self.executor.carry_out(*given, ahead and not here, self.worker, here)
        return self.worker.found

    def free(self):
        """Buffers nobody has."""
        return self.buffers._free.qsize()

    def close(self):
        self.buffers.close()
        self.executor.readers.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.open.set()
        self.close()
        self.team.close()
        self.engine.close()


def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


ENGINES = [Filter, lambda: Filter(2), ZeroCopy, lambda: Compaction(2)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("blocks", "buffers"), [(24, 2), (24, 4), (64, 3), (2000, 4)])
@pytest.mark.parametrize("threads", [1, 3])
def test_all_edges_run_once(engine, blocks, buffers, threads):
    """With partitions larger than a buffer, tasks of several buffers, and all in one; each iteration fetched ahead."""
    expected = sides.far(DEGREES).edges(EVERYONE)
    with Run(blocks, buffers, engine(), threads) as run:
        for _ in range(8):
            assert run.carry_out() == expected
        run.executor.drop_ahead()
        assert run.free() == buffers


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads", [1, 4])
def test_members_that_fetch_for_themselves(engine, threads):
    expected = sides.far(DEGREES).edges(EVERYONE)
    with Run(24, 2, engine(), threads) as run:
        for _ in range(8):
            assert run.carry_out(here=True) == expected
        assert run.free() == 2
        assert run.executor.names == [], "no reader was needed"


def test_tasks_come_in_order():
    with Run() as run:
        run.link.readers = 1
        run.carry_out(ahead=False)
        came = [delivery.number for delivery in run.done]
        assert came == list(range(len(came)))
        first = [int(delivery.task.partitions[0]) for delivery in run.done]
        assert first == sorted(first)


def test_reads_begin_before_anything_runs():
    """Two readers, so at least two reads are under way or done, and more while the first delivery waits for its run."""
    with Run() as run:
        moves = []

        def wait():
            until(lambda: run.link.moves >= 3)
            moves.append(run.link.moves)

        run.worker.slow = wait
        assert run.carry_out(ahead=False) == run.far.edges(EVERYONE)
        assert moves[0] >= 3


def test_the_next_iteration_is_read_meanwhile():
    with Run(blocks=2000) as run:
        once = len(run.tasks())
        run.carry_out()
        until(lambda: run.link.moves == 2 * once)
        run.carry_out(ahead=False)
        assert run.link.moves == 2 * once, "and not read again"
        run.carry_out(ahead=False)
        assert run.link.moves == 3 * once


def test_the_next_waits_until_this_has_all_it_needs():
    """A slow worker holds what it got: the next iteration must not take the buffers that this one waits for."""
    with Run(blocks=24, buffers=2) as run:
        run.worker.slow = lambda: time.sleep(0.001)
        for _ in range(4):
            assert run.carry_out() == run.far.edges(EVERYONE)


def test_what_was_read_in_vain_is_given_back_and_counted():
    with Run() as run:
        run.carry_out(ahead=False)
        first = 2 * run.link.bytes
        run.carry_out()
        until(lambda: run.free() == 0)
        run.carry_out(ahead=False, chosen=[0, 1, 2])
        assert run.free() == 4
        assert sum(delivery.bytes for delivery in run.unused + run.done) == run.link.bytes - first


def test_dropping_stops_early():
    """What has not begun is not begun any more."""
    with Run(blocks=24) as run:
        run.carry_out(ahead=False)
        once = len(run.done)
        assert once > 20
        run.carry_out()
        run.executor.drop_ahead()
        assert run.link.moves < 3 * once
        assert run.free() == 4
        run.executor.drop_ahead()
        assert run.carry_out(ahead=False) == run.far.edges(EVERYONE)


@pytest.mark.parametrize("moment", range(12))
def test_dropping_at_any_moment(moment):
    """With reads under way, waiting for buffers, or just come."""
    with Run(blocks=24, buffers=2) as run:
        for turn in range(10):
            run.carry_out()
            time.sleep(turn * moment * 1e-5)
            run.executor.drop_ahead()
            assert run.free() == 2
        assert run.carry_out(ahead=False) == run.far.edges(EVERYONE)


@pytest.mark.parametrize("blocks", [24, 2000])
def test_an_error_ahead_comes_up_when_it_is_wanted(blocks):
    with Run(blocks) as run:
        run.carry_out(ahead=False)
        run.link.fails_at = 2 * len(run.done) + 1
        assert run.carry_out() == run.far.edges(EVERYONE), "this iteration has all it needs"
        with pytest.raises(StoreError, match="gone"):
            run.carry_out()


def test_an_error_ahead_that_nobody_wanted_comes_up_too():
    with Run() as run:
        run.carry_out(ahead=False)
        once = len(run.done)
        run.link.fails_at = 2 * once + 1
        run.carry_out()
        until(lambda: run.link.moves > 2 * once)
        with pytest.raises(StoreError, match="gone"):
            run.executor.drop_ahead()


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at", [1, 2, 20])
def test_an_error_in_a_read_ends_the_iteration(here, threads, at):
    with Run(blocks=24, threads=threads) as run:
        run.link.fails_at = at
        with pytest.raises(StoreError, match="gone"):
            run.carry_out(here=here)


@pytest.mark.parametrize("held_up", [False, True])
@pytest.mark.parametrize("runs", [0, 1, 10, 10**9])
def test_closing_at_any_moment(runs, held_up):
    """In the middle of an iteration, after it with the next one half read, or with a reader in the link."""
    with Run(blocks=24) as run:
        turns = itertools.count()

        def stop():
            if next(turns) == runs:
                raise ZeroDivisionError

        run.worker.slow = stop
        try:
            run.carry_out()
        except ZeroDivisionError:
            assert runs < 10**9
        if held_up:
            run.link.open.clear()
            threading.Timer(0.1, run.link.open.set).start()
        start = time.monotonic()
        run.close()
        assert time.monotonic() - start < 30
        assert run.executor.names == []


@pytest.mark.parametrize("here", [False, True])
def test_a_member_that_waits_for_a_buffer_hears_that_another_failed(here):
    """With a single buffer, whose delivery fails while the other member waits to fill it."""
    for _ in range(10):
        with Run(blocks=24, buffers=1, threads=2) as run:

            def fail(run=run):
                until(lambda: run.free() == 0)
                time.sleep(0.002)
                raise ZeroDivisionError

            run.worker.slow = fail
            with pytest.raises(ZeroDivisionError):
                run.carry_out(ahead=False, here=here)


def test_a_member_that_waits_for_a_buffer_hears_that_another_could_not_finish():
    """The only buffer's delivery has run, and then a cache fails to keep it."""
    with Run(blocks=24, buffers=1, threads=2) as run:
        run.worker.slow = lambda: (until(lambda: run.free() == 0), time.sleep(0.01))

        class Full(list):
            def append(self, delivery):
                raise MemoryError

        run.done = Full()
        with pytest.raises(MemoryError):
            run.carry_out(ahead=False, here=True)


# Units that say what was done with them


class Units(Work):
    """Units that are numbers: what was fetched and run, in order. `again_runs` of each; `wakes`: what a run makes
    pending.
    """

    frontier = None

    def __init__(self, count, deliveries=1, pieces=1, again_runs=0, wakes=None):
        self.far = sides.far([1])
        self.deliveries, self.count, self.again_runs = deliveries, pieces, again_runs
        self.wakes = wakes or {}
        self.fetched_units, self.runs, self.ended, self.places = [], Counter(), [], set()
        self.started = []  # units in the order of their first runs
        self.left = Counter()
        self.lock = threading.Lock()
        self.units = None
        self.inside = self.most_inside = 0
        self.places_used = 0

    def delivery(self, unit):
        return Delivery(
            Task(Filter(), self.far.side, np.array([unit])), np.empty(0), None, Rows(*(np.empty(0, np.int64),) * 4)
        )

    def fetch(self, unit, channel):
        with self.lock:
            self.fetched_units.append(unit)
        yield from (self.delivery(unit) for _ in range(self.deliveries))

    def pieces(self, delivery, frontier):
        unit = int(delivery.task.partitions[0])

        def work(member):
            with self.lock:
                self.runs[unit] += 1
                self.inside += 1
                self.most_inside = max(self.most_inside, self.inside)
            time.sleep(0)
            with self.lock:
                self.inside -= 1

        return [work] * self.count

    def again(self, delivery, frontier):
        with self.lock:
            self.left[id(delivery)] += 1
            more = self.left[id(delivery)] <= self.again_runs
        return self.pieces(delivery, frontier) if more else []

    def finished(self, unit, delivery):
        with self.lock:
            self.ended.append(unit)
            if self.units is not None:
                for other in self.wakes.pop(unit, ()):
                    self.units.pending[other] = float(other)


class StayingUnits(Units, StayingWork):
    """Units that stay near."""

    def fetch(self, unit, channel):
        assert unit in self.places
        assert list(super().fetch(unit, channel))
        return iter(())

    def pieces(self, delivery, frontier):
        unit = int(delivery.task.partitions[0])
        assert unit in self.places, "only what is near can run"
        if unit not in self.started:
            self.started.append(unit)
        if self.units is not None:
            self.units.pending[unit] = NOTHING
        return super().pieces(delivery, frontier)

    def near_delivery(self, unit):
        return self.delivery(unit)

    def reserve(self, unit):
        self.places.add(unit)
        self.places_used = max(self.places_used, len(self.places))

    def evict(self, unit):
        self.places.remove(unit)


@pytest.fixture(params=[1, 2, 4], ids="{} threads".format)
def executor(request):
    team = Team(request.param)
    executor = Threads(sides.far([1]).link, team)
    yield executor
    executor.readers.close()
    team.close()


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize(("deliveries", "pieces"), [(1, 1), (3, 2), (2, 0), (0, 1)])
def test_many_tiny_units(executor, here, deliveries, pieces):
    """Each as often as it has deliveries and pieces, whatever meets whatever."""
    count = 300
    for _ in range(5):
        work = Units(count, deliveries=deliveries, pieces=pieces)
        given = Plain(range(count)), work, UnitStates(count)
        executor.carry_out(*given, here=here)
        assert sorted(work.fetched_units) == list(range(count))
        assert Counter(work.ended) == Counter({unit: deliveries for unit in range(count) if deliveries})
        assert work.runs == Counter({unit: deliveries * pieces for unit in range(count) if deliveries * pieces})


@pytest.mark.parametrize("here", [False, True])
def test_threads_begin_before_they_fetch(executor, here, monkeypatch):
    begun = set()
    monkeypatch.setattr(executor.link, "begin_thread", lambda: begun.add(threading.get_ident()))

    class Begun(Units):
        def fetch(self, unit, channel):
            assert threading.get_ident() in begun
            return super().fetch(unit, channel)

    given = Plain(range(20)), Begun(20), UnitStates(20)
    executor.carry_out(*given, here=here)
    assert begun >= {threading.get_ident(), *(thread.ident for thread in executor.team._threads)}


def test_an_interrupt_while_readers_end_comes_up_after_them(executor):
    """Until then they use the link, which is closed next."""
    reading, go_on = threading.Event(), threading.Event()

    class Slow(Units):
        def fetch(self, unit, channel):
            reading.set()
            go_on.wait()
            return iter(())

    executor.begun(Executor, Plain([0]), Slow(1), None, UnitStates(1)).order()
    reading.wait()
    main = threading.main_thread().ident

    def close():
        signal.pthread_kill(main, signal.SIGINT)  # which waits for this
        threading.Timer(0.1, go_on.set).start()
        executor.readers.close()

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(close)
    assert go_on.is_set()
    assert executor.names == []


def test_units_run_again_at_once(executor):
    work = Units(50, deliveries=2, pieces=2, again_runs=10)
    executor.carry_out(Plain(range(50), [unit % 4 for unit in range(50)]), work, UnitStates(50))
    assert work.runs == Counter({unit: 2 * 2 * (1 + unit % 4) for unit in range(50)})
    assert len(work.ended) == 100


@pytest.mark.parametrize("here", [False, True])
def test_units_that_run_alone_run_again_before_the_next(executor, here, monkeypatch):
    """All members share every run of a delivery, and none waits for a buffer that only the end of a run gives back."""

    class Alone(Units):
        buffers = threading.Semaphore(2)

        def fetch(self, unit, channel):
            for delivery in super().fetch(unit, channel):
                assert self.buffers.acquire(timeout=60)
                yield delivery

        def pieces(self, delivery, frontier):
            with self.lock:
                assert not self.inside
                order.append(int(delivery.task.partitions[0]))
            return super().pieces(delivery, frontier)

        def finished(self, unit, delivery):
            super().finished(unit, delivery)
            self.buffers.release()

    monkeypatch.setattr(executor.link, "readers", 1)  # as a modelled link has, so that units arrive in order
    order: list[int] = []
    work = Alone(20, deliveries=4, pieces=3, again_runs=10**9)
    given = Plain(range(20), [unit % 3 for unit in range(20)], alone=True), work, UnitStates(20)
    executor.carry_out(*given, here=here)
    assert work.runs == Counter({unit: 4 * 3 * (1 + unit % 3) for unit in range(20)})
    assert order == [unit for unit in range(20) for _ in range(4 * (1 + unit % 3))]
    assert len(work.ended) == 80


def test_many_iterations_fetched_ahead(executor):
    """Reused, dropped for others, and dropped at the end."""

    class Same(Units):
        def same_as(self, other):
            return self.count == other.count

        def dropped(self, delivery):
            dropped.append(int(delivery.task.partitions[0]))

    dropped, runner = [], Units(7)
    for turn in range(120):
        work = Same(7, pieces=1 + turn // 5 % 2)
        runner.count = work.count
        runner.runs.clear()
        executor.carry_out(Plain(range(7)), work, UnitStates(7), turn % 3 > 0, runner)
        assert sorted(work.ended) == list(range(7))
        assert runner.runs == Counter(dict.fromkeys(range(7), work.count))
    executor.drop_ahead()
    assert dropped, "some of it was for nothing"


def test_nothing_to_do_is_over_at_once(executor):
    for here in (False, True):
        assert executor.carry_out(Plain([]), Units(0), UnitStates(0), here=here)[1] == 0


@pytest.mark.parametrize("moment", ["run", "done"])
def test_what_comes_after_the_look_at_arrivals_runs(executor, moment):
    """All of a unit arrives after the arrivals were looked at and before the schedule is asked whether it is done."""
    asked, arrived = threading.Event(), threading.Event()

    class Read(Units):
        def fetch(self, unit, channel):
            assert asked.wait(60)
            yield from super().fetch(unit, channel)
            arrived.set()

    class Late(Plain):
        def run(self, units):
            found = super().run(units)
            self.let_it_arrive("run")
            return found

        def done(self, units):
            """The first time, as if the reader had also noted that the unit is near."""
            first = not arrived.is_set()
            self.let_it_arrive("done")
            return (first and moment == "done") or super().done(units)

        def let_it_arrive(self, now):
            if now == moment:
                asked.set()
                assert arrived.wait(60)

    work = Read(1)
    executor.carry_out(Late([0]), work, UnitStates(1))
    assert work.ended == [0]


# Schedules whose units stay near


def levels_of(count, near, room, k, wanted=None):
    units = UnitStates(count, near)
    units.free = room - int(near.sum())
    units.pending[:] = 1
    wanted = np.ones(count, np.bool_) if wanted is None else wanted
    work = StayingUnits(count, pieces=2)
    work.places = set(np.flatnonzero(near).tolist())
    return Levels(wanted, k), work, units


@pytest.mark.parametrize("room", [2, 3, 8])
def test_levels_over_readers(executor, room):
    """Every partition runs at least once and at most k times; one at a time, within the room there is."""
    for turn in range(20):
        near = np.arange(30) % 13 == 0 if room == 8 else np.zeros(30, np.bool_)
        schedule, work, units = levels_of(30, near, room, k=3, wanted=np.arange(30) % 5 != turn % 5)
        executor.carry_out(schedule, work, units)
        runs = np.array([work.runs[unit] // 2 for unit in range(30)])
        wanted = np.arange(30) % 5 != turn % 5
        assert ((runs[wanted] >= 1) & (runs[wanted] <= 3)).all()
        assert not runs[~wanted].any()
        assert work.places_used <= room
        assert sorted(work.fetched_units) == np.flatnonzero(wanted & ~near).tolist(), "each once"
        assert units.runs.tolist() == runs.tolist()


@pytest.mark.parametrize("room", [2, 5])
def test_settling_over_readers(executor, room):
    """Runs make others wait, near and far; it ends when nothing waits, and everything that was woken has run."""
    for turn in range(20):
        units = UnitStates(24)
        units.pending[:] = NOTHING
        units.pending[turn] = 0.0
        units.free = room
        wakes = {unit: [(unit + 1) % 24, (5 * unit + turn) % 24] for unit in range(24)}
        work = StayingUnits(24, wakes=dict(wakes))
        work.units = units
        executor.carry_out(Settling(executor.team.size, 1 << 30), work, units)
        assert set(work.runs) == set(range(24)), "the wave went all round"
        assert (units.pending == NOTHING).all()
        assert work.places_used <= room
        assert not units.coming
        assert not units.running


def test_settling_pauses_and_goes_on(executor):
    """What waits, and what is near, is as it was."""
    count, most = 30, 3
    units = UnitStates(count)
    units.pending[:] = NOTHING
    units.pending[0], units.free = 0.0, 4
    work = StayingUnits(count, wakes={unit: [unit + 1] for unit in range(count - 1)})
    work.units = units
    pauses = 0
    while (units.pending < NOTHING).any():
        before = units.total_runs
        executor.carry_out(Settling(executor.team.size, before + most), work, units)
        assert 0 < units.total_runs - before <= most + executor.team.size
        pauses += 1
    assert pauses >= count // (most + executor.team.size)
    assert work.started == list(range(count)), "each was woken by the one before, or is guessed while that one runs"


@pytest.mark.parametrize("schedule", ["levels", "settling"])
def test_an_error_where_units_stay(executor, schedule):
    given = levels_of(20, np.zeros(20, np.bool_), 4, 3)
    if schedule == "settling":
        given = Settling(executor.team.size, 1 << 30), *given[1:]
        given[1].units = given[2]
    finished = given[1].finished
    given[1].finished = lambda unit, delivery: 1 / 0 if unit == 9 else finished(unit, delivery)
    with pytest.raises(ZeroDivisionError):
        executor.carry_out(*given)


# Schedules by a clock


class Clocked(Transfers):
    """A clock that says when a unit comes: one transfer at a time, each as long as two runs. Not for several threads at
    once.
    """

    def __init__(self):
        self.now, self.due, self.log = 0, [], []
        self.entered = threading.Lock()

    def send(self, unit):
        self.due.append((max([self.now, *(at for at, _ in self.due)]) + 2, unit))

    def arrived(self, waiting):
        assert self.entered.acquire(blocking=False), "two threads ask the clock"
        try:
            assert self.due or not waiting, "the clock stands still"
            if not self.due or (self.due[0][0] > self.now and not waiting):
                return None
            at, unit = self.due.pop(0)
            if at > self.now:
                self.log.append(("wait", at - self.now))
            self.now = max(self.now, at)
            return unit
        finally:
            self.entered.release()


class ClockedUnits(StayingUnits):
    """Whose runs take time by the clock."""

    def __init__(self, count, clock):
        super().__init__(count, pieces=3)
        self.clock = clock

    def finished(self, unit, delivery):
        super().finished(unit, delivery)
        time.sleep(1e-5 * (unit % 3))  # for others to look at the clock meanwhile
        self.clock.now += 1
        self.clock.log.append(("run", unit))


def clocked(executor, room):
    _, _, units = levels_of(12, np.zeros(12, np.bool_), room, 3)
    clock = Clocked()
    work = ClockedUnits(12, clock)
    ClockedExecutor(clock, Levels(np.ones(12, np.bool_), 3), work, work, units, executor.readers).run(executor.team)
    assert (units.runs > 0).all()
    assert not (units.places == RUNNING).any()
    assert work.places_used <= room
    return clock.log


@pytest.mark.parametrize("room", [2, 3, 12])
def test_a_clock_decides_alike_however_many_threads_there_are(executor, room):
    """What runs again, what is evicted and when time passes depends on the clock alone."""
    alone = Team(1)
    expected = clocked(Threads(executor.link, alone), room)
    assert ("run", 0) in expected
    assert any(kind == "wait" for kind, _ in expected)
    assert sum(kind == "run" for kind, _ in expected) > 12, "some ran again"
    for _ in range(40):
        assert clocked(executor, room) == expected


def test_places_after_a_clock_are_near(executor):
    _, _, units = levels_of(4, np.zeros(4, np.bool_), 4, 2)
    clock = Clocked()
    work = ClockedUnits(4, clock)
    ClockedExecutor(clock, Levels(np.ones(4, np.bool_), 2), work, work, units, executor.readers).run(executor.team)
    assert units.places.tolist() == [NEAR] * 4


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with ist.generate("rmat", tmp_path_factory.mktemp("g") / "g.isthmus", scale=16) as graph:
        yield graph


@pytest.mark.parametrize("off", [(), ("cache",), ("cache", "settle"), ("ahead",)])
def test_a_run_counts_every_byte_that_moved(graph, off, monkeypatch):
    """Also what was read for an iteration that never came."""
    moved, move, lock = [], SsdLink.move, threading.Lock()

    def counting(self, extents, *rest):
        with lock:
            moved.append(extents.bytes)
        return move(self, extents, *rest)

    monkeypatch.setattr(SsdLink, "move", counting)
    expected = ist.pagerank(graph, tol=1e-4).values
    for threads in (1, 3):
        moved.clear()
        result = ist.pagerank(graph, tol=1e-4, memory="30%", without=off, threads=threads)
        assert sum(moved) == result.summary()["transfer"]["bytes"]
        assert np.abs(result.values - expected).sum() <= 2e-4


def test_an_error_ahead_ends_a_run(graph, monkeypatch):
    """Wherever in the run it happens: reads of the next iteration are under way most of the time."""
    plain = SsdLink.move
    for at in (1, 4, 9, 30, 41):
        turns = itertools.count()

        def failing(self, *details, at=at, turns=turns):
            if next(turns) == at:
                raise StoreError("in.targets: byte 0: gone")
            return plain(self, *details)

        monkeypatch.setattr(SsdLink, "move", failing)
        with pytest.raises(StoreError, match="gone"):
            ist.pagerank(graph, tol=1e-12, memory="10%", threads=2)
