"""A graph as an object of Arrow, SciPy or NetworkX, and back. Edges have the users' ids, in natural order."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.graph.export.outgoing import Outgoing, has_parallel
from isthmus.graph.graph import Graph


def edge_batches(graph: Graph, memory: str | int | None = None) -> Any:
    """The edges as an Arrow reader: source, target and, of a weighted graph, weight. Batches are read on demand."""
    import pyarrow as pa

    edges = Outgoing(graph, memory)
    return pa.RecordBatchReader.from_batches(edges.schema, edges.batches())


def to_scipy(graph: Graph) -> Any:
    """The adjacency matrix as a SciPy CSR array. Row and column i belong to the i-th smallest id.

    Entries are weights, or True in an unweighted graph. An undirected edge has two entries; parallel edges have one
    each.
    """
    from scipy.sparse import csr_array

    edges = Outgoing(graph)
    dtype = np.int32 if max(edges.vertices, edges.arcs) < 1 << 31 else np.int64
    offsets = np.concatenate([part.astype(dtype) for part in edges.offsets()])
    targets, values = (
        np.empty(edges.arcs, dtype),
        np.ones(edges.arcs, edges.weight_dtype if edges.weighted else np.bool_),
    )
    at = 0
    for _, some, weights in edges.both():
        targets[at : at + some.size] = some
        if weights is not None:
            values[at : at + some.size] = weights
        at += some.size
    return csr_array((values, targets, offsets), shape=(edges.vertices, edges.vertices))


def to_networkx(graph: Graph) -> Any:
    """A NetworkX graph: directed or not, a multigraph with parallel edges, weights as attribute `weight`."""
    import networkx as nx

    edges = Outgoing(graph)
    several = graph.parallel and has_parallel(edges.both())
    made = {
        (True, True): nx.MultiDiGraph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (False, False): nx.Graph,
    }
    found = made[graph.directed, several]()
    found.add_nodes_from(edges.users(np.arange(graph.vertices)).to_pylist())
    for batch in edges.batches():
        columns = [column.to_pylist() for column in batch.columns]
        if edges.weighted:
            found.add_weighted_edges_from(zip(*columns, strict=True))
        else:
            found.add_edges_from(zip(*columns, strict=True))
    return found


def from_networkx(graph: Any, weight: str | None = "weight", **options: Any) -> Graph:
    """A graph in memory from a NetworkX graph, whose nodes are all integers or all strings.

    `weight` is the attribute of the edges that holds their weights (None: read none); an edge without it counts 1, as
    in NetworkX. Other options are those of `isthmus.read`.
    """
    from isthmus.graph.ingest.build import read
    from isthmus.graph.reading import column_names
    from isthmus.graph.reading.networkx_edges import is_networkx

    if not is_networkx(graph):
        raise OptionError(f"from_networkx: expected a NetworkX graph, got {type(graph).__name__}")
    chosen = {None: column_names.NONE, "weight": None}.get(weight, weight)  # `weight` need not be there
    return read(graph, weight=chosen, **options)
