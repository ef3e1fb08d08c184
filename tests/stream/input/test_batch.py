"""Batches from any input, and what is wrong with bad ones.

Tests `stream/input/batch.py`, `stream/input/batch_columns.py` and `stream/input/update_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus as ist
from isthmus.stream.live import Live


def weighted(kind: str = "int") -> Any:
    """1 -> 2 -> 3 -> 1, with weights 5, 6, 7."""
    ends = [np.array([1, 2, 3]), np.array([2, 3, 1])]
    if kind == "string":
        ends = [np.array([f"n{v}" for v in column], object) for column in ends]
    return ist.read((*ends, np.array([5, 6, 7], np.float64 if kind == "real" else np.int32)))


@pytest.fixture(scope="module")
def graph() -> Any:
    return weighted()


EDGES = {"source": [3, 3], "target": [4, 5], "weight": [1, 2]}
FORMS: dict[str, Any] = {
    "columns": tuple(np.array(column) for column in EDGES.values()),
    "lists": ([3, 3], [4, 5], [1, 2]),
    "triples": [(3, 4, 1), (3, 5, 2)],
    "generator": "made below",
    "matrix": np.array([[3, 4, 1], [3, 5, 2]]),
    "dictionary": EDGES,
    "arrow": pa.table(EDGES),
    "reader": "made below",
    "pandas": pd.DataFrame(EDGES),
    "polars": pl.DataFrame(EDGES),
    "other names": pd.DataFrame(
        {"Weight": [1.0, 2.0], "dst": [4, 5], "src": np.array([3, 3], np.uint8), "note": ["", ""]}
    ),
}


@pytest.mark.parametrize("form", [*FORMS, "parquet", "arrow file", "csv", "jsonl"])
def test_edges_in_any_form(graph: Any, form: str, tmp_path: Path) -> None:
    table = pa.table(EDGES)
    given = FORMS.get(form)
    if form == "generator":
        given = ((3, v, v - 3) for v in (4, 5))
    if form == "reader":
        given = table.to_reader()
    if form == "parquet":
        pq.write_table(table, given := tmp_path / "e.parquet")
    if form == "arrow file":
        with pa.ipc.new_file(given := tmp_path / "e.arrow", table.schema) as writer:
            writer.write_table(table)
    if form == "csv":
        (given := tmp_path / "e.csv").write_text("weight;source;target\n1;3;4\n\n2;3;5\n")
    if form == "jsonl":
        (given := tmp_path / "e.jsonl").write_text(
            '{"source": 3, "target": 4, "weight": 1}\n{"weight": 2, "source": 3, "target": 5}\n'
        )
    with ist.stream(graph) as live:
        report = live.apply(inserts=given)
        assert (report.changes, report.counts["inserted"], live.graph.edges) == (2, 2, 5)
        assert [live.graph.edge_weights(3, v).tolist() for v in (4, 5)] == [[1], [2]]


WHOLE = {
    "op": ["insert", "update", "delete", "add_vertex", "insert", "delete"],
    "source": [1, 1, 2, 9, 7, 7],
    "target": [3, 3, 3, None, 8, 8],
    "weight": [4, 9, None, None, 1, None],
}


@pytest.mark.parametrize("form", ["tuples", "arrow", "pandas", "polars", "dictionary encoded"])
def test_a_whole_table_is_applied_in_order(graph: Any, form: str) -> None:
    rows = [tuple(value for value in row if value is not None) for row in zip(*WHOLE.values(), strict=True)]
    table = pa.table(WHOLE)
    given = {
        "tuples": rows,
        "arrow": table,
        "pandas": pd.DataFrame(WHOLE).convert_dtypes(),
        "polars": pl.DataFrame(WHOLE),
        "dictionary encoded": table.set_column(0, "op", table.column("op").dictionary_encode()),
    }[form]
    with ist.stream(graph) as live:
        report = live.apply(batch=given)
        assert report.changes == 6
        assert {name: count for name, count in report.counts.items() if count} == {
            "inserted": 1,
            "deleted": 1,
            "vertices_added": 3,
        }
        assert live.graph.edge_weights(1, 3).tolist() == [9]
        assert (
            not live.graph.has_edge(2, 3)
            and not live.graph.has_edge(7, 8)
            and {7, 8, 9} <= set(live.graph.changing_ids.users().tolist())
        )
        live.apply(batch=[("remove_vertex", 9)])
        assert 9 not in live.graph


def test_ids_that_are_strings() -> None:
    with ist.stream(weighted("string"), [ist.BFS(source="n1")]) as live:
        live.apply(inserts=pl.DataFrame({"source": ["n3"], "target": ["n4"]}), deletes=(["n1"], ["n2"]))
        live.apply(batch=pd.DataFrame({"op": ["insert", "insert"], "source": ["n1", "n9"], "target": ["n4", "n1"]}))
        assert dict(zip(live["bfs"].vertices.tolist(), live["bfs"].values.tolist(), strict=True)) == {
            "n1": 0,
            "n2": None,
            "n3": None,
            "n4": 1,
            "n9": None,
        }


def test_without_weights_an_insert_counts_as_1(graph: Any) -> None:
    with ist.stream(graph) as live:
        live.apply(inserts=[(3, 4)])
        live.apply(batch={"op": ["insert"], "source": [3], "target": [5]})
        assert live.graph.edge_weights(3, 4).tolist() == live.graph.edge_weights(3, 5).tolist() == [1]


# Bad batches: (what is given, what the message says)
NAN, INF = float("nan"), float("inf")
TABLE: dict[str, Any] = {"op": ["insert", "delete"], "source": [1, 2], "target": [4, 3], "weight": [2, None]}


def whole(**changes: Any) -> dict[str, Any]:
    return {"batch": pa.table({**TABLE, **changes})}


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"inserts": [(3, 4, 1), (3, 4.5, 1)]},
        r"inserts: row 1: column 'target': expected an integer, as the graph's ids are.*got 4\.5",
    ),
    (
        {"inserts": [(3, 4, 1), (3, "4", 1)]},
        "inserts: row 1: column 'target': expected an integer, as the graph's ids are, got '4'",
    ),
    ({"inserts": (np.array([1.0]), np.array([2]))}, r"inserts: row 0: column 'source'.*\.astype\('int64'\), got 1\.0"),
    (
        {"inserts": (["a"], ["b"])},
        "inserts: row 0: column 'source': expected an integer, as the graph's ids are, got 'a'",
    ),
    (
        {"inserts": [(3, 4, 1), (3, None, 1)]},
        "inserts: row 1: column 'target': expected an integer, as the graph's ids are, got null",
    ),
    (
        {"inserts": [(True, 4, 1)]},
        "inserts: row 0: column 'source': expected an integer, as the graph's ids are, got True",
    ),
    ({"inserts": [(3, 2**63, 1)]}, "inserts: row 0: column 'target': expected an id from -9223372036854775808 to"),
    ({"inserts": [(3, 10**30, 1)]}, "inserts: row 0: column 'target': expected an id from -9223372036854775808 to"),
    ({"inserts": [(3, 4, 1), (3, 5, NAN)]}, "inserts: row 1: column 'weight': expected a finite number, got nan"),
    ({"inserts": [(3, 4, INF)]}, "inserts: row 0: column 'weight': expected a finite number, got inf"),
    (
        {"inserts": [(3, 4, -1)]},
        "inserts: row 0: column 'weight': expected a weight of at least 0, which sssp needs, got -1",
    ),
    (
        {"updates": [(1, 2, -1.0)]},
        r"updates: row 0: column 'weight': expected a weight of at least 0, which sssp needs, got -1\.0",
    ),
    (
        {"inserts": [(3, 4, 1.5)]},
        r"inserts: row 0: column 'weight': expected a whole number, as the graph's weights are int32, got 1\.5",
    ),
    (
        {"inserts": [(3, 4, 2**31)]},
        "inserts: row 0: column 'weight': expected a number that int32 holds.*got 2147483648",
    ),
    ({"inserts": [(3, 4, 1e30)]}, r"inserts: row 0: column 'weight': expected a number that int32 holds.*got 1e\+30"),
    ({"inserts": [(3, 4, "2")]}, "inserts: row 0: column 'weight': expected a number, got '2'"),
    ({"inserts": [(3, 4, None)]}, "inserts: row 0: column 'weight': expected a number, got null"),
    ({"inserts": [(3, 4, True)]}, "inserts: row 0: column 'weight': expected a number, got True"),
    ({"inserts": [(3, 4), (3, 4, 1)]}, r"inserts: row 1: expected \(source, target\) or, in all rows.*got \(3, 4, 1\)"),
    ({"inserts": [3, 4]}, "inserts: row 0: expected"),
    (
        {"inserts": ([1, 2], [3])},
        r"inserts: expected \(sources, targets\[, weights\]\) of equal length, got 2 columns of 2, 1",
    ),
    ({"inserts": np.zeros((3, 4), int)}, r"inserts: expected an array with two or three columns, got shape \(3, 4\)"),
    ({"inserts": 7}, "inserts: cannot read changes from int"),
    (
        {"inserts": pa.table({"source": [1], "to": ["x"]})},
        "inserts: row 0: column 'to': expected an integer, as the graph's ids are, got 'x'",
    ),
    ({"inserts": pa.table({"a": [1], "b": [2]})}, "inserts: no column 'source'; there are a, b"),
    (
        {"inserts": pa.table({"source": [1], "target": [2.5]})},
        r"inserts: row 0: column 'target': expected an integer.*got 2\.5",
    ),
    (
        {"inserts": pd.DataFrame({"source": [1, 1], "target": [2, None]})},
        "inserts: row 1: column 'target': expected an id, got null",
    ),
    (
        {"inserts": pd.DataFrame({"source": [1], "target": [2], "weight": [NAN]})},
        "inserts: row 0: column 'weight': expected a number, got null",
    ),
    (
        {"inserts": pl.DataFrame({"source": [1], "target": [2], "weight": [NAN]})},
        "inserts: row 0: column 'weight'.*finite number, got nan",
    ),
    ({"inserts": {"source": [1, "x"], "target": [2, 3]}}, "inserts: cannot read the table"),
    ({"updates": [(1, 2)]}, "updates: row 0: expected a source, a target and a weight, got no weight"),
    ({"deletes": [("1", 2)]}, "deletes: row 0: column 'source': expected an integer"),
    (
        {"add_vertices": ["x"]},
        "add_vertices: row 0: column 'vertex': expected an integer, as the graph's ids are, got 'x'",
    ),
    ({"remove_vertices": 3}, "remove_vertices: expected a list of vertices, got 3"),
    ({"remove_vertices": [1]}, "remove_vertices: row 0: vertex 1 is the source of sssp and cannot be removed"),
    (
        {"inserts": [(3, 4, 1), (2, 5, 1)], "remove_vertices": [2]},
        "inserts: row 1: column 'source': vertex 2 is removed and used in the same",
    ),
    (
        {"deletes": [(1, 2)], "remove_vertices": [2]},
        "deletes: row 0: column 'target': vertex 2 is removed and used in the same batch",
    ),
    (
        {"add_vertices": [2], "remove_vertices": [2]},
        "add_vertices: row 0: column 'vertex': vertex 2 is removed and used",
    ),
    (
        whole(op=["insert", "inserted"]),
        r"batch: row 1: column 'op': expected insert, delete, .* \(did you mean insert\?\), got 'inserted'",
    ),
    (whole(op=["insert", None]), "batch: row 1: column 'op': expected an operation, got null"),
    (whole(op=[1, 2]), "batch: row 0: column 'op': expected an operation such as insert, got 1"),
    (whole(source=[1, None]), "batch: row 1: column 'source': expected an id, got null"),
    (whole(target=[None, 3]), "batch: row 0: column 'target': expected an id, got null"),
    (whole(target=["4", "3"]), "batch: row 0: column 'target': expected an integer, as the graph's ids are, got '4'"),
    (whole(weight=[None, None]), "batch: row 0: column 'weight': expected a number, got null"),
    (whole(weight=["1", "2"]), "batch: row 0: column 'weight': expected a number, got '1'"),
    (whole(op=["insert", "update"]), "batch: row 1: column 'weight': expected a number, got null"),
    (
        whole(op=["insert", "remove_vertex"], source=[1, 4]),
        r"batch: row 0: column 'target': vertex 4 .* \(batch: row 1 removes it\)",
    ),
    ({"batch": pa.table({"source": [1], "target": [2]})}, "batch: no column 'op'; there are source, target"),
    ({"batch": [("insert", 1)]}, "batch: row 0: column 'target': expected an id, got no value"),
    (
        {"batch": [("insert", 1, 4), ("insert", 1, 4, 5, 6)]},
        r"batch: row 1: expected \(op, source, target\[, weight\]\), got",
    ),
    ({"batch": [("update", 1, 2)]}, "batch: row 0: column 'weight': expected a number, got null"),
    ({"batch": "nowhere.csv"}, "nowhere.csv: no such file"),
    (
        {"inserts": [(1, 2, 1)], "strict": True},
        "inserts: row 0: cannot insert the edge 1 -> 2: it exists \\(strict; nothing was applied\\)",
    ),
    (
        {"deletes": [(1, 2), (1, 3)], "strict": True},
        "deletes: row 1: the edge 1 -> 3 does not exist \\(strict; nothing",
    ),
    ({"inserts": [(3, 4)], "deletes": [(1, 3)], "strict": True}, "deletes: row 0: the edge 1 -> 3 does not exist"),
    ({"add_vertices": [9, 1], "strict": True}, "add_vertices: row 1: vertex 1 cannot be added: it exists"),
    (
        {"remove_vertices": [3, 9], "strict": True},
        "remove_vertices: row 1: vertex 9 cannot be removed: it does not exist",
    ),
    ({"batch": [("insert", 8, 9), ("delete", 1, 3)], "strict": True}, "batch: row 1: the edge 1 -> 3 does not exist"),
]


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with ist.stream(
        weighted(), [ist.SSSP(source=1), ist.PageRank(tol=1e-4), ist.WeaklyConnectedComponents()]
    ) as stream:
        stream.apply(inserts=[(2, 1, 4)], add_vertices=[30])
        yield stream


def contents(stream: Live) -> dict[str, Any]:
    """All that a batch can change, bit by bit."""
    graph, found = stream.graph, {}
    for name, side in graph.sides.items():
        begins, ends, targets, weights = side.arrays()
        found |= {
            f"{name}.{what}": array.tobytes()
            for what, array in zip("beotw", (begins, ends, targets, weights), strict=False)
        }
    found |= {
        "users": graph.changing_ids.users().tolist(),
        "facts": (graph.vertices, graph.edges, graph.arcs, graph.number, graph.self_loops),
    }
    for name, program in stream.batches.programs.items():
        found[name] = [array.tobytes() for array in (*program.state.arrays, *program.published())]
        found[f"{name} result"] = (stream[name].number, stream[name].filled().tobytes(), stream[name].vertices.tolist())
    return found


@pytest.mark.parametrize(("batch", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_batch_changes_nothing(live: Live, batch: dict[str, Any], message: str) -> None:
    before = contents(live)
    with pytest.raises(ist.IsthmusError, match=message):
        live.apply(**batch)
    assert contents(live) == before


def test_a_good_batch_after_bad_ones(live: Live) -> None:
    live.apply(inserts=[(30, 1, 2)])
    live.apply(deletes=[(30, 1)])
    assert live.check() == {}


def test_bad_batches_of_graphs_of_another_kind() -> None:
    with ist.stream(weighted("string")) as live:
        with pytest.raises(
            ist.BatchError, match="inserts: row 0: column 'source': expected a string, as the graph's ids are, got 1"
        ):
            live.apply(inserts=[(1, 2)])
        with pytest.raises(
            ist.BatchError, match="inserts: row 1: column 'target': expected a string, as the graph's ids are, got null"
        ):
            live.apply(inserts=[("a", "b"), ("a", None)])
        with pytest.raises(
            ist.BatchError, match="batch: row 0: column 'source': expected a string, as the graph's ids are, got 1"
        ):
            live.apply(batch={"op": ["insert"], "source": [1], "target": [2]})
        with pytest.raises(
            ist.BatchError, match="inserts: row 0: column 'target': expected text in UTF-8, got b'\\\\xff'"
        ):
            live.apply(inserts=pa.table({"source": [b"a"], "target": [b"\xff"]}))
        with pytest.raises(ist.BatchError, match="inserts: row 0: column 'target': expected text that UTF-8 can hold"):
            live.apply(inserts=[("a", "\ud800")])
    with (
        ist.stream(weighted("real")) as live,
        pytest.raises(ist.BatchError, match="column 'weight': expected a finite number, got inf"),
    ):
        live.apply(inserts=[(1, 4, INF)])
    with ist.stream(ist.generate("path", vertices=4)) as live:
        with pytest.raises(
            ist.BatchError, match="updates: row 0: updates change the weights of edges, and the graph has no weights"
        ):
            live.apply(updates=[(0, 1, 3)])
        with pytest.raises(
            ist.BatchError,
            match="batch: row 0: column 'op': update changes the weight of an edge, and the graph has no weights",
        ):
            live.apply(batch=[("update", 0, 1, 3)])
        live.apply(inserts=[(0, 3, 7)])  # the weight does not matter
        assert live.graph.edges == 4
    with pytest.raises(ist.OptionError, match="give a batch as a whole, or inserts"):
        ist.stream(weighted()).apply(batch=[], inserts=[])


def test_negative_weights_where_no_program_minds() -> None:
    with ist.stream(weighted(), [ist.BFS(source=1), ist.PageRank()]) as live:
        live.apply(inserts=[(3, 4, -2)])
        assert live.graph.edge_weights(3, 4).tolist() == [-2]
        graph = live.graph.frozen()
    with pytest.raises(ist.OptionError, match=r"sssp needs weights of at least 0, and .* has negative ones"):
        ist.stream(graph, [ist.SSSP(source=1)])


def test_a_stream_ends_when_a_batch_is_stopped_midway(monkeypatch: pytest.MonkeyPatch) -> None:
    with ist.stream(weighted(), [ist.BFS(source=1)]) as live:
        before = live["bfs"].filled().tolist()
        monkeypatch.setattr(live.graph, "commit", lambda change: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            live.apply(deletes=[(1, 2)])
        with pytest.raises(ist.BatchError, match="a batch was stopped while it was applied"):
            live.apply(inserts=[(1, 9)])
        assert (live["bfs"].number, live["bfs"].filled().tolist()) == (0, before)


def test_a_budget_that_is_too_small() -> None:
    graph = ist.generate("rmat", scale=10)
    with pytest.raises(
        ist.BudgetError,
        match=r"needs .* for its edges, and more for programs; the budget is 50 kB: give memory='\d+MB'",
    ):
        ist.stream(graph, [ist.BFS(source=0)], memory="50kB")
    with ist.stream(graph, [ist.BFS(source=0)], memory="20MB") as live:
        assert live.budget == 20_000_000 and 0 < live.graph_bytes < 20_000_000


def test_weights_that_sum_up_beyond_float64_are_refused() -> None:
    graph = ist.read((np.array([0, 0, 1, 2]), np.array([1, 2, 2, 0]), np.array([1e308, 1.0, 1e308, 2.0])))
    with ist.stream(graph, [ist.PageRank(weight=True)]) as live:
        for batch in ([(0, 3, 1e308)], [(9, 0, 1e308), (9, 1, 1e308)]):
            with pytest.raises(
                ist.BatchError, match="would sum up to more than float64 holds, and pagerank divides by their sum"
            ):
                live.apply(inserts=batch)
        live.apply(inserts=[(1, 3, 2.0)], deletes=[(0, 1)])
        live.apply(inserts=[(0, 3, 1e308)])
        assert live.check() == {}
