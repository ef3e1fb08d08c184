"""An answer that is a set of edges: columns `source`, `target` and `weight`, with the user's own ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.graph import Graph
from isthmus.runtime.result import Array, Result, as_arrow
from isthmus.runtime.trace import Trace

ENDS = ("source", "target")  # columns that hold places in natural order


class EdgeResult(Result):
    """Edges in ascending order of their ends. `values` are their weights."""

    def __init__(self, algorithm: str, graph: Graph, columns: dict[str, Array], trace: Trace, facts: dict[str, Any]) -> None:
        super().__init__(algorithm, graph, columns, trace, facts)
        self.main, self._order = "weight", None

    @classmethod
    def of(cls, result: Result) -> EdgeResult:
        return cls(result.algorithm, result.graph, result._columns, result.trace, result._facts)

    def __len__(self) -> int:
        return int(self._columns["weight"].size)

    def __repr__(self) -> str:
        return f"<EdgeResult: {self.algorithm}, {len(self)} edges, {len(self.trace)} iterations>"

    @property
    def vertices(self) -> Array:
        """User ids at either end of any of the edges, ascending."""
        return self.graph.ids.users_of_natural(np.union1d(self._columns["source"], self._columns["target"]))

    def __getitem__(self, name: str) -> Array:
        values = super().__getitem__(name)
        return self.graph.ids.users_of_natural(values) if name in ENDS else values

    def to_numpy(self) -> dict[str, Array]:
        """All columns."""
        return {name: self[name] for name in self._columns}

    def _batch(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        columns = {}
        for name in self._columns:
            values = self._part(name, begin, end)
            if name in ENDS:
                values = self.graph.ids.users_of_natural(values) if values.size else self.graph.ids.natural(0, 0)
            columns[name] = as_arrow(values, None)
        return pa.RecordBatch.from_pydict(columns)
