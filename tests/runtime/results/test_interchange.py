"""Results are read by pyarrow, pandas, polars, DuckDB and NumPy through their protocols, without a copy where there is
none to make.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isthmus as ist
from isthmus.errors import OptionError


@pytest.fixture(scope="module")
def graph():
    return ist.read(([5, 5, 7, 90], [7, 9, 9, 91]))


@pytest.fixture(scope="module")
def result(graph):
    return ist.bfs(graph, 5)


DISTANCES = [(5, 0), (7, 1), (9, 1), (90, None), (91, None)]


def test_every_library_reads_the_stream(result):
    columns = ["vertex", "distance"]
    found = {
        "pyarrow": pa.table(result).select(columns).to_pylist(),
        "polars": pl.DataFrame(result).select(columns).to_dicts(),
        "pandas": pa.Table.from_pandas(pd.DataFrame.from_arrow(result)[columns]).to_pylist(),
        "duckdb": duckdb.sql("select vertex, distance from result").arrow().read_all().to_pylist(),
    }
    for library, rows in found.items():
        assert [tuple(row.values()) for row in rows] == DISTANCES, library


def test_the_stream_is_cut_as_results_are(result, sized):
    sized(result_rows=2)
    assert [len(batch) for batch in pa.RecordBatchReader.from_stream(result)] == [2, 2, 1]


def test_numbers_are_shared(graph):
    scores = ist.pagerank(graph)
    raw = scores.raw("pagerank")
    assert np.shares_memory(np.from_dlpack(scores), raw)
    assert np.shares_memory(np.asarray(scores), raw)
    column = pa.table(scores)["pagerank"].chunk(0)
    assert column.buffers()[1].address == raw.__array_interface__["data"][0]
    assert np.shares_memory(pl.DataFrame(scores)["pagerank"].to_numpy(), raw)
    assert not np.shares_memory(np.array(scores, copy=True), raw)


def test_an_array_outlives_the_result(graph):
    kept = np.from_dlpack(ist.pagerank(graph))
    expected = ist.pagerank(graph).filled().tolist()
    assert kept.tolist() == expected


def test_hub_order_and_unreached_vertices():
    graph = ist.read(([0, 1, 2, 4], [1, 2, 3, 3]), order="hub")
    result = ist.bfs(graph, 0)
    assert np.asarray(result).tolist() == result.filled().tolist() == [0, 1, 2, 3, np.iinfo(np.int64).max]
    assert pa.table(result)["distance"].to_pylist() == [0, 1, 2, 3, None]
    assert np.asarray(result, dtype=np.float64).dtype == np.float64


def test_edges_of_a_forest_are_a_graph_and_values_of_vertices_are_not():
    graph = ist.read(([0, 1, 0], [1, 2, 2], [1, 2, 9]), directed=False)
    forest = ist.minimum_spanning_forest(graph)
    assert pa.table(forest).column_names == ["source", "target", "weight"]
    assert ist.read(forest, directed=False).edges == 2
    with pytest.raises(OptionError, match="cannot read edges from Result; it holds values of vertices: distance"):
        ist.read(ist.bfs(graph, 0))
