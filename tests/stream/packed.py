"""What must hold of the packed lists of a changing graph, whatever was done to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.stream.plain import Plain

from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.changing.packed_lists import LINE, PackedLists


def assert_packed(side: PackedLists) -> None:
    """Lists lie in vertex order, do not overlap, end inside the array, and begin on lines if they should."""
    begins, ends, targets, weights = side.arrays()
    n = side.vertices
    assert begins.dtype == ends.dtype == np.int64, "positions have 64 bits"
    assert begins.size > n and ends.size >= n and int(begins[n]) == side.slots == targets.size
    assert (begins[:n] >= 0).all() and (begins[:n] <= ends[:n]).all(), "no list ends before it begins"
    assert (ends[:n] <= begins[1 : n + 1]).all(), "no list reaches into the next one"
    assert int((ends[:n] - begins[:n]).sum()) == side.arcs == side.lists().arcs
    assert side._unit in (1, LINE // targets.itemsize)
    assert not (begins[: n + 1] % side._unit).any(), "lists begin on lines"
    assert weights.size == (side.slots if side.weighted else 0)
    for v in range(n):
        row = targets[begins[v] : ends[v]]
        assert (row < n).all() and np.unique(row).size == row.size, "every neighbour exists, and is there once"


def arcs_of(side: PackedLists, users: list[Any], turned: bool) -> dict[tuple[Any, Any], Any]:
    """All arcs by user ids, with their weights."""
    begins, ends, targets, weights = side.arrays()
    found = {}
    for v in range(side.vertices):
        for e in range(int(begins[v]), int(ends[v])):
            pair = users[v], users[int(targets[e])]
            found[pair[::-1] if turned else pair] = weights[e].item() if side.weighted else None
    return found


def assert_holds(graph: ChangingGraph, plain: Plain) -> None:
    """The graph is the plain one: both sides, ids and counts."""
    users = graph.changing_ids.users().tolist()
    assert sorted(users) == sorted(plain.vertices)
    both = plain.edges if plain.directed else {**plain.edges, **{(v, u): w for (u, v), w in plain.edges.items()}}
    for name in ("out", "in"):
        assert_packed(graph.sides[name])
        assert graph.sides[name].vertices == len(users)
        assert arcs_of(graph.sides[name], users, name == "in") == both, name
    snapshot = graph.snapshot
    assert (graph.vertices, graph.edges, graph.arcs) == (len(users), len(plain.edges), len(both))
    assert (snapshot.vertices, snapshot.edges, snapshot.arcs, snapshot.number) == (
        len(users),
        len(plain.edges),
        len(both),
        graph.number,
    )
    assert snapshot.self_loops == graph.self_loops == sum(u == v for u, v in plain.edges)
    assert snapshot.negative_weights == any(w is not None and w < 0 for w in plain.edges.values())


def assert_answers(graph: Any, plain: Plain) -> None:
    """What users ask of a graph: neighbours, degrees, edges and weights."""
    out: dict[Any, list[Any]] = {v: [] for v in plain.vertices}
    into: dict[Any, list[Any]] = {v: [] for v in plain.vertices}
    for (u, v), w in plain.edges.items():
        for a, b in {(u, v)} if plain.directed else {(u, v), (v, u)}:
            out[a].append((b, w))
            into[b].append((a, w))
    assert graph.ids.natural(0, graph.vertices).tolist() == sorted(plain.vertices)
    for v in plain.vertices:
        assert v in graph
        assert graph.neighbors(v).tolist() == sorted(b for b, _ in out[v])
        assert graph.predecessors(v).tolist() == sorted(a for a, _ in into[v])
        assert (graph.out_degree(v), graph.in_degree(v)) == (len(out[v]), len(into[v]))
        assert graph.degree(v) == len(out[v]) + (len(into[v]) if plain.directed else 0)
        weights = dict(out[v])
        for u in plain.vertices:
            assert graph.has_edge(v, u) == (u in weights)
            assert graph.edge_weights(v, u).tolist() == (
                [1 if weights[u] is None else weights[u]] if u in weights else []
            )
