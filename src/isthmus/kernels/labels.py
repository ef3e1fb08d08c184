"""Lists of a run of vertices, gathered in a table, and the commonest label of each."""

from __future__ import annotations

from typing import Any

from numba import int64, uint32

from isthmus.kernels.compile import inline, kernel

SHORT = 24  # entries up to which inserting is faster than sorting


@kernel
def lay_out(first: Any, last: Any, begin: Any, arcs_before: Any, cursors: Any) -> Any:
    """Cursors at where each list begins when the lists of a run of vertices lie one behind the other.

    `arcs_before` each vertex are counted on all sides, `begin` are the entries before the run.
    """
    for u in range(first, last):
        at = -begin
        for side in arcs_before:
            at += side[u]
        cursors[u] = at


@inline
def sort_short(row: Any) -> Any:
    for i in range(1, row.size):
        x = row[i]
        j = i
        while j > 0 and row[j - 1] > x:
            row[j] = row[j - 1]
            j -= 1
        row[j] = x


@inline
def commonest(row: Any) -> Any:
    """The label that occurs most often, the smallest of several; sorts the row."""
    if row.size <= SHORT:
        sort_short(row)
    else:
        row.sort()
    best, most = row[0], 0
    begin = 0
    for i in range(1, row.size + 1):
        if i == row.size or row[i] != row[begin]:
            if i - begin > most:
                best, most = row[begin], i - begin
            begin = i
    return best


@kernel
def choose_labels(run: Any, first: Any, last: Any, cursors: Any, table: Any, labels: Any, fresh: Any) -> Any:
    """The commonest entry of each list of first:last, in a run that starts with vertex `run`; returns how many changed.

    Cursors stand behind their lists. Who has no list keeps its label.
    """
    changed = 0
    for u in range(first, last):
        low = int64(cursors[u - 1]) if u > run else int64(0)
        high = int64(cursors[u])
        fresh[u] = labels[u] if low == high else commonest(table[low:high])
        changed += fresh[u] != labels[u]
    return changed


@kernel
def most_counted(counts: Any, first: Any, last: Any) -> Any:
    """(the first of the largest counts, that count)."""
    best, most = first, uint32(0)
    for label in range(first, last):
        if counts[label] > most:
            best, most = label, counts[label]
    return best, most
