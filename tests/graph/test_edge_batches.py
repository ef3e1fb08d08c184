"""Edges as Arrow batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import isthmus as ist
from isthmus.errors import OptionError


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("directed", [False, True])
def test_every_edge_comes_once(order: str, directed: bool, tmp_path: Path, sized: Any) -> None:
    sized(degree_vertices=7, verified_arcs=11)
    u, v = np.random.default_rng(1).integers(0, 40, (2, 200))
    names = np.array([f"n{k:02}" for k in range(40)], object)
    with ist.ingest((names[u], names[v], np.arange(200.0)), tmp_path / "g.isthmus", directed=directed, order=order) as graph:
        batches = list(graph.edge_batches(5))
    assert all(batch.num_rows <= 5 for batch in batches)
    table = pa.Table.from_batches(batches)
    assert table.column_names == ["source", "target", "weight"] and table.num_rows == 200
    found = sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True), key=lambda row: row[2])
    for (a, b, w), x, y in zip(found, names[u], names[v], strict=True):
        assert (a, b) == (x, y) if directed else {a, b} == {x, y}, w


def test_small_ones() -> None:
    assert list(ist.read((np.empty(0, np.int64), np.empty(0, np.int64))).edge_batches()) == []
    (batch,) = ist.generate("path", vertices=3).edge_batches()
    assert batch.to_pydict() == {"source": [0, 1], "target": [1, 2]}
    with pytest.raises(OptionError, match="rows: expected at least 1, got 0"):
        next(ist.generate("path", vertices=3).edge_batches(0))
