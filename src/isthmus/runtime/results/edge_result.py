"""A result that is a set of edges: columns `source`, `target` and `weight`, with the user's own ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.errors import UnknownVertexError
from isthmus.runtime.results.result import Array, Result

ENDS = ("source", "target")


class EdgeResult(Result):
    """Edges in ascending order of their ends. `values` are their weights."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._in_hub_order = False  # rows are edges

    def __len__(self) -> int:
        return int(self.raw(self.main).size)

    def __repr__(self) -> str:
        return f"<EdgeResult: {self.algorithm}, {len(self)} edges, {len(self.trace)} iterations>"

    @property
    def vertices(self) -> Array:
        """User ids of the edges' endpoints, ascending."""
        return self._ids.users_of_natural(np.union1d(*(self.raw(end) for end in ENDS)))

    def _keys(self, begin: int, end: int) -> list[Any]:
        return list(zip(*(self._rows(name, begin, end).tolist() for name in ENDS), strict=True))

    def _row(self, key: Any) -> int:
        """The row of an edge, given by its two ends in either order."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise UnknownVertexError(f"expected an edge (source, target), got {key!r}")
        u, v = sorted(self._ids.place(end) for end in key)
        begin, end = np.searchsorted(self.raw("source"), [u, u + 1]).tolist()
        row: int = begin + int(np.searchsorted(self.raw("target")[begin:end], v))
        if row == end or self.raw("target")[row] != v:
            raise UnknownVertexError(f"{self.algorithm} has no edge {key!r}")
        return row

    def whose(self, at: int) -> str:
        return "edge " + " - ".join(str(self._ids.users_of_natural(self.raw(end)[at : at + 1])[0]) for end in ENDS)

    def to_numpy(self) -> dict[str, Array]:
        """All columns."""
        return {name: self[name] for name in self.columns}

    def _named_places(self, begin: int, end: int) -> Iterator[Array]:
        return self._places_in_columns(begin, end)

    def _batch(self, begin: int, end: int) -> Any:
        return self._record(self._arrows(begin, end))
