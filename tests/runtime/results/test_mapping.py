"""Results as dictionaries: by vertex, by edge and by input."""

from __future__ import annotations

import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import OptionError, UnknownVertexError

NAMES = ["d", "b", "a", "distance", ""]


def sparse(order: str) -> Any:
    return ist.read((np.array([70, 5, 900]), np.array([5, 900, 12])), order=order)


def named(order: str, names: list[str]) -> Any:
    ends = np.array(names, object)
    return ist.read((ends[[0, 1, 2]], ends[[1, 2, 0]]), order=order)


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_a_result_is_a_dictionary(order: str, rows: int, sized: Any) -> None:
    sized(result_rows=rows)
    result = ist.bfs(sparse(order), 5)
    expected = {5: 0, 12: 2, 70: None, 900: 1}
    assert dict(result) == dict(result.items()) == {**result} == expected
    assert list(result) == list(result.keys()) == list(expected)
    assert {v: result[v] for v in (900, 5, 12, 70, np.int64(5))} == expected
    assert (result.get(12), result.get(13), result.get(13, "none")) == (2, None, "none")
    assert len(result) == 4
    assert 900 in result and np.uint8(5) in result and 901 not in result and "5" not in result
    assert dict(pickle.loads(pickle.dumps(result))) == expected


def test_it_reads_ahead_only_when_neighbours_are_asked_for(sized: Any) -> None:
    sized(result_rows=100)
    result = ist.bfs(ist.generate("path", vertices=300), 0)
    read: list[tuple[int, int]] = []
    plain = result._main_values
    result._main_values = lambda begin, end: read.append((begin, end)) or plain(begin, end)  # type: ignore[method-assign]
    assert [result[v] for v in (7, 250, 31)] == [7, 250, 31]
    assert read == [(7, 8), (250, 251), (31, 32)]
    read.clear()
    assert list(dict(result).values()) == list(range(300))
    assert len(read) < 12


def test_what_equals_an_id_and_is_none() -> None:
    result = ist.bfs(sparse("natural"), 5)
    dict(result)
    for other in (True, 5.0, [5], None, "x"):
        assert other not in result
        with pytest.raises(KeyError):
            result[other]
    with pytest.raises(UnknownVertexError, match="no vertex 13 in the graph"):
        result[13]
    with pytest.raises(
        UnknownVertexError,
        match="bfs has no column 'x'; it has distance, and no vertex 'x' in the graph; its ids are int",
    ):
        result["x"]


def test_texts_name_columns_first() -> None:
    result = ist.bfs(named("natural", ["d", "b", "a"]), "b")
    assert dict(result) == {"a": 1, "b": 0, "d": 2}
    assert result["distance"].tolist() == [1, 0, 2]
    result = ist.bfs(named("natural", ["d", "distance", "a"]), "d")
    assert result["distance"].tolist() == [2, 0, 1]
    assert result.value("distance") == 1 and "distance" in result
    assert dict(result.items()) == {"a": 2, "d": 0, "distance": 1}
    with pytest.raises(OptionError, match=r"'distance' is a vertex and a column.*result\.items\(\) or result\.value"):
        dict(result)


def test_labels_are_ids() -> None:
    assert dict(ist.weakly_connected_components(named("hub", ["d", "b", "a"]))) == {"a": "a", "b": "a", "d": "a"}


def test_the_edges_of_a_forest() -> None:
    weights = np.array([3, 1, 2])
    graph = ist.read((np.array(["x", "y", "z"], object), np.array(["y", "z", "x"], object), weights), directed=False)
    forest = ist.minimum_spanning_forest(graph)
    assert dict(forest) == {("x", "z"): 2, ("y", "z"): 1}
    assert forest["z", "y"] == 1 and ("y", "z") in forest and ("x", "y") not in forest
    with pytest.raises(KeyError, match=r"has no edge \('x', 'y'\)"):
        forest["x", "y"]
    with pytest.raises(KeyError, match=r"expected an edge \(source, target\), got 'x'"):
        forest["x"]


def test_a_result_of_a_stream() -> None:
    with ist.stream(ist.generate("path", vertices=4), ist.BFS(source=0)) as live:
        answer = live["bfs"]
        assert dict(answer) == {0: 0, 1: 1, 2: 2, 3: 3}
        assert 3 in answer and 4 not in answer and list(answer) == [0, 1, 2, 3]
        assert answer.top(1) == [(3, 3)]


def test_as_networkx_has_it() -> None:
    graph = nx.gnm_random_graph(60, 150, seed=3)
    ends = np.array(graph.edges())
    ours = ist.pagerank(ist.read((ends[:, 0], ends[:, 1]), directed=False, vertices=60), tol=1e-10)
    assert dict(ours) == pytest.approx(nx.pagerank(graph, tol=1e-12), abs=1e-8)
