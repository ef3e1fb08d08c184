"""The pool: results in order, a bounded number in flight, errors, and nothing running after the end."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

from isthmus.errors import OptionError
from isthmus.threads import Pool, Team, default_threads, uninterrupted

WAIT = 60  # seconds until a test gives up on an event


def test_results_come_in_the_order_of_the_items():
    def slow_first(item):
        time.sleep(0.02 if item % 3 == 0 else 0)
        return item * item

    with Pool(3) as pool:
        assert list(pool.map(slow_first, range(20))) == [n * n for n in range(20)]
        assert list(pool.map(slow_first, [])) == []


def test_threads_work_side_by_side():
    meet = threading.Barrier(2, timeout=WAIT)
    with Pool(2) as pool:
        assert len(list(pool.map(lambda _: meet.wait(), range(2)))) == 2


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("ahead", [0, 2])
def test_items_are_drawn_no_faster_than_results_are_taken(count, ahead):
    drawn = []

    def items():
        for n in range(100):
            drawn.append(n)
            yield n

    with Pool(count) as pool:
        results = pool.map(lambda n: n, items(), ahead)
        for taken in range(10):
            next(results)
            assert len(drawn) == taken + count + ahead
        results.close()
    assert len(drawn) == 9 + count + ahead


def test_the_first_error_in_order_is_raised():
    later = threading.Event()

    def work(n):
        if n == 3:
            assert later.wait(WAIT)
            raise ValueError("three")
        if n == 4:
            later.set()
            raise KeyError("four")
        return n

    with Pool(2) as pool:
        results = pool.map(work, range(10))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="three"):
            next(results)
        with pytest.raises(StopIteration):
            next(results)


def test_an_error_of_the_items_is_raised():
    def items():
        yield 1
        raise OSError("no more")

    with Pool(2) as pool, pytest.raises(OSError, match="no more"):
        list(pool.map(lambda n: n, items()))


@pytest.mark.parametrize("end", ["close", "error"])
def test_nothing_runs_after_the_end(end):
    """What the work uses may be closed as soon as the iterator has ended."""
    running, done = set(), []
    started = threading.Event()

    def work(n):
        if n == 0:
            if end == "error":
                assert started.wait(WAIT)
                raise ValueError("stop")
            return n
        running.add(n)
        started.set()
        time.sleep(0.1)
        running.discard(n)
        done.append(n)
        return n

    with Pool(2) as pool:
        results = pool.map(work, range(100))
        if end == "close":
            next(results)
            assert started.wait(WAIT)
            results.close()
        else:
            with pytest.raises(ValueError, match="stop"):
                next(results)
        assert not running
        finished = len(done)
        time.sleep(0.15)
        assert len(done) == finished <= 4  # the rest was dropped


def test_a_generator_of_items_is_closed_with_the_map():
    closed = []

    def items():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    def work(n):
        if n == 5:
            raise ValueError("five")
        return n

    with Pool(2) as pool:
        with pytest.raises(ValueError, match="five"):
            list(pool.map(work, items()))
        assert closed == [True]
        results = pool.map(abs, items())
        next(results)
        results.close()
        assert closed == [True, True]


def test_an_interrupt_while_waiting_still_waits_for_the_work(monkeypatch):
    """Ctrl-C arrives in the thread that waits for a result, whose work goes on meanwhile."""
    started, done = threading.Event(), []

    def work(n):
        started.set()
        time.sleep(0.05)
        done.append(n)

    def interrupted(future):
        assert started.wait(WAIT)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with Pool(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            list(pool.map(work, [1]))
        assert done == [1]


def test_leaving_the_pool_drops_what_has_not_begun():
    begun = []
    with Pool(1) as pool:
        results = pool.map(lambda n: begun.append(n) or time.sleep(0.02), range(100), ahead=50)
        next(results)
    assert len(begun) < 51
    assert not [t for t in threading.enumerate() if t.name.startswith("isthmus_")]


def test_a_map_inside_a_map():
    with Pool(2) as pool:
        inner = pool.map(lambda n: n + 1, range(50))
        assert sum(pool.map(lambda n: 2 * n, inner)) == 2 * sum(range(1, 51))


@pytest.mark.parametrize("count", [0, -1])
def test_too_few_threads(count):
    with pytest.raises(OptionError, match=f"threads: expected at least 1, got {count}"):
        Pool(count)


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("ISTHMUS_THREADS", "3")
    assert default_threads() == 3
    with Pool() as pool:
        assert pool.threads == 3
    monkeypatch.setenv("ISTHMUS_THREADS", "")
    assert default_threads() >= 1


@pytest.mark.parametrize("wish", ["many", "0", "-2", "1.5", "²"])
def test_an_environment_that_makes_no_sense(monkeypatch, wish):
    monkeypatch.setenv("ISTHMUS_THREADS", wish)
    with pytest.raises(OptionError, match="ISTHMUS_THREADS: expected a number of threads"):
        default_threads()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8])
def test_even_parts(threads, size):
    team = Team(threads)
    try:
        parts = team.split(lambda first, last: list(range(first, last)), size)
    finally:
        team.close()
    assert [i for part in parts for i in part] == list(range(size))
    assert len(parts) <= threads
    assert all(parts)


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("sizes", [[], [7], [1] * 90, [0] * 40 + [1000] + [1] * 40])
def test_parts_by_size(sizes, few):
    """Each item once, in parts of about equal size; few items in one part, by member 0."""
    team, parts = Team(2), []
    try:
        team.share_by_size(
            lambda member, first, last: parts.append((first, last, member)), np.cumsum(np.array(sizes, np.int64)), few
        )
    finally:
        team.close()
    parts = sorted(part for part in parts if part[0] < part[1])
    assert [k for first, last, _ in parts for k in range(first, last)] == list(range(len(sizes)))
    if few:
        assert [part[2] for part in parts] == [0] * bool(sizes)
    elif len(sizes) > 1:
        assert len(parts) > 1 and all(
            sum(sizes[first:last]) <= sum(sizes) / 16 + max(sizes) for first, last, _ in parts
        )


def test_an_interrupt_that_loses_an_answer_leaves_nobody_waiting():
    """It may come when the answer has left the queue and has not been counted yet."""

    class Losing:
        def __init__(self):
            self.lose = True

        def empty(self):
            return answers.empty()

        def put(self, answer):
            answers.put(answer)

        def get(self):
            answer = answers.get()
            if self.lose:
                self.lose = False
                raise KeyboardInterrupt
            return answer

    team, done = Team(3), []
    answers, team._done = team._done, Losing()
    try:
        for _ in range(3):
            team._done.lose = True
            with pytest.raises(KeyboardInterrupt):
                team.run(lambda member: time.sleep(0.02 * member))
            team._done.lose = False
            team.run(done.append)
    finally:
        team.close()
    assert sorted(done) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_team_that_cannot_start_all_its_threads_leaves_none(monkeypatch):
    # Other tests may have left teams to the garbage collector.
    start, before = threading.Thread.start, set(threading.enumerate())

    def refused(thread):
        if thread.name == "isthmus-team-3":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Team(4)
    assert [
        thread.name
        for thread in threading.enumerate()
        if thread not in before and thread.name.startswith("isthmus-team")
    ] == []


def test_interrupts_come_up_when_the_work_has_ended():
    steps, main = [], threading.main_thread().ident

    def work():
        for step in range(5):
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.01)
            steps.append(step)

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert steps == [0, 1, 2, 3, 4]


def test_an_interrupt_while_the_thread_starts(monkeypatch):
    """The work is done, and done once, whether the interrupt comes before the thread runs or after."""
    start = threading.Thread.start
    for runs in (False, True):
        done, interrupts = [], [True, True]

        def interrupted(thread, runs=runs, interrupts=interrupts):
            if runs:
                start(thread)
            if interrupts:
                interrupts.pop()
                raise KeyboardInterrupt
            if not runs:
                start(thread)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(threading.Thread, "start", interrupted)
            uninterrupted(lambda done=done: done.append(1))
        assert done == [1]


def test_work_that_is_not_interrupted_may_fail():
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_without_another_thread_the_work_is_done_here(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    done = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        uninterrupted(lambda: done.append(threading.current_thread()))
    thread = threading.Thread(target=lambda: uninterrupted(lambda: done.append(threading.current_thread())))
    thread.start()
    thread.join()
    assert done == [threading.main_thread(), thread], "no interrupt is raised in other threads"
