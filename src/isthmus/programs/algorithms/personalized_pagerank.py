"""Personalised PageRank from up to 64 sources that share every read, each with a guaranteed bound.

For a source s, x = (1 - d) e_s + d P^T x, where a walk at a vertex without out-edges goes back to s. One iteration
replaces x by the right side, for all sources along the same edges. This brings any two vectors that sum to one nearer
to each other by the factor d in L1, so x is off by at most d / (1 - d) |x - x before|; the run stops when that is at
most `tol` for every source. Power iteration converges by the same factor, so the bound shrinks as fast as the error.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, whole
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import ranks as kernels
from isthmus.programs.algorithm import Answer, Kind, Live, MaxIter, Option, Runner, UseWeights, algorithm
from isthmus.programs.algorithms.multi_source_bfs import first_vertices
from isthmus.programs.checkpoint_checks import finite, real, truth
from isthmus.programs.column import Column, Within
from isthmus.programs.declaration import as_sources
from isthmus.programs.functions import Functions, Scalar, unrolled
from isthmus.programs.per_source import BySource
from isthmus.programs.program import NOTHING_YET, Array, Facts, Program, State
from isthmus.programs.scores.deltas import LivePageRank
from isthmus.programs.strengths import strengths_of
from isthmus.programs.sums import alone, times
from isthmus.programs.weights import need_weights

MOST = 64  # sources: what a processor's registers hold


def pulling(width: int, carried: Scalar) -> Functions:
    """Sums for `width` sources as a tuple, written out: five times as fast as an array for 8 of them."""

    def nothing(params: Any) -> Any:
        return tuple(0.0 for _ in unrolled(width))

    def sent(total: Any, u: Any, w: Any, state: Any, params: Any) -> Any:
        shares, at = state[1], u * width
        return tuple(total[s] + carried(shares[at + s], w) for s in unrolled(width))

    def received(v: Any, total: Any, state: Any, params: Any) -> Any:
        at = v * width
        for s in unrolled(width):
            atomic_add(state[0], at + s, total[s])

    return Functions(nothing=nothing, sent=sent, received=received)


def pushing(width: int, carried: Scalar) -> Functions:
    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        return u * width

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        ranks, shares = state
        for s in range(width):
            atomic_add(ranks, v * width + s, carried(shares[x + s], w))
        return False

    return Functions(source, edge)


def padded(sources: int) -> int:
    """Columns to keep for so many sources: few different widths, so that few loops are compiled, and rows of whole
    cache lines.
    """
    return next((width for width in (1, 2, 4, 8) if sources <= width), -(-sources // 8) * 8)


class PersonalizedPageRank(Program):
    """One column per source. `tol` bounds the L1 error of each.

    `strengths`: the sum of each vertex's edge weights, to follow edges in proportion to their weights.
    """

    name = "personalized_pagerank"
    all_active = True
    order_free = False  # every edge counts once per iteration
    columns = (Column("pagerank_*", within=Within.TOTAL),)

    def __init__(
        self,
        sources: list[Any],
        alpha: float = 0.85,
        tol: float = 1e-6,
        max_iter: int = 1000,
        strengths: Array | None = None,
        pulls: bool = True,
    ) -> None:
        if not 1 <= len(sources) <= MOST:
            raise OptionError(f"sources: expected 1 to {MOST} vertices, got {len(sources)}")
        self.alpha, self.tol, self.max_iter = (
            between_0_and_1("alpha", alpha),
            above_0("tol", tol),
            whole("max_iter", max_iter, 1),
        )
        self.sources, self.strengths = list(sources), strengths
        self.pulls = pulls
        self.sides = ("in",) if pulls else ("out",)
        self._width = padded(len(sources))
        self.state_bytes = 16 * self._width + (4 if strengths is None else 8)
        self.error_bound = float("inf")
        self.converged = False

    def reads_weights(self) -> bool:
        return self.strengths is not None

    def functions(self, facts: Facts) -> Functions:
        return (pulling if self.pulls else pushing)(self._width, alone if self.strengths is None else times)

    def begin(self, facts: Facts) -> State:
        """All rank starts at the sources."""
        numbers = np.array([facts.number(source) for source in self.sources], np.int64)
        if np.unique(numbers).size < numbers.size:
            raise OptionError(f"sources: expected different vertices, got {self.sources}")
        homes = numbers * self._width + np.arange(numbers.size)
        ranks, shares = (np.zeros(facts.vertices * self._width) for _ in range(2))
        ranks[homes] = 1.0
        divisors = facts.degrees() if self.strengths is None else self.strengths
        return State({"ranks": ranks, "shares": shares}, None, (), {"divisors": divisors, "homes": homes})

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Send all rank; each source then starts with what goes back to it."""
        stuck = self._sums(kernels.send_ranks, state, facts)
        state["ranks"][state.extra["homes"]] = 1 - self.alpha + stuck

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        changes = self._sums(kernels.rank_changes, state, facts)
        self.error_bound = self.alpha / (1 - self.alpha) * float(changes.max())
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def _sums(self, work: Any, state: State, facts: Facts) -> Array:
        """What a pass over all vertices returns, by source."""
        given = (self.alpha, self._width, state.extra["divisors"], *state.arrays)
        parts = facts.team.split(lambda a, b: work(a, b, *given), facts.vertices)
        sums: Array = np.sum(parts, axis=0)[: len(self.sources)]
        return sums

    def remember(self, state: State) -> dict[str, Any]:
        return {"ranks": state["ranks"], "bound": (self.error_bound, self.converged)}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        finite(kept["ranks"])
        state["ranks"] = kept["ranks"]
        self.error_bound, self.converged = real(kept["bound"][0]), truth(kept["bound"][1])

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        ranks = state.given("ranks").reshape(facts.vertices, self._width)
        return {f"pagerank_{source}": ranks[:, s] for s, source in enumerate(self.sources)}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {
            "sources": len(columns),
            "highest": max(float(ranks.max()) for ranks in columns.values()),
            "error_bound": self.error_bound,
            "converged": self.converged,
        }


