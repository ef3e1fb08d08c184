"""The search for the edges of a batch: what exists, with which weight, in which slots; and what of it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.plain import DELETE, INSERT, REWEIGH, Plain

from isthmus.graph.changing.change import sorted_pairs
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.kernels.changing import edge_search
from isthmus.kernels.compile.kernel import kernel

KINDS = [(directed, weighted) for directed in (True, False) for weighted in (True, False)]


@kernel
def place(targets: Any, begin: Any, end: Any, wanted: Any) -> Any:
    return edge_search.position(targets, begin, end, wanted)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_position_in_lists_of_all_lengths(kind: Any) -> None:
    """Also at the end of the array, and with the wanted entry in the gaps on both sides."""
    targets = np.arange(1000, 1400).astype(kind)
    for begin in (0, 3, 200, 390):
        for end in (*range(begin, min(begin + 170, 400), 7), 400):
            for at in {begin, (begin + end) // 2, end - 1, end - 9, begin - 1, end, end + 1, end + 12}:
                if 0 <= at < targets.size:
                    expected = at if begin <= at < end else -1
                    assert place(targets, begin, end, targets[at]) == expected
            assert place(targets, begin, end, kind(7)) == -1


@pytest.mark.parametrize("few", [0, 1 << 9])
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_what_is_found_is_there(directed: bool, weighted: bool, few: int, sized: Any) -> None:
    """In both lists of an edge, for hubs too; and in the shorter one only where that is enough."""
    sized(few_changes=few)
    draw = np.random.default_rng(3)
    plain = Plain(directed, weighted)
    pairs = (
        [(0, v) for v in range(0, 400, 2)]
        + [(1, v) for v in range(0, 90, 3)]
        + draw.integers(0, 400, (800, 2)).tolist()
    )
    plain.put([(u, v, u + 2 * v + 1) for u, v in pairs])
    with ChangingGraph(plain.read(), 2) as graph:
        n = graph.vertices
        users = graph.ids.users(np.arange(n)).tolist()
        us, vs = np.concatenate(
            [np.stack([np.zeros(n, np.int64), np.arange(n)]), draw.integers(0, n + 1, (2, 900))], axis=1
        )
        if not directed:
            us, vs = np.minimum(us, vs), np.maximum(us, vs)
        us, vs = np.unique(np.stack([us, vs]), axis=1)  # sorted by tail and then head; n stands for no vertex
        search = graph.search(us.astype(np.uint32), vs.astype(np.uint32))
        once = draw.integers(0, 2, us.size).astype(np.uint8)
        search.find(once)
        names = [
            plain.key(users[u], users[v]) if max(u, v) < n else None
            for u, v in zip(us.tolist(), vs.tolist(), strict=True)
        ]
        there = np.array([name in plain.edges for name in names])
        assert search.exists.astype(bool).tolist() == there.tolist()
        if weighted:
            assert search.old[there].tolist() == [plain.edges[name] for name in names if name in plain.edges]
        found = np.zeros((2, us.size), np.int64)
        for name, side in search.sides.items():
            lists = graph.sides[name]
            order = sorted_pairs(side.vertices.astype(np.int64), side.others.astype(np.int64), n)
            assert order.tolist() == list(range(order.size))
            at = np.flatnonzero(side.places >= 0)
            assert (lists.targets[side.places[at]] == side.others[at]).all()
            begins, ends, *_ = lists.arrays()
            assert (begins[side.vertices[at]] <= side.places[at]).all() and (
                side.places[at] < ends[side.vertices[at]]
            ).all()
            found[side.ends[at] & 1, side.ends[at] >> 1] = 1
        both = found.sum(axis=0) == np.where((us == vs) & (not directed), 1, 2)
        assert (both | (once != 0) | ~there).all(), "both arcs of an edge that may be deleted are found"
        assert not both[(once != 0) & there & (us != vs) & (us == 0)].all(), (
            "an edge that is only inserted is not sought in a hub"
        )


@pytest.mark.parametrize("directed", [True, False])
def test_inserts_of_existing_edges_reweigh_both_arcs(directed: bool) -> None:
    """They are sought in one list only at first; beside deletes from the same hub."""
    plain = Plain(directed, True).put([(0, v, 1) for v in range(500)])
    with ChangingGraph(plain.read(), 2) as graph:
        rows = [(INSERT, 0, v, v + 5) for v in range(0, 500, 2)] + [(DELETE, 0, v, 0) for v in range(1, 500, 4)]
        rows += [(REWEIGH, 0, v, 3) for v in range(3, 500, 8)]
        counts = graph.apply(plain.edits(rows)).counts
        assert counts["repeated"] == counts["reweighed"] - 63 == 250 and counts["deleted"] == 125
        for v in range(500):
            expected = v + 5 if v % 2 == 0 else None if v % 4 == 1 else 3 if v % 8 == 3 else 1
            for name, a, b in (("out", 0, v), ("in", v, 0)):
                begin, end = graph.sides[name].row(a)
                at = np.flatnonzero(graph.sides[name].targets[begin:end] == b)
                assert at.size == (expected is not None) and (
                    not at.size or graph.sides[name].weights[begin + at[0]] == expected
                )
