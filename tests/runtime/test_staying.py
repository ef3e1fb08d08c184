"""Scaph's partitions that stay near: the same answers, re-runs while others come, the same counts on a modelled device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.runtime import budget
from isthmus.runtime.staying import StayingPartitions

DEVICE: dict[str, Any] = {"device": "model:rtx2080ti", "policy": "scaph", "memory": "40%"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("staying") / "g.isthmus", scale=13, seed=3, weights="1:50") as graph:
        yield graph


@pytest.fixture(autouse=True)
def small(sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "ENOUGH", 16 << 10)
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
    """The clock alone says what comes when, and so what runs again (`test_published.py` has devices on which much does)."""
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
    """Also those that were not active before, on a sparse frontier; and lists that are cut over partitions start no rerun."""
    slow = tmp_path / "slow.toml"
    rates = "{ value = 1e8, source = 'made up' }", "{ value = [1e8, 1e8, 1e8, 1e8], source = 'made up' }"
    slow.write_text(f"base = 'rtx2080ti'\nname = 'slow'\n[link]\nbandwidth = {rates[0]}\ndirect = {rates[1]}\n")
    found: list[tuple[bool, int]] = []
    pieces = StayingPartitions.pieces

    def spy(self: StayingPartitions, unit: int, delivery: Any) -> Any:
        made = pieces(self, unit, delivery)
        if self._standing.runs[unit]:
            found.append((self._frontier.list is not None, len(made)))
        return made

    monkeypatch.setattr(StayingPartitions, "pieces", spy)
    ist.php(graph, 0, tol=1.0, device=f"model:{slow}", policy="scaph:hvsp", memory="40%")
    assert any(sparse for sparse, _ in found), "partitions run again while the frontier is sparse"
    assert all(made for _, made in found), "every rerun has something to run"
