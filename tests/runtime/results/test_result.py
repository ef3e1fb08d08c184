"""Results: columns, ids, nulls, files, the summary that DESIGN fixes, and a trace that adds up to it."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import isthmus as ist
from isthmus.errors import OptionError, StoreError
from isthmus.graph.store.store import Store

INT_MAX = 2**63 - 1
NAMES = ["ähre", "b", "ä", "zebra", ""]
EDGES = [(0, 1, 4), (1, 2, 3), (2, 0, 1), (3, 3, 2)]  # 4 has no edge of its own; 3 only a loop


def string_graph(order: str = "natural") -> Any:
    named = [(NAMES[u], NAMES[v], w) for u, v, w in [*EDGES, (4, 4, 1)]]
    columns = ([edge[i] for edge in named] for i in range(3))
    return ist.read(
        tuple(np.array(column, kind) for column, kind in zip(columns, (object, object, np.int32), strict=True)),
        order=order,
    )


def sparse_graph(order: str = "natural") -> Any:
    scale = np.array([-9, 5, 10**14, 7, 2**62])
    return ist.read(tuple(scale[[edge[i] for edge in [*EDGES, (4, 4, 1)]]] for i in (0, 1)), order=order)


def dense_graph(order: str = "natural") -> Any:
    columns = tuple(
        np.array([edge[i] for edge in EDGES], kind) for i, kind in enumerate((np.int64, np.int64, np.int32))
    )
    return ist.read(columns, vertices=5, order=order)


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_columns_as_cugraph_names_them(order: str) -> None:
    graph = dense_graph(order)
    assert list(ist.bfs(graph, 0, predecessors=True).to_numpy()) == ["vertex", "distance", "predecessor"]
    assert list(ist.sssp(graph, 0, predecessors=True).to_arrow().column_names) == ["vertex", "distance", "predecessor"]
    assert list(ist.weakly_connected_components(graph).to_pandas().columns) == ["vertex", "labels"]
    assert ist.pagerank(graph).to_polars().columns == ["vertex", "pagerank"]


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_nulls_and_infinities(order: str) -> None:
    result = ist.sssp(dense_graph(order), 0, predecessors=True)
    assert result.vertices.tolist() == [0, 1, 2, 3, 4]
    assert result.values.tolist() == [0, 4, 7, None, None]
    assert (result.values.mean(), result.values.max(), (result.values < 5).sum()) == (11 / 3, 7, 2)
    assert result.filled().tolist() == result.values.filled().tolist() == [0, 4, 7, INT_MAX, INT_MAX]
    assert (result.values.dtype, result.filled().dtype, type(result.filled())) == (np.int64, np.int64, np.ndarray)
    assert result["predecessor"].tolist() == [None, 0, 1, None, None]
    table = result.to_arrow()
    assert table.to_pydict() == {
        "vertex": [0, 1, 2, 3, 4],
        "distance": [0, 4, 7, None, None],
        "predecessor": [None, 0, 1, None, None],
    }
    assert table.schema.field("distance").type == pa.int64()
    frame = result.to_pandas()
    assert frame["distance"].isna().tolist() == [False, False, False, True, True]
    assert result.to_polars()["distance"].to_list() == [0, 4, 7, None, None]
    real = ist.read((np.array([0]), np.array([1]), np.array([0.5])), vertices=3, order=order)
    result = ist.sssp(real, 0)
    assert result.values.tolist() == [0.0, 0.5, None]
    assert result.filled().tolist() == result.values.filled().tolist() == [0.0, 0.5, math.inf]
    assert result.to_arrow()["distance"].to_pylist() == [0.0, 0.5, None]


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_string_ids(order: str) -> None:
    graph = string_graph(order)
    ascending = sorted(NAMES, key=str.encode)
    result = ist.bfs(graph, "ähre", predecessors=True)
    assert result.vertices.tolist() == ascending
    table = result.to_arrow().to_pydict()
    assert table["vertex"] == ascending
    assert dict(zip(table["vertex"], table["distance"], strict=True)) == {
        "": None,
        "b": 1,
        "zebra": None,
        "ä": 2,
        "ähre": 0,
    }
    assert dict(zip(table["vertex"], table["predecessor"], strict=True)) == {
        "": None,
        "b": "ähre",
        "zebra": None,
        "ä": "b",
        "ähre": None,
    }
    labels = ist.weakly_connected_components(graph)
    assert dict(zip(labels.vertices, labels.values, strict=True)) == {
        "": "",
        "b": "b",
        "zebra": "zebra",
        "ä": "b",
        "ähre": "b",
    }


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_sparse_ids(order: str) -> None:
    graph = sparse_graph(order)
    result = ist.bfs(graph, 10**14, predecessors=True)
    assert result.to_arrow().to_pydict() == {
        "vertex": [-9, 5, 7, 10**14, 2**62],
        "distance": [1, 2, None, 0, None],
        "predecessor": [10**14, -9, None, None, None],
    }
    assert ist.weakly_connected_components(graph).values.tolist() == [-9, -9, 7, -9, 2**62]


@pytest.mark.parametrize("make", [dense_graph, sparse_graph, string_graph])
@pytest.mark.parametrize("rows", [2, 1 << 19])
def test_files_hold_what_the_table_holds(make: Any, rows: int, tmp_path: Path, sized: Any) -> None:
    sized(result_rows=rows)
    graph = make("hub")
    source = graph.ids.natural(0, 5)[1]
    results = (ist.bfs(graph, source, predecessors=True), ist.weakly_connected_components(graph), ist.pagerank(graph))
    for number, result in enumerate(results):
        table = result.to_arrow()
        result.save(tmp_path / f"{number}.parquet")
        assert pq.read_table(tmp_path / f"{number}.parquet").equals(table)
        result.save(str(tmp_path / f"{number}.CSV"))
        types = pc.ConvertOptions(column_types=table.schema, strings_can_be_null=True, quoted_strings_can_be_null=False)
        read = pc.read_csv(tmp_path / f"{number}.CSV", convert_options=types)
        assert read.to_pydict() == table.to_pydict()
        result.save(tmp_path / f"{number}.npy")
        assert np.load(tmp_path / f"{number}.npy").tolist() == result.filled().tolist()
    assert len(list(tmp_path.iterdir())) == 9


def test_no_rows(tmp_path: Path) -> None:
    none = np.empty(0, np.int64)
    result = ist.weakly_connected_components(ist.read((none, none)))
    assert result.to_arrow().to_pydict() == {"vertex": [], "labels": []}
    for ending in ("parquet", "csv", "npy"):
        result.save(tmp_path / f"x.{ending}")
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0


def test_where_a_result_cannot_go(tmp_path: Path) -> None:
    result = ist.bfs(dense_graph(), 0)
    with pytest.raises(OptionError, match=r"out\.txt: expected a name that ends in \.parquet, \.csv, \.npy"):
        result.save(tmp_path / "out.txt")
    with pytest.raises(StoreError, match=r"missing/out\.csv: cannot write the result: .*"):
        result.save(tmp_path / "missing" / "out.csv")
    (tmp_path / "out.npy").mkdir()
    with pytest.raises(StoreError, match=r"out\.npy: cannot write the result: Is a directory"):
        result.save(tmp_path / "out.npy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npy"]


def test_a_folder_that_refuses_to_tidy_up_does_not_hide_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    result = ist.bfs(dense_graph(), 0)
    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StoreError, match=r"out\.npy: cannot write the result: Read-only file system"):
        result.save(tmp_path / "out.npy")
    with pytest.raises(StoreError, match=r"out\.html: cannot write the report: Read-only file system"):
        result.report(tmp_path / "out.html")


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy"])
def test_a_failure_while_writing_leaves_the_old_file(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = ist.bfs(dense_graph(), 0)
    (tmp_path / f"out.{ending}").write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=rf"out\.{ending}: cannot write the result: No space left on device"):
        result.save(tmp_path / f"out.{ending}")
    assert (tmp_path / f"out.{ending}").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_mask_copies_no_numbers_and_comes_only_with_a_reason() -> None:
    reals = ist.sssp(ist.read((np.array([0]), np.array([1]), np.array([0.5])), vertices=3), 0)
    assert np.shares_memory(reals.values, reals.raw("distance"))
    assert isinstance(reals["distance"], np.ma.MaskedArray)
    assert type(ist.sssp(ist.generate("path", vertices=4), 0).values) is np.ndarray, "everything was reached"
    assert type(ist.pagerank(dense_graph()).values) is np.ndarray


def test_infinity_is_a_value_where_larger_is_better() -> None:
    @ist.monotone(initial=-math.inf, combine="max", start=math.inf)
    def widest(width, weight):  # type: ignore[no-untyped-def]
        return min(width, weight)

    result = ist.run(widest(source=0), dense_graph())
    assert result.values.tolist() == result.to_arrow()["value"].to_pylist() == [INT_MAX, 4, 3, None, None]


def test_an_unknown_column() -> None:
    with pytest.raises(KeyError, match="bfs has no column 'predecessor'; it has distance"):
        ist.bfs(dense_graph(), 0)["predecessor"]


# The summary.

SUMMARY = {
    "algorithm",
    "graph",
    "device",
    "policy",
    "memory",
    "seconds",
    "iterations",
    "transfer",
    "engines",
    "cache",
    "result",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate(
        "rmat", tmp_path_factory.mktemp("r") / "g.isthmus", scale=13, weights="1:9", directed=True
    ) as graph:
        yield graph


RUNS = {
    "bfs": lambda g, **how: ist.bfs(g, 1, **how),
    "bfs and tree": lambda g, **how: ist.bfs(g, 1, predecessors=True, **how),
    "sssp and tree": lambda g, **how: ist.sssp(g, 1, predecessors=True, **how),
    "components": lambda g, **how: ist.weakly_connected_components(g, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, tol=1e-3, **how),
    "pagerank, weighted, two solves": lambda g, **how: ist.pagerank(g, tol=1e-2, weight=True, dangling={0: 1}, **how),
}


@pytest.mark.parametrize("name", list(RUNS))
@pytest.mark.parametrize("policy", ["filter", "emogi", "auto"])
def test_the_summary_has_the_fixed_keys_and_the_trace_adds_up(stored: Any, name: str, policy: str) -> None:
    result = RUNS[name](stored, policy=policy, memory="10%", threads=2)
    facts = result.summary()
    assert set(facts) >= SUMMARY
    assert set(facts["graph"]) >= {"vertices", "edges", "edge_bytes"}
    assert set(facts["memory"]) >= {"budget", "near_peak", "rss_peak"}
    assert set(facts["transfer"]) == {"bytes", "requests", "ratio"}
    assert all(set(use) == {"tasks", "bytes", "requests"} for use in facts["engines"].values())
    assert {"hit_edges", "miss_edges"} <= set(facts["cache"])
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    trace = result.trace
    assert facts["iterations"] == len(trace) == len(list(trace))
    assert [iteration.number for iteration in trace] == list(range(len(trace)))
    for key in ("bytes", "requests"):
        assert facts["transfer"][key] == sum(getattr(iteration, key) for iteration in trace)
        assert facts["transfer"][key] == sum(use[key] for use in facts["engines"].values())
    assert facts["cache"]["miss_edges"] == sum(iteration.active_edges for iteration in trace)
    assert facts["transfer"]["ratio"] == pytest.approx(facts["transfer"]["bytes"] / facts["graph"]["edge_bytes"])
    assert facts["memory"]["near_peak"] <= facts["memory"]["budget"]
    assert facts["seconds"]["total"] >= facts["seconds"]["iterate"] > 0
    for iteration in trace:
        told = iteration.as_dict()
        assert json.loads(json.dumps(told)) == told
        assert told["bytes"] == sum(use["bytes"] for use in told["engines"].values())
        assert told["seconds"] >= 0


def test_edge_bytes_count_what_the_program_reads(stored: Any) -> None:
    assert ist.bfs(stored, 1).summary()["graph"]["edge_bytes"] == stored.arcs * 4
    assert ist.sssp(stored, 1).summary()["graph"]["edge_bytes"] == stored.arcs * 8
    assert ist.bfs(stored, 1).summary()["graph"]["edges"] == stored.edges


def test_hub_order_shows_only_in_speed(stored: Any, tmp_path: Path) -> None:
    hub = ist.ingest(stored.path, tmp_path / "hub.isthmus", order="hub")
    for name, run in RUNS.items():
        if "tree" in name:
            continue
        a, b = run(stored, memory="10%", policy="filter"), run(hub, memory="10%", policy="filter")
        assert a.vertices.tolist() == b.vertices.tolist()
        assert np.abs(a.values - b.values).sum() <= (0.02 if "pagerank" in name else 0)


def test_it_describes_itself(stored: Any) -> None:
    result = ist.bfs(stored, 1, memory="10%", policy="filter")
    rows = dict(result.describe())
    assert rows["iterations"] == str(len(result.trace))
    assert rows["reached"] == f"{result.summary()['result']['reached']:,}"
    assert "requests" in rows["moved"]
    assert " of a budget of " in rows["near memory"]
    assert repr(result) == f"<Result: bfs on 8192 vertices, {len(result.trace)} iterations>"
    assert len(result) == 8192


def test_string_ids_are_read_and_written_by_bytes(tmp_path: Path, sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows that are: a few long ids fill a buffer, and reading them never takes many times their bytes."""
    ids = [f"{i:03}" + "x" * (3000 if i % 7 == 0 else 5) for i in range(300)]
    edges = {"source": ids, "target": ids[1:] + ids[:1]}
    graph = ist.ingest(pa.table(edges), tmp_path / "g.isthmus", order="hub", memory="1GB")
    sized(result_bytes=20_000, id_text=10_000)
    read, longest = Store.read, [0]

    def watched(self: Any, name: str, *where: Any, **how: Any) -> Any:
        found = read(self, name, *where, **how)
        longest[0] = max(longest[0], found.size if name == "ids.bytes" else 0)
        return found

    monkeypatch.setattr(Store, "read", watched)
    result = ist.bfs(graph, ids[0], predecessors=True)
    for suffix in ("parquet", "csv", "npy"):
        result.save(tmp_path / f"out.{suffix}")
    assert 0 < longest[0] < 17_000
    assert all(batch.nbytes < 40_000 for batch in result.to_arrow().to_batches())
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["vertex"].to_pylist() == ids
    assert table["predecessor"].to_pylist() == [None, *ids[:-1]]
    labels = ist.weakly_connected_components(graph)
    labels.save(tmp_path / "labels.npy")
    assert np.load(tmp_path / "labels.npy").tolist() == [ids[0]] * 300
