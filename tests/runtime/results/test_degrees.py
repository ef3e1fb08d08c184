"""Degrees of all vertices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import BudgetError

EDGES = (np.array([3, 3, 9, 9, 4]), np.array([9, 4, 9, 4, 3]))


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("in_edges", [False, True])
def test_of_a_directed_graph(order: str, stored: bool, in_edges: bool, tmp_path: Path, sized: Any) -> None:
    sized(degree_vertices=2)
    how = {"order": order, "in_edges": in_edges}
    graph = ist.ingest(EDGES, tmp_path / "g.isthmus", **how) if stored else ist.read(EDGES, **how)
    found = graph.degrees()
    assert found.to_arrow().to_pydict() == {
        "vertex": [3, 4, 9],
        "degree": [3, 3, 4],
        "in_degree": [1, 2, 2],
        "out_degree": [2, 1, 2],
    }
    assert dict(found) == {3: 3, 4: 3, 9: 4} and found.top(1) == [(9, 4)]
    assert found.top(2, "in_degree") == [(4, 2), (9, 2)]
    assert found.values.dtype == found["in_degree"].dtype == np.int64
    if in_edges:
        assert dict(found) == {v: graph.degree(v) for v in (3, 4, 9)}


def test_of_an_undirected_graph(tmp_path: Path) -> None:
    graph = ist.read(EDGES, directed=False)
    found = ist.degrees(graph)
    assert found.columns == ["degree"]
    assert dict(found) == {v: graph.degree(v) for v in (3, 4, 9)}
    found.save(tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text().splitlines()[0] == '"vertex","degree"'


def test_of_a_graph_that_changes() -> None:
    with ist.stream(ist.read(EDGES, parallel="drop"), ist.BFS(source=3)) as live:
        live.apply(inserts=[(9, 3)])
        assert dict(live.graph.degrees()) == {3: 4, 4: 3, 9: 5}


def test_a_budget_that_is_too_small() -> None:
    graph = ist.generate("path", vertices=100)
    with pytest.raises(
        BudgetError, match=r"the degrees of all vertices needs 3\.2 kB .* the budget is 1 kB; give memory='1MB' or more"
    ):
        graph.degrees(memory="1kB")
    assert dict(graph.degrees(memory="4kB"))[1] == 2
