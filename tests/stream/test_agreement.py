"""Value and parent agree at the end of a round, however threads interleave (`programs/dependencies.py`).

The spots where threads could get between each other are widened: every memory fence of an update takes microseconds.
Several threads then improve the same few vertices, again and again, until they really overlapped. The last tests take
the lock away, and see that the disagreement is found.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.kernels.compile.atomics import atomic_exchange, fence
from isthmus.programs import dependencies
from isthmus.stream.maintain.monotone import MaintainedMonotone

THREADS, HEADS, TAILS = 4, 6, 240
SECONDS, ROUNDS = 60.0, 12  # threads overlap in nearly every round, unless the machine is very busy
ANY = 10_000  # rounds until something is wrong


def slow() -> Any:
    """A memory fence that takes some microseconds: a number is squared about, which no compiler can foresee, and never
    gets above 1.
    """
    x = 0.3
    for _ in range(1500):
        x = 3.9 * x * (1.0 - x)
        if x > 2.0:
            fence()
    fence()
    return x > 2.0


def not_taken(parents: Any, v: Any) -> Any:
    """The parent of v, without a lock."""
    return parents[v]


@pytest.fixture(params=["sssp", "widest_path"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A maintained program whose updates are slow, on a graph of arcs from many tails to a few heads."""
    monkeypatch.setattr(dependencies, "fence", slow)
    return request.param


def arcs() -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(3)
    tails, heads = np.repeat(np.arange(HEADS, HEADS + TAILS), HEADS), np.tile(np.arange(HEADS), TAILS)
    return tails, heads, draw.integers(1, 1000, tails.size).astype(np.int32)


def opened(name: str) -> tuple[Any, MaintainedMonotone, tuple[Any, Any, Any]]:
    tails, heads, weights = arcs()
    everything = (
        np.concatenate([np.full(TAILS, HEADS + TAILS), tails]),
        np.concatenate([np.arange(HEADS, HEADS + TAILS), heads]),
    )
    lengths = np.concatenate([np.random.default_rng(5).integers(1, 1000, TAILS), weights]).astype(np.int32)
    wanted = {"sssp": ist.SSSP, "widest_path": ist.WidestPath}[name](source=HEADS + TAILS)
    live = ist.stream(ist.read((*everything, lengths), directed=True), [wanted], threads=1)
    return live, live.batches.programs[name], (tails, heads, weights)


