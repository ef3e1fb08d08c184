"""Partitions worked to a standstill: the same answers, far fewer bytes on graphs with long paths."""

from __future__ import annotations

import faulthandler
import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import sides

import isthmus as ist
from isthmus.cache.partition_places import KeptPartitions
from isthmus.errors import StoreError
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut, joined
from isthmus.link.profile.calibration import GUESS
from isthmus.link.ssd import SsdLink
from isthmus.policies.policy import CACHE, FILTER, NOTHING
from isthmus.runtime import loop
from isthmus.runtime.executor import settling_partitions
from isthmus.schedule.schedule import NONE
from isthmus.schedule.settling_order import Settling

SIDE = 300


@ist.monotone(initial=np.inf, combine="min", start=0, column="cost")
def toll(cost, weight, vertex, base=2):
    return cost + base + weight % 5 + vertex % 3


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate(
        "grid", tmp_path_factory.mktemp("grid") / "g.isthmus", rows=SIDE, columns=SIDE, seed=1, weights="1:255"
    ) as graph:
        yield graph


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A grid whose vertex numbers say nothing about places."""
    side = 2 * SIDE
    places = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([a.ravel(), b.ravel()]) for a, b in ((places[:, 1:], places[:, :-1]), (places[1:], places[:-1]))], 1
    )
    number = np.random.default_rng(1).permutation(side * side)
    folder = tmp_path_factory.mktemp("shuffled")
    np.savetxt(folder / "e.txt", number[pairs].T, fmt="%d")
    with ist.ingest(folder / "e.txt", folder / "g.isthmus", directed=False) as graph:
        yield graph


RUNS = {
    "bfs": lambda g, **how: ist.bfs(g, 0, **how),
    "bfs, middle": lambda g, **how: ist.bfs(g, SIDE * SIDE // 2, **how),
    "bfs, limit": lambda g, **how: ist.bfs(g, 0, depth_limit=200, **how),
    "sssp": lambda g, **how: ist.sssp(g, 7, **how),
    "sssp, cutoff": lambda g, **how: ist.sssp(g, 7, cutoff=9000, **how),
    "widest": lambda g, **how: ist.widest_path(g, 0, **how),
    "own": lambda g, **how: ist.run(toll(source=5), g, **how),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("memory", "threads"), [("10%", 1), ("10%", 2), ("50%", 2), ("10%", 5)])
def test_the_same_answer(name, memory, threads, grid):
    far = RUNS[name](grid, memory=memory, threads=threads)
    assert np.array_equal(far.values, RUNS[name](grid).values)
    assert "filter" in far.summary()["engines"]


@pytest.mark.parametrize("name", ["bfs", "bfs, middle", "sssp"])
def test_a_wave_reads_a_grid_about_once(name, grid):
    ratio = lambda *off: RUNS[name](grid, memory="20%", without=off).summary()["transfer"]["ratio"]  # noqa: E731
    assert ratio() < 3
    assert ratio("settle", "cache") > 10 * ratio()


def test_what_is_near_is_worked_on_first(grid):
    run = RUNS["sssp"](grid, memory="20%")
    uses = run.summary()["engines"]
    assert uses["cache"]["tasks"] > 2 * uses["filter"]["tasks"]
    assert run.summary()["cache"]["hit_edges"] > 0


def test_threads_that_meet_lose_nothing(grid):
    expected = RUNS["sssp"](grid).values
    for _ in range(15):
        assert np.array_equal(RUNS["sssp"](grid, memory="10%", threads=4).values, expected)


def test_without_neighbourhoods_it_goes_back_to_steps(shuffled, monkeypatch):
    slow = replace(GUESS, bandwidth=5e7)  # on which a partition costs as much as 30 requests
    monkeypatch.setattr("isthmus.link.open.profile_of", lambda *_: slow)
    steps = []
    pays = settling_partitions.SettlingPartitions.pays
    monkeypatch.setattr(
        settling_partitions.SettlingPartitions, "pays", lambda self: steps.append(pays(self)) or steps[-1]
    )
    far = ist.bfs(shuffled, 0, memory="10%")
    assert np.array_equal(far.values, ist.bfs(shuffled, 0).values)
    assert steps[-1] is False


def test_calls_that_are_cut_short(grid, sized):
    sized(settled_edges=50)
    assert np.array_equal(RUNS["sssp"](grid, memory="20%").values, RUNS["sssp"](grid).values)


def test_more_vertices_elsewhere_than_a_call_can_name(grid, sized):
    sized(settled_outer=3)
    assert np.array_equal(RUNS["bfs, middle"](grid, memory="20%").values, RUNS["bfs, middle"](grid).values)


def test_a_skewed_graph_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SettlingPartitions", None)  # would fail if it were tried
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=13, weights="1:9") as graph:
        assert ist.sssp(graph, 0, memory="10%").summary()["result"]["reached"] > 1


@pytest.mark.parametrize("threads", [1, 3])
def test_a_read_that_fails_ends_the_run(grid, threads, monkeypatch):
    count = itertools.count()
    move = SsdLink.move

    def failing(self: SsdLink, *arguments: Any) -> int:
        if next(count) > 12:
            raise StoreError("out.targets: byte 0: gone")
        return move(self, *arguments)

    monkeypatch.setattr(SsdLink, "move", failing)
    with pytest.raises(StoreError, match="gone"):
        RUNS["sssp"](grid, memory="10%", threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 6])
def test_reads_that_all_fail_end_the_run_too(grid, threads, monkeypatch):
    """More members than the link has channels: whoever waits for one must not wait for ever."""
    faulthandler.dump_traceback_later(115, exit=True)
    reads = []
    move, read = SsdLink.move, KeptPartitions.read
    monkeypatch.setattr(KeptPartitions, "read", lambda self, *given: reads.append(1) or read(self, *given))

    def failing(self: SsdLink, *arguments: Any) -> int:
        if len(reads) > 8:
            time.sleep(0.01)  # so that others come to wait
            raise StoreError("out.targets: byte 0: gone")
        return move(self, *arguments)

    monkeypatch.setattr(SsdLink, "move", failing)
    for _ in range(5):
        reads.clear()
        with pytest.raises(StoreError, match="gone"):
            RUNS["bfs, middle"](grid, memory="10%", threads=threads)
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("threads", [1, 4])
def test_an_interrupt_while_it_settles(grid, threads, sized):
    """The other members end what they have begun, and nothing more."""
    sized(settled_record=16)
    seen = []

    def watch(iteration: Any) -> None:
        seen.append(iteration)
        if len(seen) > settling_partitions.STEPS + 2:
            raise KeyboardInterrupt

    start, before = time.monotonic(), sides.our_threads()
    with pytest.raises(KeyboardInterrupt):
        RUNS["sssp"](grid, memory="10%", threads=threads, watch=watch)
    assert time.monotonic() - start < 60
    assert len(seen) == settling_partitions.STEPS + 3
    assert sides.our_threads() <= before
    assert np.array_equal(RUNS["bfs"](grid, memory="10%").values, RUNS["bfs"](grid).values), (
        "the graph is as usable as before"
    )


@pytest.mark.parametrize("memory", ["40%", "90%"])
def test_what_the_cache_held_is_forgotten(shuffled, memory, monkeypatch):
    """Settling uses the cache's memory, finds that it does not pay, and steps go on."""
    # Whole partitions.
    monkeypatch.setattr("isthmus.link.open.profile_of", lambda *_: replace(GUESS, bandwidth=1e13))
    sides.mostly_cache(monkeypatch, 1 << 16)
    monkeypatch.setattr(settling_partitions.SettlingPartitions, "pays", lambda self: self.loads < 30)
    far = ist.bfs(shuffled, 0, memory=memory)
    assert np.array_equal(far.values, ist.bfs(shuffled, 0).values)
    assert len(far.trace) > 100, "it did go back"
    assert sum(iteration.hit_edges for iteration in far.trace.iterations[20:]) > 0, "the cache is filled again"


