"""A result as a mapping: the user's keys (vertex ids, mostly) to values of the main column.

`result[7]`, `7 in result`, `result.get(7)`, `result.items()` and `dict(result)` work as for a dictionary. Nothing is
turned into one before somebody asks: a single look-up reads the few blocks of the id map that it needs. `dict(result)`
looks up all keys in their order; when two keys in a row are neighbours, the rows behind them are read at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from isthmus import sizes
from isthmus.errors import OptionError, UnknownVertexError


class ByKey(ABC):
    """Rows by key. What is in `columns` names a column first: `result["distance"]` is an array."""

    _last = -2  # the row that was looked up last
    _ahead: dict[Any, Any] | None = None  # values of rows behind it, by key
    _ahead_end = -1  # the first row behind those

    @property
    @abstractmethod
    def columns(self) -> list[str]: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _keys(self, begin: int, end: int) -> list[Any]:
        """The keys of the rows begin:end."""

    @abstractmethod
    def _row(self, key: Any) -> int:
        """The row of a key; UnknownVertexError, which is a KeyError, if there is none."""

    @abstractmethod
    def _main_values(self, begin: int, end: int) -> list[Any]:
        """Values of the main column; None where there is none."""

    def value(self, key: Any) -> Any:
        """The value of one vertex; None if it has none (unreached). KeyError if the graph has no such vertex."""
        if self._ahead is not None and type(key) in (int, str) and key in self._ahead:  # True and 1.0 would equal 1
            return self._ahead[key]
        row = self._row(key)
        if row == self._last + 1 or row == self._ahead_end:
            end = min(row + sizes.now.result_rows, len(self))
            self._ahead, self._ahead_end = (
                dict(zip(self._keys(row, end), self._main_values(row, end), strict=True)),
                end,
            )
        self._last = row
        return self._main_values(row, row + 1)[0]

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of one vertex, or `default` if the graph has no such vertex."""
        try:
            return self.value(key)
        except UnknownVertexError:
            return default

    def __contains__(self, key: Any) -> bool:
        try:
            self._row(key)
        except UnknownVertexError:
            return False
        return True

    def __iter__(self) -> Iterator[Any]:
        for begin in range(0, len(self), sizes.now.result_rows):
            yield from self._keys(begin, min(begin + sizes.now.result_rows, len(self)))

    def keys(self) -> Iterator[Any]:
        """All keys, in order. OptionError if a vertex is named like a column: `dict(result)` would have the column
        there.
        """
        for name in self.columns:
            if name in self:
                raise OptionError(
                    f"keys: {name!r} is a vertex and a column, so result[{name!r}] is the column; use result.items() "
                    f"or result.value"
                )
        return iter(self)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """(key, value) of every row, in order."""
        for begin in range(0, len(self), sizes.now.result_rows):
            end = min(begin + sizes.now.result_rows, len(self))
            yield from zip(self._keys(begin, end), self._main_values(begin, end), strict=True)
