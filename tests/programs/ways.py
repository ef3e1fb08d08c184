"""Random graphs and ways to run a program on them, for the tests of single algorithms."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import isthmus as ist

INT_MAX = 2**63 - 1
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HOW: list[dict[str, Any]] = [
    {},
    {"policy": "filter", "memory": "1%", "far": "ram"},
    {"policy": "emogi", "memory": "1%", "far": "ram", "threads": 2},
    {"policy": "auto", "memory": "1%", "far": "ram", "threads": 2},
]
hows = st.sampled_from(HOW)
orders = st.sampled_from(["natural", "hub"])
Edges = list[tuple[int, int, Any]]


@st.composite
def graphs(draw, weights=st.none(), most=14):  # noqa: B008  # a strategy is a constant
    """(edges, vertices, directed): self loops, parallel edges, isolated vertices, several components."""
    n = draw(st.integers(1, most))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, weights), max_size=3 * most))
    return edges, n, draw(st.booleans())


def columns(edges: Edges) -> tuple[Any, ...]:
    kinds: list[Any] = [np.int64, np.int64]
    if edges and edges[0][2] is not None:
        kinds.append(np.float64 if any(isinstance(edge[2], float) for edge in edges) else np.int32)
    return tuple(np.array([edge[i] for edge in edges], kind) for i, kind in enumerate(kinds))


def build(edges: Edges, n: int, directed: bool, **options: Any) -> Any:
    return ist.read(columns(edges), vertices=n, directed=directed, **options)


def reached(result: Any) -> dict[int, Any]:
    """Distances of the vertices that a search has reached."""
    none = INT_MAX if result.filled().dtype.kind == "i" else math.inf
    return {v: d for v, d in enumerate(result.filled().tolist()) if d != none}


def skewed(weight: Any = lambda draw: None, n: int = 400, count: int = 3000) -> Edges:
    """Edges of which low numbers have most, 0 above all: its list is longer than a tight buffer."""
    draw = random.Random(3)
    edges = [(int(n * draw.random() ** 3), int(n * draw.random() ** 2), weight(draw)) for _ in range(count)]
    edges += [(0, v, weight(draw)) for v in range(n) for _ in range(4)]
    return edges + [(v, 0, weight(draw)) for v in range(0, n, 2) for _ in range(3)]


def small_sizes(sized: Any) -> None:
    """Least sizes so small that lists span blocks, partitions and buffers, and threads share them."""
    sized(smallest_partition=4096, least_buffer=1024, few_edges=16, alone=64, piece=300, smallest_queue=3)


BUDGETS: dict[str | None, dict[str, Any]] = {
    "1%": {"threads": 2},
    "30%": {"threads": 1, "far": "ram"},
    None: {"threads": 2},
}
# Every recipe meets every budget; recipes and budgets meet both orders.
TIGHT = {
    "natural": [("filter", "1%"), ("filter", None), ("emogi", "30%"), ("auto", None)],
    "hub": [("filter", "30%"), ("emogi", "1%"), ("emogi", None), ("auto", "1%"), ("auto", "30%")],
}


def tight_ways(edges: Edges, n: int, directed: bool, folder: Any, sized: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Graphs, in both orders and on disk, and ways to run on them with the sizes above."""
    small_sizes(sized)
    for order, ways in TIGHT.items():
        graph = ist.ingest(
            columns(edges), folder / f"{order}-{directed}.isthmus", vertices=n, directed=directed, order=order
        )
        for policy, memory in ways:
            yield graph, {"policy": policy, "memory": memory, **BUDGETS[memory]}
        graph.close()
