"""What an algorithm is to its users: a function, declared once, in the file of its program.

    DepthLimit = Annotated[int | None, Option("Maximum distance.", least=0)]

    @algorithm
    def bfs(run: Runner, source: Vertex, depth_limit: DepthLimit = None) -> Answer:
        \"\"\"Distances in edges from a source.\"\"\"
        return run(BFS(source, depth_limit))

`isthmus.bfs(graph, source, ...)`, `session.bfs(source, ...)`, `isthmus run bfs`, `compare`, `plan`, the table in the
docs and the conformance suite are derived from that: the parameters are the options that change the answer, the first
line of the docstring is the help text. A function may run several programs, one after the other; their times add up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Protocol, get_type_hints, overload

from isthmus.checks import flag
from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.plugins import LAST, first_paragraph
from isthmus.programs.column import Array, Column
from isthmus.programs.parameter import Kind as Kind
from isthmus.programs.parameter import Option as Option
from isthmus.programs.parameter import Parameter, parameter_of
from isthmus.programs.per_source import BySource
from isthmus.programs.program import Program

START = "The vertex to start from, by its own id. Default: the one with the most out-edges."
Vertex = Annotated[Any, Option(START, kind=Kind.VERTEX)]
UseWeights = Annotated[bool, Option("Follow edges in proportion to their weights.")]
# What NetworkX calls no weights, and the usual ones; a graph here has one weight at most.
WEIGHT_WORDS = (None, "weight")
MaxIter = Annotated[int, Option("Maximum number of iterations.", least=1)]


class Rows(Enum):
    """What a row of an answer stands for."""

    VERTICES = "vertices"
    EDGES = "edges"
    INPUTS = "inputs"


@dataclass
class Answer:
    """The answer of a run: columns by vertex number, by edge or by input, and summary figures.

    `values`: the main values, if not the first column. `vertices`: for an answer by inputs, the places in natural order
    of the vertices it is about.
    """

    columns: dict[str, Array]
    declared: tuple[Column, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    rows: Rows = Rows.VERTICES
    values: Array | None = None
    vertices: Array | None = None
    program: Program | None = None  # the program that ran, in its final state

    @property
    def main(self) -> str:
        """The name of the column that `values` of a result shows."""
        return "weight" if self.rows is Rows.EDGES else next(iter(self.columns))


class Runner(Protocol):
    """What an algorithm's function runs programs with: a session, for one call."""

    @property
    def graph(self) -> Snapshot:
        """The graph of the run: counts, types and ids."""
        ...

    def sweeps(self, program: Program) -> bool:
        """Whether to compute PageRank by this program, which sweeps: if the recipe does, or its edges are all near.
        Else by deltas.
        """
        ...

    def __call__(self, program: Program) -> Answer:
        """Run a program."""
        ...

    def fits(self, program: Program) -> bool:
        """Whether all edges would fit in memory; raises BudgetError if the budget is too small to run the program at
        all.
        """
        ...

    def must_fit(self, program: Program) -> None:
        """Raise BudgetError now if running the program later would."""
        ...

    def note(self, text: str) -> None:
        """Add a note for the user to the answer."""
        ...


@dataclass(frozen=True)
class Live:
    """How an algorithm's answer is kept current. `title`: the name that users give it by, such as SSSP in
    `isthmus.SSSP(source=7)`.

    `program` makes the program (or one per source) from a graph and the algorithm's options (some of them, or all).
    """

    title: str
    program: Callable[..., Program | BySource]


@dataclass(frozen=True)
class Algorithm:
    """A declared algorithm. `function` takes a Runner first, then the parameters."""

    name: str
    function: Callable[..., Answer]
    alias: str | None = None  # another name on the shell
    place: int = LAST  # position in lists
    # Arguments to test it with; None: not on this graph.
    sample: Callable[[Snapshot], dict[str, Any] | None] | None = None
    live: Live | None = None  # how its answer is kept current while a graph changes; None: it is not
    not_live: str | None = None  # why it is not

    @property
    def words(self) -> str:
        """The help text in one line."""
        return first_paragraph(inspect.getdoc(self.function) or self.name)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        hints = get_type_hints(self.function, include_extras=True)
        given = list(inspect.signature(self.function).parameters.values())[1:]
        return tuple(parameter_of(each.name, hints.get(each.name, Any), each.default) for each in given)

    def check(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise OptionError for arguments that are missing, too many or given twice, and for flags that are neither
        True nor False.
        """
        try:
            given = inspect.signature(self.function).bind(None, *args, **named).arguments
        except TypeError as error:
            raise OptionError(
                f"{self.name}: {error}; call {self.name}({', '.join(['graph', *map(str, self.parameters)])})"
            ) from None
        for parameter in self.parameters:
            value = given.get(parameter.name, False)
            if parameter.type is bool and not (parameter.name == "weight" and value in WEIGHT_WORDS):
                flag(parameter.name, value)

    def __call__(self, run: Runner, *args: Any, **named: Any) -> Answer:
        return self.function(run, *args, **named)


Declares = Callable[[Callable[..., Answer]], Algorithm]


@overload
def algorithm(function: Callable[..., Answer]) -> Algorithm: ...


@overload
def algorithm(
    *,
    alias: str | None = None,
    place: int = LAST,
    sample: Callable[[Snapshot], dict[str, Any] | None] | None = None,
    live: Live | None = None,
    not_live: str | None = None,
) -> Declares: ...


def algorithm(
    function: Callable[..., Answer] | None = None,
    *,
    alias: str | None = None,
    place: int = LAST,
    sample: Callable[[Snapshot], dict[str, Any] | None] | None = None,
    live: Live | None = None,
    not_live: str | None = None,
) -> Algorithm | Declares:
    """Declare an algorithm by its function, which takes a `Runner` first, then its options, and returns an `Answer`.

    `alias` is another name on the shell, and `sample` makes arguments to test it with. `live` says how a stream keeps
    its answer current, `not_live` why it cannot. The first paragraph of the docstring is the help text.
    """
    if function is None:
        return lambda declared: Algorithm(declared.__name__, declared, alias, place, sample, live, not_live)
    return Algorithm(function.__name__, function, alias, place, sample, live, not_live)
