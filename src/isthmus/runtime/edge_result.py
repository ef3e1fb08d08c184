"""A result that is a set of edges: columns `source`, `target` and `weight`, with the user's own ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.runtime.result import Array, Result

ENDS = ("source", "target")


class EdgeResult(Result):
    """Edges in ascending order of their ends. `values` are their weights."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._order = None

    def __len__(self) -> int:
        return int(self.raw(self.main).size)

    def __repr__(self) -> str:
        return f"<EdgeResult: {self.algorithm}, {len(self)} edges, {len(self.trace)} iterations>"

    @property
    def vertices(self) -> Array:
        """User ids of the edges' endpoints, ascending."""
        return self._ids.users_of_natural(np.union1d(*(self.raw(end) for end in ENDS)))

    def whose(self, at: int) -> str:
        return "edge " + " - ".join(str(self._ids.users_of_natural(self.raw(end)[at : at + 1])[0]) for end in ENDS)

    def to_numpy(self) -> dict[str, Array]:
        """All columns."""
        return {name: self[name] for name in self.columns}

    def _batch(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        return pa.RecordBatch.from_pydict({name: self._arrow(name, begin, end) for name in self.columns})
