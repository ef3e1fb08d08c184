"""An answer with one column per source, kept current: each source has a maintained program of its own."""

from __future__ import annotations

from typing import Any

from isthmus.graph.changing.change import Change
from isthmus.programs.per_source import BySource
from isthmus.programs.program import Facts, Program
from isthmus.stream.maintain.maintained import Array, Differences, Effort, Maintained
from isthmus.stream.maintain.registry import maintainer_of, maintains
from isthmus.stream.stream_session import StreamSession


@maintains(BySource)
class MaintainedBySource(Maintained):
    """One maintained program per source."""

    def __init__(self, requested: BySource, session: StreamSession, name: str | None = None) -> None:
        super().__init__(session)
        self.requested, self.name, self.columns = requested, name or requested.name, requested.columns
        self.sources = tuple(requested.sources)
        self._parts = {
            column: maintainer_of(program, session, self.name) for column, program in requested.programs.items()
        }
        self.compares_whole, self.tolerance = self._each[0].compares_whole, self._each[0].tolerance

    @property
    def _each(self) -> list[Maintained]:
        return list(self._parts.values())

    @property
    def sides(self) -> tuple[str, ...]:
        return self._each[0].sides

    def reads_weights(self) -> bool:
        return self._each[0].reads_weights()

    def needs_weights_from_0(self) -> bool:
        return self._each[0].needs_weights_from_0()

    def runs(self) -> Program | None:
        return self._each[0].runs()

    def begin(self) -> None:
        for part in self._each:
            part.begin()
        self._add_efforts()

    def restore(self) -> None:
        for part in self._each:
            part.restore()

    def refuse(self, change: Change) -> None:
        for part in self._each:
            part.refuse(change)

    def correct(self, change: Change) -> None:
        for part in self._each:
            part.correct(change)

    def compute(self, change: Change) -> None:
        for part in self._each:
            part.compute(change)
        self._add_efforts()

    def _add_efforts(self) -> None:
        efforts = [part.effort for part in self._each]
        self.effort = Effort(
            sum(each.affected for each in efforts),
            sum(each.edges_read for each in efforts),
            sum(each.correction for each in efforts),
            sum(each.computation for each in efforts),
        )

    def near_bytes(self, vertices: int) -> int:
        return sum(part.near_bytes(vertices) for part in self._each)

    def publishing_bytes(self, vertices: int) -> int:
        return sum(part.publishing_bytes(vertices) for part in self._each)

    def running(self) -> Program:
        return self._each[0].running()

    def renumber(self, change: Change) -> None:
        for part in self._each:
            part.renumber(change)

    def published(self) -> tuple[Array, ...]:
        return tuple(array for part in self._each for array in part.published())

    def unpublished(self) -> tuple[Differences, ...]:
        return tuple(differences for part in self._each for differences in part.unpublished())

    def reached(self) -> tuple[Any, ...]:
        return tuple(part.reached() for part in self._each)

    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        columns: dict[str, Array] = {}
        for (name, part), array, own_reached in zip(self._parts.items(), arrays, reached, strict=True):
            own, _ = part.answer((array,), facts, own_reached)
            columns[name] = next(iter(own.values()))
        programs = [part.program_with(each) for part, each in zip(self._each, reached, strict=True)]
        return columns, self.requested.summary(columns, programs)
