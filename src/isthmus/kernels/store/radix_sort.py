"""Sorting the row of a table, most of which are short."""

from __future__ import annotations

from typing import Any

from isthmus.kernels.compile.kernel import inline

SHORT = 24  # entries up to which insertion sort is faster


@inline
def insert_in_order(row: Any) -> Any:
    for i in range(1, row.size):
        x = row[i]
        j = i
        while j > 0 and row[j - 1] > x:
            row[j] = row[j - 1]
            j -= 1
        row[j] = x


@inline
def sort_row(row: Any) -> Any:
    if row.size <= SHORT:
        insert_in_order(row)
    else:
        row.sort()
