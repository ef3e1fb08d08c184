"""What an algorithm computes, apart from how its edges are read."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isthmus.errors import ProgramError
from isthmus.graph.lists import Lists
from isthmus.graph.snapshot import Snapshot
from isthmus.programs.column import Column
from isthmus.programs.functions import Functions
from isthmus.programs.state import State as State  # part of the interface of programs

Array = np.ndarray[Any, Any]
NOTHING_YET = np.empty(0)  # stands for an array that an earlier pass will make


@dataclass
class Facts:
    """What a program may know of the graph it runs on."""

    vertices: int  # how many there are
    lists: Lists  # where the edges of each vertex lie
    weight_dtype: Any  # None: unweighted
    number: Callable[[Any], int]  # a user's vertex id to a vertex number
    naturals: Callable[[], Array | None]  # each vertex's place in natural order; None: that is its number
    directed: bool  # whether the graph is
    team: Any  # the threads of the run
    degrees: Callable[[], Array]  # out-degrees, as uint32 where they fit
    lists_of_sides: tuple[Lists, ...] = ()
    spare: int = 0  # bytes of the budget that are not reserved
    # Vertices whose values will probably still improve may be deferred, see programs/best_first.py.
    best_first: bool = False


@dataclass
class NearEdges:
    """All edges of a side, near."""

    lists: Lists
    targets: Array
    weights: Array | None


Seen = Callable[[int, int], None]  # called for every iteration, with its active vertices and active edges


class Program(ABC):
    """What an algorithm computes. A subclass says what its state is and what happens along an edge; runs do the rest.

    A subclass must define `reads_weights`, `functions`, `begin` and `result`. Everything else has a default.
    """

    name: str = "program"  # in summaries and messages
    sides: tuple[str, ...] = ("out",)  # the edges it follows: "out", "in" or both
    order_free: bool = True  # any order of propagation gives the answer
    all_active: bool = False  # every vertex is active in every iteration
    pulls: bool = False  # follows the edges backwards, summing up what arrives; needs `all_active`
    max_iter: int | None = None  # iterations after which the run ends; None: when no vertex is active
    # Further runs read the same edges soon, so that they are kept near even if one run reads them once.
    runs_again: bool = False
    prefetched_array: int = 0  # the state array that an edge reads or writes at its head; kernels prefetch it
    spread_array: int | None = None  # the state array that `source` reads at the tail and `edge` changes at the head
    state_bytes: int = 8  # near memory per vertex
    solve_bytes: int = 0  # further near memory per vertex while `solve` runs
    levels: bool = False  # runs faster while each iteration is one level of a breadth-first search
    needs_spare_memory: bool = False  # uses the rest of the budget, so that no cache gets it
    reruns: bool = False  # a vertex may be followed again in the same iteration, see `again`
    follows_each_vertex_once: bool = False  # so there is nothing to cache
    live: bool = False  # it goes on from an earlier answer, with loops of its own for that
    # 0: no. Otherwise it may run in any order, without `before` and `after`; 1: small values are urgent, -1: large
    # ones.
    settles: int = 0
    columns: tuple[Column, ...] = ()  # what the columns of its result hold; those not declared hold plain numbers
    given: tuple[tuple[Any, ...], dict[str, Any]]  # the arguments it was made from, which identify its runs

    def __new__(cls, *given: Any, **named: Any) -> Self:
        program = super().__new__(cls)
        program.given = given, named
        return program

    def resumed(self, state: State) -> Self:
        """A copy of this program that goes on from `state` instead of beginning, and leaves the answer there."""
        fresh = copy.copy(self)
        fresh.begin = lambda facts: state  # type: ignore[method-assign]
        fresh.result = lambda state, facts: {}  # type: ignore[method-assign]
        fresh.summary = lambda columns, state: {}  # type: ignore[method-assign]
        return fresh

    def table_bytes(self, graph: Snapshot) -> int:
        """Near memory beside `state_bytes` per vertex, for tables that depend on the graph's lists."""
        return 0

    def share_done(self, state: State, iteration: int) -> float | None:
        """The share of the work that is done after this number of iterations, from 0 to 1; None: not known."""
        return None

    def seeks(self, state: State) -> bool:
        """Whether the next iteration runs the loops that seek; see `kernels/loops/skeleton.py`."""
        return False

    def loops(self, state: State) -> tuple[Any, Any] | None:
        """Kernels for the next iteration in place of `push_rows` and `push_range`; None: those."""
        return None

    def following(self, state: State) -> tuple[str, ...]:
        """Which of its sides the next iteration follows."""
        return self.sides

    @abstractmethod
    def reads_weights(self) -> bool:
        """Whether it needs the weights of edges; without them fewer bytes are read."""

    @abstractmethod
    def functions(self, facts: Facts) -> Functions:
        """`source(u, degree, state, params)` and `edge(x, u, v, w, state, params)`, or those of a program that
        pulls.
        """

    def text(self, facts: Facts) -> str:
        """The functions as kernels have them; this text identifies what a program does."""
        functions = self.functions(facts)
        if not isinstance(functions, Functions):
            raise ProgramError(f"{self.name}: functions: expected isthmus.Functions, got {type(functions).__name__}")
        return functions.text()

    @abstractmethod
    def begin(self, facts: Facts) -> State:
        """The state before the first iteration, and the vertices that start active."""

    def before(self, state: State, frontier: Any, facts: Facts) -> None:  # noqa: B027  # most programs need none
        """Called before the edges of an iteration move."""

    def tighten(self, state: State) -> None:  # noqa: B027
        """Called before partitions settle, instead of `before`: parameters may be set to what is known by now."""

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Called when an iteration's edges are done; False stops the run."""
        return True

    def top_down(self, state: State) -> None:  # noqa: B027
        """Called before the first iteration if the recipe follows edges from active vertices only."""

    def unordered(self, state: State) -> None:  # noqa: B027
        """Called when values were propagated out of order, so that iterations are no longer levels."""

    def again(self, state: State, rows: Array) -> None:  # noqa: B027
        """Called, if `reruns`, before these vertices are followed once more in the same iteration."""

    def contribution(self, state: State) -> Array | None:
        """The delta that each active vertex sends in this iteration, for recipes that run larger ones first; None: it
        sends none.
        """
        return None

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        """Compute the answer with a kernel of the program's own when all edges are near; False: use the loop."""
        return False

    def remember(self, state: State) -> dict[str, Any]:
        """What a checkpoint between iterations keeps: all that another process needs to go on, except the frontier.

        It may hold numbers, texts, None, arrays, and tuples, lists and dictionaries (with texts for keys) of these.
        What `begin` makes again may be left out. This default has everything, which is more than most programs need.
        """
        own = {name: value for name, value in vars(self).items() if name != "given"}
        return {"arrays": state.arrays, "params": state.params, "extra": state.extra, "own": own}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        """Go on from what was remembered; `begin` has just made `state`.

        An array in `kept` is the array object that `remember(state)` has there, with the saved contents, if the shapes
        are equal.
        """
        state.arrays, state.params, state.extra = kept["arrays"], kept["params"], kept["extra"]
        if any(callable(getattr(type(self), name, None)) for name in kept["own"]):
            raise ValueError("a method is not part of the state")
        vars(self).update(kept["own"])

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:  # noqa: B027
        """Called after `recall`: raise ValueError if the state contradicts the graph, the frontier or itself.

        A checkpoint may be forged. What kernels use as an index must be checked here, or in `recall`; see recalled.py.
        """

    @abstractmethod
    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        """Columns of the answer, by vertex number, as far as it is known.

        Pure: changes neither the program nor an array of `state`, and returns nothing that the run goes on to change.
        `state.given` is for an array that is the answer, `state.take` and `state.memory_like` for one to write into.
        """

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        """A few numbers for people."""
        return {}

    def explain(self, reason: str) -> str:
        """The message for an error of the compiler."""
        return f"{self.name} does not compile: {reason}"
