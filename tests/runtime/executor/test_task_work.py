"""Deliveries that are worked on again: the same answers in fewer iterations, and only where any order will do."""

from __future__ import annotations

import itertools
import random
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests import sides
from tests.programs.ways import columns, skewed, small_sizes

import isthmus as ist
from isthmus.devices.worker import Worker
from isthmus.policies import recipes
from isthmus.policies.policy import FILTER, Fixed
from isthmus.policies.recipes import UNTIL_SETTLED, Recipe

INF = float("inf")
THRESHOLD = 1e-9
SHARE = 0.6


@ist.monotone(initial=INF, combine="min", start=0)
def tolls(cost, weight, degree, vertex, base=1):
    return cost + base + weight + degree % 3 + vertex % 5


@ist.monotone(initial="vertex", combine="max", sides=("out", "in"))
def largest(value):
    return value


@ist.monotone(initial="vertex", combine="min")
def smallest(value):
    return value


@ist.accumulative(threshold=THRESHOLD)
def spread(delta, degree, share=SHARE):
    return share * delta / degree


@ist.accumulative(threshold=THRESHOLD)
def weighted(delta, weight, degree, share=0.01):
    return share * delta * weight / degree


EXACT: dict[str, Any] = {
    "bfs": lambda g, **how: ist.bfs(g, 1, **how),
    "bfs, limit": lambda g, **how: ist.bfs(g, 1, depth_limit=2, **how),
    "sssp": lambda g, **how: ist.sssp(g, 1, **how),
    "sssp, tree": lambda g, **how: ist.sssp(g, 1, cutoff=60, predecessors=True, **how),
    "widest": lambda g, **how: ist.widest_path(g, 1, **how),
    "own": lambda g, **how: ist.run(tolls(1, base=2), g, **how),
    "components": lambda g, **how: ist.weakly_connected_components(g, **how),
    "cores": lambda g, **how: ist.core_number(g, **how),
    "two sides": lambda g, **how: ist.run(largest(), g, **how),
}
CLOSE: dict[str, tuple[Any, float]] = {
    "spread": (lambda g, **how: ist.run(spread(), g, **how), 1e-4),
    "weighted": (lambda g, **how: ist.run(weighted(), g, **how), 1e-4),
    "spread from one": (lambda g, **how: ist.run(spread(1, share=0.8), g, **how), 1e-4),
    "php": (lambda g, **how: ist.php(g, 1, tol=1e-7, **how), 2e-7),
    "php, weighted": (lambda g, **how: ist.php(g, 1, tol=1e-7, weight=True, **how), 2e-7),
    "katz": (lambda g, **how: ist.katz(g, alpha=1e-3, tol=1e-7, **how), 1e-4),
    "pagerank": (lambda g, **how: ist.pagerank(g, tol=1e-7, **how), 2e-7),
}
RERUN = ("pagerank", "php", "php, weighted", "sssp", "own", "spread", "weighted", "spread from one", "widest")


