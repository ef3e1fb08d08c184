"""Core numbers and triangle counts of a changing graph: exact after every batch, and little is read for small ones."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from tests.stream.edits import Model

import isthmus as ist


def programs() -> list[Any]:
    return [ist.CoreNumber(), ist.TriangleCount()]


def assert_exact(live: Any) -> None:
    for name in live:
        assert live[name].values.tolist() == getattr(ist, name)(live.graph).values.tolist(), name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(8))
def test_counts_are_exact_after_every_batch(seed: int) -> None:
    """Directed and undirected, with loops, edges both ways, vertices that come and go."""
    model = Model(seed + 500, (4, 12, 60)[seed % 3], names=seed % 4 == 3)
    with ist.stream(model.graph(), programs(), threads=2) as live:
        for _ in range(10):
            live.apply(**model.batch())
            assert_exact(live)


@pytest.mark.parametrize(("vertices", "size"), [(60, 15), (60, 400), (300, 3000)])
def test_counts_as_networkx_has_them(vertices: int, size: int) -> None:
    """Batches of any size, also such that replace most edges: core numbers fall and rise by many in one batch."""
    draw = np.random.default_rng(size)
    graph: Any = nx.gnm_random_graph(vertices, 4 * vertices, seed=1)
    with ist.stream(ist.read((*np.array(graph.edges).T,), directed=False), programs(), threads=2) as live:
        for _ in range(6):
            # Half of the new edges join few vertices, so that a dense part appears.
            centre = draw.integers(0, vertices, 2)
            ends = np.concatenate(
                [draw.integers(0, vertices, (size // 2, 2)), centre[0] // 2 + draw.integers(0, 30, (size // 2, 2))]
            )
            inserts = [(int(u), int(v)) for u, v in ends % vertices if u % vertices != v % vertices]
            edges = sorted(graph.edges)
            deletes = [edges[k] for k in draw.choice(len(edges), min(size, len(edges) * 3 // 4), replace=False)]
            graph.remove_edges_from(deletes)
            graph.add_edges_from(inserts)
            live.apply(inserts=inserts, deletes=deletes)
            cores, triangles = nx.core_number(graph), nx.triangles(graph)
            users = live["core_number"].vertices.tolist()
            assert live["core_number"].values.tolist() == [cores[v] for v in users]
            assert live["triangle_count"].values.tolist() == [triangles[v] for v in users]
            assert live["triangle_count"].summary()["result"]["triangles"] == sum(triangles.values()) // 3


def test_a_clique_appears_and_disappears() -> None:
    """Core numbers rise by 29 and fall by as much, in one batch each."""
    clique = [(u, v) for u in range(30) for v in range(u)]
    with ist.stream(ist.generate("path", vertices=40), programs()) as live:
        live.apply(inserts=clique)
        assert live["core_number"].values.tolist() == [29] * 30 + [1] * 10
        assert live["triangle_count"].values.tolist()[:30] == [29 * 28 // 2] * 30
        live.apply(deletes=clique)
        assert live["core_number"].values.max() == 1 and live["triangle_count"].values.max() == 0
        found = live["triangle_count"].changes()
        assert found["vertex"].tolist() == list(range(30)) and set(found["old"].tolist()) == {406}


@pytest.mark.parametrize("directed", [False, True])
def test_small_batches_read_little(directed: bool) -> None:
    """A recomputation in disguise would read all edges."""
    graph = ist.generate("rmat", scale=13, directed=directed, seed=5)
    draw = np.random.default_rng(1)
    read: dict[str, list[int]] = {"core_number": [], "triangle_count": []}
    with ist.stream(graph, programs()) as live:
        for _ in range(20):
            u, v, w = (int(x) for x in draw.integers(0, graph.vertices, 3))
            near = live.graph.neighbors(w)
            report = live.apply(inserts=[(u, v)], deletes=[(w, int(near[0]))] if near.size else None)
            for name, counts in read.items():
                counts.append(report.programs[name]["edges_read"])
        for name, counts in read.items():
            assert max(counts) < graph.arcs / 8 and np.median(counts) < graph.arcs / 100, (name, counts)
        assert_exact(live)
