"""Neighbour labels of a range of vertices, gathered in a table, and the most frequent label of each vertex."""

from __future__ import annotations

from typing import Any

from numba import int64, uint32

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.store.radix_sort import sort_row


@kernel
def lay_out(first: Any, last: Any, begin: Any, arcs_before: Any, cursors: Any) -> Any:
    """Set each cursor to the start of its list in the table, where the lists of first:last are one after the other.

    Each of `arcs_before` counts the arcs before every vertex on one side; `begin` is the number of entries before the
    range.
    """
    for u in range(first, last):
        at = -begin
        for side in arcs_before:
            at += side[u]
        cursors[u] = at


@inline
def commonest(row: Any) -> Any:
    """The most frequent label, the smallest in case of a tie; sorts the row."""
    sort_row(row)
    best, most = row[0], 0
    begin = 0
    for i in range(1, row.size + 1):
        if i == row.size or row[i] != row[begin]:
            if i - begin > most:
                best, most = row[begin], i - begin
            begin = i
    return best


@kernel
def choose_labels(window: Any, first: Any, last: Any, cursors: Any, table: Any, labels: Any, fresh: Any) -> Any:
    """Choose the most frequent label for each vertex of first:last; the table starts with vertex `window`. Returns how
    many changed.

    Cursors are at the ends of their lists. A vertex without a list keeps its label.
    """
    changed = 0
    for u in range(first, last):
        low = int64(cursors[u - 1]) if u > window else int64(0)
        high = int64(cursors[u])
        fresh[u] = labels[u] if low == high else commonest(table[low:high])
        changed += fresh[u] != labels[u]
    return changed


@kernel
def most_counted(counts: Any, first: Any, last: Any) -> Any:
    """(index of the largest count, the first in case of a tie; that count)."""
    best, most = first, uint32(0)
    for label in range(first, last):
        if counts[label] > most:
            best, most = label, counts[label]
    return best, most