def race(program: MaintainedMonotone, given: tuple[Any, Any, Any], seed: int) -> tuple[bool, list[str]]:
    """Forget the values of the heads, and let threads send along all arcs, each in an order of its own.

    Returns whether threads overlapped, and where value and parent disagree.
    """
    tails, heads, weights = given
    values, parents, silent = program.state.values, program.state.parents, program.state.silent
    marks, module = program.loops.marks, program.loops.module  # type: ignore[attr-defined]
    expected = values[:HEADS].copy()
    values[:HEADS], parents[:HEADS] = silent, dependencies.NOBODY
    program.state.forget_changes()
    begins, ends, *_ = program.graph.sides["out"].arrays()
    draw, gate, times = np.random.default_rng(seed), threading.Barrier(THREADS), []
    messages = program.program.settles * ({"sssp": np.add, "widest_path": np.minimum}[program.name])(
        values[tails], weights
    )
    # The worst first: most arcs improve.
    orders = [np.argsort(-messages + draw.integers(0, 30, tails.size)) for _ in range(THREADS)]

    def send(order: Any) -> None:
        mine, queue = (tails[order], heads[order], weights[order]), np.empty(tails.size, np.uint32)
        state = (True, values.dtype.type(silent), program.state.arrays, program.state.params, marks)
        gate.wait()
        start = time.perf_counter()
        module.relax_arcs(*mine, 0, order.size, begins, ends, *state, queue, 0)
        times.append((start, time.perf_counter()))

    threads = [threading.Thread(target=send, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    marks[:] = 0
    wrong = [f"value of {v}" for v in range(HEADS) if values[v] != expected[v]]
    arc_of = {(int(u), int(v)): int(w) for u, v, w in zip(tails, heads, weights, strict=True)}
    for v in range(HEADS):
        parent = int(parents[v])
        message = {"sssp": lambda d, w: d + w, "widest_path": min}[program.name]
        if parent in (dependencies.NOBODY, dependencies.LOCKED) or values[v] != message(
            int(values[parent]), arc_of[parent, v]
        ):
            wrong.append(f"parent of {v}: {parent}")
    changed = program.state.changes[1][: program.state.changed_count].tolist()
    if sorted(changed) != list(range(HEADS)):
        wrong.append(f"changed: {changed}")
    values[:HEADS] = expected
    times.sort()
    return any(later < end for (_, end), (later, _) in itertools.pairwise(times)), wrong


def raced(name: str, rounds: int) -> tuple[int, list[str]]:
    """Races until threads have overlapped in `rounds` of them, or something is wrong; returns how many did, and what is
    wrong.
    """
    live, program, given = opened(name)
    met, wrong, end = 0, [], time.monotonic() + SECONDS
    with live:
        for seed in range(ANY):
            if met == rounds or wrong or time.monotonic() > end:
                break
            overlapped, found = race(program, given, seed)
            met += overlapped
            wrong += found
    assert met, "threads never ran at once: this shows nothing"
    return met, wrong


@pytest.mark.timeout(300)
def test_value_and_parent_agree_whatever_the_interleaving(program: str) -> None:
    _, wrong = raced(program, ROUNDS)
    assert not wrong


@pytest.mark.timeout(300)
def test_without_the_lock_they_do_not(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would show nothing."""
    monkeypatch.setattr(dependencies, "taken", not_taken)
    assert raced(program, ANY)[1]


def compare_and_set(parents: Any, v: Any) -> Any:
    """A lock that does not wait."""
    return atomic_exchange(parents, v, parents[v])


@pytest.mark.timeout(300)
def test_nor_with_a_lock_that_does_not_wait(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "taken", compare_and_set)
    assert raced(program, ANY)[1]


@pytest.mark.timeout(300)
def test_trees_after_batches_that_all_threads_work_on(program: str, sized: Any) -> None:
    """Whole streams, by the loop of every run: hubs that many vertices reach lose their values and get them back."""
    sized(few_changes=0, settled_alone=1, alone=0, piece=256)
    draw = np.random.default_rng(8)
    sources, targets = draw.integers(0, 1500, 12_000), draw.integers(0, 30, 12_000)
    ends = np.unique(np.concatenate([np.stack([sources, targets]), np.stack([targets, sources])], 1), axis=1)
    weights = {(int(u), int(v)): int(w) for u, v, w in zip(*ends, draw.integers(1, 90, ends.shape[1]), strict=True)}
    wanted = {"sssp": ist.SSSP, "widest_path": ist.WidestPath}[program](source=17)
    with ist.stream(
        ist.read((*ends, np.array(list(weights.values()), np.int32)), directed=True), [wanted], threads=2
    ) as live:
        for _ in range(4):
            arcs = list(weights)
            changed = [arcs[k] for k in draw.integers(0, len(arcs), 600)]
            fresh = {arc: int(w) for arc, w in zip(changed, draw.integers(1, 90, 600), strict=True)}
            live.apply(updates=[(u, v, w) for (u, v), w in fresh.items()])
            weights |= fresh
            assert_tree(live, program, weights)
        assert live[program].filled().tolist() == getattr(ist, program)(live.graph.frozen(), 17).filled().tolist()


def assert_tree(live: Any, name: str, weights: dict[tuple[int, int], int]) -> None:
    program, users = live.batches.programs[name], live.graph.changing_ids.users().tolist()
    message = {"sssp": lambda d, w: d + w, "widest_path": min}[name]
    n = live.graph.vertices
    values, parents = program.state.values[:n].tolist(), program.state.parents[:n].tolist()
    for v, parent in enumerate(parents):
        if parent == dependencies.NOBODY:
            assert users[v] == 17 or values[v] == program.state.silent
        else:
            assert values[v] == message(values[parent], weights[users[parent], users[v]])
