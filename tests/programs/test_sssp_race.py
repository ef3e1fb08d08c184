"""Two threads relaxing towards each other: an improvement that arrives while a vertex is being followed must count."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.kernels import buckets
from isthmus.programs import sssp


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
    for _ in range(30):
        assert np.array_equal(ist.sssp(grid, middle, threads=2).values, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_buckets_that_run_out_of_chunks_are_filled_anew(monkeypatch, threads):
    """A hundred hubs in a row, each of which offers ten thousand leaves a shorter way than the hub before."""
    hubs, leaves = 100, 10_000
    i, leaf = (grid.ravel() for grid in np.meshgrid(np.arange(hubs), hubs + np.arange(leaves), indexing="ij"))
    row = np.arange(hubs - 1)
    weights = np.concatenate([np.ones_like(row), 100_000 - 3 * i])
    graph = ist.read((np.concatenate([row, i]), np.concatenate([row + 1, leaf]), weights), directed=True)
    filled, requeue = [], buckets.requeue
    monkeypatch.setattr(sssp, "ENTRIES", 1)
    monkeypatch.setattr(buckets, "requeue", lambda *given: (filled.append(given[0]), requeue(*given)))
    expected = np.concatenate([np.arange(hubs), np.full(leaves, 100_000 - 2 * (hubs - 1))])
    assert np.array_equal(ist.sssp(graph, 0, threads=threads).values, expected)
    assert len(filled) > 1


def test_a_bucket_that_is_too_much_for_one_call_goes_on_where_it_was(grid, monkeypatch):
    monkeypatch.setattr(sssp, "WIDTH", 1e9)
    result = ist.sssp(grid, 0, threads=2)
    assert sum(iteration.active_edges for iteration in result.trace) > buckets.MOST_EDGES
    assert np.array_equal(result.values, ist.sssp(grid, 0, memory="5%").values)


def test_whole_weights_too_large_for_32_bits():
    graph = ist.read((np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([2**31, 2**31, 2**33])), directed=True)
    assert ist.sssp(graph, 0).values.tolist() == [0, 2**31, 2**32, 2**32 + 2**33]
