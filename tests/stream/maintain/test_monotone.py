"""Searches and components on a changing graph: an orphan that another neighbour can adopt keeps its value, and so do
its children.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.edits import Model

import isthmus as ist

NOBODY = 0xFFFFFFFF


def tree_edge(live: Any, name: str, draw: Any) -> tuple[int, int]:
    """Some vertex and its parent, as an edge of the graph."""
    parents, users = live.batches.programs[name].state.parents[: live.graph.vertices], live.graph.changing_ids.users()
    v = int(draw.choice(np.flatnonzero(parents != NOBODY)))
    u = int(parents[v])
    edge = int(users[u]), int(users[v])
    return edge if live.graph.has_edge(*edge) else edge[::-1]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["weakly_connected_components", "bfs"])
def test_a_deleted_tree_edge_reads_little(name: str, directed: bool) -> None:
    """One edge of a grid's tree has some 30 vertices below it (WCC), or far more (BFS); nearly all of them keep their
    parents.
    """
    across = [(60 * r + c, 60 * r + c + 1) for r in range(60) for c in range(59)]
    down = [(60 * r + c, 60 * r + c + 60) for r in range(59) for c in range(60)]
    graph = ist.read((*np.array(across + down).T,), directed=directed)
    draw, read = np.random.default_rng(3), []
    with ist.stream(graph, [ist.BFS(0) if name == "bfs" else ist.WeaklyConnectedComponents()], threads=2) as live:
        for _ in range(30):
            edge = tree_edge(live, name, draw)
            report = live.apply(deletes=[edge])
            assert report.counts["deleted"] == 1
            read.append(report.programs[name]["edges_read"])
            live.apply(inserts=[edge])
        assert np.median(read) <= 12 and np.mean(read) < graph.arcs / 50, read
        expected = ist.bfs(live.graph, 0) if name == "bfs" else ist.weakly_connected_components(live.graph)
        assert live[name].filled().tolist() == expected.filled().tolist()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_levels_grow_along_parents(seed: int) -> None:
    """A parent has its child's label, and a smaller level, so parents form no cycle, whatever batches come."""
    model = Model(seed + 700, (12, 40, 150)[seed % 3])
    with ist.stream(model.graph(), [ist.WeaklyConnectedComponents()], threads=2) as live:
        for _ in range(15):
            live.apply(**model.batch())
            program, n = live.batches.programs["weakly_connected_components"], live.graph.vertices
            labels, levels, parents = (array[:n] for array in program.state.arrays[:3])
            children = np.flatnonzero(parents != NOBODY)
            above = parents[children].astype(np.int64)
            assert (labels[above] == labels[children]).all() and (levels[above] < levels[children]).all()
            roots = np.flatnonzero(parents == NOBODY)
            assert (labels[roots] == roots).all()
            found = live["weakly_connected_components"]
            assert found.filled().tolist() == ist.weakly_connected_components(live.graph).filled().tolist()


def test_a_real_split_and_its_repair() -> None:
    with ist.stream(ist.generate("path", vertices=300), [ist.WeaklyConnectedComponents(), ist.BFS(0)]) as live:
        live.apply(deletes=[(100, 101)])
        assert live["weakly_connected_components"].values.tolist() == [0] * 101 + [101] * 199
        live.apply(inserts=[(0, 299)], deletes=[(50, 51)])
        assert live["weakly_connected_components"].values.tolist() == [0] * 51 + [51] * 50 + [0] * 199
        assert live["bfs"].values.tolist()[-1] == 1 and live["bfs"].values.mask.tolist()[51:101] == [True] * 50


def test_many_new_vertices_beside_deletions() -> None:
    """The arrays grow while vertices wait for a new value."""
    with ist.stream(
        ist.generate("path", vertices=50), [ist.BFS(0), ist.WeaklyConnectedComponents(), ist.CoreNumber()]
    ) as live:
        live.apply(deletes=[(10, 11)], inserts=[(0, 49), *((k, k + 1) for k in range(100, 600))])
        for name in live:
            expected = ist.bfs(live.graph, 0) if name == "bfs" else getattr(ist, name)(live.graph)
            assert live[name].filled().tolist() == expected.filled().tolist(), name


def test_weights_that_a_search_does_not_read() -> None:
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), np.array([5, 5])), directed=True)
    with ist.stream(graph, [ist.BFS(0), ist.SSSP(0)]) as live:
        report = live.apply(updates=[(0, 1, 1)])
        assert report.programs["bfs"]["affected"] == 0 and live["sssp"].values.tolist() == [0, 1, 6]
