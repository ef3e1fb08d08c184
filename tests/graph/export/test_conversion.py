"""Graphs as objects of other libraries, and back."""

from __future__ import annotations

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

WEIGHTED = [(3, 9, 5), (9, 4, 6), (4, 3, 7)]


@pytest.fixture(params=["natural", "hub"])
def graph(request):
    return ist.read(tuple(zip(*WEIGHTED, strict=True)), order=request.param)


def test_every_library_reads_the_edges(graph):
    found = {
        "pyarrow": pa.table(graph).to_pylist(),
        "polars": pl.DataFrame(graph).to_dicts(),
        "pandas": pd.DataFrame.from_arrow(graph).to_dict("records"),
        "duckdb": duckdb.sql("select * from graph").arrow().read_all().to_pylist(),
        "to_arrow": graph.to_arrow().to_pylist(),
    }
    for library, rows in found.items():
        assert sorted(tuple(row.values()) for row in rows) == sorted(WEIGHTED), library
        assert list(rows[0]) == ["source", "target", "weight"]


def test_weights_are_shared_and_batches_are_small(sized):
    graph = ist.read(([0, 0, 1, 2], [1, 2, 0, 1], [5, 6, 7, 8]))
    stored = graph.entries("out.weights", 0, 4)
    column = next(iter(graph.edge_batches())).column("weight")
    assert column.buffers()[1].address == stored.__array_interface__["data"][0]
    sized(block_edges=3)
    assert [len(batch) for batch in graph.edge_batches()] == [3, 1]


def test_an_undirected_edge_comes_once():
    graph = ist.read((["b", "c", "a"], ["a", "a", "a"]), directed=False)
    assert graph.to_arrow().to_pydict() == {"source": ["a", "a", "a"], "target": ["a", "b", "c"]}
    assert ist.read(([], [])).to_arrow().num_rows == 0


@pytest.mark.parametrize("directed", [True, False])
def test_scipy_and_back(graph, directed):
    graph = ist.read(graph.to_arrow(), directed=directed)
    matrix = graph.to_scipy()
    assert matrix.shape == (3, 3) and matrix.dtype == np.int32
    assert matrix[0, 2] == 5 and matrix[2, 0] == (0 if directed else 5)
    again = ist.read(matrix, directed=directed)
    assert (again.edges, again.weighted) == (3, True)
    plain = ist.read(([0, 1], [1, 1]))
    assert plain.to_scipy().dtype == bool and not ist.read(plain.to_scipy()).weighted


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("names", [int, str])
@pytest.mark.parametrize("weighted", [True, False])
def test_networkx_and_back(kind, names, weighted):
    given = kind()
    given.add_nodes_from(names(v) for v in (7, 99))
    pairs = [(1, 2), (2, 3), (3, 1), *([(1, 2)] if given.is_multigraph() else [])]
    for at, (u, v) in enumerate(pairs):
        given.add_edge(names(u), names(v), **({"weight": at} if weighted else {}))
    graph = ist.from_networkx(given)
    edges = [(u, v, w) for u, v, w in given.edges(data="weight")]
    assert_graph(graph, clean(edges, given.nodes, directed=given.is_directed()))
    assert_graph(ist.read(given), clean(edges, given.nodes, directed=given.is_directed()))
    back = graph.to_networkx()
    assert type(back) is kind
    assert nx.utils.graphs_equal(back, given) or given.is_multigraph()
    assert sorted(back.edges(data="weight")) == sorted(graph.to_networkx().edges(data="weight"))


def test_attributes_of_networkx_edges():
    given = nx.DiGraph([(0, 1, {"cost": 2.5}), (1, 2)])
    assert not ist.from_networkx(given).weighted
    assert not ist.from_networkx(nx.path_graph(3), weight=None).weighted
    with pytest.warns(ist.IsthmusWarning, match="1 edges have no attribute 'cost' and count 1"):
        assert ist.from_networkx(given, weight="cost").edge_weights(1, 2).tolist() == [1.0]
    with pytest.raises(OptionError, match="no edge has an attribute 'price'"):
        ist.from_networkx(given, weight="price")
    with pytest.raises(GraphFormatError, match=r"column 'weight' holds .*string, expected numbers as weights"):
        ist.from_networkx(nx.Graph([(0, 1, {"weight": "far"})]))
    assert ist.from_networkx(nx.empty_graph(3)).vertices == 3
    assert ist.from_networkx(nx.Graph()).vertices == 0


@pytest.mark.parametrize("nodes", [[(0, 1)], ["a", 1], [1.5], [True]])
def test_nodes_of_other_types(nodes):
    given = nx.Graph()
    given.add_nodes_from(nodes)
    with pytest.raises(
        GraphFormatError, match=r"expected nodes that are all integers or all strings, got .*convert_node_labels"
    ):
        ist.from_networkx(given)
    with pytest.raises(OptionError, match="from_networkx: expected a NetworkX graph, got list"):
        ist.from_networkx(nodes)


def test_a_list_of_pairs_and_a_lazy_frame(tmp_path):
    assert_graph(ist.read(WEIGHTED), clean(WEIGHTED))
    assert_graph(ist.read([("a", "b"), ("b", "c")]), clean([("a", "b", None), ("b", "c", None)]))
    frame = pl.DataFrame({"extra": ["x", "y", "z"], "source": [3, 9, 4], "target": [9, 4, 3], "weight": [5, 6, 7]})
    frame.write_parquet(tmp_path / "a.parquet")
    for lazy in (frame.lazy(), pl.scan_parquet(tmp_path / "a.parquet")):
        assert_graph(ist.read(lazy), clean(WEIGHTED))
    words = pl.LazyFrame({"u": ["a", "b"], "v": ["b", "c"]}).filter(pl.col("u") == "a")
    assert_graph(ist.read(words), clean([("a", "b", None)]))
