"""Shortest paths by delta-stepping: an improvement that arrives while a vertex is being followed must count; buckets
without room.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import isthmus as ist
from isthmus.kernels.loops import barrier
from isthmus.kernels.programs import delta_stepping as steps
from isthmus.programs.algorithms import sssp


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    path = tmp_path_factory.mktemp("race") / "g.isthmus"
    with ist.generate("grid", path, rows=1000, columns=1000, seed=1, weights="1:255") as graph:
        yield graph


@pytest.mark.parametrize("width", [1, 256])
def test_no_improvement_is_lost(grid, monkeypatch, width):
    middle = 1000 * 500 + 500
    expected = ist.sssp(grid, middle, threads=1).values
    monkeypatch.setattr(sssp, "WIDTH", width)  # wide buckets: the same vertices again and again
    for _ in range(10):
        assert np.array_equal(ist.sssp(grid, middle, threads=2).values, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_buckets_that_run_out_of_chunks_are_filled_anew(monkeypatch, sized, threads):
    """A hundred hubs in a row, each of which offers ten thousand leaves a shorter way than the hub before."""
    hubs, leaves = 100, 10_000
    i, leaf = (grid.ravel() for grid in np.meshgrid(np.arange(hubs), hubs + np.arange(leaves), indexing="ij"))
    row = np.arange(hubs - 1)
    weights = np.concatenate([np.ones_like(row), 100_000 - 3 * i])
    graph = ist.read((np.concatenate([row, i]), np.concatenate([row + 1, leaf]), weights), directed=True)
    filled, requeue = [], steps.requeue
    sized(bucket_entries=1)
    monkeypatch.setattr(steps, "requeue", lambda *given: (filled.append(given[0]), requeue(*given)))
    expected = np.concatenate([np.arange(hubs), np.full(leaves, 100_000 - 2 * (hubs - 1))])
    assert np.array_equal(ist.sssp(graph, 0, threads=threads).values, expected)
    assert len(filled) > 1


def test_a_bucket_that_is_too_much_for_one_call_goes_on_where_it_was(grid, monkeypatch):
    monkeypatch.setattr(sssp, "WIDTH", 1e9)
    result = ist.sssp(grid, 0, threads=2)
    assert sum(iteration.active_edges for iteration in result.trace) > steps.MOST_EDGES
    assert np.array_equal(result.values, ist.sssp(grid, 0, memory="5%").values)


def test_whole_weights_too_large_for_32_bits():
    graph = ist.read((np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([2**31, 2**31, 2**33])), directed=True)
    assert ist.sssp(graph, 0).values.tolist() == [0, 2**31, 2**32, 2**32 + 2**33]


def test_members_agree_that_chunks_ran_out():
    """Also when that happens between two meetings, while some have not looked yet: nobody may wait for one that has
    gone.
    """
    members, n = 2, 2 * steps.CHUNK
    for _ in range(20):
        gate = barrier.gate(steps.LINES)
        gate[steps.NEXT : steps.STOP] = steps.NONE
        gate[steps.USED] = 2
        heads = np.full((members, steps.RING + 1), -1, np.int32)
        fills = np.full((members, steps.RING + 1), steps.CHUNK, np.int32)
        owns = np.zeros((members, steps.OWN), np.int64)
        owns[:, steps.FREED], owns[:, steps.LEAST] = -1, steps.NONE
        # Two full chunks beyond the ring, each vertex of a bucket of its own.
        heads[0, steps.RING], owns[0, steps.LEAST] = 1, 2000
        distances, relaxed = np.arange(2000, 2000 + n).astype(np.uint32), np.full(n, 2**32 - 1, np.uint32)
        given = (
            gate,
            0,
            1.0,
            2**32 - 2,
            -1,
            *(np.zeros(n, np.int64) for _ in range(2)),
            np.zeros(0, np.uint32),
            None,
            distances,
            relaxed,
            np.arange(n, dtype=np.uint32),
            np.array([-1, 0], np.int32),
            np.empty((members, 2), np.int64),
            *(np.zeros(3 * members * barrier.LINE, np.int64) for _ in range(2)),
            heads,
            fills,
            owns,
        )
        found = {}

        def work(k, found=found, given=given):
            found[k] = steps.relax_all(k, members, *given)

        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 0)]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join(60)
        barrier.abandon(gate)  # so that a failure does not hang
        assert gate[steps.LOST]
        assert found == {0: 2000, 1: 2000}


def test_weights_with_a_long_tail(tmp_path):
    """Edges of more than a whole ring of buckets, again and again, with few chunks to spare."""
    random = np.random.default_rng(3)
    ends = random.integers(0, 3000, (2, 60_000))
    weights = np.where(
        random.random(60_000) < 0.01, random.integers(10**6, 10**7, 60_000), random.integers(1, 50, 60_000)
    )
    graph = ist.read((*ends, weights), directed=True)
    expected = ist.sssp(ist.ingest((*ends, weights), tmp_path / "g.isthmus", directed=True), 0, memory="5%").values
    for threads in (1, 2, 3, 4):
        for _ in range(10):
            assert np.array_equal(ist.sssp(graph, 0, threads=threads).values, expected)


def test_a_path_of_exactly_the_cutoff_counts():
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([2.8, 1.3])), directed=True)
    assert ist.sssp(graph, 0, cutoff=4.1).values.tolist() == [0, 2.8, 2.8 + 1.3]


def test_kernels_come_back_on_long_thin_graphs(monkeypatch):
    """However little a round does; and so many rounds do not make as many records."""
    calls, relax_all = [], steps.relax_all

    def timed(*given):
        start = time.perf_counter()
        result = relax_all(*given)
        calls.append(time.perf_counter() - start)
        return result

    graph = ist.generate("path", vertices=100_000)
    ist.sssp(graph, 0, threads=2)  # compiled
    monkeypatch.setattr(steps, "relax_all", timed)
    result = ist.sssp(graph, 0, threads=2)
    assert result.values.tolist() == list(range(100_000))
    assert len(calls) >= 2 * 100_000 // steps.MOST_ROUNDS
    assert len(result.trace) < 2000
