"""Results of a stream: each belongs to one batch, and stays as it is while later batches are applied.

A result copies nothing when it is published. It is made of the published arrays, which change at the end of every batch; while an
older result is in use, what each batch replaced is kept, so that the older values can be had again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.graph.changing_ids import ascending
from isthmus.programs.algorithm import Answer
from isthmus.programs.column import column_of
from isthmus.programs.program import Facts
from isthmus.runtime.result import Result
from isthmus.runtime.trace import Trace
from isthmus.stream.maintained import Array, Differences, Maintained

if TYPE_CHECKING:
    from isthmus.stream.publication import Publication


class LiveResult:
    """The answer of a maintained program after batch `number`. It offers what a `Result` does, and `changes()`."""

    def __init__(self, publication: Publication, number: int, facts: Facts, snapshot: Any, differences: tuple[Differences, ...]) -> None:
        self.number = number
        self._publication, self._facts, self._snapshot, self._differences = publication, facts, snapshot, differences
        self._result: Result | None = None
        self._changes: dict[str, Array] | None = None

    def result(self) -> Result:
        """As a plain result, which depends on nothing."""
        if self._result is None:
            with self._publication.lock:
                if self._result is None:  # a batch may have made it while this thread waited
                    self.make(self._publication.arrays_at(self.number))
        assert self._result is not None
        return self._result

    @property
    def is_made(self) -> bool:
        """Whether it depends on the stream no more."""
        return self._result is not None

    def make(self, arrays: tuple[Array, ...]) -> None:
        program = self._publication.program
        columns, figures = program.answer(arrays, self._facts)
        answer = Answer(columns, program.columns, figures)
        facts = {"algorithm": program.name, "batch": self.number, "result": figures}
        self._result = Result(program.name, self._snapshot, answer, Trace(), facts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)

    def __getitem__(self, name: str) -> Array:
        return self.result()[name]

    def __len__(self) -> int:
        return int(self._snapshot.vertices)

    def __repr__(self) -> str:
        return f"<Result of batch {self.number}: {self._publication.program.name} on {len(self)} vertices>"

    def changes(self) -> dict[str, Array]:
        """What the batch changed: `vertex`, `old` and `new` value, in the order of the ids. Empty before the first batch.

        An answer for several sources has the column `source` as well.
        """
        if self._changes is None:
            self._changes = named(self._publication.program, self._differences)
        return self._changes

    def name_changes(self, changes: dict[str, Array] | None) -> None:
        """Use changes that were named before vertices got other numbers."""
        self._changes = changes


def named(program: Maintained, found: tuple[Differences, ...]) -> dict[str, Array]:
    """Differences by user id, in the order of the ids of the program's graph as it is now."""
    column = column_of(program.columns, program.main)
    vertices, old, new = (joined([getattr(each, name) for each in found]) for name in ("vertices", "old", "new"))
    users = program.graph.changing_ids.users()[vertices.astype(np.int64)]
    order = ascending(users)
    table = {"vertex": users[order], "old": column.masked(old[order]), "new": column.masked(new[order])}
    if program.sources:
        which = np.repeat(np.arange(len(found)), [each.vertices.size for each in found])
        table["source"] = np.array(program.sources)[which[order]]
    return table


def joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0)
