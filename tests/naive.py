"""Oracles: plain Python that is right at a glance, to compare the fast code with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Edge = tuple[Any, Any, Any]  # source, target, weight (None in an unweighted graph)
Lists = dict[Any, list[tuple[Any, Any]]]


@dataclass
class Cleaned:
    """What a graph should hold: sorted ids, lists of (neighbour, weight) by vertex, and the counts."""

    ids: list[Any]
    out: Lists
    into: Lists
    edges: int
    arcs: int
    self_loops: int
    loops_seen: int
    merged: int
    kept: list[Edge] = field(default_factory=list)


def ascending(ids: Any) -> list[Any]:
    """Integers by value, strings bytewise."""
    return sorted(ids, key=lambda v: v.encode() if isinstance(v, str) else v)


def combine(weights: list[Any], parallel: str) -> Any:
    if weights[0] is None:
        return None
    return {"min": min, "sum": sum}.get(parallel, lambda all_of_them: all_of_them[0])(weights)


def clean(
    edges: list[Edge], vertices: Any = (), *, directed: bool = True, self_loops: str = "keep", parallel: str = "keep"
) -> Cleaned:
    """The graph of `edges`, and of `vertices` that need no edge, after cleaning."""
    ids = ascending({*vertices, *(u for u, _, _ in edges), *(v for _, v, _ in edges)})
    rank = {v: number for number, v in enumerate(ids)}
    loops_seen = sum(u == v for u, v, _ in edges)
    kept = [(u, v, w) for u, v, w in edges if u != v or self_loops == "keep"]
    before = len(kept)
    if parallel != "keep":
        groups: dict[Any, list[Edge]] = {}
        for u, v, w in kept:
            key = (u, v) if directed else tuple(sorted((u, v), key=rank.__getitem__))
            groups.setdefault(key, []).append((u, v, w))
        kept = [(*group[0][:2], combine([w for _, _, w in group], parallel)) for group in groups.values()]
    out: Lists = {v: [] for v in ids}
    into: Lists = {v: [] for v in ids}
    for u, v, w in kept:
        out[u].append((v, w))
        into[v].append((u, w))
        if not directed and u != v:
            out[v].append((u, w))
            into[u].append((v, w))
    for lists in (out, into):
        for entries in lists.values():
            entries.sort(key=lambda entry: rank[entry[0]])  # stable: parallel edges stay in the order they came
    loops = sum(u == v for u, v, _ in kept)
    arcs = sum(len(entries) for entries in out.values())
    return Cleaned(ids, out, into, len(kept), arcs, loops, loops_seen, before - len(kept), kept)


def read_back(graph: Any, side: str = "out") -> Lists:
    """The lists that a graph stores, by user id. Those of a hub-ordered graph are put into natural order."""
    store = graph.store
    users = graph.ids.users(np.arange(graph.vertices)).tolist()
    offsets = store.read(f"{side}.offsets").tolist()
    targets = store.read(f"{side}.targets").tolist()
    weights = store.read(f"{side}.weights").tolist() if graph.weighted else [None] * len(targets)
    assert len(offsets) == graph.vertices + 1
    assert (offsets[0], offsets[-1]) == (0, len(targets))
    lists: Lists = {}
    for number, user in enumerate(users):
        row = range(offsets[number], offsets[number + 1])
        assert all(targets[i] <= targets[i + 1] for i in row[:-1]), f"the list of {user!r} does not ascend"
        lists[user] = [(users[targets[i]], weights[i]) for i in row]
    if graph.order == "hub":
        rank = {user: number for number, user in enumerate(ascending(users))}
        lists = {user: sorted(lists[user], key=lambda entry: rank[entry[0]]) for user in ascending(users)}
    return lists


def assert_graph(graph: Any, expected: Cleaned) -> None:
    """The graph holds exactly what the oracle says, in counts, ids, lists and weights."""
    assert (graph.vertices, graph.edges, graph.arcs) == (len(expected.ids), expected.edges, expected.arcs)
    assert graph.store.manifest.self_loops == expected.self_loops
    lists = read_back(graph)
    assert list(lists) == expected.ids
    assert lists == expected.out
    if graph.directed and graph.has_in_edges:
        assert read_back(graph, "in") == expected.into
