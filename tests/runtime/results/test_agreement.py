"""Answers that must agree: exact where they are whole, within their own bounds where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.programs.algorithm import Answer, Rows
from isthmus.programs.column import Column, Holds, Within
from isthmus.runtime.results.agreement import difference
from isthmus.runtime.results.edge_result import EdgeResult
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace.trace import Trace

IDS = [30, 10, 20]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Vertices 10, 20 and 30, numbered 0, 1 and 2."""
    edges = (np.array([30, 10]), np.array([10, 20]))
    with ist.ingest(edges, tmp_path_factory.mktemp("a") / "g.isthmus") as graph:
        yield graph


DECLARED = (
    Column("predecessor", Holds.VERTICES, unique=False),
    Column("pagerank*", within=Within.TOTAL),
    Column("php", within=Within.TOTAL),
    Column("voltage", within=Within.EACH),
    Column("current", within=Within.TOTAL, figure="current_bound"),
    Column("katz_centrality", within=Within.RELATIVE),
    Column("source", Holds.PLACES),
    Column("target", Holds.PLACES),
)


def result(graph: Any, kind: type = Result, bound: dict[str, float] | None = None, **columns: Any) -> Result:
    arrays = {name: np.array(values) for name, values in columns.items()}
    answer = Answer(arrays, DECLARED, rows=Rows.EDGES if kind is EdgeResult else Rows.VERTICES)
    return kind("test", graph.snapshot, answer, Trace(), {"result": bound or {}})


def both(graph: Any, one: Any, two: Any, **more: Any) -> str | None:
    """What is said of a column with these two versions."""
    (name, a), b = next(iter(one.items())), next(iter(two.values()))
    return difference(result(graph, **more, **{name: a}), result(graph, **more, **{name: b}))


def test_whole_numbers_are_equal_or_not(graph: Any) -> None:
    assert both(graph, {"distance": [0, 1, 2]}, {"distance": [0, 1, 2]}) is None
    assert both(graph, {"distance": [0, 1, 2]}, {"distance": [0, 1, 3]}) == "distance of vertex 30 is 2 against 3"
    assert both(graph, {"labels": [0, 0, 0]}, {"labels": [0, 1, 0]}) == "labels of vertex 20 is 0 against 1"
    assert both(graph, {"a": [True, False, True]}, {"a": [True, True, True]}) == "a of vertex 20 is False against True"


def test_any_shortest_path_tree_will_do_but_not_another_set_of_vertices(graph: Any) -> None:
    assert both(graph, {"predecessor": [-1, 0, 1]}, {"predecessor": [-1, 2, 0]}) is None
    assert "predecessor of vertex 20" in str(both(graph, {"predecessor": [-1, 0, 1]}, {"predecessor": [-1, -1, 0]}))


def test_hub_order_names_the_right_vertex(tmp_path: Any) -> None:
    star = (np.array([5, 6, 7, 8]), np.array([9, 9, 9, 9]))
    with ist.ingest(star, tmp_path / "hub.isthmus", order="hub") as graph:
        one = ist.bfs(graph, 7)
        two = ist.bfs(graph, 7)
        two.raw("distance")[graph.ids.number(9)] = 4
        assert difference(one, two) == "distance of vertex 9 is 1 against 4"


def test_sums_may_differ_by_rounding(graph: Any) -> None:
    assert both(graph, {"score": [1.0, 2.0, 0.3]}, {"score": [1.0, 2.0, 0.1 + 0.2]}) is None
    assert "score of vertex 20 is 2 against 2.00001" in str(
        both(graph, {"score": [1.0, 2.0, 3.0]}, {"score": [1.0, 2.00001, 3.0]})
    )
    tight = [result(graph, score=[1.0, 2.0, 3.0]), result(graph, score=[1.0, 2.0000001, 3.0])]
    assert difference(*tight) is not None
    assert difference(*tight, tolerance=1e-6) is None


def test_unreached_and_undefined(graph: Any) -> None:
    inf, nan = np.inf, np.nan
    assert both(graph, {"distance": [0.0, inf, nan]}, {"distance": [0.0, inf, nan]}) is None
    assert (
        both(graph, {"distance": [0.0, inf, 1.0]}, {"distance": [0.0, 7.0, 1.0]})
        == "distance of vertex 20 is inf against 7"
    )
    assert (
        both(graph, {"distance": [0.0, 5.0, nan]}, {"distance": [0.0, 5.0, 1.0]})
        == "distance of vertex 30 is nan against 1"
    )
    assert "inf against -inf" in str(both(graph, {"width": [inf, 1.0, 1.0]}, {"width": [-inf, 1.0, 1.0]}))


@pytest.mark.parametrize("name", ["pagerank", "php", "pagerank_7"])
def test_the_sum_of_errors_counts_for_ranks(graph: Any, name: str) -> None:
    base = np.array([0.5, 0.3, 0.2])
    bound = {"error_bound": 1e-3}
    near, far = (base + np.array([off, 0, -off]) for off in (9e-4, 1.1e-3))
    assert both(graph, {name: base}, {name: near}, bound=bound) is None
    assert f"{name} of vertex 10 is 0.5 against 0.5011" in str(both(graph, {name: base}, {name: far}, bound=bound))
    assert both(graph, {name: base}, {name: near}) is not None, "without a bound only rounding is allowed"


def test_every_error_counts_for_voltages_and_their_sum_for_currents(graph: Any) -> None:
    bound = {"error_bound": 0.1, "current_bound": 0.1}
    base, off = np.array([1.0, 2.0, 3.0]), np.array([0.15, -0.15, 0.15])
    assert both(graph, {"voltage": base}, {"voltage": base + off}, bound=bound) is None
    assert both(graph, {"voltage": base}, {"voltage": base + 2 * off}, bound=bound) is not None
    assert both(graph, {"current": base}, {"current": base + off}, bound=bound) is not None
    assert both(graph, {"current": base}, {"current": base + off / 3}, bound=bound) is None


def test_katz_is_relative_in_every_entry(graph: Any) -> None:
    bound = {"error_bound": 1e-3}
    base = np.array([1.0, 1e-3, 1e-6])
    assert both(graph, {"katz_centrality": base}, {"katz_centrality": base * 1.0035}, bound=bound) is None
    assert "of vertex 30" in str(
        both(graph, {"katz_centrality": base}, {"katz_centrality": base * [1, 1, 1.005]}, bound=bound)
    )
    hopeless = {"error_bound": 2.0}
    assert both(graph, {"katz_centrality": base}, {"katz_centrality": base * 9}, bound=hopeless) is None


def test_other_columns_or_rows(graph: Any) -> None:
    one, two = result(graph, a=[1, 2, 3]), result(graph, b=[1, 2, 3])
    assert difference(one, two) == "3 rows of a against 3 of b"
    edges = [
        result(graph, EdgeResult, source=[0, 1], target=[1, 2], weight=[1.0, 2.0]),
        result(graph, EdgeResult, source=[0, 0], target=[1, 2], weight=[1.0, 2.0]),
        result(graph, EdgeResult, source=[0], target=[1], weight=[1.0]),
    ]
    assert difference(edges[0], edges[1]) == "source of edge 20 - 30 is 1 against 0"
    assert difference(edges[0], edges[2]) == "2 rows of source, target, weight against 1 of source, target, weight"
