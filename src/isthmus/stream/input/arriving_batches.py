"""Batches from a source of updates: a number of rows each, or the rows that arrived in a window of time.

From a pipe, a batch is also applied when its window ends, even if it is not full; rows that arrive while a batch is
applied belong to the next one. From a file, windows are those of the column time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from isthmus.errors import OptionError
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import is_string
from isthmus.messages import option
from isthmus.stream.input.batch_columns import Array
from isthmus.stream.input.sources import Updates
from isthmus.stream.input.update_rows import Rows
from isthmus.stream.input.update_tables import OPERATION, found_columns, times_of

ROWS = 100_000  # per batch, as in Grapin's experiments
QUIET = 1.0  # seconds after which rows of a pipe are applied, without a window
ENDLESS = 1 << 62


@dataclass
class ArrivingBatch:
    """A batch, and the seconds since the batch before; None where they are not known."""

    rows: Rows
    seconds: float | None = None


def arriving_batches(source: Updates, batch: int | None = None, window: float | None = None) -> Iterator[ArrivingBatch]:
    """The batches of a source. A batch that removes a vertex ends where that vertex is used again."""
    size = batch or (ENDLESS if window is not None else source.batch or ROWS)
    clock = Clock()
    for rows in (
        in_windows(source, size, window)
        if window is not None and not source.is_pipe
        else in_sizes(source, size, window)
    ):
        for part in without_conflicts(rows):
            yield ArrivingBatch(part, clock.since(part))


def in_sizes(source: Updates, size: int, window: float | None) -> Iterator[Rows]:
    while (rows := source.read(size, QUIET if window is None else window)) is not None:
        yield rows


def in_windows(source: Updates, size: int, window: float) -> Iterator[Rows]:
    """Batches by the column time: a window begins with its first row."""
    held, begin = Rows(source.name), None
    while (more := source.read(min(size, ROWS))) is not None:
        times = times_of(more.table(), more.where)
        if times is None:
            raise OptionError(
                f"{option('window')} needs a column 'time', or updates from a pipe; {source.name} has none: give "
                f"{option('batch')}"
            )
        times = np.maximum.accumulate(times)
        while len(more):
            begin = float(times[0]) if begin is None else begin
            fitting = min(int(np.searchsorted(times, begin + window)), size - len(held))
            first, more = more.cut(fitting)
            held, times = held.and_then(first), times[fitting:]
            if len(more):  # the next row is of a later window
                if len(held):
                    yield held
                held, begin = Rows(source.name), None
    if len(held):
        yield held


def without_conflicts(rows: Rows) -> Iterator[Rows]:
    """The rows in parts, none of which uses a vertex that it removes."""
    table = rows.table()
    name = column_names.known(table.column_names, OPERATION)
    if (
        name is None
        or not is_string(table.column(name).type)
        or "remove_vertex" not in pc.unique(table.column(name)).to_pylist()
    ):
        yield rows
        return
    found = found_columns(table.column_names, rows.name, ("op", "source", "target"))
    ops, sources, targets = (table.column(found[column]).to_pylist() for column in ("op", "source", "target"))
    used: set[object] = set()
    gone: set[object] = set()
    begin = 0
    for row, (op, source, target) in enumerate(zip(ops, sources, targets, strict=True)):
        ends = {source} if op in ("add_vertex", "remove_vertex") else {source, target}
        if (op == "remove_vertex" and ends & used) or (op != "remove_vertex" and ends & gone):
            part, rows = rows.cut(row - begin)
            yield part
            begin = row
            used, gone = set(), set()
        (gone if op == "remove_vertex" else used).update(ends)
    yield rows


class Clock:
    """The time of arrival of rows: by their column time, else by the clock of the machine."""

    def __init__(self) -> None:
        self._last: float | None = None

    def since(self, rows: Rows) -> float | None:
        """Seconds from the batch before (or the first row) to the last row; None if all came at once."""
        times: Array | None = times_of(rows.table(), rows.where)
        if times is None or not times.size:
            last = first = rows.arrived
        else:
            first, last = float(times.min()), float(times.max())
        if first is None or last is None:
            return None
        since, self._last = self._last, last
        return max(last - (first if since is None else since), 0.0) or None