@ist.monotone(initial=0, combine="max", start=np.inf)
def reach(value, share=1.0):
    return value * share


def test_values_that_are_infinite(grid, monkeypatch):
    """More urgent than anything, not nothing to do."""
    settled, run = [], settling_partitions.SettlingPartitions.run
    monkeypatch.setattr(
        settling_partitions.SettlingPartitions,
        "run",
        lambda self, *given: settled.append(run(self, *given) or self.pending),
    )
    assert (ist.run(reach(source=5), grid, memory="20%").values == np.inf).all()
    assert settled, "it was tried"
    assert settled[-1] is False, "and nothing was left"


def test_a_budget_for_two_partitions(grid, tmp_path: Path):
    """The least that works: reads again and again, and still ends."""
    far = RUNS["bfs"](grid, memory="1%")
    assert np.array_equal(far.values, RUNS["bfs"](grid).values)


def test_a_member_without_work_brings_what_comes_next(grid, monkeypatch):
    """Which happens when one waits for another, so not in every run."""
    foreseen, look = [], Settling._foreseen

    def spy(self, units):
        foreseen.append(look(self, units))
        return foreseen[-1]

    monkeypatch.setattr(Settling, "_foreseen", spy)
    expected = RUNS["sssp"](grid).values
    end = time.monotonic() + 80
    while not any(p != NONE for p in foreseen):
        assert time.monotonic() < end, "nobody looked ahead"
        assert np.array_equal(RUNS["sssp"](grid, memory="20%", threads=2).values, expected)


def test_neighbouring_partitions_share_a_place(grid):
    parts = cut(Lists.of(np.arange(0, 4001, 4)), 4, 160)  # of ten vertices, forty edges
    three = joined(parts, 3)
    assert three.cuts.tolist() == [*range(0, 4000, 120), 4000]
    assert three.first.tolist() == list(range(0, 1000, 30))
    assert three.last.tolist() == [*range(30, 1000, 30), 1000]
    assert len(joined(parts, 1000)) == 1
    assert joined(parts, 1).cuts.tolist() == parts.cuts.tolist()


def test_the_trace_says_which_partitions_were_worked_on(grid):
    far = ist.bfs(grid, 0, memory="20%")
    settled = [i for i in far.trace if i.partitions.keys() <= {"filter", "cache"} and i.choices is not None]
    assert {FILTER} <= set(np.unique(np.concatenate([i.choices for i in settled])).tolist()) <= {NOTHING, FILTER, CACHE}
    assert (np.array([i.choices for i in far.trace if i.choices is not None]) != NOTHING).any(0).all(), (
        "every partition at some time"
    )
