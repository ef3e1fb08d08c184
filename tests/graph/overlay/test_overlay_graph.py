"""`graph/overlay/overlay_graph.py`, `graph/overlay/overlay.py`, `graph/overlay/overlay_side.py`,
`graph/overlay/base.py`, `graph/overlay/overlay_lookup.py`, `graph/overlay/patched_reader.py`,
`graph/overlay/overlay_snapshot.py`: a changing graph on disk is the one in memory, edge by edge, whatever batches come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import BatchError, GraphFormatError, StoreError
from isthmus.graph.changing.change import Edits
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.verify import verify
from isthmus.graph.store.writer import StoreWriter
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH

POISON = 2**31 - 7


@pytest.fixture(autouse=True)
def small(sized: Any) -> None:
    """Lists come in many pieces, by asynchronous reads."""
    sized(staging=1, gathered=600, merged=4096, few_bytes=0, few_changes=16)


def stored(path: Path, seed: int, directed: bool, weighted: bool) -> ist.Graph:
    draw = np.random.default_rng(seed)
    n, m = int(draw.integers(5, 60)), int(draw.integers(5, 3000))
    columns = [draw.integers(0, n, m), draw.integers(0, n, m), *([draw.integers(1, 9, m)] if weighted else [])]
    return ist.ingest(tuple(columns), path, directed=directed, parallel="drop", vertices=n, overwrite=True)


def batch(draw: np.random.Generator, graph: Any) -> Edits:
    """Any mix of changes, with vertices that do not exist yet, and sometimes with some that leave."""
    count, top = int(draw.integers(1, 300)), graph.vertices + 4
    wishes = draw.choice([INSERT, DELETE, REWEIGH] if graph.weighted else [INSERT, DELETE], count).astype(np.uint8)
    us, vs = draw.integers(0, top, count), draw.integers(0, top, count)
    removed = np.setdiff1d(draw.integers(0, top, 4), np.concatenate([us, vs])) if draw.random() < 0.4 else None
    return Edits(wishes, us, vs, draw.integers(1, 9, count) if graph.weighted else None, None, removed)


def assert_same(far: Any, near: Any) -> None:
    names = ("number", "vertices", "edges", "arcs", "self_loops", "negative_arcs", "directed", "weighted")
    assert [getattr(far, name) for name in names] == [getattr(near, name) for name in names]
    users = near.ids.users(np.arange(near.vertices)).tolist()
    assert far.ids.users(np.arange(far.vertices)).tolist() == users
    for side in ("out", "in"):
        rows = np.arange(near.vertices)
        begins, ends, targets, weights = near.gathered(side, rows, near.weighted)
        expected = [lists(begins, ends, targets, weights, v, near.weighted) for v in rows]
        for some, gathered in far.pieces(side, rows, far.weighted):
            assert [lists(*gathered, v, far.weighted) for v in some] == [expected[v] for v in some]


def lists(begins: Any, ends: Any, targets: Any, weights: Any, v: int, weighted: bool) -> list[Any]:
    row = slice(int(begins[v]), int(ends[v]))
    return (
        sorted(zip(targets[row].tolist(), weights[row].tolist(), strict=True))
        if weighted
        else sorted(targets[row].tolist())
    )


@pytest.mark.parametrize("seed", range(24))
def test_batches_make_the_same_graph_as_in_memory(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = stored(tmp_path / "g.isthmus", seed, bool(seed & 1), bool(seed & 2))
    with base, OverlayGraph(base, 2) as far, ChangingGraph(base, 2) as near:
        assert_same(far, near)
        for number in range(7):
            edits = batch(draw, near)
            assert far.apply(edits).counts == near.apply(edits).counts
            assert_same(far, near)
            us, vs = draw.integers(0, near.vertices + 3, (2, 50))
            assert far.joined(us, vs).tolist() == near.joined(us, vs).tolist()
            if number == 3:
                far.merge()
                assert far.changes_bytes == 0
                assert_same(far, near)
        far.save(tmp_path / "now.isthmus")
        verdict = verify(tmp_path / "now.isthmus")
        assert verdict.ok, verdict.problems
        with ist.open(tmp_path / "now.isthmus") as now, near.frozen() as frozen:
            assert [now.neighbors(v).tolist() for v in ids_of(now)] == [
                frozen.neighbors(v).tolist() for v in ids_of(now)
            ]
            assert now.order == "natural"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [], "scratch files are left"


def ids_of(graph: Any) -> list[Any]:
    found: list[Any] = graph.ids.natural(0, graph.vertices).tolist()
    return found


def test_the_store_is_never_written_to(tmp_path: Path) -> None:
    base = stored(tmp_path / "g.isthmus", 1, True, True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "g.isthmus").iterdir()}
    with base, OverlayGraph(base, 2) as far:
        for seed in range(3):
            far.apply(batch(np.random.default_rng(seed), far))
        far.merge()
        far.apply(batch(np.random.default_rng(9), far))
    assert {path.name: path.read_bytes() for path in (tmp_path / "g.isthmus").iterdir()} == before


def test_an_older_snapshot_stays_as_it_was(tmp_path: Path) -> None:
    """Also when its changes were merged into another store meanwhile."""
    base = stored(tmp_path / "g.isthmus", 3, True, True)
    with base, OverlayGraph(base, 2) as far:
        far.apply(batch(np.random.default_rng(1), far))
        old, arcs = far.snapshot, far.arcs
        entries = [old.whole(array).tolist() for array in old.far("out", True)]
        for seed in range(3):
            far.apply(batch(np.random.default_rng(seed), far))
        far.merge()
        assert old.arcs == arcs and [old.whole(array).tolist() for array in old.far("out", True)] == entries


def test_a_batch_that_is_undone(tmp_path: Path) -> None:
    base = stored(tmp_path / "g.isthmus", 3, True, True)
    with base, OverlayGraph(base, 2) as far, ChangingGraph(base, 2) as near:
        for graph in (far, near):
            graph.apply(batch(np.random.default_rng(5), graph))
        for seed in range(20, 26):
            change = far.prepare(batch(np.random.default_rng(seed), far))
            far.revert(change, far.commit(change))
            assert_same(far, near)
        far.apply(batch(np.random.default_rng(6), far))
        near.apply(batch(np.random.default_rng(6), near))
        assert_same(far, near)


def test_a_strict_batch_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    base = ist.ingest((np.array([0, 1]), np.array([1, 2])), tmp_path / "g.isthmus")
    with base, OverlayGraph(base) as far:
        one = np.ones(1, np.int64)
        with pytest.raises(
            BatchError, match=r"row 0: cannot insert the edge 0 -> 1: it exists \(strict; nothing was applied\)"
        ):
            far.apply(Edits(np.array([INSERT], np.uint8), one - 1, one), strict=True)
        assert far.number == 0 and far.changes_bytes == 0 and far.has_edge(0, 1) and not far.has_edge(1, 0)


def test_many_removed_arcs_in_a_row_are_not_read_whole(tmp_path: Path) -> None:
    """A piece whose stored entries would not fit in the staging buffer is divided."""
    hub = np.arange(1, 40_000)
    ends = np.concatenate([hub, [50_000]])
    base = ist.ingest((np.zeros(ends.size, np.int64), ends), tmp_path / "g.isthmus", directed=True, vertices=50_001)
    with base, OverlayGraph(base, 2) as far:
        far.apply(Edits(np.full(hub.size - 2, DELETE, np.uint8), np.zeros(hub.size - 2, np.int64), hub[1:-1]))
        assert far.neighbors(0).tolist() == [1, 39_999, 50_000]
        assert ist.bfs(far, 0, memory="1%", policy="emogi").filled()[[1, 2, 39_999, 50_000]].tolist() == [
            1,
            2**63 - 1,
            1,
            1,
        ]


@pytest.mark.parametrize("verify", [True, False])
def test_damage_of_the_store_is_an_error(tmp_path: Path, verify: bool) -> None:
    with stored(tmp_path / "g.isthmus", 3, True, True):
        pass
    with ist.open(tmp_path / "g.isthmus") as base, OverlayGraph(base, 2) as far:
        far.apply(batch(np.random.default_rng(1), far))
        file = tmp_path / "g.isthmus" / "out.targets"
        data = bytearray(file.read_bytes())
        data[4:8] = POISON.to_bytes(4, "little")
        file.write_bytes(data)
        found = "the checksum does not match" if verify else "a target is not a vertex"
        with pytest.raises(StoreError, match=rf"out\.targets: block 0 at byte 0: {found}"):
            ist.pagerank(far, memory="1%", policy="filter", verify=verify)


def test_what_cannot_change_on_disk(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is in memory; on_disk=True needs a store, which isthmus\.ingest makes"):
        OverlayGraph(ist.read((np.array([0]), np.array([1]))))
    without = ist.ingest((np.array([0]), np.array([1])), tmp_path / "a.isthmus", directed=True, in_edges=False)
    needs = "was stored without in-edges, which a changing graph on disk needs; ingest it without in_edges=False"
    with without, pytest.raises(StoreError, match=needs):
        OverlayGraph(without)


@pytest.mark.parametrize("place", [5, 8191, 8192, 20_000])
def test_parallel_edges_are_refused_wherever_they_lie(tmp_path: Path, place: int) -> None:
    heads = np.arange(1, 30_000)
    heads = np.insert(heads, place, heads[place])
    base = ist.ingest((np.zeros(heads.size, np.int64), heads), tmp_path / "g.isthmus", directed=True, parallel="keep")
    with (
        base,
        pytest.raises(GraphFormatError, match="has parallel edges, for example at vertex 0; a changing graph has none"),
    ):
        OverlayGraph(base, 2)
    single = ist.ingest(
        (np.array([0, 1, 1]), np.array([5, 5, 6])), tmp_path / "h.isthmus", directed=True, parallel="keep"
    )
    # Two lists, of which one ends and the next begins with the same vertex.
    with single, OverlayGraph(single, 2) as far:
        assert far.edges == 3


def test_negative_weights_are_counted(tmp_path: Path) -> None:
    columns = np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([-1.5, 2.0, -3.0])
    base = ist.ingest(columns, tmp_path / "g.isthmus", directed=True, allow_negative=True)
    with base, OverlayGraph(base, 2) as far:
        assert far.negative_arcs == 2
        far.apply(
            Edits(np.array([DELETE, REWEIGH], np.uint8), np.array([0, 2]), np.array([1, 0]), np.array([0.0, 4.0]))
        )
        assert far.negative_arcs == 0 and not far.snapshot.negative_weights


def test_an_unweighted_store_that_claims_negative_weights(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "g.isthmus") as writer:
        for name, array in (("out.offsets", np.array([0, 1, 2])), ("out.targets", np.array([1, 0], np.uint32))):
            writer.section(name, array.dtype, array.size)
            writer.append(name, array)
        writer.commit(Manifest(2, 1, 2, False, False, "dense", negative_weights=True))
    with ist.open(tmp_path / "g.isthmus") as base, OverlayGraph(base, 1) as far:
        assert far.negative_arcs == 0 and ist.bfs(far, 0).filled().tolist() == [0, 1]


def test_a_store_whose_in_edges_are_others_leads_no_kernel_astray(tmp_path: Path) -> None:
    """Its checksums are right. Arcs to removed vertices are looked for among their in-edges, and stay in the
    out-edges.
    """
    n, far = 5000, np.arange(4000, 5000, dtype=np.uint32)
    with StoreWriter(tmp_path / "g.isthmus") as writer:
        for side, row, targets in (("out", 0, far), ("in", 1, np.arange(2, 1002, dtype=np.uint32))):
            offsets = np.where(np.arange(n + 1) > row, targets.size, 0)
            for name, array in ((f"{side}.offsets", offsets), (f"{side}.targets", targets)):
                writer.section(name, array.dtype, array.size)
                writer.append(name, array)
        writer.commit(Manifest(n, far.size, far.size, True, False, "dense", in_edges=True))
    with ist.open(tmp_path / "g.isthmus") as base, OverlayGraph(base, 1) as far_graph:
        none = np.empty(0, np.int64)
        far_graph.apply(Edits(np.empty(0, np.uint8), none, none, removed=np.arange(3000, n)))
        with pytest.raises(
            StoreError,
            match="a list has a vertex that was removed, as in-edges and out-edges differ; run isthmus verify",
        ):
            ist.bfs(far_graph, 0)


def test_scores_stay_within_their_tolerance_when_vertices_leave(tmp_path: Path) -> None:
    """Those that stay are a smaller part of the sum, so the same residuals matter more."""
    draw = np.random.default_rng(20)
    n, m = int(draw.integers(5, 60)), int(draw.integers(1, 150))
    edges = draw.integers(0, n, m), draw.integers(0, n, m)
    base = ist.ingest(edges, tmp_path / "g.isthmus", directed=False, parallel="drop", vertices=n)
    gone = draw.permutation(n)[: int(draw.integers(1, n - 1))]
    for on_disk in (False, True):
        with ist.stream(base, ["pagerank"], threads=1, on_disk=on_disk) as live:
            live.apply(remove_vertices=gone)
            exact = ist.pagerank(live.graph, tol=1e-13).values
            assert np.abs(live["pagerank"].result().values - exact).sum() <= 1e-6, on_disk
    base.close()
