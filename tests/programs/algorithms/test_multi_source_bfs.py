"""Searches that share their reads say what single ones say, and read less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.naive import clean
from tests.programs.ways import INT_MAX, SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError


def assert_same(result, edges, n, directed, sources):
    oracle = clean(edges, range(n), directed=directed)
    assert result.columns == [f"distance_{source}" for source in sources]
    for source in sources:
        found = oracles.bfs(oracle, source)
        assert result.filled(f"distance_{source}").tolist() == [found.get(v, INT_MAX) for v in range(n)]


@SETTINGS
@given(graphs(), hows, orders, st.data())
def test_each_search_is_a_search(graph, how, order, data):
    edges, n, directed = graph
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    assert_same(
        ist.multi_source_bfs(build(edges, n, directed, order=order), sources, **how), edges, n, directed, sources
    )


@pytest.mark.parametrize("directed", [True, False])
def test_every_way_with_all_bits(tmp_path, sized, directed):
    edges = skewed()
    sources = list(range(3, 420, 6))[:64]
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        assert_same(ist.multi_source_bfs(graph, sources, **how), edges, 420, directed, sources)


def test_reads_are_shared(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=12, seed=2)
    how = {"policy": "filter", "memory": "10%"}
    together = ist.multi_source_bfs(graph, list(range(64)), **how).summary()["transfer"]["bytes"]
    alone = ist.bfs(graph, 0, **how).summary()["transfer"]["bytes"]
    assert together < 3 * alone


def test_long_paths_and_columns():
    graph = build([(i, i + 1, None) for i in range(700)], 702, True)
    result = ist.multi_source_bfs(graph, [0, 350])
    assert result.values.dtype == np.int64
    assert result.filled("distance_350")[[349, 350, 700, 701]].tolist() == [INT_MAX, 0, 350, INT_MAX]
    assert result.to_arrow()["distance_0"].to_pylist()[-2:] == [700, None]
    assert result.summary()["result"] == {"sources": 2, "reached": 701 + 351, "depth": 700}
    assert ist.multi_source_bfs(graph, 5).columns == ["distance_5"]


def test_bad_sources():
    graph = build([(0, 1, None)], 80, True)
    for sources in ([], list(range(65))):
        with pytest.raises(OptionError, match=f"sources: expected 1 to 64 vertices, got {len(sources)}"):
            ist.multi_source_bfs(graph, sources)
    with pytest.raises(OptionError, match=r"sources: expected different vertices, got \[3, 3\]"):
        ist.multi_source_bfs(graph, [3, 3])
    with pytest.raises(ist.UnknownVertexError, match="no vertex 99 in the graph"):
        ist.multi_source_bfs(graph, [1, 99])