@pytest.fixture(autouse=True)
def variants(monkeypatch):
    """Subway without its rounds, and whole partitions with them."""
    monkeypatch.setitem(recipes.RECIPES, "once", replace(recipes.RECIPES["subway"], name="once", further_runs={}))
    monkeypatch.setitem(
        recipes.RECIPES, "rerun", Recipe("rerun", Fixed("rerun", FILTER), further_runs={"filter": UNTIL_SETTLED})
    )
    monkeypatch.setitem(
        recipes.RECIPES,
        "kept",
        Recipe(
            "kept", Fixed("kept", FILTER), "partitions", further_runs={"filter": UNTIL_SETTLED, "cache": UNTIL_SETTLED}
        ),
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Low numbers are hubs, whose lists are longer than a tight buffer."""
    draw = random.Random(5)
    edges = skewed(lambda _: draw.randrange(1, 40), 900, 9000)
    with ist.ingest(columns(edges), tmp_path_factory.mktemp("rounds") / "g.isthmus", vertices=907) as graph:
        yield graph


def result_of(name):
    return EXACT[name] if name in EXACT else CLOSE[name][0]


def assert_same(name, result, expected):
    if name in EXACT:
        assert np.array_equal(result.values, expected.values)
    else:
        assert np.abs(result.values - expected.values).sum() <= CLOSE[name][1]


@pytest.mark.parametrize("policy", ["subway", "rerun", "kept"])
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_the_same_answers(graph, name, policy, sized):
    """Also where hubs come in pieces, which are not worked on again but must not be lost."""
    expected = result_of(name)(graph)
    for tight in (False, True):
        if tight:
            small_sizes(sized)
        for memory, threads, far in (("1%", 1, "ram"), ("30%", 3, "auto")):
            assert_same(name, result_of(name)(graph, policy=policy, memory=memory, threads=threads, far=far), expected)


@pytest.mark.parametrize("name", ["spread", "weighted", "spread from one"])
def test_fewer_iterations(graph, name):
    rounds, once = (result_of(name)(graph, policy=policy, memory="30%", threads=2) for policy in ("subway", "once"))
    assert len(rounds.trace) < len(once.trace)
    assert rounds.summary()["transfer"]["bytes"] < once.summary()["transfer"]["bytes"]


def test_a_winding_path_is_followed_while_it_is_near(tmp_path):
    """All of it comes in one delivery: one iteration instead of one per turn."""
    stops = np.random.default_rng(1).permutation(2000)
    with ist.ingest((stops[:-1], stops[1:]), tmp_path / "g.isthmus", directed=False) as graph:
        rounds, once = (ist.run(smallest(), graph, policy=policy, memory="30%") for policy in ("subway", "once"))
    assert not rounds.values.any()
    assert not once.values.any()
    assert len(rounds.trace) == 1
    assert len(once.trace) > 100
    assert rounds.trace.iterations[0].engines["compaction"]["tasks"] == 1


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_only_who_may_is_worked_on_again(graph, name, monkeypatch):
    """Never a program of two sides, one that counts edges once, or one with a bound on its iterations."""
    seen, again = [], Worker.again
    monkeypatch.setattr(Worker, "again", lambda self, *given: seen.append(again(self, *given)) or seen[-1])
    result_of(name)(graph, policy="subway", memory="30%")
    if name in RERUN:
        assert any(seen)
    elif not name.startswith("bfs") and name != "sssp, tree":  # who is asked, but whose vertices are final at once
        assert not any(seen)


@pytest.mark.parametrize("threshold", [1e-3, 1e-6, 1e-9])
def test_what_is_left_is_below_the_threshold(graph, threshold, tmp_path):
    """However often deltas are taken: what was never sent is at most a threshold per vertex."""
    out = graph.store.read("out.offsets")
    targets = graph.store.read("out.targets")
    exact = np.ones(graph.vertices)
    degrees = np.diff(out)
    sources = np.repeat(np.arange(graph.vertices), degrees)
    wave = exact.copy()
    while wave.max() > 1e-15:
        wave = np.bincount(targets, SHARE * (wave / np.maximum(degrees, 1))[sources], graph.vertices)
        exact += wave
    bound = graph.vertices * threshold * SHARE / (1 - SHARE)
    for policy in ("subway", "rerun"):
        found = ist.run(spread(threshold=threshold), graph, policy=policy, memory="30%", threads=3).values
        assert (found <= exact + 1e-9).all()
        assert np.abs(exact - found).sum() <= bound + 1e-9


@pytest.mark.parametrize("policy", ["subway", "rerun"])
@pytest.mark.parametrize("name", ["sssp", "spread"])
def test_members_that_meet_lose_nothing(graph, name, policy, monkeypatch, sized):
    """While one works on a delivery again, another is marking its vertices. Repeated until that has happened often."""
    small_sizes(sized)
    sized(piece=40)
    expected = result_of(name)(graph)
    lock, inside, met = threading.Lock(), [0, 0], 0
    again, pieces = Worker.again, Worker.pieces

    def counted(kind, work):
        def run(member):
            nonlocal met
            with lock:
                inside[kind] += 1
                met += inside[0] > 0 and inside[1] > 0
            try:
                work(member)
            finally:
                with lock:
                    inside[kind] -= 1

        return run

    monkeypatch.setattr(Worker, "again", lambda self, *given: [counted(0, work) for work in again(self, *given)])
    monkeypatch.setattr(Worker, "pieces", lambda self, *given: [counted(1, work) for work in pieces(self, *given)])
    end = time.monotonic() + 80
    for turn in itertools.count():
        assert_same(name, result_of(name)(graph, policy=policy, memory="30%", threads=4), expected)
        if (met > 200 and turn >= 5) or time.monotonic() > end:
            break
    assert met > 20, "they never met"


def test_an_error_in_a_further_round(graph, monkeypatch):
    again = Worker.again

    def failing(self: Worker, *given: Any) -> Any:
        def fail(member: int) -> None:
            raise ZeroDivisionError("in a further round")

        return [fail] if again(self, *given) else []

    monkeypatch.setattr(Worker, "again", failing)
    before = sides.our_threads()
    for threads in (1, 2, 4):
        with pytest.raises(ZeroDivisionError, match="in a further round"):
            ist.sssp(graph, 1, policy="subway", memory="1%", threads=threads)
    assert sides.our_threads() <= before
