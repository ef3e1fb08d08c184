"""Scaph's partitions that stay near: the same answers, re-runs while others come, the same counts on a modelled
device.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices import cpu
from isthmus.devices.model.resource_clock import Clock
from isthmus.link.link import Moved
from isthmus.runtime.executor import resident_partitions
from isthmus.runtime.executor.resident_partitions import ClockedTransfers, PackedLists, StayingPartitions

DEVICE: dict[str, Any] = {"device": "model:rtx2080ti", "policy": "scaph", "memory": "40%"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate(
        "rmat", tmp_path_factory.mktemp("staying") / "g.isthmus", scale=13, seed=3, weights="1:50"
    ) as graph:
        yield graph


@pytest.fixture(autouse=True)
def small(sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "ENOUGH", 16 << 10)
    sized(smallest_partition=4096, least_buffer=16 << 10, modelled_buffer=16 << 10, piece=500)


@pytest.fixture
def reruns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every iteration, so far."""
    found: list[int] = []
    run = StayingPartitions.run

    def spy(self: StayingPartitions, *given: Any) -> None:
        run(self, *given)
        found.append(self.reruns)
        assert self._kept.free + len(list(self._kept)) == self._kept.room

    monkeypatch.setattr(StayingPartitions, "run", spy)
    return found


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("how", [{"policy": "scaph", "memory": "40%"}, DEVICE], ids=["disk", "modelled"])
def test_the_same_answers(graph: Any, threads: int, how: dict[str, Any], reruns: list[int]) -> None:
    for _ in range(3):
        assert np.array_equal(ist.sssp(graph, 0, threads=threads, **how).values, ist.sssp(graph, 0).values)
    assert reruns, "partitions stayed"


def test_a_modelled_device_counts_alike_however_many_threads_there_are(graph: Any, reruns: list[int]) -> None:
    """The clock alone says what comes when, and so what runs again (`test_published.py` has devices on which much
    does).
    """
    expected = None
    for threads in (1, 2, 2, 4, 4):
        reruns.clear()
        found = ist.pagerank(graph, tol=1e-1, threads=threads, **DEVICE).summary()
        counts = found["transfer"]["bytes"], found["iterations"], list(reruns)
        expected = expected or counts
        assert counts == expected


def test_none_stay_where_the_cache_is_switched_off(graph: Any) -> None:
    stays, goes = (ist.sssp(graph, 0, **DEVICE, without=off).summary() for off in ((), ("cache",)))
    assert stays["cache"]["hit_edges"] > goes["cache"]["hit_edges"] == 0
    assert stays["transfer"]["bytes"] < goes["transfer"]["bytes"]


