"""Readers in other threads see one batch (`stream/results/publication.py`): its number, its values and its ids, while
the next ones are applied.

Every step of a batch is followed by a pause, so that readers get between all of them; and batches go on until reads
really overlapped them.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.stream.maintain.maintained_scores import MaintainedSpreading
from isthmus.stream.maintain.monotone import MaintainedMonotone
from isthmus.stream.results.publication import Publication

LENGTH = 30
SECONDS = 25.0
STEPS = [
    (ChangingGraph, "commit"),
    (ChangingGraph, "renumber"),
    (Publication, "take"),
    (Publication, "present"),
    (MaintainedMonotone, "compute"),
    (MaintainedMonotone, "renumber"),
    (MaintainedMonotone, "_from_scratch"),
    (MaintainedSpreading, "compute"),
    (MaintainedSpreading, "renumber"),
]


@ist.monotone(initial="vertex", combine="max")
def largest(label):  # type: ignore[no-untyped-def]
    return label


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short pause before and after every step of a batch."""
    for owner, name in STEPS:
        plain = getattr(owner, name)

        def step(self: Any, *given: Any, plain: Any = plain) -> Any:
            time.sleep(0.0005)
            found = plain(self, *given)
            time.sleep(0.0005)
            return found

        monkeypatch.setattr(owner, name, step)


def guest(number: int) -> int:
    """The vertex at the end of the path after a batch: below or above all others, so that numbers do not follow ids."""
    return -number if number % 3 else 1000 + number


def expected_ids(number: int) -> list[int]:
    return sorted([*range(LENGTH), *([guest(number)] if number else [])])


def check(name: str, result: Any) -> None:
    """A result is that of its batch: a path 0, 1, 2, ... whose first edge weighs the number of the batch plus 1, and a
    guest at its end.
    """
    number, ids = result.number, result.vertices.tolist()
    assert ids == expected_ids(number)
    values = dict(zip(ids, result.filled().tolist(), strict=True))
    place = {v: v for v in range(LENGTH)} | ({guest(number): LENGTH} if number else {})
    if name == "bfs":
        assert values == place
    elif name == "sssp":
        assert values == {v: at + (number if at else 0) for v, at in place.items()}
    elif name == "weakly_connected_components":
        assert set(values.values()) == {min(ids)}
    elif name == "largest":
        assert [values[v] for v in ids] == np.maximum.accumulate(
            [ids.index(v) for v in sorted(place, key=place.__getitem__)]
        )[[place[v] for v in ids]].tolist()
    else:
        assert sum(values.values()) == pytest.approx(1) and len(values) == len(ids)
        assert max(values, key=values.__getitem__) == max(place, key=place.__getitem__), (
            "the end of the path has the highest rank"
        )


def check_changes(name: str, result: Any) -> None:
    if name == "sssp" and result.number > 1:
        changes, number = result.changes(), result.number
        listed = dict(
            zip(
                changes["vertex"].tolist(),
                zip(changes["old"].tolist(), changes["new"].tolist(), strict=True),
                strict=True,
            )
        )
        for v in range(1, LENGTH):
            assert listed[v] == (v + number - 1, v + number)
        assert set(listed) <= {*range(1, LENGTH), guest(number), guest(number - 1)}


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("paused")
def test_readers_see_one_batch() -> None:
    graph = ist.read((np.arange(LENGTH - 1), np.arange(1, LENGTH), np.ones(LENGTH - 1, np.int64)), directed=True)
    programs = [
        ist.BFS(source=0),
        ist.SSSP(source=0),
        ist.WeaklyConnectedComponents(),
        ist.PageRank(tol=1e-9),
        largest(),
    ]
    with ist.stream(graph, programs, threads=1) as live:
        wrong: list[Any] = []
        over, overlaps = threading.Event(), [0] * 4
        readers = [threading.Thread(target=read, args=(live, k, over, overlaps, wrong)) for k in range(4)]
        for reader in readers:
            reader.start()
        number, end = 0, time.monotonic() + SECONDS
        while not wrong and min(overlaps) < 25 and time.monotonic() < end:
            number += 1
            updates, gone = [(0, 1, number + 1)], [guest(number - 1)] if number > 1 else None
            live.apply(inserts=[(LENGTH - 1, guest(number), 1)], updates=updates, remove_vertices=gone)
        over.set()
        for reader in readers:
            reader.join()
        if wrong:
            raise wrong[0]
        assert min(overlaps) > 0, "no read overlapped a batch: this shows nothing"


