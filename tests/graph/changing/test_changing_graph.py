"""Changing graphs: after every batch the lists are what a plain dictionary says, aligned and in order, on both
sides.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.changing import mirror
from isthmus.graph.changing.change import Edits
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.writer import StoreWriter
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH


def edits(rows: list[tuple[int, Any, Any, int]], kind: Any = np.int64, **more: Any) -> Edits:
    columns = [np.array([row[k] for row in rows], each) for k, each in enumerate((np.uint8, kind, kind, np.int32))]
    return Edits(*columns, **more)


def graph_of(edges: dict[Any, Any], directed: bool, kind: Any = np.int64) -> Any:
    ends = [np.array([edge[k] for edge in edges], kind) for k in (0, 1)]
    weights = list(edges.values())
    return ist.read((*ends, np.array(weights, np.int32)) if weights[0] is not None else tuple(ends), directed=directed)


def assert_holds(graph: ChangingGraph, edges: dict[Any, Any], vertices: set[Any]) -> None:
    users = graph.changing_ids.users().tolist()
    assert sorted(users) == sorted(vertices)
    both = edges if graph.directed else {**edges, **{(v, u): w for (u, v), w in edges.items()}}
    for name in ("out", "in"):
        side = graph.sides[name]
        begins, ends = side.lists().arrays
        assert (begins <= ends).all() and (ends[:-1] <= begins[1:]).all() and (not ends.size or ends[-1] <= side.slots)
        assert (begins % side._unit == 0).all(), "lists begin on lines"
        assert int((ends - begins).sum()) == side.lists().arcs == len(both)
        found = {}
        for v in range(len(users)):
            for e in range(int(begins[v]), int(ends[v])):
                pair = users[v], users[int(side.targets[e])]
                pair = pair if name == "out" else pair[::-1]
                assert pair not in found, "once"
                found[pair] = int(side.weights[e]) if side.weighted else None
        assert found == both
    assert graph.edges == len(edges)


@pytest.mark.parametrize("seed", range(40))
def test_any_batches(seed: int) -> None:
    draw = random.Random(seed)
    directed, weighted, count = draw.random() < 0.5, draw.random() < 0.5, draw.choice([3, 10, 60])
    kind: Any = object if draw.random() < 0.3 else np.int64
    name = (lambda k: f"n{k}") if kind is object else (lambda k: k * (7 if seed % 2 else 1))
    key = lambda u, v: (u, v) if directed or str(u) <= str(v) else (v, u)  # noqa: E731
    weight = lambda: draw.randrange(1, 9) if weighted else None  # noqa: E731
    edges = {key(name(draw.randrange(count)), name(draw.randrange(count))): weight() for _ in range(3 * count)}
    vertices = {end for edge in edges for end in edge}
    graph = ChangingGraph(graph_of(edges, directed, kind), draw.choice([1, 2]), draw.choice([True, False, None]))
    assert_holds(graph, edges, vertices)
    for _ in range(10):
        removed = [v for v in sorted(vertices) if draw.random() < 0.1] if draw.random() < 0.3 else []
        pool = [name(k) for k in range(count + 5) if name(k) not in removed]
        rows, repeated, missing = [], 0, 0
        for _ in range(draw.choice([0, 1, 5, 60])):
            wish = draw.choice([INSERT, INSERT, DELETE, DELETE, REWEIGH])
            known = [edge for edge in edges if not set(edge) & set(removed)]
            u, v = (
                draw.choice(known)
                if wish != INSERT and known and draw.random() < 0.8
                else (draw.choice(pool), draw.choice(pool))
            )
            u, v = (v, u) if not directed and draw.random() < 0.5 else (u, v)
            w = draw.randrange(1, 9)
            rows.append((wish, u, v, w))
            if wish == INSERT:
                repeated += key(u, v) in edges
                edges[key(u, v)] = w if weighted else None
                vertices |= {u, v}
            elif key(u, v) not in edges:
                missing += 1
            elif wish == DELETE:
                del edges[key(u, v)]
            elif weighted:
                edges[key(u, v)] = w
        vertices -= set(removed)
        edges = {edge: w for edge, w in edges.items() if not set(edge) & set(removed)}
        change = graph.apply(edits(rows, kind, removed=np.array(removed, kind) if removed else None))
        assert (change.counts["repeated"], change.counts["missing"]) == (repeated, missing)
        assert_holds(graph, edges, vertices)
    graph.close()


@pytest.fixture
def small() -> Any:
    with ChangingGraph(ist.read((np.array([1, 2, 3]), np.array([2, 3, 1]), np.array([5, 6, 7], np.int32)))) as graph:
        yield graph


def test_it_is_a_graph(small: Any, tmp_path: Any) -> None:
    small.apply(edits([(INSERT, 3, 10, 4), (DELETE, 1, 2, 0), (REWEIGH, 2, 3, 9)]))
    assert (small.vertices, small.edges, small.number) == (4, 3, 1)
    assert small.neighbors(3).tolist() == [1, 10] and small.predecessors(3).tolist() == [2]
    assert small.has_edge(3, 10) and not small.has_edge(1, 2) and 10 in small and 11 not in small
    assert small.edge_weights(2, 3).tolist() == [9] and small.degree(3) == 3
    assert small.busiest() == 3 and small.info()["batch"] == 1
    small.save(tmp_path / "now.isthmus")
    with ist.open(tmp_path / "now.isthmus") as stored:
        assert ist.verify(stored.path).ok
        assert ist.sssp(stored, 2).values.tolist() == ist.sssp(small, 2).values.tolist() == [16, 0, 9, 13]
        assert stored.info()["ids"] == "int64" and stored.order == "natural"


def test_strict_batches_are_applied_whole_or_not_at_all(small: Any) -> None:
    for rows, message in [
        ([(INSERT, 5, 6, 1), (INSERT, 1, 2, 1)], "row 1: cannot insert the edge 1 -> 2: it exists"),
        ([(INSERT, 5, 6, 1), (DELETE, 1, 3, 1)], "row 1: the edge 1 -> 3 does not exist"),
        ([(REWEIGH, 1, 9, 1)], "row 0: the edge 1 -> 9 does not exist"),
    ]:
        with pytest.raises(ist.BatchError, match=message):
            small.apply(edits(rows), strict=True)
        assert_holds(small, {(1, 2): 5, (2, 3): 6, (3, 1): 7}, {1, 2, 3})
        assert small.number == 0


def test_the_order_of_arrival_decides(small: Any) -> None:
    change = small.apply(edits([(DELETE, 1, 2, 0), (INSERT, 1, 2, 8), (INSERT, 4, 4, 1), (DELETE, 4, 4, 0)]))
    assert change.counts["reweighed"] == 1 and change.counts["inserted"] == change.counts["deleted"] == 0
    assert_holds(small, {(1, 2): 8, (2, 3): 6, (3, 1): 7}, {1, 2, 3, 4})


def test_a_vertex_cannot_be_removed_and_used(small: Any) -> None:
    with pytest.raises(ist.BatchError, match="vertex 2 is removed and used in the same batch; use two batches"):
        small.apply(edits([(INSERT, 2, 9, 1)], removed=np.array([2])))
    assert small.vertices == 3


def test_parallel_edges_are_refused() -> None:
    with pytest.raises(
        ist.GraphFormatError, match="has parallel edges, for example at vertex 1; a changing graph has none: ingest it"
    ):
        ChangingGraph(ist.read((np.array([1, 1]), np.array([2, 2]))))


def test_many_insertions_and_deletions_keep_the_array_in_bounds() -> None:
    """It doubles as it fills, and halves as it empties."""
    graph = ChangingGraph(ist.read((np.array([0]), np.array([1])), directed=False), 1)
    draw = np.random.default_rng(1)
    pairs = np.unique(np.sort(draw.integers(0, 300, (20_000, 2)), 1), axis=0)
    none = np.zeros(pairs.shape[0], np.int32)
    graph.apply(Edits(np.full(none.size, INSERT, np.uint8), *pairs.T.copy(), none))
    full = graph.sides["out"].slots
    assert graph.edges == none.size + (not (pairs == (0, 1)).all(1).any()) and full <= 4 * graph.arcs + 10_000
    for part in np.array_split(pairs, 10):
        graph.apply(Edits(np.full(part.shape[0], DELETE, np.uint8), *part.T.copy(), np.zeros(part.shape[0], np.int32)))
    assert graph.arcs <= 2 and graph.sides["out"].slots < full / 2


ALGORITHMS = (
    "bfs",
    "sssp",
    "weakly_connected_components",
    "pagerank",
    "core_number",
    "label_propagation",
    "triangle_count",
    "katz",
)


WAYS: list[dict[str, Any]] = [
    {},
    {"far": "ram", "policy": "hytgraph", "memory": "10%"},
    {"device": "model:rtx2080ti", "memory": "10%"},
]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_algorithms_run_on_the_current_snapshot(how: dict[str, Any]) -> None:
    with ChangingGraph(ist.generate("rmat", scale=9, weights="1:9", seed=3)) as graph:
        draw = np.random.default_rng(2)
        ends = draw.integers(0, 600, (2, 900))  # some of them new vertices
        wishes = draw.choice(np.array([INSERT, DELETE], np.uint8), 900)
        graph.apply(Edits(wishes, *ends, draw.integers(1, 9, 900).astype(np.int32)))
        frozen = graph.frozen()
        for name in ALGORITHMS:
            given = {"bfs": (0,), "sssp": (0,), "katz": (0.001,)}.get(name, ())
            one, other = (getattr(ist, name)(each, *given, **options) for each, options in ((graph, how), (frozen, {})))
            assert one.vertices.tolist() == other.vertices.tolist()
            assert np.allclose(one.filled().astype(float), other.filled().astype(float), atol=1e-5), name


# Forged stores

Lists = dict[int, list[int]]  # targets by vertex


def forged(path: Path, n: int, out: Lists, into: Lists | None) -> Path:
    """A store with right checksums and any lists; None: undirected."""
    arcs = sum(map(len, out.values()))
    with StoreWriter(path) as writer:
        for side, lists in (("out", out), ("in", into)):
            if lists is None:
                continue
            offsets = np.concatenate([[0], np.cumsum([len(lists.get(v, [])) for v in range(n)])])
            targets = np.array([target for v in sorted(lists) for target in lists[v]], np.uint32)
            for name, array in ((f"{side}.offsets", offsets), (f"{side}.targets", targets)):
                writer.section(name, array.dtype, array.size)
                writer.append(name, array)
        writer.commit(
            Manifest(n, arcs // (1 if into else 2), arcs, into is not None, False, "dense", in_edges=into is not None)
        )
    return path


DIFFER = "vertices cannot be removed: in-edges and out-edges differ; run isthmus verify"
TWICE = "vertices cannot be removed: a list has an edge twice; run isthmus verify"
FORGED: dict[str, tuple[Lists, Lists | None, str]] = {
    "other arcs": ({0: [*range(4000, 5000)]}, {1: [*range(2, 1002)]}, DIFFER),
    "as many arcs at each vertex": ({0: [4999], 1: [3000]}, {3000: [0], 4999: [1]}, DIFFER),
    "one arc to the last vertex": ({0: [1, 4999], 1: [2]}, {1: [0], 2: [0, 1]}, DIFFER),
    "one direction": (
        {0: [1, 4999], 1: [0, 2]},
        None,
        "vertices cannot be removed: edges are in one direction only; run isthmus verify",
    ),
    "twice": ({0: [4999, 4999]}, {4999: [0, 0]}, TWICE),
    "twice, undirected": ({0: [4999, 4999], 4999: [0, 0]}, None, TWICE),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_store_whose_lists_do_not_mirror_each_other_leads_no_kernel_astray(name: str, tmp_path: Path) -> None:
    """Arcs to removed vertices are looked for among their in-edges; others would stay in the out-edges, and lead
    nowhere.
    """
    out, into, message = FORGED[name]
    with (
        ist.open(forged(tmp_path / "g.isthmus", 5000, out, into)) as base,
        ist.stream(base, [ist.BFS(source=0)]) as live,
    ):
        before = live["bfs"].filled().tolist()
        for _ in range(2):
            with pytest.raises(StoreError, match=f"g.isthmus: {message}"):
                live.apply(remove_vertices=[*range(3000, 5000)])
        assert (live.number, live.graph.vertices) == (0, 5000) and live["bfs"].filled().tolist() == before
        live.apply(inserts=[(7, 8)])
        assert ist.bfs(live.graph, 7).filled()[8] == 1, "what is left to do works"


def test_an_edge_in_one_list_only_cannot_be_deleted(tmp_path: Path) -> None:
    with (
        ist.open(forged(tmp_path / "g.isthmus", 10, {0: [5], 1: [6]}, {5: [1], 6: [0]})) as base,
        ChangingGraph(base, 1) as graph,
    ):
        with pytest.raises(StoreError, match=r"is in one of its two lists only.* run isthmus verify"):
            graph.apply(edits([(DELETE, 0, 5, 0)]))
        assert graph.number == 0 and graph.neighbors(0).tolist() == [5]


@pytest.mark.parametrize("length", [3, 16, 20, 64, 70, 200])
def test_a_list_that_has_an_edge_twice_is_searched_within_its_bounds(tmp_path: Path, length: int) -> None:
    """The places of all matches in a step are added up, so that two lead elsewhere, unless that is noticed."""
    out = {0: [*range(2, length), *[length] * 3]}
    into: Lists = {v: [0] for v in range(2, length)} | {length: [0] * 3}
    with ist.open(forged(tmp_path / "g.isthmus", 300, out, into)) as base, ChangingGraph(base, 1) as graph:
        for left in (2, 1, 0):
            assert graph.apply(edits([(DELETE, 0, length, 0)])).counts["deleted"] == 1
            assert sorted(graph.neighbors(0).tolist()) == [*range(2, length), *[length] * left]
            assert graph.predecessors(length).tolist() == [0] * left
        assert graph.apply(edits([(DELETE, 0, length, 0)])).counts["missing"] == 1


def test_sound_lists_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, fault = [], mirror.fault
    monkeypatch.setattr(mirror, "fault", lambda *given: looks.append(1) or fault(*given))
    with ChangingGraph(ist.generate("rmat", scale=8, directed=True)) as graph:
        graph.apply(edits([(INSERT, 1, 2, 0), (DELETE, 3, 4, 0)]))
        assert looks == []
        for v in (7, 200, 13):
            graph.apply(edits([], removed=np.array([v])))
        assert looks == [1]
