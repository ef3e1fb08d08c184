"""Neural networks: recipe × far memory × budget × threads × order × graph gives what a plain forward pass says.

Every graph of the suite becomes a network: three copies of its vertices are the layers, and each of its edges leads
from a copy of one end to the next copy of the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from tests import cases as kinds

import isthmus as ist

ALGORITHM = "nn_inference"
LAYERS = 3
STRIDE = 23
CASES = {case.name: case for case in kinds.cases()}


def arcs(case: kinds.Case) -> list[tuple[int, int, Any]]:
    """The edges of a case between places in natural order."""
    place = {v: i for i, v in enumerate(case.oracle.ids)}
    return [(place[u], place[v], w) for u in case.oracle.ids for v, w in case.oracle.out[u]]


def unrolled(case: kinds.Case) -> kinds.Case:
    n = len(case.oracle.ids)
    edges = [(layer * n + u, (layer + 1) * n + v, w) for layer in range(LAYERS - 1) for u, v, w in arcs(case)]
    return kinds.Case(case.name, edges, vertices=LAYERS * n, in_edges=case.in_edges)


def forward(case: kinds.Case, inputs: Any, biases: Any) -> Any:
    """What the last layer says: relu between, nothing after."""
    n, edges = len(case.oracle.ids), arcs(case)
    ends = np.array([(u, v) for u, v, _ in edges], np.int64).reshape(-1, 2)
    weights = np.array([1.0 if w is None else w for _, _, w in edges])
    matrix = sparse.coo_array((weights, ends.T), (n, n)).tocsr()
    return np.maximum(inputs @ matrix + biases[1], 0) @ matrix + biases[2]


@pytest.mark.parametrize("name", list(CASES))
def test_every_way_gives_the_forward_pass(name: str, tmp_path: Any) -> None:
    case = CASES[name]
    network, n = unrolled(case), len(case.oracle.ids)
    network.build(tmp_path)
    draw = np.random.default_rng(len(name))
    inputs, biases = draw.normal(size=(3, n)), draw.normal(size=(LAYERS, n))
    biases[0] = 0
    expected = forward(case, inputs, biases)
    for way in kinds.ways()[list(CASES).index(name) :: STRIDE]:
        layers = [n] * LAYERS
        result = ist.nn_inference(
            network.graph(way), inputs, layers, biases.ravel(), output_activation="identity", **kinds.how(way)
        )
        assert result.values == pytest.approx(expected, rel=1e-9, abs=1e-9), way
        kinds.assert_device(result, way)
    for graph in network.graphs.values():
        graph.close()
