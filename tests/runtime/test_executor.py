"""Reading ahead: the same deliveries, sooner; nothing hangs, nothing is lost, whatever goes wrong."""

from __future__ import annotations

import faulthandler
import itertools
import threading
import time

import numpy as np
import pytest
from tests import sides

import isthmus as ist
from isthmus.engines.compaction import Compaction
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.errors import StoreError
from isthmus.link.link import Link
from isthmus.link.ssd import SsdLink
from isthmus.runtime.pipeline import Pipeline
from isthmus.schedule.plain import Plain

DEGREES = [30] * 30 + [500] + [0] * 10 + [7] * 60
EVERYONE = range(len(DEGREES))


@pytest.fixture(autouse=True)
def none_left(sized):
    """No reader outlives a test, and a test that hangs ends with a traceback. However few edges, readers read them."""
    sized(few_edges=0)
    faulthandler.dump_traceback_later(60, exit=True)
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


class Run:
    """A pipeline over made-up edges, one iteration after another."""

    def __init__(self, blocks=64, buffers=4, engine=None):
        self.far = sides.far(DEGREES)
        self.link = Watched(self.far.link)
        self.buffers = [self.far.buffer(blocks) for _ in range(buffers)]
        self.pipeline = Pipeline(self.link, self.buffers)
        self.engine = engine or Filter()
        self.frontier = self.far.frontier(None)
        self.room = (blocks - 12) * sides.BLOCK

    def tasks(self, chosen=None):
        every = np.arange(len(self.far.side.partitions))
        return self.engine.tasks(self.far.side, every if chosen is None else np.array(chosen), self.room)

    def fetch(self, ahead=True, chosen=None):
        return self.pipeline.fetch(self.tasks(chosen), Plain(), self.frontier, 1 << 20, ahead)

    def consume(self, deliveries):
        return sides.delivered(deliveries, self.frontier, self.pipeline.give_back)

    def free(self):
        """Buffers nobody has."""
        return self.pipeline._free.qsize()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.open.set()
        self.pipeline.close()
        self.engine.close()


def until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


@pytest.mark.parametrize("engine", [Filter, lambda: Filter(2), ZeroCopy, lambda: Compaction(2)])
@pytest.mark.parametrize(("blocks", "buffers"), [(24, 2), (24, 4), (64, 3), (2000, 4)])
def test_the_same_deliveries(engine, blocks, buffers):
    """With partitions larger than a buffer, tasks of several buffers, and all in one."""
    expected = sides.far(DEGREES).edges(EVERYONE)
    with Run(blocks, buffers, engine()) as run:
        for _ in range(8):
            assert run.consume(run.fetch()) == expected
        run.pipeline.drop_ahead()
        assert run.free() == buffers


def test_reads_begin_before_anybody_asks():
    with Run() as run:
        deliveries = run.fetch(ahead=False)
        until(lambda: run.link.moves >= 2)
        run.consume(deliveries)


def test_the_next_iteration_is_read_meanwhile():
    with Run(blocks=2000) as run:
        once = len(run.tasks())
        run.consume(run.fetch())
        until(lambda: run.link.moves == 2 * once)
        run.consume(run.fetch(ahead=False))
        assert run.link.moves == 2 * once, "and not read again"
        run.consume(run.fetch(ahead=False))
        assert run.link.moves == 3 * once


def test_the_next_waits_until_this_has_all_it_needs():
    """A slow consumer holds what it got: the next iteration must not take the buffers that this one waits for."""
    with Run(blocks=24, buffers=2) as run:
        for _ in range(4):
            found, held = sides.Edges(), []
            for delivery in run.fetch():
                found += sides.edges_of(delivery, run.frontier)
                held.append(delivery)
                if len(held) == 2:
                    time.sleep(0.001)
                    run.pipeline.give_back(held.pop(0))
            for delivery in held:
                run.pipeline.give_back(delivery)
            assert found == run.far.edges(EVERYONE)


def test_what_was_read_in_vain_is_given_back_and_counted():
    with Run() as run:
        some = [0, 1, 2]
        run.consume(run.fetch(ahead=False))
        first = run.link.bytes
        run.consume(run.fetch())
        first *= 2
        until(lambda: run.free() == 0)
        needed = [delivery.bytes for delivery in run.fetch(ahead=False, chosen=some)]
        assert run.free() == 4 - len(needed)
        assert sum(delivery.bytes for delivery in run.pipeline.unused) + sum(needed) == run.link.bytes - first


def test_dropping_stops_early():
    """What has not begun is not begun any more."""
    with Run(blocks=24) as run:
        once = sum(1 for _ in map(run.pipeline.give_back, run.fetch(ahead=False)))
        assert once > 20
        run.consume(run.fetch())
        run.pipeline.drop_ahead()
        assert run.link.moves < 3 * once
        assert run.free() == 4
        run.pipeline.drop_ahead()
        assert run.consume(run.fetch(ahead=False)) == run.far.edges(EVERYONE)


@pytest.mark.parametrize("blocks", [24, 2000])
def test_an_error_ahead_comes_up_when_it_is_wanted(blocks):
    with Run(blocks) as run:
        once = sum(1 for _ in map(run.pipeline.give_back, run.fetch(ahead=False)))
        run.link.fails_at = 2 * once + 1
        assert run.consume(run.fetch()) == run.far.edges(EVERYONE), "this iteration has all it needs"
        with pytest.raises(StoreError, match="gone"):
            run.consume(run.fetch())


def test_an_error_ahead_that_nobody_wanted_comes_up_too():
    with Run() as run:
        once = sum(1 for _ in map(run.pipeline.give_back, run.fetch(ahead=False)))
        run.link.fails_at = 2 * once + 1
        run.consume(run.fetch())
        until(lambda: run.link.moves > 2 * once)
        with pytest.raises(StoreError, match="gone"):
            run.pipeline.drop_ahead()


@pytest.mark.parametrize("held_up", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 10**9])
def test_closing_at_any_moment(taken, held_up):
    """In the middle of an iteration, after it with the next one half read, or with a reader in the link."""
    with Run(blocks=24) as run:
        deliveries = run.fetch()
        for delivery in itertools.islice(deliveries, taken):
            run.pipeline.give_back(delivery)
        if held_up:
            run.link.open.clear()
            threading.Timer(0.1, run.link.open.set).start()
        start = time.monotonic()
        run.pipeline.close()
        assert time.monotonic() - start < 2
        assert run.pipeline._threads == []


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
