"""Edge attributes as weights: what is exact is taken, the rest is refused by an error that NetworkX understands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

from isthmus.networkx.backend import FEW_EDGES
from isthmus.networkx.edge_weights import all_ones, as_weights


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ([True, 3], np.int64),
        ([np.int32(7), 2], np.int64),
        ([], np.float64),
        ([0.5, 2], np.float64),
        ([np.float32(2)], np.float64),
    ],
)
def test_numbers(values: list[Any], dtype: Any) -> None:
    weights = as_weights("weight", values)
    assert weights.dtype == dtype
    assert weights.tolist() == values


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["3"], "expected numbers as edge attribute 'cost', got '3'"),
        ([1, None], "got None"),
        ([[1], [2, 3]], r"got \[1\]"),
        ([[1], [2]], r"got \[1\]"),
        ([Fraction(1, 2)], r"got Fraction\(1, 2\)"),
        ([2**70], "expected numbers"),
        ([1, -1], "negative, not finite or beyond"),
        ([0.5, -0.5], "negative"),
        ([float("inf")], "not finite"),
        ([float("nan")], "not finite"),
        ([2**53], "beyond"),
        ([2**60, 0.5], "beyond"),
        ([2**52] * 1024, "beyond"),
    ],
)
def test_others_are_refused(values: list[Any], reason: str) -> None:
    with pytest.raises(NotImplementedError, match=reason):
        as_weights("cost", values)


def test_all_ones() -> None:
    assert all_ones([1, 1.0, True])
    assert all_ones([])
    assert not all_ones([1, 2])


def test_networkx_computes_what_is_refused_if_it_may() -> None:
    graph = nx.path_graph(FEW_EDGES + 1)  # large enough that the backend is asked first
    graph[0][1]["weight"] = Fraction(1, 2)
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(graph, 0, 2, backend="isthmus")
    with pytest.raises(NotImplementedError):
        nx.all_pairs_dijkstra_path_length(graph, backend="isthmus")  # at once, and not when the first node is asked for
    with nx.config(backend_priority=["isthmus"]):
        assert nx.dijkstra_path_length(graph, 0, 2) == Fraction(3, 2)
        assert next(nx.all_pairs_dijkstra_path_length(graph))[1][2] == Fraction(3, 2)