def read(live: Any, k: int, over: threading.Event, overlaps: list[int], wrong: list[Any]) -> None:
    draw, names = random.Random(k), list(live)
    try:
        while not over.is_set():
            name = draw.choice(names)
            result, before = live[name], live.number
            if draw.random() < 0.5:
                time.sleep(draw.random() * 0.02)  # a result that is only looked at when later batches have come
            if draw.random() < 0.3:
                check_changes(name, result)
            check(name, result)
            check_changes(name, result)
            overlaps[k] += live.number > before
    except BaseException as error:
        error.add_note(f"{name}, batch {result.number}, now {live.number}")
        wrong.append(error)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("paused")
def test_runs_and_batches_wait_for_each_other() -> None:
    """An algorithm on the stream's graph runs on one snapshot."""
    graph = ist.read((np.arange(LENGTH - 1), np.arange(1, LENGTH), np.ones(LENGTH - 1, np.int64)), directed=True)
    with ist.stream(graph, [ist.BFS(source=0)], threads=1) as live:
        wrong: list[Any] = []
        over, seen = threading.Event(), set()

        def run() -> None:
            try:
                while not over.is_set():
                    values = ist.sssp(live.graph, 0, threads=1).filled().tolist()
                    seen.add(values[1])
                    assert values == [0, *range(values[1], values[1] + LENGTH - 1)]
            except BaseException as error:
                wrong.append(error)

        runner = threading.Thread(target=run)
        runner.start()
        number, end = 0, time.monotonic() + SECONDS
        while not wrong and len(seen) < 5 and time.monotonic() < end:
            number += 1
            live.apply(updates=[(0, 1, number + 1)])
            time.sleep(0.002)
        over.set()
        runner.join()
        if wrong:
            raise wrong[0]
        assert len(seen) > 1, "no run came between two batches: this shows nothing"


def test_an_old_result_costs_little_to_keep() -> None:
    """What batches replace is kept for a result that nobody has looked at, but not without end."""
    with ist.stream(ist.generate("path", vertices=50, weights="1:2"), [ist.SSSP(source=0)]) as live:
        first, expected = live["sssp"], ist.sssp(live.graph, 0).filled().tolist()
        for number in range(60):
            live.apply(updates=[(0, 1, number % 7 + 1)])
        kept = sum(each.vertices.size for _, found in live.batches.publications["sssp"]._replaced for each in found)
        assert kept <= 3 * live.graph.vertices
        assert first.filled().tolist() == expected and first.number == 0


def test_lists_read_beside_batches_are_whole(paused: None) -> None:
    """Whether or not a batch is applied meanwhile, the neighbours of 0 are those after one of the batches."""
    graph = ist.read((np.zeros(40, np.int64), np.arange(1, 41)), directed=False)
    found: set[tuple[int, ...]] = set()
    with ist.stream(graph, threads=2) as live:
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                found.add(tuple(live.graph.neighbors(0).tolist()))
                assert live.graph.degree(0) in (40, 41)

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + SECONDS
        for k in range(400):
            live.apply(inserts=[(0, 100)], deletes=[(0, 101)] if k else None)
            live.apply(inserts=[(0, 101)], deletes=[(0, 100)])
            if (len(found) > 2 and k > 40) or time.monotonic() > end:
                break
        over.set()
        reader.join()
    usual = tuple(range(1, 41))
    assert found <= {usual, (*usual, 100), (*usual, 101)} and len(found) > 1
