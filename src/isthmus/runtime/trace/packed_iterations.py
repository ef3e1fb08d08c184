"""Finished iterations, packed into columns: a run may have a million of them, and as objects each takes a kilobyte.

A column is named like a field of `Iteration`, or by a pair: ("filter", "bytes") is the bytes of the engine of that
name, and ("filter", "partitions") the partitions that it brought. A column of equal numbers is kept as one number, and
whole numbers in the smallest type that can represent them, so that an iteration takes some 50 bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from isthmus.runtime.trace.iteration import Iteration

Array = np.ndarray[Any, Any]
Name = str | tuple[str, str]
COUNTS = ("active_vertices", "active_edges", "hit_edges")
SECONDS = ("seconds", "wait", "link", "kernel", "decide")
OPTIONAL = ("modelled", "done")  # NaN where an iteration has none
PARTITIONS = "partitions"


class Packed:
    """At least one iteration, as columns. Their numbers and choices are left out: the trace has them."""

    def __init__(self, records: Sequence[Iteration]) -> None:
        self.count = len(records)
        self._columns: dict[Name, Array | int | float] = {}
        for name in COUNTS:
            self._add(name, np.fromiter(map(attrgetter(name), records), np.int64, self.count))
        for name in SECONDS:
            self._add(name, np.fromiter(map(attrgetter(name), records), np.float64, self.count))
        for name in OPTIONAL:
            values = (math.nan if value is None else value for value in map(attrgetter(name), records))
            self._add(name, np.fromiter(values, np.float64, self.count))
        for pair, counts in uses(records).items():
            self._add(pair, counts)

    def _add(self, name: Name, values: Array) -> None:
        self._columns[name] = smallest(values)

    def column(self, name: Name) -> Array:
        """The values of a column; zeros if no iteration has any."""
        values = self._columns.get(name, 0)
        return values if isinstance(values, np.ndarray) else np.full(self.count, values)

    def total(self, name: Name) -> Any:
        """The sum of a column; of an optional one, over the iterations that have it."""
        values = self._columns.get(name, 0)
        if not isinstance(values, np.ndarray):
            return 0 if math.isnan(values) else values * self.count
        return (np.nansum(values) if values.dtype.kind == "f" else values.sum(dtype=np.int64)).item()

    def engines(self) -> set[str]:
        """The names of the engines that were used."""
        return {name[0] for name in self._columns if isinstance(name, tuple)}

    def at(self, place: int, number: int, choices: Array | None) -> Iteration:
        """The iteration at a place as an object. It is a copy: changes to it are lost."""
        found = Iteration(number, 0, choices=choices)
        for name, values in self._columns.items():
            value: Any = values[place].item() if isinstance(values, np.ndarray) else values
            if isinstance(name, str):
                # NaN is the only number that differs from itself.
                setattr(found, name, None if value != value else value)
            elif not value:
                continue
            elif name[1] == PARTITIONS:
                found.partitions[name[0]] = value
            else:
                found.engines[name[0]][name[1]] = value
        return found

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._columns.values() if isinstance(values, np.ndarray))


def uses(records: Sequence[Iteration]) -> dict[tuple[str, str], Array]:
    """What each engine did in every iteration."""
    found: dict[tuple[str, str], Array] = defaultdict(lambda: np.zeros(len(records), np.int64))
    for place, record in enumerate(records):
        for engine, use in record.engines.items():
            for key, value in use.items():
                found[engine, key][place] = value
        for engine, count in record.partitions.items():
            found[engine, PARTITIONS][place] = count
    return found


def smallest(values: Array) -> Array | int | float:
    """A single number if all are equal, otherwise an array of the smallest type that has them all."""
    if (values == values[0]).all() or np.isnan(values).all():
        number: int | float = values[0].item()
        return number
    if values.dtype.kind != "i":
        return values
    return next((values.astype(kind) for kind in (np.uint8, np.uint16, np.uint32) if fits(values, kind)), values)


def fits(values: Array, kind: type[np.unsignedinteger[Any]]) -> bool:
    return bool(values.min() >= 0 and values.max() <= np.iinfo(kind).max)
