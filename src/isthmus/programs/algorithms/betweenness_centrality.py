"""Betweenness centrality: the share of shortest paths that lead through a vertex (Brandes 2001), from many sources at
once.

Up to 64 sources make a batch and share every read, each with a bit of a word per vertex (as in `multi_source_bfs`):

1. FORWARD: breadth-first searches, level by level. An edge that leads one level further adds its tail's path count to
   its head's. The active vertices of every level are kept in a list; where they are too many, they are found again by
   level.
2. BACKWARD: the same levels from the last but one to the first. With gain[v] = (1 + dependency[v]) / paths[v], a vertex
   u gathers dependency[u] = paths[u] * (the sum of gain[v] over its edges u -> v that lead one level further). No edge
   skips a level, so these are the edges to heads that are settled already. One bit marks those, and in-edges are not
   needed.

Every parallel edge is a path of its own; self loops lie on no shortest path. A batch is as large as spare near memory
allows. Path counts are doubles: beyond 1e308 paths to a vertex the run stops.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_add, atomic_or, lowest_bit
from isthmus.kernels.programs import path_counts as kernels
from isthmus.programs.algorithm import Answer, Kind, Option, Runner, algorithm
from isthmus.programs.checkpoint_checks import alike, bits, integer, within
from isthmus.programs.column import Column
from isthmus.programs.declaration import as_sources
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State

MOST = 64  # bits of a word
FORWARD, BACKWARD = range(2)
HERE = 1  # where kernels find the searches at a vertex
UNREACHED = np.iinfo(np.uint32).max
# Three words and the score; per source paths, gains, level, its place in a list of active vertices.
VERTEX_BYTES, SOURCE_BYTES = 32, 24


def searches_here(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return state[HERE][u]


def step(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Forward: add path counts to heads that a search has not seen. Backward: gather gains from settled heads."""
    seen, _, coming, paths, gains = state
    phase, width = params
    if phase == FORWARD:
        rest = x & ~seen[v]
        if rest == 0:
            return False
        if rest & ~coming[v] != 0:
            atomic_or(coming, v, rest)
        while rest != 0:
            s = lowest_bit(rest)
            atomic_add(paths, v * width + s, paths[u * width + s])
            rest &= rest - np.uint64(1)
        return True
    rest = x & coming[v]
    while rest != 0:
        s = lowest_bit(rest)
        atomic_add(gains, u * width + s, gains[v * width + s])
        rest &= rest - np.uint64(1)
    return False


