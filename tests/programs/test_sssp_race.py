"""Two threads relaxing towards each other: an improvement that arrives while a vertex is being followed must count.

With the mark of a followed vertex taken off by a plain store, about one run in twelve of these was wrong.
"""

from __future__ import annotations

import numpy as np

import isthmus as ist
from isthmus.programs import sssp


def test_no_improvement_is_lost(tmp_path, monkeypatch):
    side = 1000
    with ist.generate("grid", tmp_path / "g.isthmus", rows=side, columns=side, seed=1, weights="1:255") as graph:
        middle = side * side // 2 + side // 2
        expected = ist.sssp(graph, middle, threads=1).values
        monkeypatch.setattr(sssp, "FEW_EDGES", 256)  # both threads, also for few edges
        monkeypatch.setattr(sssp, "STEP", 64)
        for _ in range(30):
            assert np.array_equal(ist.sssp(graph, middle, threads=2).values, expected)
