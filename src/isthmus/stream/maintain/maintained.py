"""A maintained program: its answer is kept current while its graph changes.

A batch calls `correct` while the edges are as before, `compute` when they have changed, and `renumber` when vertices
were removed and others have taken their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus import sizes
from isthmus.devices.residency import Residency
from isthmus.errors import BatchError
from isthmus.graph.changing.advancing import Gathered
from isthmus.graph.changing.change import Change
from isthmus.programs.column import Column
from isthmus.programs.program import Facts, Program
from isthmus.runtime.session import Session
from isthmus.stream.stream_session import StreamSession

if TYPE_CHECKING:
    from isthmus.stream.maintain.qualification import Qualification

Array = np.ndarray[Any, Any]

DIFFERENCE = 4 + 8 + 8  # bytes of a vertex with its value before and after
NO_ROWS = np.empty(0, np.int64)
AT_ONCE = 1 << 18  # vertices whose lists are requested at once, when all are read


def with_spare(vertices: int) -> int:
    """Entries of arrays that have spare ones for new vertices."""
    return vertices + vertices // 8 + 64


@dataclass
class Effort:
    """What a batch cost a program."""

    affected: int = 0  # vertices whose value was corrected or improved
    edges_read: int = 0
    correction: float = 0.0  # seconds
    computation: float = 0.0


@dataclass
class Differences:
    """Vertices whose published value has changed, by number, with the value before and after."""

    vertices: Array
    old: Array
    new: Array


class Maintained(ABC):
    """A program that is kept current on the graph of a session."""

    name: str
    program: Any
    columns: tuple[Column, ...]
    qualification: Qualification | None = None  # of a user's program
    tolerance = 0.0  # rescaled values that changed by less than this, relatively, are not listed
    may_fail = False  # whether there may be no answer after some batch, which is known only when it was tried
    compares_whole = False  # a value may change without being written, by scaling or relabelling
    has_one_answer = True  # False: any answer within the program's threshold is right, and `fault` judges it
    sources: tuple[Any, ...] = ()  # of an answer with one published array per source: which source each belongs to

    def __init__(self, session: Session) -> None:
        assert isinstance(session, StreamSession)
        self.session, self.graph, self.team = session, session.graph, session.graph.team
        self.effort = Effort()

    @property
    def residency(self) -> Residency:
        """Where lists and states are between batches; it counts all reads of lists."""
        return self.session.residency

    def pieces(self, side: str, rows: Array) -> Iterator[tuple[Array, Gathered]]:
        """The lists of these vertices, for a kernel that reads them: some vertices at a time, with (begins, ends,
        targets, weights) of a side.

        Lists in memory come in one piece. Others come in ascending order of vertices, and are valid until the next
        piece; no other list may be read in a piece. `ends_of` has the lengths of all lists.
        """
        self.residency.read(side, rows, self.reads_weights())
        return self.graph.pieces(side, rows if self.graph.lists_are_near else np.sort(rows), self.reads_weights())

    def all_pieces(self, side: str) -> Iterator[tuple[int, int, Gathered]]:
        """The lists of all vertices, as in `pieces`: first:last at a time, in order."""
        n, weights = self.graph.vertices, self.reads_weights()
        if self.graph.lists_are_near:
            yield 0, n, self.graph.gathered(side, NO_ROWS, weights)
            return
        for begin in range(0, n, AT_ONCE):
            for rows, lists in self.graph.pieces(side, np.arange(begin, min(n, begin + AT_ONCE)), weights):
                yield int(rows[0]), int(rows[-1]) + 1, lists

    def ends_of(self, side: str) -> tuple[Array, Array]:
        """(begins, ends) of all lists of a side, near: their differences are the numbers of edges."""
        return self.graph.snapshot.lists(side).arrays

    def runs(self) -> Program | None:
        """A program like those that it runs to follow changes; None: its reads are not counted, so it cannot be
        maintained on a device.
        """
        return None

    @property
    def main(self) -> str:
        """The column that `values` of a result shows."""
        return self.columns[0].name

    def facts(self) -> Facts:
        graph = self.graph.snapshot
        lists = tuple(graph.lists(side) for side in self.sides)
        weight_dtype = graph.weight_dtype if self.reads_weights() else None
        return Facts(
            graph.vertices,
            lists[0],
            weight_dtype,
            graph.ids.number,
            graph.naturals,
            graph.directed,
            self.team,
            graph.out_degrees,
            lists,
        )

    def in_parts(self, work: Callable[..., Any], count: int) -> list[Any]:
        """Run work(first, last) on parts of 0:count, by all members of the team if `count` is large."""
        if count <= sizes.now.few_changes:
            return [work(0, count)]
        return self.team.split(work, count)

    @property
    @abstractmethod
    def sides(self) -> tuple[str, ...]: ...

    @abstractmethod
    def reads_weights(self) -> bool: ...

    def needs_weights_from_0(self) -> bool:
        """Whether negative weights are refused."""
        return False

    @abstractmethod
    def begin(self) -> None:
        """Compute the answer on the current snapshot from scratch."""

    @abstractmethod
    def restore(self) -> None:
        """After a batch has failed and was undone: compute the answer anew. What was published stays."""

    def refuse(self, change: Change) -> None:
        """Raise BatchError if the answer cannot survive this batch."""
        if self.qualification is not None:
            self.qualification.refuse(change)

    def refuse_removal(self, sources: Iterable[Any], change: Change) -> None:
        """Raise BatchError if a batch removes one of the vertices that the answer starts from."""
        gone = set(change.removed.tolist())
        for source in sources if gone else ():
            if int(self.graph.ids.number(source)) in gone:
                raise BatchError(
                    f"{change.removing(source)}: vertex {source!r} is the source of {self.name} and cannot be removed"
                )

    @abstractmethod
    def correct(self, change: Change) -> None:
        """Before the edges change: undo what depends on edges that will be gone."""

    @abstractmethod
    def compute(self, change: Change) -> None:
        """After the edges have changed: bring the answer up to date."""

    def fault(self) -> str | None:
        """What is wrong with the answer of a program that has more than one, by a pass over all edges; None:
        nothing.
        """
        return None

    @abstractmethod
    def renumber(self, change: Change) -> None:
        """After removed vertices have left: vertex movers[i] has the number holes[i] now."""

    @abstractmethod
    def published(self) -> tuple[Array, ...]:
        """The arrays, by vertex number, that results of the last published batch are made of. Not to be written to."""

    @abstractmethod
    def unpublished(self) -> tuple[Differences, ...]:
        """What has changed in each of the published arrays. They have an entry for each vertex from now on; their
        values are as before.
        """

    def publish(self, differences: tuple[Differences, ...]) -> None:
        """Bring the published arrays up to date."""
        for array, each in zip(self.published(), differences, strict=True):
            array[each.vertices] = each.new

    @abstractmethod
    def near_bytes(self, vertices: int) -> int:
        """Memory of all arrays, also of those that a batch needs which changes all values, and of what is published and
        replaced.
        """

    def publishing_bytes(self, vertices: int) -> int:
        """The part of `near_bytes` that is needed only when a batch is published. Before that, runs may use it."""
        return 0

    @abstractmethod
    def running(self) -> Program:
        """A program like those that it runs, for its needs of memory. Nothing has been computed yet."""

    def reached(self) -> Any:
        """What the figures of a result tell about the last batch that its arrays do not, such as the bound on the
        error.
        """
        return None

    def program_with(self, reached: Any) -> Any:
        """The program, with what was reached."""
        return self.program

    @abstractmethod
    def answer(self, arrays: tuple[Array, ...], facts: Facts, reached: Any) -> tuple[dict[str, Array], dict[str, Any]]:
        """Columns and figures of a result, from copies of the published arrays, and what was `reached` when they were
        published.
        """
