"""The edges of a graph as Arrow record batches, in order, a bounded number at a time: `source`, `target` and `weight`.

An undirected edge comes once, from the end with the smaller number. Ids are the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.checks import whole
from isthmus.graph import arrow
from isthmus.graph.graph import Graph
from isthmus.graph.some_lists import SomeArcs, some_arcs

ROWS = 1 << 16  # arcs of a batch, at most


def edge_batches(graph: Graph, rows: int = ROWS) -> Iterator[Any]:
    """Arrow record batches of at most `rows` edges."""
    whole("rows", rows, 1)
    at_once = sizes.now.degree_vertices
    for first in range(0, graph.vertices, at_once):
        numbers = np.arange(first, min(first + at_once, graph.vertices))
        with graph.reading():
            for arcs in some_arcs(graph, numbers, "out", graph.weighted):
                for begin in range(0, arcs.rows.size, rows):
                    yield batch(graph, first, arcs, slice(begin, begin + rows))


def batch(graph: Graph, first: int, arcs: SomeArcs, part: slice) -> Any:
    """Some of the arcs of vertices from number `first` on."""
    import pyarrow as pa

    sources, targets = arcs.rows[part] + first, arcs.others[part].astype(np.int64)
    kept = np.ones(sources.size, np.bool_) if graph.directed else sources <= targets
    columns = {name: graph.ids.to_arrow(graph.ids.places(ends[kept])) for name, ends in (("source", sources), ("target", targets))}
    if arcs.weights is not None:
        columns["weight"] = arrow.numbers(arcs.weights[part][kept])
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
