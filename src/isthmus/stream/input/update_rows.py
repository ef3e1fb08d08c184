"""Rows of updates in order of arrival, as Arrow tables that remember where each row came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus.stream.input.batch_columns import Where


def later(where: Where, taken: int) -> Where:
    """Names for the rows behind the first `taken`."""
    return lambda row: where(row + taken)


@dataclass
class Rows:
    """Some rows of an input. Their values are not checked yet."""

    name: str  # of the input, for messages
    parts: list[tuple[Any, Where]] = field(default_factory=list)  # tables, and what their rows are called
    arrived: float | None = None  # when the last row arrived, by time.monotonic; None: the input is a file

    def __len__(self) -> int:
        return sum(int(table.num_rows) for table, _ in self.parts)

    def table(self) -> Any:
        if len(self.parts) == 1:
            return self.parts[0][0]
        return pa.concat_tables([table for table, _ in self.parts], promote_options="permissive")

    def where(self, row: int) -> str:
        """The name of a row: 'changes.csv:8', 'w.parquet: row 7'."""
        begins = np.cumsum([0, *(table.num_rows for table, _ in self.parts)])
        part = min(int(np.searchsorted(begins, row, "right")) - 1, len(self.parts) - 1)
        return self.parts[part][1](row - int(begins[part]))

    def cut(self, count: int) -> tuple[Rows, Rows]:
        """The first `count` rows, and the others."""
        first, second, left = Rows(self.name, [], self.arrived), Rows(self.name, [], self.arrived), count
        for table, where in self.parts:
            taken = min(left, table.num_rows)
            if taken:
                first.parts.append((table.slice(0, taken), where))
            if taken < table.num_rows:
                second.parts.append((table.slice(taken), later(where, taken)))
            left -= taken
        return first, second

    def and_then(self, more: Rows) -> Rows:
        return Rows(self.name, self.parts + more.parts, more.arrived)