def live_ranks(graph: Snapshot, sources: Any, alpha: float = 0.85, tol: float = 1e-6, weight: bool = False) -> BySource:
    def summary(columns: dict[str, Array], programs: list[Any]) -> dict[str, Any]:
        return {
            "sources": len(columns),
            "highest": max(float(ranks.max()) for ranks in columns.values()),
            "error_bound": max(float(program.error_bound) for program in programs),
            "converged": all(program.converged for program in programs),
        }

    return BySource(
        "personalized_pagerank",
        PersonalizedPageRank.columns,
        "pagerank_",
        as_sources(sources),
        MOST,
        lambda source: LivePageRank(alpha, tol, {source: 1.0}, weight),
        summary,
    )


@algorithm(live=Live("PersonalizedPageRank", live_ranks))
def personalized_pagerank(
    run: Runner,
    sources: Annotated[
        Any,
        Option("A vertex to return to; up to 64 times.", flag="--source", kind=Kind.VERTICES, sample=first_vertices),
    ],
    alpha: Annotated[float, Option("Damping: the chance of following an edge.")] = 0.85,
    max_iter: MaxIter = 1000,
    tol: Annotated[float, Option("Bound on the L1 error of each column.")] = 1e-6,
    weight: UseWeights = False,
) -> Answer:
    """Importance for each of many sources by random walks that return to it, with a guaranteed error bound.

    One column `pagerank_<id>` for each of up to 64 sources; all of them share every read. Teleports, and walks that
    reach a vertex without edges, go back to the source.
    """
    need_weights(run, weight, "personalized_pagerank")
    program = PersonalizedPageRank(
        as_sources(sources), alpha, tol, max_iter, NOTHING_YET if weight else None, run.graph.has_in_edges
    )
    try:
        if weight:
            run.must_fit(program)
            program.strengths = strengths_of(run)
        answer = run(program)
    except BudgetError as error:
        raise BudgetError(f"{error}, or fewer sources: each takes 16 bytes per vertex") from None
    if not program.converged:
        run.note(
            f"stopped after {max_iter} iterations; errors are bounded by {program.error_bound:.3g}, not by tol "
            f"= {tol:g}"
        )
    return answer
