"""The trace of a run: choices, bytes, requests and seconds of every iteration.

The first iteration and the latest ones are objects, which may still change; those between are packed into columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from isthmus import sizes
from isthmus.runtime.trace.iteration import Iteration, no_use
from isthmus.runtime.trace.packed_iterations import Name, Packed

Array = np.ndarray[Any, Any]
CHOICES_KEPT = 4 << 20  # bytes of choices a trace keeps; beyond that every second iteration's are dropped
ARRAY_BYTES = 144  # what an array takes beside its content


class Trace:
    """All iterations of a run, and its notes."""

    def __init__(self, iterations: Iterable[Iteration] = (), notes: list[str] | None = None) -> None:
        self.notes = [] if notes is None else notes
        self._first: list[Iteration] = []  # at most one
        self._packed: list[Packed] = []
        self._begins = [1]  # of each packed part, and of the latest iterations
        self._latest: list[Iteration] = []
        self._number = 0  # of the first iteration; a run that was resumed does not begin with 0
        self._choices: dict[int, Array] = {}  # by the place of an iteration
        self._kept = 0  # bytes of choices
        self._stride = 1  # choices are kept for every _stride-th iteration
        for each in iterations:
            self.append(each)

    def append(self, record: Iteration) -> None:
        """Add an iteration. When choices take too much memory, every second iteration's are dropped."""
        place = len(self)
        if place == 0:
            self._first, self._number = [record], record.number
        else:
            if len(self._latest) == sizes.now.live_iterations:
                self._pack()
            self._latest.append(record)
        if record.choices is not None and not self._keep(place, record.choices):
            record.choices = None

    def extend(self, other: Trace) -> None:
        """Add the iterations of another trace, numbered on."""
        begin = len(self)
        for part in other.parts():
            if isinstance(part, Packed):
                self._pack()
                self._add(part)
            else:
                part.number = len(self)
                self.append(part)
        for place, choices in other.choices().items():
            if begin + place not in self._choices:  # of a packed one, or it is not its turn
                self._keep(begin + place, choices)

    def parts(self) -> Iterator[Iteration | Packed]:
        """All iterations, in order; those that are packed, many at once."""
        yield from self._first
        yield from self._packed
        yield from self._latest

    def _pack(self) -> None:
        if self._latest:
            self._add(Packed(self._latest))
            self._latest = []

    def _add(self, part: Packed) -> None:
        self._packed.append(part)
        self._begins.append(self._begins[-1] + part.count)

    def _keep(self, place: int, choices: Array) -> bool:
        """Keep the choices of an iteration if it is its turn."""
        if place % self._stride:
            return False
        self._choices[place] = choices
        self._kept += choices.nbytes + ARRAY_BYTES
        while self._kept > CHOICES_KEPT and self._stride < 1 << 30:
            self._stride *= 2
            self._choices = {at: kept for at, kept in self._choices.items() if at % self._stride == 0}
            self._kept = sum(kept.nbytes + ARRAY_BYTES for kept in self._choices.values())
            for at, record in enumerate(self._latest, self._begins[-1]):
                record.choices = self._choices.get(at)
        return place in self._choices

    @property
    def iterations(self) -> Iterations:
        return Iterations(self)

    def at(self, place: int) -> Iteration:
        """The iteration at a place. Only the first one and the last one may be changed: others may be copies."""
        if place == 0:
            return self._first[0]
        if place >= self._begins[-1]:
            return self._latest[place - self._begins[-1]]
        part = bisect_right(self._begins, place) - 1
        return self._packed[part].at(place - self._begins[part], self._number + place, self._choices.get(place))

    def choices(self) -> dict[int, Array]:
        """The choices that were kept, by the place of their iteration."""
        return self._choices

    def __iter__(self) -> Iterator[Iteration]:
        return iter(self.iterations)

    def __len__(self) -> int:
        return self._begins[-1] + len(self._latest) if self._first else 0

    def _columns(self) -> list[Packed]:
        return [
            *(Packed([each]) for each in self._first),
            *self._packed,
            *([Packed(self._latest)] if self._latest else []),
        ]

    def total(self, name: str) -> Any:
        """The sum of a figure over all iterations; `bytes` and `requests` are those of all engines."""
        if name in ("bytes", "requests"):
            return sum(use[name] for use in self.engines().values())
        return sum(part.total(name) for part in self._columns())

    def columns(self, *names: Name) -> list[Array]:
        """Figures of all iterations, an array for each name (see packed.py)."""
        parts = self._columns()
        return [np.concatenate([part.column(name) for part in parts] or [np.zeros(0)]) for name in names]

    def used(self) -> set[str]:
        """The names of all engines that were used."""
        return set().union(*(part.engines() for part in self._columns()))

    def engines(self) -> dict[str, dict[str, int]]:
        """Tasks, bytes and requests by engine."""
        parts = self._columns()
        found = sorted(set().union(*(part.engines() for part in parts)))
        return {name: {key: sum(part.total((name, key)) for part in parts) for key in no_use()} for name in found}


class Iterations(Sequence[Iteration]):
    """The iterations of a trace, as a list."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace)

    @overload
    def __getitem__(self, place: int) -> Iteration: ...

    @overload
    def __getitem__(self, place: slice) -> list[Iteration]: ...

    def __getitem__(self, place: int | slice) -> Iteration | list[Iteration]:
        found = range(len(self))[place]  # raises IndexError
        return self._trace.at(found) if isinstance(found, int) else [self._trace.at(each) for each in found]