def test_a_rerun_follows_all_marked_vertices_it_can(graph: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that were not active before, on a sparse frontier; and lists that are cut over partitions start no
    rerun.
    """
    slow = tmp_path / "slow.toml"
    rates = "{ value = 1e8, source = 'made up' }", "{ value = [1e8, 1e8, 1e8, 1e8], source = 'made up' }"
    slow.write_text(f"base = 'rtx2080ti'\nname = 'slow'\n[link]\nbandwidth = {rates[0]}\ndirect = {rates[1]}\n")
    found: list[tuple[bool, int]] = []
    pieces = StayingPartitions.pieces

    def spy(self: StayingPartitions, delivery: Any, frontier: Any) -> Any:
        made = pieces(self, delivery, frontier)
        if self._units.runs[delivery.task.partitions[0]]:
            found.append((frontier.list is not None, len(made)))
        return made

    monkeypatch.setattr(StayingPartitions, "pieces", spy)
    ist.php(graph, 0, tol=1.0, device=f"model:{slow}", policy="scaph:hvsp", memory="40%")
    assert any(sparse for sparse, _ in found), "partitions run again while the frontier is sparse"
    assert all(made for _, made in found), "every rerun has something to run"


def test_programs_that_need_an_order_run_every_partition_once(graph: Any, reruns: list[int]) -> None:
    found = ist.minimum_spanning_forest(graph, **DEVICE)
    assert reruns and not any(reruns)
    assert found.summary()["engines"]["cache"]["tasks"] > 0, "they stayed"
    assert found.summary()["result"] == ist.minimum_spanning_forest(graph).summary()["result"]


# Both engines at the same time


class Lists:
    """Packed lists with plain numbers: seconds of packing and of the link for each buffer."""

    frontier = None
    tasks = (0,)

    def __init__(self, log: list[Any], *buffers: tuple[float, float]) -> None:
        self.log, self.buffers = log, buffers

    def fetch(self, unit: int, channel: int) -> Any:
        for number, (host, link) in enumerate(self.buffers):
            yield SimpleNamespace(number=number, moved=Moved(host_seconds=host, link_seconds=link))

    def pieces(self, delivery: Any, frontier: Any) -> Any:
        """As the worker has them."""
        return [lambda member: self.log.append(f"packed {delivery.number}")]

    def finished(self, unit: int, delivery: Any) -> None: ...


def order_of(
    monkeypatch: pytest.MonkeyPatch, packed: list[tuple[float, float]], whole: list[float]
) -> tuple[list[str], float]:
    """What runs when, each for a second: packed lists, and partitions whose transfers take these seconds."""
    monkeypatch.setattr(resident_partitions, "followed", lambda delivery, frontier: 0)
    clock, log = Clock(4, 1), []
    moved = lambda channel: Moved(link_seconds=whole[len(transfers._jobs)])  # noqa: E731
    link = SimpleNamespace(lend=lambda: nullcontext(0), arrival=lambda channel: None, take=moved)
    modelled = SimpleNamespace(clock=clock, link=link, kernel=lambda delivery, edges: 1.0, submit=lambda: None)
    lists = Lists(log, *packed)
    work = SimpleNamespace(moved={}, arrivals={}, fetch=lambda unit, channel: None, worker=lists)
    transfers = ClockedTransfers(work, modelled)  # type: ignore[arg-type]
    transfers.begin(lists)  # type: ignore[arg-type]
    for unit in range(len(whole)):
        transfers.send(unit)
    left = len(whole)
    while left:
        unit = transfers.arrived(True)
        if unit is not None:
            log.append(f"whole {unit}")
            transfers.ran(unit, None, 0)  # type: ignore[arg-type]
            left -= 1
    transfers.end()
    return log, clock.finish().seconds


def test_partitions_cross_the_link_while_the_host_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing takes 3 seconds, in which two partitions arrive and run; then the packed lists move, and run last."""
    assert order_of(monkeypatch, [(3, 1)], [1, 1]) == (["whole 0", "whole 1", "packed 0"], 5)


def test_what_arrives_first_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    log, seconds = order_of(monkeypatch, [(0.5, 1), (0.5, 1)], [1, 1, 1])
    assert log == ["whole 0", "packed 0", "packed 1", "whole 1", "whole 2"]
    assert seconds == 6, "the link is never idle"


def test_more_packed_lists_than_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = order_of(monkeypatch, [(0.1, 0.1)] * 9, [1])
    assert sorted(log) == sorted([f"packed {k}" for k in range(9)] + ["whole 0"])


def test_packed_lists_run_between_whole_partitions(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the modelled clock; without overlap they run before."""
    log: list[str] = []
    run, finished, begin = PackedLists.run, StayingPartitions.finished, StayingPartitions.run
    monkeypatch.setattr(PackedLists, "run", lambda self, job: (log.append("p"), run(self, job))[1])
    monkeypatch.setattr(
        StayingPartitions, "finished", lambda self, *given: (log.append("w"), finished(self, *given))[1]
    )
    monkeypatch.setattr(StayingPartitions, "run", lambda self, *given: (log.append(" "), begin(self, *given))[1])
    ist.sssp(graph, 0, **DEVICE)
    assert any("wp" in iteration and iteration.endswith("w") for iteration in "".join(log).split())
    log.clear()
    ist.sssp(graph, 0, **DEVICE, without=("overlap",))
    assert "w" in log and "p" not in log
