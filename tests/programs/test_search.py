"""Breadth-first search over near edges: levels that members walk together, alone, or one by one."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.programs import bfs


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("alone", [0, 1 << 9])
def test_levels_of_a_grid(sized, threads, alone):
    sized(search_alone=alone)  # 0: members stay together also for the smallest
    sized(search_levels=100)  # and come back in between
    rows, columns = np.divmod(np.arange(250_000), 500)
    graph = ist.generate("grid", rows=500, columns=500)
    for _ in range(5):
        result = ist.bfs(graph, 0, threads=threads)
        assert np.array_equal(result.filled(), rows + columns)
        assert [i.active_vertices for i in result.trace][:600] == [*range(1, 501), *range(499, 399, -1)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("directed", [True, False])
def test_levels_of_a_skewed_graph(tmp_path, threads, directed):
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=14, directed=directed) as graph:
        expected = ist.bfs(graph, 0, memory="5%", policy="filter").filled()
        for limit in (None, 2):
            found = ist.bfs(graph, 0, depth_limit=limit, threads=threads).filled()
            assert np.array_equal(found, expected if limit is None else np.where(expected <= limit, expected, np.iinfo(np.int64).max))


def test_a_level_of_more_vertices_than_edges():
    """A million leaves without edges do not fit the piles that members have for small levels."""
    leaves = bfs.GANG + 5000
    sources = np.concatenate([np.zeros(leaves, np.int64), [leaves]])
    targets = np.concatenate([np.arange(1, leaves + 1), [leaves + 1]])
    chain = np.arange(leaves + 1, leaves + 2000)
    graph = ist.read((np.concatenate([sources, chain]), np.concatenate([targets, chain + 1])), directed=True)
    expected = np.concatenate([[0], np.ones(leaves), np.arange(2, 2002)])
    assert np.array_equal(ist.bfs(graph, 0, threads=2).filled(), expected)