class Betweenness(Program):
    """Betweenness centrality from `sources` (vertex numbers), of which at least `batch` fit near at a time."""

    name = "betweenness_centrality"
    order_free = False  # levels are synchronous, and each edge counts once
    columns = (Column("betweenness_centrality"),)
    needs_spare_memory = True

    def __init__(
        self, sources: Sequence[int], batch: int = 1, normalized: bool = True, endpoints: bool = False
    ) -> None:
        self.sources, self._batch, self._normalized, self._endpoints = sources, batch, normalized, endpoints
        self.state_bytes = VERTEX_BYTES + SOURCE_BYTES * batch
        self._done = 0  # sources of earlier batches
        self._level = 0
        self._active: list[Array | None] = []  # active vertices of each level of the batch; None: too many to list
        self._pairs = self._depth = 0

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> Functions:
        return Functions(searches_here, step)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        width = min(MOST, max(1, len(self.sources)), self._batch + facts.spare // max(1, SOURCE_BYTES * n))
        levels = np.full(n * width, UNREACHED, np.uint32)
        # In the BACKWARD phase `coming` marks settled vertices.
        arrays: dict[str, Array] = {name: np.zeros(n, np.uint64) for name in ("seen", "here", "coming")}
        arrays |= {name: np.zeros(n * width) for name in ("paths", "gains")}
        state = State(arrays, None, (FORWARD, width), {"levels": levels, "scores": np.zeros(n)})
        state.start = self._next_batch(state)
        return state

    def _next_batch(self, state: State) -> Array:
        """Start the next batch of sources; returns their vertices, none at the end."""
        width = state.params[1]
        numbers = np.asarray(self.sources[self._done : self._done + width], np.int64)
        bits = np.arange(numbers.size)
        state["coming"][numbers] = np.uint64(1) << bits.astype(np.uint64)
        state["paths"][numbers * width + bits] = 1.0
        state.params = (FORWARD, width)
        self._active, self._level = [], 0
        return numbers

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """The searches that were coming to a vertex arrive there."""
        phase, width = state.params
        if phase == BACKWARD:
            return
        given = (self._level, width, *state.arrays[:-1], state.extra["levels"])
        self._active.append(frontier.list)
        if frontier.list is not None:
            finite = [kernels.arrive_rows(frontier.list, *given)]
        else:
            finite = facts.team.split(lambda a, b: kernels.arrive_range(a, b, frontier.marks, *given), facts.vertices)
        if not all(finite):
            raise OptionError(
                f"{self.name}: more than 1e308 shortest paths lead to a vertex, more than a double can hold"
            )

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        phase, width = state.params
        if phase == FORWARD and not frontier.none_next():
            self._level += 1
            return True
        self._depth = max(self._depth, self._level)
        if self._level > 0:
            state.params = (BACKWARD, width)
            self._settle(state, frontier, facts)  # nothing depends on the last level
            self._level -= 1
        if self._level > 0:
            self._return(state, frontier, facts)
            return True
        self._done += width
        if self._done < len(self.sources):
            self._forget(state, facts)
            frontier.wake_all(self._next_batch(state))
        return True

    def share_done(self, state: State, iteration: int) -> float | None:
        """By sources; a batch is half done when its searches turn back, and each level back is as long as any other."""
        phase, width = state.params
        there = self._level / (2 * self._depth) if self._depth else 0.0  # the depth of a batch is known when it turns
        share = 1 - there if phase == BACKWARD else min(there, 0.5)
        return min(1.0, float(self._done + width * share) / max(1, len(self.sources)))

    def _settle(self, state: State, frontier: Any, facts: Facts) -> None:
        """Settle the active vertices: their dependencies are complete."""
        _, here, settled, paths, gains = state.arrays
        width, scores = state.params[1], state.extra["scores"]
        given = (width, float(self._endpoints), here, settled, paths, gains, scores)
        if frontier.list is not None:
            counts = kernels.settle_rows(frontier.list, *given)
        else:
            counts = sum(
                facts.team.split(lambda a, b: kernels.settle_range(a, b, frontier.marks, *given), facts.vertices)
            )
        self._pairs += int(counts.sum())
        if self._endpoints:  # a source is an end of all its paths
            numbers = np.asarray(self.sources[self._done : self._done + width], np.int64)
            scores[numbers] += counts[: numbers.size]

    def _return(self, state: State, frontier: Any, facts: Facts) -> None:
        """Make the vertices that were active at this level active again."""
        given = (self._level, state.params[1], state["here"], state.extra["levels"])
        rows = self._active[self._level]
        if rows is not None:
            kernels.return_rows(rows, *given)
            frontier.wake_all(rows)
            return
        facts.team.split(lambda a, b: kernels.return_range(a, b, *given, frontier.next_marks), facts.vertices)
        frontier.wake(0, 0)  # the marks are set; no queue holds them

    def _forget(self, state: State, facts: Facts) -> None:
        """Clear everything that the batch reached."""
        seen, _, settled, paths, gains = state.arrays
        given = (state.params[1], UNREACHED, seen, settled, paths, gains, state.extra["levels"])
        if any(rows is None for rows in self._active):
            facts.team.split(lambda a, b: kernels.forget_range(a, b, *given), facts.vertices)
            return
        for rows in self._active:
            kernels.forget_rows(rows, *given)

    def remember(self, state: State) -> dict[str, Any]:
        progress = {
            "done": self._done,
            "level": self._level,
            "active": self._active,
            "pairs": self._pairs,
            "depth": self._depth,
        }
        return {"arrays": state.arrays, "params": state.params, "extra": state.extra, **progress}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        width = state.params[1]
        phase, same = integer(kept["params"][0], FORWARD, BACKWARD), integer(kept["params"][1], width, width)
        state.arrays, state.params, state.extra = kept["arrays"], (phase, same), kept["extra"]
        self._done, self._level, self._active = (
            integer(kept["done"], 0, len(self.sources)),
            integer(kept["level"], 0),
            kept["active"],
        )
        self._pairs, self._depth = integer(kept["pairs"]), integer(kept["depth"], 0)

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        for words in state.arrays[:3]:
            bits(words, state.params[1])
        count = len(self._active)
        if self._level != count if state.params[0] == FORWARD else self._level >= count:
            raise ValueError(f"expected a level for each of {count} lists of active vertices, got {self._level}")
        for rows in self._active:
            if rows is not None:
                alike(rows, np.empty(rows.shape[:1], np.uint32))
                within(rows, facts.vertices - 1)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        scores = state.take(state.extra["scores"])
        rescale(scores, self.sources, facts.directed, self._normalized, self._endpoints)
        return {"betweenness_centrality": scores}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {
            "sources": len(self.sources),
            "pairs": self._pairs,
            "depth": self._depth,
            # of those that are not NaN.
            "highest": float(np.fmax.reduce(columns["betweenness_centrality"], initial=0.0)),
        }


def rescale(scores: Array, sources: Sequence[int], directed: bool, normalized: bool, endpoints: bool) -> None:
    """Scale sums over the sources as NetworkX does, in place: to shares of all pairs or to path counts, also for
    sampled sources.

    A source's own paths do not lead through it, so its sum is over one source fewer; NaN where no source is left.
    """
    n, count = scores.size, len(sources)
    others = n if endpoints else n - 1  # vertices that may be at one end of a path through a vertex
    if others < 2:
        return
    scale = 1 / (others - 1) if normalized else others / (1 if directed else 2)
    if endpoints or count == n:
        scores *= scale / (count if endpoints else others)
        return
    numbers = np.asarray(sources, np.int64)
    own = scores[numbers] * (scale / (count - 1) if count > 1 else np.nan)
    scores *= scale / count
    scores[numbers] = own


@algorithm(not_live="an edge may lie on the shortest paths between any two vertices")
def betweenness_centrality(
    run: Runner,
    k: Annotated[int | None, Option("Estimate from this many sampled sources. Default: all vertices.", least=1)] = None,
    normalized: Annotated[
        bool, Option("Scores are shares of all pairs of vertices; otherwise numbers of paths.")
    ] = True,
    endpoints: Annotated[bool, Option("Count a path at its ends as well.")] = False,
    seed: Annotated[int, Option("Random seed of the sample.")] = 1,
    sources: Annotated[
        Any, Option("Estimate from this source; may be repeated.", flag="--source", kind=Kind.VERTICES)
    ] = None,
) -> Answer:
    """The share of shortest paths that lead through each vertex.

    Exact, or an estimate from `k` sampled sources or from `sources`.
    """
    return run(in_batches(run, chosen_sources(run.graph, k, seed, sources), normalized, endpoints))


def chosen_sources(graph: Snapshot, k: int | None, seed: int, sources: Any) -> Sequence[int]:
    """Vertex numbers: of `sources`, of `k` vertices that NetworkX would draw, or of all."""
    n = graph.vertices
    if sources is not None:
        if k is not None:
            raise OptionError("expected k or sources, got both")
        numbers = [graph.ids.number(source) for source in as_sources(sources)]
        if not numbers or len(set(numbers)) < len(numbers):
            raise OptionError(f"sources: expected at least one vertex, each once, got {sources}")
        return numbers
    if k is None:
        return range(n)
    if not hasattr(k, "__index__") or not 1 <= k <= n:
        raise OptionError(f"k: expected a number of vertices from 1 to {n}, got {k}")
    places = np.array(random.Random(seed).sample(range(n), k))
    drawn: list[int] = graph.ids.numbers_of_natural(places).tolist()
    return drawn


def in_batches(run: Runner, sources: Sequence[int], normalized: bool, endpoints: bool) -> Betweenness:
    """The program with the largest batch that fits the budget beside all edges; if the edges do not fit, the largest
    without them.
    """
    fitting: list[Betweenness] = []
    batches = sizes.now.betweenness_batches
    for batch in batches:
        program = Betweenness(sources, batch, normalized, endpoints)
        try:
            if run.fits(program):
                return program
            fitting.append(program)
        except BudgetError:
            if batch == batches[-1] and not fitting:
                raise
    return fitting[0]
