"""Edges of a NetworkX graph. Isolated nodes are vertices as well; whether edges are directed is as the graph says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.names import encode
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import as_binary, as_key
from isthmus.graph.reading.table_source import TableSource

NAME = "NetworkX graph"


def is_networkx(what: Any) -> bool:
    return all(hasattr(what, name) for name in ("is_directed", "is_multigraph", "nodes", "edges"))


def open_networkx(graph: Any, options: ReadOptions) -> EdgeSource:
    """The edge source of a NetworkX graph."""
    if not isinstance(options.weight, str | None):
        raise OptionError(
            f"weight: expected the name of an attribute of edges, or {column_names.NONE!r}, got {options.weight!r}"
        )
    attribute = None if options.weight == column_names.NONE else options.weight or "weight"
    return NetworkxSource(graph, attribute, options)


class NetworkxSource(TableSource):
    """The edges of a NetworkX graph as a table, and its nodes."""

    def __init__(self, graph: Any, attribute: str | None, options: ReadOptions) -> None:
        self._users = id_column(list(graph.nodes))
        ends = list(graph.edges())
        columns = {
            name: pa.array([edge[k] for edge in ends], self._users.type) for k, name in enumerate(("source", "target"))
        }
        notes: tuple[str, ...] = ()
        if attribute is not None:
            weights, notes = weight_column(
                [value for *_, value in graph.edges(data=attribute)], attribute, options.weight is not None
            )
            columns.update({} if weights is None else {"weight": weights})
        table = pa.table(columns)
        chosen = ReadOptions(source="source", target="target", ids=options.ids, allow_negative=options.allow_negative)
        super().__init__(NAME, table.schema, lambda: iter(table.to_batches()), chosen)
        self.directed = bool(graph.is_directed())
        self.replayable, self.edges, self.total, self.notes = True, table.num_rows, table.num_rows, notes
        self._table = table

    def sample(self, count: int) -> EdgeBlock:
        return self.sampled(self._table, count)

    def vertex_blocks(self) -> Iterator[EdgeBlock]:
        if self.ids == "string":
            names = as_binary(self._users.cast(pa.large_string()))
            sources, _, names = encode(names, names[:0], self.salt)
            yield EdgeBlock(sources, np.empty(0, np.uint64), None, names)
            return
        users = self._users.to_numpy(zero_copy_only=False)
        self.signed |= users.dtype.kind == "i" and bool((users < 0).any())
        yield EdgeBlock(as_key(users), np.empty(0, np.uint64))

    def report(self) -> dict[str, Any]:
        return {"format": "networkx", "weight": self._weight}


def id_column(users: list[Any]) -> Any:
    """Nodes as an Arrow array; an error unless they are all integers or all strings."""
    strings = bool(users) and isinstance(users[0], str)
    fits = (str,) if strings else (int, np.integer)
    other = next((user for user in users if not isinstance(user, fits) or isinstance(user, bool)), None)
    if users and other is not None:
        raise GraphFormatError(
            f"{NAME}: expected nodes that are all integers or all strings, got {other!r}; "
            "networkx.convert_node_labels_to_integers(graph, label_attribute='name') numbers them"
        )
    if strings:
        return pa.array(users, pa.large_string())
    try:
        return pa.array([int(user) for user in users], pa.uint64() if users and max(users) >> 63 else pa.int64())
    except OverflowError as error:
        raise GraphFormatError(f"{NAME}: expected nodes that fit 64 bits, got {max(users, key=abs)}") from error


def weight_column(values: list[Any], attribute: str, asked: bool) -> tuple[Any, tuple[str, ...]]:
    """(Weights as an Arrow array or None, notes). Edges without the attribute count 1, as in NetworkX."""
    missing = sum(value is None for value in values)
    if missing == len(values):
        if asked and values:
            raise OptionError(f"{NAME}: no edge has an attribute {attribute!r}")
        return None, ()
    try:
        weights = pa.array([1 if value is None else value for value in values])
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise GraphFormatError(f"{NAME}: expected numbers as {attribute!r} of the edges ({error})") from error
    note = f"{NAME}: {missing} edges have no attribute {attribute!r} and count 1"
    return weights, (note,) if missing else ()
