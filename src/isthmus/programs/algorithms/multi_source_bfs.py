"""Breadth-first searches from up to 64 sources that share every read (MS-BFS, Then et al. 2014).

A vertex has three words with one bit per source: the searches that have seen it, those that are at it now, and those
that come next. An edge passes the searches at its tail on to its head, unless they have seen it. Levels are
synchronous: the searches that come in one iteration are at the vertex in the next, when their distance is recorded.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_or
from isthmus.kernels.programs import masks
from isthmus.programs.algorithm import Answer, Kind, Live, Option, Runner, algorithm
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.checkpoint_checks import bits, integer
from isthmus.programs.column import Column
from isthmus.programs.declaration import as_sources
from isthmus.programs.functions import Functions
from isthmus.programs.message import INT_MAX
from isthmus.programs.per_source import BySource
from isthmus.programs.program import Array, Facts, Program, State

MOST = 64  # bits of a word
UNREACHED = np.iinfo(np.uint32).max


def searches_here(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return state[1][u]


def hand_over(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Pass the searches at u on to v, unless they have seen it."""
    seen, _, coming = state
    fresh = x & ~seen[v] & ~coming[v]
    if fresh == 0:
        return False
    atomic_or(coming, v, fresh)
    return True


class MultiSourceBFS(Program):
    """One column of distances per source; kept in 32 bits, where the largest number means unreached."""

    name = "multi_source_bfs"
    order_free = False
    columns = (Column("distance_*"),)

    def __init__(self, sources: list[Any]) -> None:
        if not 1 <= len(sources) <= MOST:
            raise OptionError(f"sources: expected 1 to {MOST} vertices, got {len(sources)}")
        self.sources = list(sources)
        self.state_bytes = 24 + 4 * len(sources)

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> Functions:
        return Functions(searches_here, hand_over)

    def begin(self, facts: Facts) -> State:
        numbers = np.array([facts.number(source) for source in self.sources], np.int64)
        if np.unique(numbers).size < numbers.size:
            raise OptionError(f"sources: expected different vertices, got {self.sources}")
        arrays = {name: np.zeros(facts.vertices, np.uint64) for name in ("seen", "here", "coming")}
        arrays["coming"][numbers] = np.uint64(1) << np.arange(numbers.size, dtype=np.uint64)
        distances = np.full((numbers.size, facts.vertices), UNREACHED, np.uint32)
        return State(arrays, numbers, (), {"distances": distances, "level": 0})

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """The searches that were coming to a vertex arrive there, at this level's distance."""
        level, distances = state.extra["level"], state.extra["distances"]
        state.extra["level"] += 1
        if frontier.list is not None:
            masks.arrive_rows(frontier.list, level, *state.arrays, distances)
            return
        facts.team.split(
            lambda a, b: masks.arrive_range(a, b, frontier.marks, level, *state.arrays, distances), facts.vertices
        )

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays, "extra": state.extra}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        state.arrays, state.extra = (
            kept["arrays"],
            {**kept["extra"], "level": integer(kept["extra"]["level"], 0, UNREACHED - 1)},
        )
        for words in state.arrays:
            bits(words, len(self.sources))

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        distances = state.given(state.extra["distances"])
        return {f"distance_{source}": row for source, row in zip(self.sources, distances, strict=True)}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        reached = sum(int(np.count_nonzero(column != UNREACHED)) for column in columns.values())
        return {"sources": len(columns), "reached": reached, "depth": max(0, state.extra["level"] - 1)}


def first_vertices(graph: Snapshot) -> Any:
    """A few vertices to test an algorithm with."""
    return graph.ids.natural(0, min(3, graph.vertices)).tolist() or None


def live_searches(graph: Snapshot, sources: Any) -> BySource:
    def summary(columns: dict[str, Array], programs: list[Program]) -> dict[str, Any]:
        reached = [column[column != INT_MAX] for column in columns.values()]
        return {
            "sources": len(columns),
            "reached": sum(map(len, reached)),
            "depth": max(int(found.max()) for found in reached),
        }

    return BySource("multi_source_bfs", MultiSourceBFS.columns, "distance_", as_sources(sources), MOST, BFS, summary)


@algorithm(live=Live("MultiSourceBFS", live_searches))
def multi_source_bfs(
    run: Runner,
    sources: Annotated[
        Any,
        Option("A vertex to start from; up to 64 times.", flag="--source", kind=Kind.VERTICES, sample=first_vertices),
    ],
) -> Answer:
    """Distances in edges from many sources at once.

    One column `distance_<id>` for each of up to 64 sources; all of them share every read.
    """
    return run(MultiSourceBFS(as_sources(sources)))
