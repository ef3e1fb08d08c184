"""What a batch changed: by the values that it wrote, or by comparing two whole answers.

Distances and counts are compared where a batch wrote them. That is not enough for labels, whose names may change with
any vertex of a component, for scores that are scaled by the sum of all, and for batches in which vertices come or go.
In these cases the previous batch's answer is rebuilt and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.graph.changing.changing_ids import Naming, ascending
from isthmus.programs.column import Holds, column_of
from isthmus.programs.program import Facts
from isthmus.runtime.results.result import Result
from isthmus.stream.maintain.maintained import Array, Differences, Maintained


@dataclass
class Earlier:
    """The batch before: what its answer is made with, and its published arrays if vertices have got other numbers
    since.
    """

    facts: Facts
    snapshot: Any
    reached: Any
    arrays: tuple[Array, ...] | None

    def arrays_before(self, now: tuple[Array, ...], differences: tuple[Differences, ...]) -> tuple[Array, ...]:
        """Copies of the published arrays of that batch, given those of the next one."""
        if self.arrays is not None:
            return tuple(array.copy() for array in self.arrays)
        copies = tuple(array.copy() for array in now)
        for array, each in zip(copies, differences, strict=True):
            array[each.vertices] = each.old
        return tuple(array[: self.facts.vertices] for array in copies)


def written(program: Maintained, found: tuple[Differences, ...], naming: Naming) -> dict[str, Array]:
    """The values that a batch has written, by user id, in the order of the ids."""
    column = column_of(program.columns, program.main)
    vertices, old, new = (joined([getattr(each, name) for each in found]) for name in ("vertices", "old", "new"))
    users = naming.users()[vertices.astype(np.int64)] if vertices.size else naming.users()[:0]
    return in_order(program, users, column.masked(old), column.masked(new), [each.vertices.size for each in found])


def compared(
    program: Maintained, before: Result, now: Result, found: tuple[Differences, ...], naming: Naming
) -> dict[str, Array]:
    """The difference of two answers. Scaling changes all scores a little: those that no batch has written count if they
    change by `tol`.
    """
    tables = []
    for name, each in zip(now.columns if program.sources else [program.main], found, strict=True):
        scores = column_of(program.columns, name).holds is Holds.NUMBERS
        tables.append(
            difference(
                before, now, name, naming.users()[each.vertices.astype(np.int64)] if scores else None, program.tolerance
            )
        )
    users, old, new = (joined(list(part)) for part in zip(*tables, strict=True))
    return in_order(program, users, old, new, [table[0].size for table in tables])


def difference(
    before: Result, now: Result, name: str, among: Array | None, tolerance: float
) -> tuple[Array, Array, Array]:
    """(vertices, old and new values) where two answers differ; a vertex that only one of them has lacks the other
    value.

    `among`: relative differences up to `tolerance` count for these only.
    """
    every = np.union1d(before.vertices, now.vertices)
    old, had = looked_up(before, name, every)
    new, has = looked_up(now, name, every)
    chosen = had != has
    both = np.flatnonzero(had & has)
    chosen[both] = old[both] != new[both]
    if among is not None and tolerance:
        large = np.zeros(every.size, np.bool_)
        large[both] = np.abs(new[both] - old[both]) > tolerance * np.abs(old[both])
        chosen &= (had != has) | large | np.isin(every, among)
    return every[chosen], np.ma.MaskedArray(old[chosen], ~had[chosen]), np.ma.MaskedArray(new[chosen], ~has[chosen])


def looked_up(result: Result, name: str, users: Array) -> tuple[Array, Array]:
    """(values of these vertices, whether they have one)."""
    ids, column = result.vertices, result[name]
    if not ids.size:
        return np.zeros(users.size, column.dtype), np.zeros(users.size, np.bool_)
    at = np.minimum(np.searchsorted(ids, users), ids.size - 1)
    if isinstance(column, np.ma.MaskedArray) or column.dtype != object:
        missing = np.ma.getmaskarray(column)
    else:
        missing = np.array([value is None for value in column.tolist()], np.bool_)
    return np.ma.getdata(column)[at], np.asarray(ids[at] == users, np.bool_) & ~missing[at]


def in_order(program: Maintained, users: Array, old: Array, new: Array, sizes: list[int]) -> dict[str, Array]:
    order = ascending(users)
    table = {"vertex": users[order], "old": plain(old[order]), "new": plain(new[order])}
    if program.sources:
        table["source"] = np.array(program.sources)[np.repeat(np.arange(len(sizes)), sizes)[order]]
    return table


def plain(values: Array) -> Array:
    """Without a mask where nothing is masked."""
    return (
        np.ma.getdata(values)
        if isinstance(values, np.ma.MaskedArray) and not np.ma.getmaskarray(values).any()
        else values
    )


def joined(parts: list[Array]) -> Array:
    if not parts:
        return np.empty(0)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        masks = np.concatenate([np.ma.getmaskarray(part) for part in parts])
        return np.ma.MaskedArray(np.concatenate([np.ma.getdata(part) for part in parts]), masks)
    return np.concatenate(parts)
