"""Workloads: what is drawn from a graph, and the latest rows of lists with times.

Tests `stream/workload/make.py`, `stream/workload/workload.py`, `stream/workload/workload_file.py` and
`stream/workload/temporal.py`.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus as ist
from isthmus.stream.workload import workload


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workloads")
    ist.generate("rmat", folder / "g.isthmus", scale=9, weights="1:9", seed=4).close()
    ist.generate("rmat", folder / "d.isthmus", scale=9, edge_factor=4, directed=True, seed=4).close()
    ends = [np.array([f"v{number}" for number in column], object) for column in (range(40), range(1, 41))]
    ist.ingest(tuple(ends), folder / "n.isthmus", order="hub").close()
    return folder


@pytest.mark.parametrize(("name", "size"), [("g", 300), ("d", 50), ("n", 4)])
def test_inserts_are_missing_and_deletes_exist(
    stores: Path, tmp_path: Path, name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "PIECE", 100)  # many pieces
    for output in ("a.parquet", "b.parquet"):
        figures = ist.make_workload(stores / f"{name}.isthmus", tmp_path / output, batches=3, size=size, seed=7)
    assert (figures["inserts"], figures["deletes"], figures["initial"]) == (3 * size // 2, 3 * size // 2, None)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.equals(pq.read_table(tmp_path / "b.parquet")), "the same seed gives the same file"
    with ist.stream(stores / f"{name}.isthmus") as live:
        directed = live.graph.directed
        rows = list(zip(*(table.column(column).to_pylist() for column in ("op", "source", "target")), strict=True))
        assert all(live.graph.has_edge(u, v) == (op == "delete") for op, u, v in rows)
        assert len({(u, v) if directed else frozenset((u, v)) for _, u, v in rows}) == 3 * size, "every edge once"
        assert all(u != v for op, u, v in rows if op == "insert")
        assert [sum(op == "insert" for op, _, _ in rows[k * size : (k + 1) * size]) for k in range(3)] == [
            size // 2
        ] * 3
        reports = list(live.follow(tmp_path / "a.parquet", strict=True))
        assert [report.changes for report in reports] == [size] * 3, "the file says how large its batches are"
        assert ("weight" in table.column_names) == live.graph.weighted


def test_draws_are_uniform(stores: Path) -> None:
    """Every edge is about as likely to be deleted as any other."""
    graph = ist.generate("star", vertices=40)
    counts = np.zeros(40)
    for seed in range(400):
        changes = workload.drawn(graph, 1, 10, 0, seed)
        counts[changes.targets + changes.sources] += 1
    assert counts[0] == 0 and counts[1:].sum() == 4000
    assert np.abs(counts[1:] - 4000 / 39).max() < 5 * np.sqrt(4000 / 39)


def test_with_an_initial_graph_all_changes_are_edges(stores: Path, tmp_path: Path) -> None:
    figures = ist.make_workload(
        stores / "g.isthmus",
        tmp_path / "w.csv",
        batches=2,
        size=100,
        ratio=0.7,
        initial=tmp_path / "i.isthmus",
        rate=50,
    )
    assert (figures["inserts"], figures["deletes"]) == (140, 60)
    with ist.open(stores / "g.isthmus") as graph, ist.stream(tmp_path / "i.isthmus") as live:
        assert live.graph.edges == graph.edges - 140 and live.graph.vertices == graph.vertices
        reports = list(live.follow(tmp_path / "w.csv", batch=100, strict=True))
        assert live.graph.edges == graph.edges - 60
        assert reports[1].arrival == pytest.approx(2.0) and reports[1].arrival_rate == pytest.approx(50)
        now = live.graph.frozen()
        arcs = {
            (u, v, int(graph.edge_weights(u, v)[0])) for u in range(graph.vertices) for v in graph.neighbors(u).tolist()
        }
        left = {
            (u, v, int(now.edge_weights(u, v)[0]))
            for u in now.ids.natural(0, now.vertices).tolist()
            for v in now.neighbors(u).tolist()
        }
        assert left < arcs, "inserted edges have their own weights"


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
def test_every_format_can_be_followed(stores: Path, tmp_path: Path, ending: str) -> None:
    ist.make_workload(stores / "g.isthmus", tmp_path / f"w.{ending}", batches=2, size=20)
    with ist.stream(stores / "g.isthmus", [ist.BFS(source=0)]) as live:
        assert sum(report.changes for report in live.follow(tmp_path / f"w.{ending}", batch=20, strict=True)) == 40
        assert live.number == 2 and live.check() == {}


LIST = "# who whom when\n1\t2\t100\n2\t3\t50\n1\t2\t120\n3\t1\t130\n2\t1\t140\n9\t1\t150\n"


def test_lists_with_times(tmp_path: Path) -> None:
    (tmp_path / "l.txt.gz").write_bytes(gzip.compress(LIST.encode()))
    figures = ist.make_workload(
        tmp_path / "l.txt.gz", tmp_path / "w.parquet", batches=1, size=3, initial=tmp_path / "i.isthmus"
    )
    assert figures["earlier"] == 3 and figures["arrival_rate"] == pytest.approx(3 / 20)
    assert pq.read_table(tmp_path / "w.parquet").to_pydict() == {
        "op": ["insert"] * 3,
        "source": [3, 2, 9],
        "target": [1, 1, 1],
        "time": [130.0, 140.0, 150.0],
    }
    with ist.open(tmp_path / "i.isthmus") as graph:
        assert (graph.edges, graph.directed) == (2, True) and graph.has_edge(1, 2) and graph.has_edge(2, 3)


def test_lists_with_operations(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text("a 1 2 1\na 2 3 2\nd 2 1 3\na 4 5 4\nd 4 5 5\na 1 2 6\n")
    ist.make_workload(
        tmp_path / "l.txt", tmp_path / "w.jsonl", batches=1, size=2, initial=tmp_path / "i.isthmus", directed=False
    )
    with ist.stream(tmp_path / "i.isthmus") as live:
        assert live.graph.edges == 2 and live.graph.has_edge(2, 3) and not live.graph.has_edge(1, 2)
        (report,) = live.follow(tmp_path / "w.jsonl", strict=True)
        assert report.counts["deleted"] == report.counts["inserted"] == 1 and not live.graph.has_edge(4, 5)


def test_tables_and_names_of_columns(tmp_path: Path) -> None:
    table = {
        "src": ["a", "b", "c"],
        "dst": ["b", "c", "a"],
        "weight": [1.5, 2.5, 3.5],
        "timestamp": pa.array([3, 2, 1], pa.timestamp("s")),
    }
    pq.write_table(pa.table(table), tmp_path / "l.parquet")
    ist.make_workload(tmp_path / "l.parquet", tmp_path / "w.csv", batches=1, size=1, initial=tmp_path / "i.isthmus")
    assert (tmp_path / "w.csv").read_text().replace('"', "").split() == [
        "op,source,target,weight,time",
        "insert,a,b,1.5,3",
    ]
    (tmp_path / "l.txt").write_text("7,1,x,2\n8,1,x,3\n")
    how = {"batches": 1, "size": 1, "initial": tmp_path / "j.isthmus", "columns": ("time", "source", "-", "target")}
    ist.make_workload(tmp_path / "l.txt", tmp_path / "v.csv", **how)
    assert (tmp_path / "v.csv").read_text().replace('"', "").split() == ["op,source,target,time", "insert,1,3,8"]


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"source": "g.isthmus", "size": 10**6},
        "has fewer than the 5,000,000 edges that are to change; give a smaller size or fewer batches",
    ),
    ({"source": "g.isthmus", "ratio": 1.5}, r"ratio: expected a share of inserts from 0 to 1, got 1\.5"),
    (
        {"source": "g.isthmus", "output": "w.txt"},
        r"w.txt: expected a name that ends in \.parquet, \.arrow, \.csv, \.jsonl",
    ),
    ({"source": "g.isthmus", "output": "nowhere/w.csv"}, "nowhere: no such folder"),
    ({"source": "g.isthmus", "output": "there.csv"}, "there.csv: exists already"),
    ({"source": "g.isthmus", "rate": 0, "size": 2}, "rate: expected a finite number above 0, got 0"),
    ({"source": "none.isthmus"}, "none.isthmus: no such store"),
    (
        {"source": "l.txt"},
        "l.txt: a list of edges with times needs a store for its earlier edges: give initial='NAME.isthmus'",
    ),
    (
        {"source": "l.txt", "initial": "i.isthmus"},
        "l.txt has 2 rows, and 10 batches of 100,000 leave none .* give a smaller size, such as 1",
    ),
    (
        {"source": "l.txt", "initial": "i.isthmus", "columns": ("a", "b")},
        "columns: expected some of op, source, target, weight, time",
    ),
    ({"source": "op.txt", "initial": "i.isthmus"}, "op.txt: row 1: column 'op': expected insert .* got 'x'"),
    ({"source": "many.txt", "initial": "i.isthmus"}, "many.txt: has 5 columns; name them"),
    ({"source": "nothing.txt", "initial": "i.isthmus"}, "nothing.txt: no edges"),
    ({"source": "nowhere.txt", "initial": "i.isthmus"}, "nowhere.txt: no such file"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=range(len(BAD)))
def test_mistakes(stores: Path, given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stores)
    texts = {
        "l.txt": "1 2 3\n2 3 4\n",
        "op.txt": "a 1 2 3\nx 1 2 3\n",
        "many.txt": "1 2 3 4 5\n",
        "nothing.txt": "# none\n",
        "there.csv": "",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    with pytest.raises(ist.IsthmusError, match=message):
        ist.make_workload(**{"output": "w.parquet", **given})
    assert not Path("w.parquet").exists() and not Path("i.isthmus").exists()


def test_a_graph_that_lacks_too_few_edges(tmp_path: Path) -> None:
    with pytest.raises(ist.OptionError, match="has too few missing edges to draw 5 inserts from"):
        ist.make_workload(ist.generate("complete", vertices=6), tmp_path / "w.csv", batches=1, size=10)


@pytest.mark.parametrize(
    "name", ["sx-mathoverflow/edges.txt.gz", "cit-HepPh/edges_temporal.txt.gz", "julia-registry/stream.txt.gz"]
)
def test_real_streams(data: Path, tmp_path: Path, name: str) -> None:
    if not (data / name).exists():
        pytest.skip(f"{name} is not in {data}")
    figures = ist.make_workload(
        data / name, tmp_path / "w.parquet", batches=4, size=250, initial=tmp_path / "i.isthmus"
    )
    assert figures["changes"] == 1000 and (figures["deletes"] > 0) == name.startswith("julia")
    with ist.stream(tmp_path / "i.isthmus", [ist.WeaklyConnectedComponents()]) as live:
        reports = list(live.follow(tmp_path / "w.parquet"))
        assert len(reports) == 4 and live.check() == {}
