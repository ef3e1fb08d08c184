"""Results of a stream: each belongs to one batch, and stays as it is while later batches are applied.

Publishing copies nothing. Results read shared arrays; while an older result is in use, the values that each batch
replaces are kept, so it can be rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from isthmus.graph.changing.changing_ids import Naming
from isthmus.programs.algorithm import Answer
from isthmus.programs.program import Facts
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace.trace import Trace
from isthmus.stream.maintain.maintained import Array, Differences
from isthmus.stream.results.difference import Earlier, compared, written

if TYPE_CHECKING:
    from isthmus.stream.results.publication import Publication


class LiveResult:
    """The answer of a maintained program after batch `number`. It offers what a `Result` does, and `changes()`."""

    def __init__(
        self,
        publication: Publication,
        number: int,
        facts: Facts,
        snapshot: Any,
        reached: Any,
        differences: tuple[Differences, ...] = (),
        naming: Naming | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        """`naming` has the ids of the vertices in `differences`; `earlier`: the batch before, if whole answers must be
        compared.
        """
        self.number = number
        self._publication, self._facts, self._snapshot, self._reached = publication, facts, snapshot, reached
        self._differences = differences
        self._naming, self._earlier = naming or publication.program.graph.changing_ids.naming, earlier
        self._arrays: tuple[Array, ...] = ()  # published ones, for comparing whole answers
        self._result: Result | None = None
        self._changes: dict[str, Array] | None = None

    def result(self) -> Result:
        """The same answer as a plain `Result`, which depends on nothing."""
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
        if self._earlier is not None:
            self._arrays = tuple(array.copy() for array in arrays)
        self._result = self._made(arrays, self._facts, self._snapshot, self._reached)

    def _made(self, arrays: tuple[Array, ...], facts: Facts, snapshot: Any, reached: Any) -> Result:
        program = self._publication.program
        columns, figures = program.answer(arrays, facts, reached)
        answer = Answer(columns, program.columns, figures)
        return Result(
            program.name,
            snapshot,
            answer,
            Trace(),
            {"algorithm": program.name, "batch": self.number, "result": figures},
        )

    def as_earlier(self, arrays: tuple[Array, ...] | None) -> Earlier:
        """What the next result is compared with."""
        return Earlier(self._facts, self._snapshot, self._reached, arrays)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.result(), name)

    def __getitem__(self, name: Any) -> Any:
        return self.result()[name]

    def __contains__(self, key: Any) -> bool:
        return key in self.result()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.result())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.result().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.result().__array__(dtype, copy)

    def __len__(self) -> int:
        return int(self._snapshot.vertices)

    def __repr__(self) -> str:
        return f"<Result of batch {self.number}: {self._publication.program.name} on {len(self)} vertices>"

    def changes(self) -> dict[str, Array]:
        """What the batch changed: `vertex`, `old` and `new` value, in the order of the ids. Empty before the first
        batch.

        An answer for several sources has the column `source` as well.
        """
        if self._changes is None:
            self._changes = self._compared() if self._earlier is not None else self._written()
        return self._changes

    def _written(self) -> dict[str, Array]:
        return written(self._publication.program, self._differences, self._naming)

    def _compared(self) -> dict[str, Array]:
        now, earlier = self.result(), self._earlier
        assert earlier is not None
        arrays = earlier.arrays_before(self._arrays, self._differences)
        before = self._made(arrays, earlier.facts, earlier.snapshot, earlier.reached)
        return compared(self._publication.program, before, now, self._differences, self._naming)
